//! What a run found, on one page that a person opens, reads and sends on.
//!
//! Verdicts are read twice: slim, as statistics want them ([`crate::analysis::verdicts`]), and whole, as the browser of
//! cases shows them ([`RecordSummary`]). A [`JudgeReport`] has all figures of one judge, a [`ReportData`] those of all judges;
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

pub use audit::ReportAudit;
pub use browser::{BrowserEntry, CaseBrowser, PairOrientation};
pub use figures::ReportData;
pub use html::page;
pub use judged::{Inputs, JudgeReport};
pub use markdown::markdown;
pub use parquet::parquet;
pub use pictures::{EmbeddedImages, Thumbs};
pub use rows::{CellValue, ColumnType, VerdictTable};
pub use section::{ReportSection, SectionBlock};
pub use sections::sections;
pub use seen::{RecordSummary, read};
