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
mod case_lists;
mod counts;
mod embedded_images;
mod groups;
mod histogram;
mod html;
mod judge_agreement;
mod judge_report;
mod markdown;
mod parquet;
mod record_summary;
mod report_data;
mod scores;
mod section;
mod sections;
mod verdict_table;

pub use crate::analysis::report::embedded_images::{EmbeddedImages, Thumbs};
pub use crate::analysis::report::judge_report::{Inputs, JudgeReport};
pub use crate::analysis::report::record_summary::{RecordSummary, read};
pub use crate::analysis::report::report_data::ReportData;
pub use crate::analysis::report::verdict_table::{CellValue, ColumnType, VerdictTable};
pub use audit::ReportAudit;
pub use browser::{BrowserEntry, CaseBrowser, PairOrientation};
pub use html::page;
pub use markdown::markdown;
pub use parquet::parquet;
pub use section::{ReportSection, SectionBlock};
pub use sections::sections;
