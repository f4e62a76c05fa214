//! Text metrics: comparison of answers with references, as a baseline for the judge.
//!
//! A metric is a function of one answer and the reference of its case. If it cannot be computed,
//! the answer is uncounted with a reason, never zero: the answer or the reference is missing, or
//! the reference has no word that the metric uses.

pub mod answers;
mod learned;
mod lexical;
mod metric;
mod outcome;
mod sample;
mod scores_file;
mod table;
mod tables;

pub use crate::analysis::metrics::answers::answer::{AnswerSet, MetricAnswer, MissingAnswer};
pub use crate::analysis::metrics::lexical::bleu::BleuCounts;
pub use crate::analysis::metrics::lexical::chinese::words_as_in;
pub use crate::analysis::metrics::lexical::closed::is_closed;
pub use crate::analysis::metrics::lexical::overlap::{PrecisionRecall, WordOverlap};
pub use crate::analysis::metrics::lexical::words::words;
pub use crate::analysis::metrics::scores_file::{SCORES_FORM, to_json_lines};
pub use learned::sentence_encoder::{EncoderSummary, SentenceEncoder, TextEmbeddings};
pub use learned::{BartSettings, BertSettings, LearnedMetrics};
pub use lexical::{LexicalSettings, score_answer};
pub use metric::{COLUMNS, Metric, MetricColumn};
pub use outcome::{AnswerScores, MetricOutcome, UncountedReason};
pub use table::{MetricEstimate, MetricTable, ModelMetrics};
