//! Rounds of a discussion: suggestions, their comparison with the labels, and their review.

use anyhow::Result;

use super::adviser::Adviser;
use super::adviser::discussed_pair::DiscussedPair;
use super::chat::request_journal::RequestJournal;
use super::discussion_log::{Advice, Discussants, DiscussionLog};
use super::discussion_round::DiscussionRound;
use super::label_check::filter_agreeing;
use super::reviewer::Reviewer;
use super::reviewer::suggested_pair::SuggestedPair;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::training::introspection::judged::misjudged_pair::MisjudgedPair;

/// Those who discuss misjudged pairs.
pub struct Discussion {
    /// Suggests evaluations.
    pub adviser: Adviser,
    /// Judges the suggestions, if there is one.
    pub reviewer: Option<Reviewer>,
    /// Maximum number of suggestions of an endpoint per pair.
    pub max_attempts: u32,
}

/// A round of a pair, and the verdict that both agree on.
struct RoundResult {
    round: DiscussionRound,
    accepted: Option<RecordedVerdict>,
}

impl Discussion {
    /// Checks that endpoints accept the key and the model.
    ///
    /// # Errors
    /// If an endpoint is unreachable or rejects a request.
    pub(crate) fn check(&self) -> Result<()> {
        self.adviser.check()?;
        self.reviewer.as_ref().map_or(Ok(()), Reviewer::check)
    }

    /// Returns the names of those who discuss.
    pub(crate) fn discussants(&self) -> Discussants {
        let reviewer = self.reviewer.as_ref().map(Reviewer::name);
        Discussants { adviser: self.adviser.name(), reviewer }
    }

    /// Discusses the pairs that the log does not contain.
    ///
    /// # Errors
    /// If the adviser or the reviewer fails as a whole, or a file cannot be written.
    pub(crate) fn discuss(
        &mut self,
        pairs: &[&MisjudgedPair],
        log: &mut DiscussionLog,
        journal: &mut RequestJournal,
    ) -> Result<()> {
        let pending = pairs.iter().filter(|pair| log.get(&pair.id()).is_none());
        let mut pending: Vec<DiscussedPair> =
            pending.map(|pair| DiscussedPair::new(pair)).collect();
        let max_attempts = self.adviser.attempts(self.max_attempts);
        let can_discuss = self.reviewer.as_ref().is_none_or(Reviewer::can_discuss);
        for attempt in 0..max_attempts {
            let results = self.next_round(&pending, journal)?;
            let mut undecided = Vec::new();
            for (mut pair, RoundResult { round, accepted }) in pending.into_iter().zip(results) {
                // Such a reviewer rejects every suggestion that agrees with the labels.
                let is_final = round.problem.is_none() && !can_discuss;
                let rejection = accepted.is_none().then(|| round.rejection()).flatten();
                pair.rounds.push(round);
                if accepted.is_none() && !is_final && attempt + 1 < max_attempts {
                    undecided.push(pair);
                    continue;
                }
                let (case, models) = pair.misjudged.id();
                let Discussants { adviser, reviewer } = log.discussants().clone();
                log.append(Advice {
                    case,
                    pair: models,
                    adviser,
                    reviewer,
                    attempts: attempt + 1,
                    rejection,
                    accepted,
                    discussion: pair.rounds,
                })?;
            }
            pending = undecided;
        }
        Ok(())
    }

    /// Requests a suggestion for each pair, and a review of each that agrees with the labels.
    fn next_round(
        &mut self,
        pairs: &[DiscussedPair],
        journal: &mut RequestJournal,
    ) -> Result<Vec<RoundResult>> {
        let suggestions = self.adviser.suggest(pairs, journal)?;
        let results = pairs.iter().zip(suggestions).map(|(pair, suggestion)| {
            let agreeing =
                suggestion.clone().and_then(|s| filter_agreeing(s, pair.misjudged.labels));
            let round = DiscussionRound {
                suggestion: suggestion.ok(),
                problem: agreeing.as_ref().err().cloned(),
                review: None,
            };
            RoundResult { round, accepted: agreeing.ok() }
        });
        let mut results: Vec<RoundResult> = results.collect();
        let Some(reviewer) = &mut self.reviewer else {
            return Ok(results);
        };
        let suggested = pairs.iter().zip(&results).filter_map(|(pair, result)| {
            let suggestion = result.accepted.as_ref()?;
            let attempt = pair.attempt();
            Some(SuggestedPair { misjudged: pair.misjudged, suggestion, attempt })
        });
        let suggested: Vec<SuggestedPair> = suggested.collect();
        let reviews = reviewer.review(&suggested, journal)?;
        let reviewed = results.iter_mut().filter(|result| result.accepted.is_some());
        for (result, review) in reviewed.zip(reviews) {
            result.accepted = result.accepted.take().filter(|_| review.accepts == Some(true));
            result.round.review = Some(review);
        }
        Ok(results)
    }
}
