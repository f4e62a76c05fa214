//! Lexical metrics: computed from the two texts without a model.

use std::collections::BTreeMap;

use super::answer::MetricAnswer;
use super::bleu::{BleuCounts, ORDERS};
use super::closed::is_right;
use super::metric::Metric;
use super::outcome::{AnswerScores, MetricOutcome, UncountedReason};
use super::overlap::{PrecisionRecall, WordOverlap};
use super::words::words;
use super::{chinese, llava_med, rouge};
use crate::analysis::metrics::tokenizer_13a;

const BLEU: [&str; ORDERS] = ["bleu1", "bleu2", "bleu3", "bleu4"];

/// Settings of the lexical metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LexicalSettings {
    /// True if ROUGE compares stems.
    pub stemmed: bool,
    /// True for Chinese texts, where each character is a word.
    pub chinese: bool,
}

impl LexicalSettings {
    /// Describes the variant of metrics that have a reference implementation, by name.
    pub fn told(self, metrics: &[Metric]) -> BTreeMap<String, String> {
        let mut told = BTreeMap::new();
        if metrics.contains(&Metric::Bleu) {
            let tokens = if self.chinese { "zh" } else { "13a" };
            let bleu = format!(
                "as sacrebleu: nrefs:1, case:mixed, tok:{tokens}, smooth:exp; eff:yes for answers, eff:no for \
                 the corpus"
            );
            told.insert("bleu".to_owned(), bleu);
        }
        if metrics.contains(&Metric::Rouge) {
            let stems = if self.stemmed { "with" } else { "without" };
            let how = if self.chinese {
                "of characters, and of words in Latin letters; F1".to_owned()
            } else {
                format!("as rouge-score {stems} stems; F1")
            };
            told.insert("rouge".to_owned(), how);
        }
        told
    }

    /// Splits a text into the words that most metrics use.
    fn words(self, text: &str) -> Vec<String> {
        if self.chinese {
            chinese::characters(text)
        } else {
            words(text)
        }
    }

    fn bleu_tokens(self, text: &str) -> Vec<String> {
        if self.chinese {
            tokenizer_13a::tokens_apart(&chinese::apart(text))
        } else {
            tokenizer_13a::tokens(text)
        }
    }

    fn rouge_tokens(self, text: &str) -> Vec<String> {
        if self.chinese {
            chinese::characters(text)
        } else {
            rouge::tokens(text, self.stemmed)
        }
    }
}

/// Values with the names of their columns.
pub(super) type ColumnValues = Vec<(&'static str, f64)>;

/// Computes the scores of an answer.
pub fn score(answer: &MetricAnswer, metrics: &[Metric], settings: LexicalSettings) -> AnswerScores {
    let mut scores = AnswerScores::default();
    for metric in metrics.iter().filter(|metric| !metric.is_learned()) {
        if !metric.is_about(answer.closed) {
            scores.add_all(*metric, MetricOutcome::Elsewhere);
            continue;
        }
        let reference = answer.reference.as_deref();
        let found = reference
            .ok_or(UncountedReason::NoReference)
            .and_then(|reference| {
                values(*metric, [&answer.text, reference], settings, &mut scores)
            });
        match found {
            Ok(values) => scores.add_values(values),
            Err(why) => scores.add_all(*metric, MetricOutcome::Uncounted(why)),
        }
    }
    scores
}

/// Computes one metric for an answer and its reference.
fn values(
    metric: Metric,
    texts: [&str; 2],
    settings: LexicalSettings,
    scores: &mut AnswerScores,
) -> Result<ColumnValues, UncountedReason> {
    let seen = |lists: [Vec<String>; 2]| match lists {
        [_, wanted] if wanted.is_empty() => Err(UncountedReason::NoWords),
        lists => Ok(lists),
    };
    Ok(match metric {
        Metric::Em => {
            let [said, wanted] = seen(texts.map(|text| settings.words(text)))?;
            vec![("exact_match", share(said == wanted))]
        }
        Metric::Closed => {
            let [said, wanted] = seen(texts.map(|text| settings.words(text)))?;
            let right = if settings.chinese {
                chinese::is_right
            } else {
                is_right
            };
            vec![("closed_accuracy", share(right(&said, &wanted)))]
        }
        Metric::OpenRecall => {
            let [said, wanted] = seen(texts.map(|text| settings.words(text)))?;
            let recall = WordOverlap::new(&said, &wanted).agreement(1).recall;
            vec![("open_recall", recall)]
        }
        Metric::F1 => {
            let [said, wanted] = seen(texts.map(|text| settings.words(text)))?;
            let found = WordOverlap::new(&said, &wanted).agreement(1);
            parts(["f1", "f1_precision", "f1_recall"], found)
        }
        Metric::Bleu => {
            let [said, wanted] = seen(texts.map(|text| settings.bleu_tokens(text)))?;
            let counts = BleuCounts::of(&WordOverlap::new(&said, &wanted));
            scores.bleu = Some(counts);
            let orders = (1..).zip(BLEU);
            orders.map(|(n, name)| (name, counts.sentence(n))).collect()
        }
        Metric::Rouge => {
            let [said, wanted] = seen(texts.map(|text| settings.rouge_tokens(text)))?;
            of_rouge(&WordOverlap::new(&said, &wanted))
        }
        Metric::LlavaMedClosed => {
            let right = llava_med::closed(texts[0], texts[1]).ok_or(UncountedReason::LeftOut)?;
            vec![("llava_med_closed", share(right))]
        }
        Metric::LlavaMedRecall => {
            vec![("llava_med_recall", llava_med::recall(texts[0], texts[1]))]
        }
        // Computed for all answers together in `learned`.
        Metric::Bertscore | Metric::BertscoreRescaled | Metric::Bartscore => Vec::new(),
    })
}

fn of_rouge(pair: &WordOverlap) -> ColumnValues {
    [
        parts(
            ["rouge1", "rouge1_precision", "rouge1_recall"],
            pair.agreement(1),
        ),
        parts(
            ["rouge2", "rouge2_precision", "rouge2_recall"],
            pair.agreement(2),
        ),
        parts(
            ["rougeL", "rougeL_precision", "rougeL_recall"],
            rouge::rouge_l(pair),
        ),
    ]
    .concat()
}

/// Pairs names in the order F1, precision, recall with their values.
fn parts([f1, precision, recall]: [&'static str; 3], found: PrecisionRecall) -> ColumnValues {
    vec![
        (f1, found.f1),
        (precision, found.precision),
        (recall, found.recall),
    ]
}

fn share(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}
