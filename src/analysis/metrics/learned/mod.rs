//! Model-based metrics: `BERTScore` and `BARTScore`, computed for all answers together. Embeddings of
//! whole texts.

pub(crate) mod bart_score;
pub(crate) mod baseline;
pub(crate) mod batches;
pub(crate) mod bert_score;
pub(crate) mod idf;
pub(crate) mod model;
pub(crate) mod sentence_encoder;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::Result;

use super::metric::Metric;
use super::outcome::{AnswerScores, MetricOutcome, UncountedReason};
use crate::analysis::metrics::answers::answer::MetricAnswer;
use crate::analysis::metrics::learned::bert_score::BertScore;
use crate::analysis::metrics::learned::model::{Bart, Bert, ModelSource};
use crate::analysis::metrics::lexical::overlap::PrecisionRecall;
use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub::HubArgs;
use crate::support::device::Placement;

/// Settings of `BERTScore`.
#[derive(Clone, Debug)]
pub struct BertSettings {
    /// Folder or hub id of a BERT or `RoBERTa` checkpoint.
    pub model: String,
    /// Layer whose hidden states are compared; `None` for bert-score's default.
    pub layer: Option<usize>,
    /// True to weight tokens by inverse document frequency.
    pub uses_idf: bool,
    /// Baseline file for rescaling.
    pub baseline: Option<PathBuf>,
}

/// Settings of `BARTScore`.
#[derive(Clone, Debug)]
pub struct BartSettings {
    /// Folder or hub id of a BART checkpoint.
    pub model: String,
}

/// Execution settings, progress and results of model-based metrics.
pub struct LearnedMetrics<'a> {
    /// Device and dtype.
    pub placement: Placement,
    /// Maximum number of texts per batch.
    pub batch_size: usize,
    /// Hub settings.
    pub hub: HubArgs,
    /// True to print errors only.
    pub quiet: bool,
    /// Progress callback: task, completed steps, total steps.
    pub progress: &'a mut dyn FnMut(&str, usize, usize),
    /// Settings that affect the results, by name; filled during computation.
    pub settings: BTreeMap<String, String>,
    /// Notes for the output.
    pub notes: Vec<String>,
}

