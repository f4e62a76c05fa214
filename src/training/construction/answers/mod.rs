//! Answers of models to the questions of cases, which a judge compares later.
//!
//! A run writes one line per question, in the order of the input, to a file in LLaVA's format. The file
//! is its journal: the same command continues an interrupted run. The settings of a run are in a file
//! next to it, and each line has their hash.

mod answer_estimate;
mod answer_file;
mod answer_journal;
mod answer_record;
mod answer_run;
mod answer_settings;
mod answer_summary;
mod earlier_answers;
mod question_prompt;

pub use answer_estimate::{AnswerEstimate, estimate_answers};
pub use answer_file::AnswerFileScan;
pub use answer_journal::AnswerJournal;
pub use answer_record::{AnswerOutcome, AnswerRecord};
pub use answer_run::{AnswerRun, AnswerRunConfig};
pub use answer_settings::{AnswerManifest, AnswerSettings};
pub use answer_summary::AnswerSummary;
pub use question_prompt::QuestionPrompt;
