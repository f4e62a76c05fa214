//! Metrics of text against a reference: baselines beside the judge.
//!
//! Each metric is one number for one answer, made of the answer and its case's reference alone. What
//! cannot be computed is uncounted with its reason, never a zero: an answer without a reference, an
//! answer that is missing, a reference in which the metric sees no word.

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

pub use crate::analysis::metrics::scores_file::lines;
pub use answer::{AnswerSet, MetricAnswer, MissingAnswer};
pub use bleu::BleuCounts;
pub use closed::is_closed;
pub use learned::{BartSettings, BertSettings, LearnedMetrics};
pub use lexical::{LexicalSettings, score};
pub use metric::{COLUMNS, Metric, MetricColumn};
pub use outcome::{AnswerScores, MetricOutcome, UncountedReason};
pub use overlap::{PrecisionRecall, WordOverlap};
pub use table::{MetricEstimate, MetricTable, ModelMetrics};
pub use words::words;
