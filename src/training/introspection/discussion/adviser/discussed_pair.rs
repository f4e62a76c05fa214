//! A misjudged pair with the rounds of its discussion so far.

use crate::judging::judge::recorded_verdict::RecordedOrder;
use crate::training::introspection::discussion::discussion_round::DiscussionRound;
use crate::training::introspection::judged::misjudged_pair::MisjudgedPair;

/// A misjudged pair and its discussion.
pub(crate) struct DiscussedPair<'a> {
    /// The pair.
    pub(crate) misjudged: &'a MisjudgedPair,
    /// The rounds so far.
    pub(crate) rounds: Vec<DiscussionRound>,
}

/// An earlier evaluation, and why the reviewer rejects it.
#[derive(Clone, Copy)]
pub(crate) struct Objection<'a> {
    /// The evaluation in the presentation order.
    pub(crate) order: &'a RecordedOrder,
    /// The reason.
    pub(crate) reason: &'a str,
}

impl<'a> DiscussedPair<'a> {
    /// Starts the discussion of a pair.
    pub(crate) fn new(misjudged: &'a MisjudgedPair) -> Self {
        Self { misjudged, rounds: Vec::new() }
    }

    /// Returns the number of the next suggestion, from 0.
    pub(crate) fn attempt(&self) -> u32 {
        self.rounds.len() as u32
    }

    /// Returns true if the adviser needs the labels: an earlier suggestion contradicts them, or is
    /// malformed.
    pub(crate) fn needs_labels(&self) -> bool {
        self.rounds.iter().any(|round| round.problem.is_some())
    }

    /// Returns the last objection of the reviewer, with the evaluation that it is about.
    pub(crate) fn objection(&self, swapped: bool) -> Option<Objection<'_>> {
        self.rounds.iter().rev().find_map(|round| {
            let reason = round.objection()?;
            let orders = &round.suggestion.as_ref()?.orders;
            let order = orders.iter().find(|order| order.swapped == swapped)?;
            Some(Objection { order, reason })
        })
    }
}
