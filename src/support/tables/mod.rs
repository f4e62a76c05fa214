//! Tables of text cells, written for a terminal, as Markdown or as CSV.

mod layout;
mod reasons;
mod section;
mod style;
mod table;
mod wrap;

pub use reasons::Reasons;
pub use section::{TableSection, render};
pub use style::TableStyle;
pub use table::Table;
