//! Report of one or more judges: an HTML page, Markdown, JSON, CSV or Parquet.
//!
//! The records are read twice: without texts for the statistics ([`crate::analysis::verdicts`]),
//! and with texts for the case browser ([`RecordSummary`]). A [`JudgeReport`] contains the
//! statistics of one judge, a [`ReportData`] those of all judges. [`build_sections`] turns them
//! into text, tables and charts for HTML and Markdown.
//!
//! The page is a single file and makes no network requests. The data of the cases are JSON, escaped
//! for HTML; the script creates elements from text only; a content security policy restricts what
//! can run. Equal records give equal bytes.

mod audit;
pub mod baseline;
pub mod correctness;
pub mod file_forms;
mod judge_agreement;
mod judge_report;
mod markdown;
pub mod page;
mod parquet;
mod report_data;
pub mod run_comparison;
mod section;
mod sections;
pub mod verdicts;

pub use crate::analysis::report::judge_report::{JudgeReport, JudgeReportSettings};
pub use crate::analysis::report::page::browser::{BrowserEntry, CaseBrowser, PairOrientation};
pub use crate::analysis::report::page::embedded_images::{EmbeddedImages, ImageFolder, Thumbs};
pub use crate::analysis::report::page::html::{PageContent, render_page};
pub use crate::analysis::report::report_data::ReportData;
pub use crate::analysis::report::verdicts::record_summary::{RecordSummary, read_summaries};
pub use crate::analysis::report::verdicts::verdict_table::{CellValue, ColumnType, VerdictTable};
pub use audit::ReportAudit;
pub use markdown::render_markdown;
pub use parquet::to_parquet;
pub use section::{ReportSection, SectionBlock};
pub use sections::build_sections;
