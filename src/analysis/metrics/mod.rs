//! Text metrics: comparison of answers with references, as a baseline for the judge.
//!
//! A metric is a function of one answer and the reference of its case. If it cannot be computed,
//! the answer is uncounted with a reason, never zero: the answer or the reference is missing, or
//! the reference has no word that the metric uses.

mod answer;
mod bart_score;
mod baseline;
mod batches;
mod bert_score;
mod bleu;
mod chinese;
mod closed;
mod idf;
mod learned;
mod lexical;
mod llava_med;
mod metric;
mod model;
mod outcome;
mod overlap;
mod porter;
mod rationale;
mod record_answers;
mod rouge;
mod sample;
mod scores_file;
mod table;
mod tables;
mod tokenizer_13a;
mod words;

pub use crate::analysis::metrics::scores_file::to_json_lines;
pub use answer::{AnswerSet, MetricAnswer, MissingAnswer};
pub use bleu::BleuCounts;
pub use closed::is_closed;
pub use learned::{BartSettings, BertSettings, LearnedMetrics};
pub use lexical::{LexicalSettings, score_answer};
pub use metric::{COLUMNS, Metric, MetricColumn};
pub use outcome::{AnswerScores, MetricOutcome, UncountedReason};
pub use overlap::{PrecisionRecall, WordOverlap};
pub use table::{MetricEstimate, MetricTable, ModelMetrics};
pub use words::words;
