//! Model-based metrics: `BERTScore` and `BARTScore`, computed for all answers together.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::Result;

use super::answer::MetricAnswer;
use super::bart_score;
use super::baseline;
use super::bert_score::{self, BertScore};
use super::metric::Metric;
use super::model::{Bart, Bert, ModelSource};
use super::outcome::{AnswerScores, MetricOutcome, UncountedReason};
use super::overlap::PrecisionRecall;
use crate::checkpoints::hub::HubFlags;
use crate::support::device::Placement;

/// Settings of `BERTScore`.
#[derive(Clone, Debug)]
pub struct BertSettings {
    /// Folder or hub id of a BERT or `RoBERTa` checkpoint.
    pub model: String,
    /// Layer whose hidden states are compared; `None` for bert-score's default.
    pub layer: Option<usize>,
    /// True to weight tokens by inverse document frequency.
    pub idf: bool,
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
    pub place: Placement,
    /// Maximum number of texts per batch.
    pub batch: usize,
    /// Hub settings.
    pub hub: HubFlags,
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
    pub fn bert(
        &mut self,
        answers: &[MetricAnswer],
        scores: &mut [AnswerScores],
        settings: &BertSettings,
    ) -> Result<()> {
        let source = ModelSource::open("--bert", &settings.model, self.hub, self.quiet)?;
        let (bert, layer, hash) = Bert::load(&source, settings.layer, &self.place)?;
        let baseline = settings.baseline.as_deref();
        let baseline = baseline
            .map(|path| baseline::read(path, layer))
            .transpose()?;
        let idf = if settings.idf { ", idf" } else { "" };
        let name = source.described();
        self.set(
            "bertscore",
            format!("{name}, weights {hash}, layer {layer}{idf}"),
        );
        if let Some(path) = &settings.baseline {
            let base = format!("baselines of {}", path.display());
            self.set("bertscore_rescaled", base);
        }
        let (pairs, places) = pairs(answers, scores, |scores| {
            scores.add_all(
                Metric::Bertscore,
                MetricOutcome::Uncounted(UncountedReason::NoReference),
            );
            if baseline.is_some() {
                let none = MetricOutcome::Uncounted(UncountedReason::NoReference);
                scores.add_all(Metric::BertscoreRescaled, none);
            }
        });
        let of = pairs.len();
        let progress = &mut self.progress;
        let mut tell = |done| progress("BERTScore", done, of);
        let rare = if settings.idf {
            references(answers)
        } else {
            Vec::new()
        };
        let (found, cut) = bert_score::scores(&bert, &pairs, &rare, self.batch, &mut tell)?;
        for (place, likeness) in places.into_iter().zip(found) {
            let Some(scores) = scores.get_mut(place) else {
                continue;
            };
            let lost = |why| MetricOutcome::Uncounted(why);
            match likeness {
                BertScore::Found(score) => add(scores, score, baseline),
                BertScore::NoWords => {
                    both(scores, lost(UncountedReason::NoWords), baseline.is_some());
                }
                BertScore::NoWeight => {
                    both(scores, lost(UncountedReason::NoWeight), baseline.is_some());
                }
            }
        }
        self.tell_cut("--bert", cut);
        Ok(())
    }

    /// Adds `BARTScore` to the scores of answers.
    pub fn bart(
        &mut self,
        answers: &[MetricAnswer],
        scores: &mut [AnswerScores],
        settings: &BartSettings,
    ) -> Result<()> {
        let source = ModelSource::open("--bart", &settings.model, self.hub, self.quiet)?;
        let (bart, hash) = Bart::load(&source, &self.place)?;
        let name = source.described();
        self.set("bartscore", format!("{name}, weights {hash}"));
        let (pairs, places) = pairs(answers, scores, |scores| {
            scores.add_all(
                Metric::Bartscore,
                MetricOutcome::Uncounted(UncountedReason::NoReference),
            );
        });
        let of = 2 * pairs.len();
        let batch = self.batch;
        let progress = &mut self.progress;
        let given: Vec<[&str; 2]> = pairs.iter().map(|[a, r]| [*r, *a]).collect();
        let mut tell = |done| progress("BARTScore", done, of);
        let (forward, cut) = bart_score::likelihoods(&bart, &given, batch, &mut tell)?;
        let mut tell = |done| progress("BARTScore", pairs.len() + done, of);
        let (reverse, _) = bart_score::likelihoods(&bart, &pairs, batch, &mut tell)?;
        for ((place, forward), reverse) in places.into_iter().zip(forward).zip(reverse) {
            if let Some(scores) = scores.get_mut(place) {
                scores.add_values([
                    ("bartscore", forward),
                    ("bartscore_reverse", reverse),
                    ("bartscore_mean", f64::midpoint(forward, reverse)),
                ]);
            }
        }
        self.tell_cut("--bart", cut);
        Ok(())
    }

    fn set(&mut self, name: &str, value: String) {
        self.settings.insert(name.to_owned(), value);
    }

    fn tell_cut(&mut self, flag: &str, cut: u64) {
        if cut > 0 {
            let texts = crate::support::text::plural(cut, "text");
            self.notes.push(format!(
                "{texts} truncated: longer than the input limit of the {flag} model"
            ));
        }
    }
}

/// Returns the answers that have a reference, with their indices; calls `lost` for the others.
fn pairs<'a>(
    answers: &'a [MetricAnswer],
    scores: &mut [AnswerScores],
    lost: impl Fn(&mut AnswerScores),
) -> (Vec<[&'a str; 2]>, Vec<usize>) {
    let mut found = (Vec::new(), Vec::new());
    for (place, (answer, scores)) in answers.iter().zip(scores).enumerate() {
        match &answer.reference {
            Some(reference) => {
                found.0.push([answer.text.as_str(), reference.as_str()]);
                found.1.push(place);
            }
            None => lost(scores),
        }
    }
    found
}

/// Returns the reference of each case once.
fn references(answers: &[MetricAnswer]) -> Vec<&str> {
    let mut seen = HashSet::new();
    let first = answers.iter().filter(|answer| seen.insert(&answer.case));
    first
        .filter_map(|answer| answer.reference.as_deref())
        .collect()
}

fn both(scores: &mut AnswerScores, outcome: MetricOutcome, rescaled: bool) {
    scores.add_all(Metric::Bertscore, outcome);
    if rescaled {
        scores.add_all(Metric::BertscoreRescaled, outcome);
    }
}

fn add(scores: &mut AnswerScores, score: PrecisionRecall, base: Option<PrecisionRecall>) {
    scores.add_values([
        ("bertscore_f1", score.f1),
        ("bertscore_precision", score.precision),
        ("bertscore_recall", score.recall),
    ]);
    if let Some(base) = base {
        let score = baseline::rescaled(score, base);
        scores.add_values([
            ("bertscore_f1_rescaled", score.f1),
            ("bertscore_precision_rescaled", score.precision),
            ("bertscore_recall_rescaled", score.recall),
        ]);
    }
}
