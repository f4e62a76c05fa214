//! Metrics and their columns.

use clap::ValueEnum;

/// A metric on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Metric {
    /// Exact match, ignoring case, punctuation and articles, as in SQuAD
    Em,
    /// Closed accuracy: the answer's first yes or no is correct, or the answer contains the
    /// reference
    Closed,
    /// Open recall: proportion of the reference's words in the answer
    OpenRecall,
    /// Token F1 with precision and recall; words as in SQuAD
    F1,
    /// BLEU-1 to -4 per answer and for the corpus (sacrebleu, tokenization 13a)
    Bleu,
    /// ROUGE-1, -2 and -L (rouge-score)
    Rouge,
    /// Closed accuracy as in LLaVA-Med's published code, with its errors
    LlavaMedClosed,
    /// Open recall as in LLaVA-Med's published code, with its errors
    LlavaMedRecall,
    /// BERTScore: F1, precision and recall of token similarity; needs --bert
    Bertscore,
    /// BERTScore rescaled with --bert-baseline
    BertscoreRescaled,
    /// BARTScore: mean log-likelihood of the answer given the reference, of the reference given
    /// the answer, and the mean of both; needs --bart
    Bartscore,
}

/// A column of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricColumn {
    /// Name in tables and files.
    pub name: &'static str,
    /// Metric of the column.
    pub metric: Metric,
    /// Smallest and largest possible value. Higher is better in all columns.
    pub range: [f64; 2],
    /// True if text tables show the column; files contain all columns.
    pub is_headline: bool,
    /// Order of corpus BLEU, which is not a mean over answers; `None` for other columns.
    pub corpus_order: Option<usize>,
}

const UNIT_RANGE: [f64; 2] = [0.0, 1.0];
const COSINE_RANGE: [f64; 2] = [-1.0, 1.0];
const RESCALED_RANGE: [f64; 2] = [f64::NEG_INFINITY, 1.0];
const LOG_RANGE: [f64; 2] = [f64::NEG_INFINITY, 0.0];

const fn column(name: &'static str, metric: Metric) -> MetricColumn {
    MetricColumn { name, metric, range: UNIT_RANGE, is_headline: true, corpus_order: None }
}

/// Sets the range of a column.
const fn with_range(range: [f64; 2], column: MetricColumn) -> MetricColumn {
    MetricColumn { range, ..column }
}

/// Creates a BLEU column, with the range 0 to 100.
const fn bleu_column(name: &'static str, corpus: Option<usize>) -> MetricColumn {
    MetricColumn { corpus_order: corpus, ..with_range([0.0, 100.0], column(name, Metric::Bleu)) }
}

/// Creates a column that only files contain.
const fn file_column(name: &'static str, metric: Metric) -> MetricColumn {
    MetricColumn { is_headline: false, ..column(name, metric) }
}

/// All columns, grouped by metric.
pub const COLUMNS: [MetricColumn; 34] = [
    column("exact_match", Metric::Em),
    column("closed_accuracy", Metric::Closed),
    column("open_recall", Metric::OpenRecall),
    column("f1", Metric::F1),
    file_column("f1_precision", Metric::F1),
    file_column("f1_recall", Metric::F1),
    bleu_column("bleu1", None),
    bleu_column("bleu2", None),
    bleu_column("bleu3", None),
    bleu_column("bleu4", None),
    bleu_column("corpus_bleu1", Some(1)),
    bleu_column("corpus_bleu2", Some(2)),
    bleu_column("corpus_bleu3", Some(3)),
    bleu_column("corpus_bleu4", Some(4)),
    column("rouge1", Metric::Rouge),
    file_column("rouge1_precision", Metric::Rouge),
    file_column("rouge1_recall", Metric::Rouge),
    column("rouge2", Metric::Rouge),
    file_column("rouge2_precision", Metric::Rouge),
    file_column("rouge2_recall", Metric::Rouge),
    column("rougeL", Metric::Rouge),
    file_column("rougeL_precision", Metric::Rouge),
    file_column("rougeL_recall", Metric::Rouge),
    column("llava_med_closed", Metric::LlavaMedClosed),
    column("llava_med_recall", Metric::LlavaMedRecall),
    with_range(COSINE_RANGE, column("bertscore_f1", Metric::Bertscore)),
    with_range(COSINE_RANGE, file_column("bertscore_precision", Metric::Bertscore)),
    with_range(COSINE_RANGE, file_column("bertscore_recall", Metric::Bertscore)),
    with_range(RESCALED_RANGE, column("bertscore_f1_rescaled", Metric::BertscoreRescaled)),
    with_range(
        RESCALED_RANGE,
        file_column("bertscore_precision_rescaled", Metric::BertscoreRescaled),
    ),
    with_range(RESCALED_RANGE, file_column("bertscore_recall_rescaled", Metric::BertscoreRescaled)),
    with_range(LOG_RANGE, column("bartscore", Metric::Bartscore)),
    with_range(LOG_RANGE, file_column("bartscore_reverse", Metric::Bartscore)),
    with_range(LOG_RANGE, file_column("bartscore_mean", Metric::Bartscore)),
];

impl MetricColumn {
    /// Returns true if the mean of the column is a proportion.
    pub fn is_proportion(&self) -> bool {
        self.range == UNIT_RANGE
    }
}

impl Metric {
    /// Default metrics.
    pub const DEFAULT: [Self; 6] =
        [Self::Em, Self::Closed, Self::OpenRecall, Self::F1, Self::Bleu, Self::Rouge];

    /// Returns the columns of the metric.
    pub fn columns(self) -> impl Iterator<Item = &'static MetricColumn> {
        COLUMNS.iter().filter(move |column| column.metric == self)
    }

    /// Returns true if the metric needs a model.
    pub fn is_learned(self) -> bool {
        matches!(self, Self::Bertscore | Self::BertscoreRescaled | Self::Bartscore)
    }

    /// Returns true if the metric applies to a question. If it is unknown whether the question is
    /// closed, every metric applies, so that no answer is silently skipped.
    pub fn applies_to(self, closed: Option<bool>) -> bool {
        match self {
            Self::Closed | Self::LlavaMedClosed => closed != Some(false),
            Self::OpenRecall | Self::LlavaMedRecall => closed != Some(true),
            _ => true,
        }
    }
}
