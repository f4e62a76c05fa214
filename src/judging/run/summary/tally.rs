//! Counts and sums of a run, in constant memory.

use crate::support::terminal::progress::ProgressCounts;
use std::collections::{BTreeMap, BTreeSet};

use acem3_conclusion::compare_scores;
use acem3_experts::Aspect;
use acem3_experts::prompt::Form;

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
    /// Responses of the current case that are no pair.
    pub(super) alone: AloneScores,
    /// Sum and number of the final scores in each place of a list.
    pub(super) positions: Vec<(f64, u64)>,
}

/// Final scores of the responses of one case that are no pair, to be compared.
#[derive(Clone, Debug, Default)]
pub(super) struct AloneScores {
    /// Id of the case. Cases of a JSON array on one line have equal line numbers.
    case: Option<String>,
    /// Model and combined final score of each response.
    scores: Vec<(String, f64)>,
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
    /// Records with this model: pairs, or responses judged alone.
    pub pairs: u64,
    /// Records with a verdict.
    pub judged: u64,
    /// Sum of the combined final scores.
    pub scores: f64,
    /// Sum of the combined expected final scores.
    pub expected: f64,
    /// Sums of the aspect scores.
    pub aspects: BTreeMap<Aspect, f64>,
    /// Pairs that the model won.
    pub wins: u64,
    /// Ties.
    pub ties: u64,
    /// Pairs that the model lost.
    pub losses: u64,
}

impl Tally {
    /// Returns the aspects of all verdicts, without those that no verdict has.
    pub fn aspects(&self) -> Vec<Aspect> {
        let all = self.models.values().flat_map(|model| model.aspects.keys().copied());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

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
                self.counts.looked_up += u64::from(verdict.has_lookups());
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
            self.add_responses(record);
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

impl Tally {
    /// Adds the verdict on responses that are no pair, and compares them with each other and with the
    /// earlier responses of the case.
    fn add_responses(&mut self, record: &Record) {
        let Some(verdict) = record.verdict() else {
            return;
        };
        if self.alone.case != record.subject.case {
            self.alone = AloneScores { case: record.subject.case.clone(), scores: Vec::new() };
        }
        for (index, name) in record.subject.models.iter().enumerate() {
            self.models.entry(name.clone()).or_default().add(verdict, index);
            if record.subject.form == Form::Correctness {
                continue;
            }
            let score = verdict.scores.get(index).copied().unwrap_or_default();
            for (other, other_score) in &self.alone.scores {
                let order = PairOrder::from(compare_scores([score, *other_score]));
                self.models.entry(name.clone()).or_default().count_order(order, 0);
                self.models.entry(other.clone()).or_default().count_order(order, 1);
            }
            self.alone.scores.push((name.clone(), score));
        }
        self.add_positions(verdict);
    }

    /// Adds the final scores of a list by the place in which each response was shown.
    fn add_positions(&mut self, verdict: &RecordedVerdict) {
        for order in &verdict.orders {
            let Some(first) = order.first_shown else { continue };
            let n = order.scores.len();
            self.positions.resize(self.positions.len().max(n), (0.0, 0));
            for (index, score) in order.scores.iter().enumerate() {
                let place = (index + n).saturating_sub(first) % n.max(1);
                if let Some((sum, count)) = self.positions.get_mut(place) {
                    *sum += f64::from(*score);
                    *count += 1;
                }
            }
        }
    }

    /// Returns the mean final score of the response in each place of a list.
    pub fn mean_positions(&self) -> Vec<f64> {
        let mean = |(sum, n): &(f64, u64)| (sum / (*n).max(1) as f64 * 1e4).round() / 1e4;
        self.positions.iter().map(mean).collect()
    }
}

impl ModelTally {
    /// Adds a verdict on the response with this index in the record.
    fn add(&mut self, verdict: &RecordedVerdict, index: usize) {
        let value = |values: &Vec<f64>| values.get(index).copied().unwrap_or_default();
        self.judged += 1;
        self.scores += value(&verdict.scores);
        self.expected += value(&verdict.expected);
        for (aspect, scores) in &verdict.aspects {
            *self.aspects.entry(*aspect).or_default() += value(scores);
        }
        if let Some(order) = verdict.order {
            self.count_order(order, index);
        }
    }

    /// Counts a comparison in which the model has this index.
    fn count_order(&mut self, order: PairOrder, index: usize) {
        match (order, index) {
            (PairOrder::Tie, _) => self.ties += 1,
            (PairOrder::FirstBetter, 0) | (PairOrder::SecondBetter, 1) => self.wins += 1,
            _ => self.losses += 1,
        }
    }
}
