//! The metrics there are, and the columns of numbers that each gives.

use clap::ValueEnum;

/// A metric as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Metric {
    /// Exact match: the same words, case, punctuation and articles aside, as in `SQuAD`
    Em,
    /// Closed accuracy: the first yes or no, or the reference's words in the answer
    Closed,
    /// Open recall: the part of the reference's words that the answer has
    OpenRecall,
    /// Token F1 with precision and recall, of words as in `SQuAD`
    F1,
    /// BLEU-1 to -4 of single answers and of all together (sacrebleu, tokenization 13a)
    Bleu,
    /// ROUGE-1, -2 and -L (rouge-score)
    Rouge,
    /// Closed accuracy as LLaVA-Med's published code computes it, faults included
    LlavaMedClosed,
    /// Open recall as LLaVA-Med's published code computes it, faults included
    LlavaMedRecall,
    /// `BERTScore`: F1, precision and recall of the likeness of tokens; needs --bert
    Bertscore,
    /// `BERTScore` rescaled by --bert-baseline
    BertscoreRescaled,
    /// `BARTScore`: the mean log-likelihood of the answer's tokens given the reference, of the
    /// reference's given the answer, and the mean of both; needs --bart
    Bartscore,
}

/// One column of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricColumn {
    /// Its name in tables and files.
    pub name: &'static str,
    /// The metric that gives it.
    pub metric: Metric,
    /// The least and the largest value there can be; more is better in all of them.
    pub range: [f64; 2],
    /// Whether tables for people have it; files have all.
    pub headline: bool,
    /// The order of a BLEU of all answers of a model together, which is no mean of theirs.
    pub corpus: Option<usize>,
}

const UNIT: [f64; 2] = [0.0, 1.0];
const COSINE: [f64; 2] = [-1.0, 1.0];
const RESCALED: [f64; 2] = [f64::NEG_INFINITY, 1.0];
const LOGARITHM: [f64; 2] = [f64::NEG_INFINITY, 0.0];

const fn column(name: &'static str, metric: Metric) -> MetricColumn {
    MetricColumn {
        name,
        metric,
        range: UNIT,
        headline: true,
        corpus: None,
    }
}

/// A column of another range.
const fn within(range: [f64; 2], column: MetricColumn) -> MetricColumn {
    MetricColumn { range, ..column }
}

/// BLEU goes from 0 to 100.
const fn bleu(name: &'static str, corpus: Option<usize>) -> MetricColumn {
    MetricColumn {
        corpus,
        ..within([0.0, 100.0], column(name, Metric::Bleu))
    }
}

/// A column that only files have.
const fn part(name: &'static str, metric: Metric) -> MetricColumn {
    MetricColumn {
        headline: false,
        ..column(name, metric)
    }
}

/// All columns; those of one metric stand together, in the order in which it gives them.
pub const COLUMNS: [MetricColumn; 34] = [
    column("exact_match", Metric::Em),
    column("closed_accuracy", Metric::Closed),
    column("open_recall", Metric::OpenRecall),
    column("f1", Metric::F1),
    part("f1_precision", Metric::F1),
    part("f1_recall", Metric::F1),
    bleu("bleu1", None),
    bleu("bleu2", None),
    bleu("bleu3", None),
    bleu("bleu4", None),
    bleu("corpus_bleu1", Some(1)),
    bleu("corpus_bleu2", Some(2)),
    bleu("corpus_bleu3", Some(3)),
    bleu("corpus_bleu4", Some(4)),
    column("rouge1", Metric::Rouge),
    part("rouge1_precision", Metric::Rouge),
    part("rouge1_recall", Metric::Rouge),
    column("rouge2", Metric::Rouge),
    part("rouge2_precision", Metric::Rouge),
    part("rouge2_recall", Metric::Rouge),
    column("rougeL", Metric::Rouge),
    part("rougeL_precision", Metric::Rouge),
    part("rougeL_recall", Metric::Rouge),
    column("llava_med_closed", Metric::LlavaMedClosed),
    column("llava_med_recall", Metric::LlavaMedRecall),
    within(COSINE, column("bertscore_f1", Metric::Bertscore)),
    within(COSINE, part("bertscore_precision", Metric::Bertscore)),
    within(COSINE, part("bertscore_recall", Metric::Bertscore)),
    within(
        RESCALED,
        column("bertscore_f1_rescaled", Metric::BertscoreRescaled),
    ),
    within(
        RESCALED,
        part("bertscore_precision_rescaled", Metric::BertscoreRescaled),
    ),
    within(
        RESCALED,
        part("bertscore_recall_rescaled", Metric::BertscoreRescaled),
    ),
    within(LOGARITHM, column("bartscore", Metric::Bartscore)),
    within(LOGARITHM, part("bartscore_reverse", Metric::Bartscore)),
    within(LOGARITHM, part("bartscore_mean", Metric::Bartscore)),
];

impl MetricColumn {
    /// Whether its mean is a share, between 0 and 1.
    pub fn is_share(&self) -> bool {
        self.range == UNIT
    }
}

impl Metric {
    /// What is computed where nothing is asked for.
    pub const DEFAULT: [Self; 6] = [
        Self::Em,
        Self::Closed,
        Self::OpenRecall,
        Self::F1,
        Self::Bleu,
        Self::Rouge,
    ];

    /// Its columns.
    pub fn columns(self) -> impl Iterator<Item = &'static MetricColumn> {
        COLUMNS.iter().filter(move |column| column.metric == self)
    }

    /// Whether it needs a model that reads both texts.
    pub fn is_learned(self) -> bool {
        matches!(
            self,
            Self::Bertscore | Self::BertscoreRescaled | Self::Bartscore
        )
    }

    /// Whether it is about such a question. Where nobody knows whether a question is closed, it is
    /// about all, so that none is passed over in silence.
    pub fn is_about(self, closed: Option<bool>) -> bool {
        match self {
            Self::Closed | Self::LlavaMedClosed => closed != Some(false),
            Self::OpenRecall | Self::LlavaMedRecall => closed != Some(true),
            _ => true,
        }
    }
}
