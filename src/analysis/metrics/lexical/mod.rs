//! Lexical metrics: computed from the two texts without a model.

pub(crate) mod bleu;
pub(crate) mod chinese;
pub(crate) mod closed;
pub(crate) mod llava_med;
pub(crate) mod overlap;
pub(crate) mod porter;
pub(crate) mod rouge;
pub(crate) mod tokenizer_13a;
pub(crate) mod words;

use std::collections::BTreeMap;

use super::metric::Metric;
use super::outcome::{AnswerScores, MetricOutcome, UncountedReason};
use crate::analysis::metrics::answers::answer::MetricAnswer;
use crate::analysis::metrics::lexical::bleu::{BleuCounts, ORDERS};
use crate::analysis::metrics::lexical::closed::is_correct;
use crate::analysis::metrics::lexical::overlap::{PrecisionRecall, WordOverlap};
use crate::analysis::metrics::lexical::words::words;

const BLEU_COLUMNS: [&str; ORDERS] = ["bleu1", "bleu2", "bleu3", "bleu4"];

/// Settings of the lexical metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LexicalSettings {
    /// True if ROUGE compares stems.
    pub uses_stems: bool,
    /// True for Chinese texts, where each character is a word.
    pub is_chinese: bool,
}

impl LexicalSettings {
    /// Describes the computed variants of BLEU and ROUGE, by metric name.
    pub fn describe(self, metrics: &[Metric]) -> BTreeMap<String, String> {
        let mut descriptions = BTreeMap::new();
        if metrics.contains(&Metric::Bleu) {
            let tokens = if self.is_chinese { "zh" } else { "13a" };
            let bleu = format!(
                "as in sacrebleu, signature nrefs:1, case:mixed, tok:{tokens}, smooth:exp; eff:yes \
                 for answers, eff:no for the corpus"
            );
            descriptions.insert("bleu".to_owned(), bleu);
        }
        if metrics.contains(&Metric::Rouge) {
            let stems = if self.uses_stems { "with" } else { "without" };
            let rouge = if self.is_chinese {
                "of characters, and of words in Latin letters; F1".to_owned()
            } else {
                format!("as in rouge-score, {stems} stemming; the values are F1")
            };
            descriptions.insert("rouge".to_owned(), rouge);
        }
        descriptions
    }

    /// Splits a text into the words that most metrics use.
    fn words(self, text: &str) -> Vec<String> {
        if self.is_chinese { chinese::characters(text) } else { words(text) }
    }

    fn bleu_tokens(self, text: &str) -> Vec<String> {
        if self.is_chinese {
            tokenizer_13a::split_tokens(&chinese::space_characters(text))
        } else {
            tokenizer_13a::tokenize(text)
        }
    }

    fn rouge_tokens(self, text: &str) -> Vec<String> {
        if self.is_chinese {
            chinese::characters(text)
        } else {
            rouge::tokenize(text, self.uses_stems)
        }
    }
}

/// Values with the names of their columns.
pub(super) type ColumnValues = Vec<(&'static str, f64)>;

/// Computes the scores of an answer.
pub fn score_answer(
    answer: &MetricAnswer,
    metrics: &[Metric],
    settings: LexicalSettings,
) -> AnswerScores {
    let mut scores = AnswerScores::default();
    for metric in metrics.iter().filter(|metric| !metric.is_learned()) {
        if !metric.applies_to(answer.is_closed) {
            scores.add_all(*metric, MetricOutcome::NotApplicable);
            continue;
        }
        let reference = answer.reference.as_deref();
        let values = reference.ok_or(UncountedReason::NoReference).and_then(|reference| {
            compute_metric(*metric, [&answer.text, reference], settings, &mut scores)
        });
        match values {
            Ok(values) => scores.add_values(values),
            Err(reason) => scores.add_all(*metric, MetricOutcome::Uncounted(reason)),
        }
    }
    scores
}

/// Computes one metric for an answer and its reference.
fn compute_metric(
    metric: Metric,
    texts: [&str; 2],
    settings: LexicalSettings,
    scores: &mut AnswerScores,
) -> Result<ColumnValues, UncountedReason> {
    let require_reference = |lists: [Vec<String>; 2]| match lists {
        [_, reference] if reference.is_empty() => Err(UncountedReason::NoWords),
        lists => Ok(lists),
    };
    Ok(match metric {
        Metric::Em => {
            let [answer, reference] = require_reference(texts.map(|text| settings.words(text)))?;
            vec![("exact_match", indicator(answer == reference))]
        }
        Metric::Closed => {
            let [answer, reference] = require_reference(texts.map(|text| settings.words(text)))?;
            let is_correct = if settings.is_chinese { chinese::is_correct } else { is_correct };
            vec![("closed_accuracy", indicator(is_correct(&answer, &reference)))]
        }
        Metric::OpenRecall => {
            let [answer, reference] = require_reference(texts.map(|text| settings.words(text)))?;
            let recall = WordOverlap::new(&answer, &reference).ngram_overlap(1).recall;
            vec![("open_recall", recall)]
        }
        Metric::F1 => {
            let [answer, reference] = require_reference(texts.map(|text| settings.words(text)))?;
            let overlap = WordOverlap::new(&answer, &reference).ngram_overlap(1);
            name_values(["f1", "f1_precision", "f1_recall"], overlap)
        }
        Metric::Bleu => {
            let [answer, reference] =
                require_reference(texts.map(|text| settings.bleu_tokens(text)))?;
            let counts = BleuCounts::from_answer(&WordOverlap::new(&answer, &reference));
            scores.bleu = Some(counts);
            let orders = (1..).zip(BLEU_COLUMNS);
            orders.map(|(n, name)| (name, counts.sentence(n))).collect()
        }
        Metric::Rouge => {
            let [answer, reference] =
                require_reference(texts.map(|text| settings.rouge_tokens(text)))?;
            rouge_values(&WordOverlap::new(&answer, &reference))
        }
        Metric::LlavaMedClosed => {
            let is_correct =
                llava_med::closed_accuracy(texts[0], texts[1]).ok_or(UncountedReason::Excluded)?;
            vec![("llava_med_closed", indicator(is_correct))]
        }
        Metric::LlavaMedRecall => {
            vec![("llava_med_recall", llava_med::recall(texts[0], texts[1]))]
        }
        // Computed for all answers together in `learned`.
        Metric::Bertscore | Metric::BertscoreRescaled | Metric::Bartscore => Vec::new(),
    })
}

fn rouge_values(pair: &WordOverlap) -> ColumnValues {
    [
        name_values(["rouge1", "rouge1_precision", "rouge1_recall"], pair.ngram_overlap(1)),
        name_values(["rouge2", "rouge2_precision", "rouge2_recall"], pair.ngram_overlap(2)),
        name_values(["rougeL", "rougeL_precision", "rougeL_recall"], rouge::rouge_l(pair)),
    ]
    .concat()
}

/// Pairs names in the order F1, precision, recall with their values.
fn name_values(
    [f1, precision, recall]: [&'static str; 3],
    scores: PrecisionRecall,
) -> ColumnValues {
    vec![(f1, scores.f1), (precision, scores.precision), (recall, scores.recall)]
}

fn indicator(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}
