//! Counts and sums of a run, in constant memory.

use crate::support::terminal::progress::ProgressCounts;
use std::collections::BTreeMap;

use acem3_experts::Aspect;

use crate::data::cases::image_fields::is_ignored_image;
use crate::judging::judge::recorded_verdict::{PairOrder, RecordedVerdict};
use crate::judging::run::record::{Record, RecordOutcome};
use crate::judging::run::summary::counts::RunCounts;
use crate::judging::run::summary::unscored_causes::UnscoredCauses;

/// Counts and sums of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Counts for the manifest.
    pub counts: RunCounts,
    /// Sums per model.
    pub models: BTreeMap<String, ModelTally>,
    /// Pairs judged in both presentation orders.
    pub both_orders: u64,
    /// Pairs whose preferred response changes with the order.
    pub flipped: u64,
    /// Verdicts of this run, without reused ones.
    pub new_verdicts: u64,
    /// Sides of pairs without a record of their own; each pair has two.
    pub unlisted_sides: u64,
    /// Causes of unscored records.
    pub causes: UnscoredCauses,
}

/// Origin of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The input: there was no pair to judge.
    Input,
    /// An earlier run.
    Earlier,
    /// The judge, in this run.
    Judge,
}

/// Counts and sums of one model.
#[derive(Clone, Debug, Default)]
pub struct ModelTally {
    /// Pairs with this model.
    pub pairs: u64,
    /// Pairs with a verdict.
    pub judged: u64,
    /// Sum of the combined final scores.
    pub scores: f64,
    /// Sum of the combined expected final scores.
    pub expected: f64,
    /// Sums of the aspect scores, in the order of [`Aspect::ALL`].
    pub aspects: [f64; 3],
    /// Pairs that the model won.
    pub wins: u64,
    /// Ties.
    pub ties: u64,
    /// Pairs that the model lost.
    pub losses: u64,
}

impl Tally {
    /// Returns the counts of a progress bar.
    pub fn progress(&self) -> ProgressCounts {
        ProgressCounts {
            cases: self.counts.cases + self.counts.unreadable,
            new_verdicts: self.new_verdicts,
            judged: self.counts.judged,
            unscored: self.counts.unscored_total(),
        }
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record, origin: Origin) {
        self.counts.records += 1;
        match &record.outcome {
            RecordOutcome::Judged(verdict) => {
                self.counts.judged += 1;
                self.counts.reused += u64::from(origin == Origin::Earlier);
                self.new_verdicts += u64::from(origin == Origin::Judge);
                self.both_orders += u64::from(verdict.flip.is_some());
                self.flipped += u64::from(verdict.flip == Some(true));
            }
            RecordOutcome::Unscored(unscored) => {
                *self.counts.unscored.entry(unscored.reason).or_default() += 1;
                self.causes.add(&record.subject, &unscored.message);
            }
            RecordOutcome::Noted { message } => {
                self.counts.noted += 1;
                self.counts.ignored_images += u64::from(is_ignored_image(message));
            }
        }
        // An unreadable case lowers the coverage of its models.
        let pairs = record.subject.unlisted_pairs.unwrap_or(1);
        for name in &record.subject.models {
            self.models.entry(name.clone()).or_default().pairs += pairs;
        }
        if record.subject.unlisted_pairs.is_some() {
            // Each pair counts for both of its models.
            self.unlisted_sides += pairs * record.subject.models.len() as u64;
            self.counts.unlisted_pairs = self.unlisted_sides.div_ceil(2);
        }
        let Some(pair) = &record.subject.pair else {
            return;
        };
        for (index, name) in pair.iter().enumerate() {
            let model = self.models.entry(name.clone()).or_default();
            model.pairs += 1;
            if let Some(verdict) = record.verdict() {
                model.add(verdict, index);
            }
        }
    }
}

impl ModelTally {
    /// Adds a verdict on the response with this index in the pair.
    fn add(&mut self, verdict: &RecordedVerdict, index: usize) {
        self.judged += 1;
        self.scores += verdict.scores[index];
        self.expected += verdict.expected[index];
        for (sum, aspect) in self.aspects.iter_mut().zip(Aspect::ALL) {
            *sum += verdict.aspects.get(&aspect).map_or(0.0, |pair| pair[index]);
        }
        match (verdict.order, index) {
            (PairOrder::Tie, _) => self.ties += 1,
            (PairOrder::FirstBetter, 0) | (PairOrder::SecondBetter, 1) => self.wins += 1,
            _ => self.losses += 1,
        }
    }
}
