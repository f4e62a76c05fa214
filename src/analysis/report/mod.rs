//! What a run found, on one page that a person opens, reads and sends on.
//!
//! Verdicts are read twice: slim, as statistics want them ([`crate::analysis::verdicts`]), and whole, as the browser of
//! cases shows them ([`Seen`]). A [`Judged`] has all figures of one judge, a [`Report`] those of all judges;
//! [`sections`] puts them into words, tables and charts, which a page and a Markdown file share.
//!
//! The page is one file without any network: data of cases are JSON that no text can break out of, the program
//! that shows them builds its elements of texts alone, and what it may load is named by a content security
//! policy. Equal records give equal bytes.

mod audit;
mod browser;
mod compared;
mod counts;
mod figures;
mod groups;
mod histogram;
mod html;
mod judged;
mod lists;
mod markdown;
mod parquet;
mod pictures;
mod rows;
mod scores;
mod section;
mod sections;
mod seen;

pub use audit::Audit;
pub use browser::{Browser, Entry, Sides};
pub use figures::Report;
pub use html::page;
pub use judged::{Inputs, Judged};
pub use markdown::markdown;
pub use parquet::parquet;
pub use pictures::{Pictures, Thumbs};
pub use rows::{Cell, Kind, Rows};
pub use section::{Block, Section};
pub use sections::sections;
pub use seen::{Seen, read};
