//! What a run counts as its records go by: nothing that grows with their number.

use crate::support::terminal::progress::ProgressCounts;
use std::collections::BTreeMap;

use acem3_experts::Aspect;

use crate::judging::judge::recorded_verdict::{PairOrder, RecordedVerdict};
use crate::judging::run::manifest::RunCounts;
use crate::judging::run::record::{Record, RecordOutcome};
use crate::judging::run::unscored_causes::Causes;

/// The counts and sums of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How much was done.
    pub counts: RunCounts,
    /// What each model got.
    pub models: BTreeMap<String, ModelTally>,
    /// Pairs that were judged in both orders.
    pub both_orders: u64,
    /// Those whose orders disagree.
    pub flipped: u64,
    /// Verdicts that the judge gave now.
    pub fresh: u64,
    /// Why records have no verdict.
    pub causes: Causes,
}

/// Where an outcome came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the input: there was nothing to judge.
    Input,
    /// From an earlier run.
    Earlier,
    /// From the judge.
    Judge,
}

/// What one model got.
#[derive(Clone, Debug, Default)]
pub struct ModelTally {
    /// Pairs it was in.
    pub pairs: u64,
    /// Those with a verdict.
    pub judged: u64,
    /// The sum of its combined final scores.
    pub scores: f64,
    /// The sum of its combined expected final scores.
    pub expected: f64,
    /// The sums of its aspect scores, in the order of [`Aspect::ALL`].
    pub aspects: [f64; 3],
    /// Pairs in which it was better.
    pub wins: u64,
    /// Pairs in which both were equal.
    pub ties: u64,
    /// Pairs in which it was worse.
    pub losses: u64,
}

impl Tally {
    /// The counts that a progress bar shows.
    pub fn progress(&self) -> ProgressCounts {
        ProgressCounts {
            cases: self.counts.cases + self.counts.unreadable,
            fresh: self.fresh,
            judged: self.counts.judged,
            unscored: self.counts.all_unscored(),
        }
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record, origin: Origin) {
        self.counts.records += 1;
        match &record.outcome {
            RecordOutcome::Judged(judgement) => {
                self.counts.judged += 1;
                self.counts.reused += u64::from(origin == Origin::Earlier);
                self.fresh += u64::from(origin == Origin::Judge);
                self.both_orders += u64::from(judgement.flip.is_some());
                self.flipped += u64::from(judgement.flip == Some(true));
            }
            RecordOutcome::Unscored(unscored) => {
                *self.counts.unscored.entry(unscored.reason).or_default() += 1;
                self.causes.add(&record.subject, &unscored.message);
            }
            RecordOutcome::Noted { .. } => self.counts.noted += 1,
        }
        // A case that is lost lowers the coverage of its models.
        for name in &record.subject.models {
            self.models.entry(name.clone()).or_default().pairs += 1;
        }
        let Some(pair) = &record.subject.pair else {
            return;
        };
        for (r, name) in pair.iter().enumerate() {
            let model = self.models.entry(name.clone()).or_default();
            model.pairs += 1;
            if let Some(judgement) = record.judgement() {
                model.add(judgement, r);
            }
        }
    }
}

impl ModelTally {
    fn add(&mut self, judgement: &RecordedVerdict, r: usize) {
        self.judged += 1;
        self.scores += judgement.scores[r];
        self.expected += judgement.expected[r];
        for (sum, aspect) in self.aspects.iter_mut().zip(Aspect::ALL) {
            *sum += judgement.aspects.get(&aspect).map_or(0.0, |pair| pair[r]);
        }
        match (judgement.order, r) {
            (PairOrder::Equal, _) => self.ties += 1,
            (PairOrder::Greater, 0) | (PairOrder::Less, 1) => self.wins += 1,
            _ => self.losses += 1,
        }
    }
}