impl LearnedMetrics<'_> {
    /// Adds `BERTScore` to the scores of answers.
    pub fn add_bert_score(
        &mut self,
        answers: &[MetricAnswer],
        scores: &mut [AnswerScores],
        settings: &BertSettings,
    ) -> Result<()> {
        let source = self.open_source("--bert", &settings.model)?;
        let (bert, layer, hash) = Bert::load(&source, settings.layer, &self.placement)?;
        let baseline = settings.baseline.as_deref();
        let baseline = baseline.map(|path| baseline::read_baseline(path, layer)).transpose()?;
        let idf = if settings.uses_idf { ", idf" } else { "" };
        let name = source.display_name();
        self.record_setting("bertscore", format!("{name}, weights {hash}, layer {layer}{idf}"));
        if let Some(path) = &settings.baseline {
            let base = format!("baselines of {}", path.display());
            self.record_setting("bertscore_rescaled", base);
        }
        let (pairs, indices) = pairs_with_reference(answers, scores, |scores| {
            scores
                .add_all(Metric::Bertscore, MetricOutcome::Uncounted(UncountedReason::NoReference));
            if baseline.is_some() {
                let no_reference = MetricOutcome::Uncounted(UncountedReason::NoReference);
                scores.add_all(Metric::BertscoreRescaled, no_reference);
            }
        });
        let total = pairs.len();
        let progress = &mut self.progress;
        let mut report = |done| progress("BERTScore", done, total);
        let idf_texts = if settings.uses_idf { references(answers) } else { Vec::new() };
        let (pair_scores, truncated) =
            bert_score::score_pairs(&bert, &pairs, &idf_texts, self.batch_size, &mut report)?;
        for (index, pair_score) in indices.into_iter().zip(pair_scores) {
            let Some(scores) = scores.get_mut(index) else {
                continue;
            };
            let uncounted = |reason| MetricOutcome::Uncounted(reason);
            match pair_score {
                BertScore::Found(score) => add_bert_values(scores, score, baseline),
                BertScore::NoWords => {
                    add_bert_outcome(
                        scores,
                        uncounted(UncountedReason::NoWords),
                        baseline.is_some(),
                    );
                }
                BertScore::NoWeight => {
                    add_bert_outcome(
                        scores,
                        uncounted(UncountedReason::NoWeight),
                        baseline.is_some(),
                    );
                }
            }
        }
        self.note_truncated("--bert", truncated);
        Ok(())
    }

    /// Adds `BARTScore` to the scores of answers.
    pub fn add_bart_score(
        &mut self,
        answers: &[MetricAnswer],
        scores: &mut [AnswerScores],
        settings: &BartSettings,
    ) -> Result<()> {
        let source = self.open_source("--bart", &settings.model)?;
        let (bart, hash) = Bart::load(&source, &self.placement)?;
        let name = source.display_name();
        self.record_setting("bartscore", format!("{name}, weights {hash}"));
        let (pairs, indices) = pairs_with_reference(answers, scores, |scores| {
            scores
                .add_all(Metric::Bartscore, MetricOutcome::Uncounted(UncountedReason::NoReference));
        });
        let total = 2 * pairs.len();
        let batch_size = self.batch_size;
        let progress = &mut self.progress;
        let reversed: Vec<[&str; 2]> =
            pairs.iter().map(|[answer, reference]| [*reference, *answer]).collect();
        let mut report = |done| progress("BARTScore", done, total);
        let (forward, truncated) =
            bart_score::likelihoods(&bart, &reversed, batch_size, &mut report)?;
        let mut report = |done| progress("BARTScore", pairs.len() + done, total);
        let (reverse, _) = bart_score::likelihoods(&bart, &pairs, batch_size, &mut report)?;
        for ((index, forward), reverse) in indices.into_iter().zip(forward).zip(reverse) {
            if let Some(scores) = scores.get_mut(index) {
                scores.add_values([
                    ("bartscore", forward),
                    ("bartscore_reverse", reverse),
                    ("bartscore_mean", f64::midpoint(forward, reverse)),
                ]);
            }
        }
        self.note_truncated("--bart", truncated);
        Ok(())
    }

    fn open_source(&self, flag: &str, model: &str) -> Result<ModelSource> {
        ModelSource::open(flag, model, &FileFilter::Panel, self.hub, self.quiet)
    }

    fn record_setting(&mut self, name: &str, value: String) {
        self.settings.insert(name.to_owned(), value);
    }

    fn note_truncated(&mut self, flag: &str, truncated: u64) {
        if truncated > 0 {
            let texts = crate::support::text::format_count(truncated, "text");
            self.notes.push(format!(
                "{texts} truncated: longer than the input limit of the {flag} model"
            ));
        }
    }
}

/// Returns the answers that have a reference, with their indices; calls `no_reference` for the
/// others.
fn pairs_with_reference<'a>(
    answers: &'a [MetricAnswer],
    scores: &mut [AnswerScores],
    no_reference: impl Fn(&mut AnswerScores),
) -> (Vec<[&'a str; 2]>, Vec<usize>) {
    let (mut pairs, mut indices) = (Vec::new(), Vec::new());
    for (index, (answer, scores)) in answers.iter().zip(scores).enumerate() {
        match &answer.reference {
            Some(reference) => {
                pairs.push([answer.text.as_str(), reference.as_str()]);
                indices.push(index);
            }
            None => no_reference(scores),
        }
    }
    (pairs, indices)
}

/// Returns the reference of each case once.
fn references(answers: &[MetricAnswer]) -> Vec<&str> {
    let mut known = HashSet::new();
    let first = answers.iter().filter(|answer| known.insert(&answer.case));
    first.filter_map(|answer| answer.reference.as_deref()).collect()
}

fn add_bert_outcome(scores: &mut AnswerScores, outcome: MetricOutcome, is_rescaled: bool) {
    scores.add_all(Metric::Bertscore, outcome);
    if is_rescaled {
        scores.add_all(Metric::BertscoreRescaled, outcome);
    }
}

fn add_bert_values(
    scores: &mut AnswerScores,
    score: PrecisionRecall,
    base: Option<PrecisionRecall>,
) {
    scores.add_values([
        ("bertscore_f1", score.f1),
        ("bertscore_precision", score.precision),
        ("bertscore_recall", score.recall),
    ]);
    if let Some(base) = base {
        let score = baseline::rescale(score, base);
        scores.add_values([
            ("bertscore_f1_rescaled", score.f1),
            ("bertscore_precision_rescaled", score.precision),
            ("bertscore_recall_rescaled", score.recall),
        ]);
    }
}
