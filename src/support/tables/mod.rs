//! Tables of text cells, rendered for a terminal, as Markdown or as CSV.

pub mod chart;
mod chart_label;
mod layout;
mod reasons;
mod section;
mod style;
mod table;
mod wrap;

pub use reasons::Reasons;
pub use section::{TableSection, render_sections};
pub use style::TableStyle;
pub use table::Table;
pub(crate) use wrap::wrap;
