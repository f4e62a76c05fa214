//! Requests to the adviser about misjudged pairs, and acceptance of its suggestions.

use std::cmp::Ordering;

use acem3_conclusion::compare;
use anyhow::Result;
use serde_json::json;

use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::training::introspection::advice_log::{Advice, AdviceLog};
use crate::training::introspection::adviser::Adviser;
use crate::training::introspection::misjudged_pair::MisjudgedPair;

/// Requests suggestions for pairs that the log does not contain, with up to `most` attempts each.
pub(super) fn ask(
    batch: &[MisjudgedPair],
    adviser: &mut Adviser,
    most: u32,
    ledger: &mut AdviceLog,
) -> Result<()> {
    let mut open: Vec<&MisjudgedPair> = batch.iter().collect();
    open.retain(|doubt| ledger.get(&doubt.key()).is_none());
    let most = adviser.attempts(most);
    for attempt in 0..most {
        let suggestions = adviser.suggest(&open, attempt)?;
        let mut still = Vec::new();
        for (doubt, suggestion) in open.into_iter().zip(suggestions) {
            let (accepted, refused) = match suggestion.and_then(|s| agreeing(s, doubt.known)) {
                Ok(accepted) => (Some(accepted), None),
                Err(reason) => (None, Some(reason)),
            };
            if accepted.is_none() && attempt + 1 < most {
                still.push(doubt);
                continue;
            }
            let (case, pair) = doubt.key();
            ledger.put(Advice {
                case,
                pair,
                by: ledger.by().to_owned(),
                attempts: attempt + 1,
                refused,
                accepted,
            })?;
        }
        open = still;
    }
    Ok(())
}

/// Restricts a suggested verdict to the presentation orders that agree with the labels. Returns an error if the combined
/// order or all presentation orders contradict them.
fn agreeing(mut suggested: RecordedVerdict, known: [f64; 2]) -> Result<RecordedVerdict, String> {
    let wanted = compare(known);
    let found = Ordering::from(suggested.order);
    if found != wanted {
        return Err(format!(
            "suggested order: {}, labelled order: {}",
            in_words(found),
            in_words(wanted)
        ));
    }
    suggested
        .orders
        .retain(|order| compare(order.scores.map(f64::from)) == wanted);
    if suggested.orders.is_empty() {
        return Err(
            "neither presentation order of the suggestion agrees with the labels".to_owned(),
        );
    }
    Ok(suggested)
}

fn in_words(order: Ordering) -> &'static str {
    match order {
        Ordering::Greater => "first response better",
        Ordering::Equal => "tie",
        Ordering::Less => "second response better",
    }
}

/// Returns a line of `unresolved.jsonl`: a pair for manual review.
pub(super) fn left(doubt: &MisjudgedPair, reason: Option<&str>) -> Result<String> {
    let (case, pair) = doubt.key();
    let line = json!({
        "case": case,
        "pair": pair,
        "image": doubt.job.image.as_ref().map(|image| &image.name),
        "question": doubt.job.question(),
        "responses": doubt.job.responses(),
        "known": doubt.known,
        "reason": reason,
    });
    Ok(serde_json::to_string(&line)? + "\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::judging::judge::recorded_verdict::{RecordedOrder, ScorePair};

    fn suggested(orders: [[u8; 2]; 2]) -> RecordedVerdict {
        let record = |(i, scores): (usize, [u8; 2])| RecordedOrder {
            swapped: i == 1,
            scores,
            expected: scores.map(f64::from),
            aspects: BTreeMap::new(),
            conclusion: ScorePair {
                scores,
                expected: scores.map(f64::from),
                spread: [0.0; 2],
                analyses: None,
                cut: None,
                probabilities: [[0.0; 6]; 2],
            },
        };
        let scores = [0, 1].map(|r| orders.iter().map(|o| f64::from(o[r])).sum::<f64>() / 2.0);
        RecordedVerdict {
            order: compare(scores).into(),
            scores,
            expected: scores,
            aspects: BTreeMap::new(),
            criteria: BTreeMap::new(),
            flip: None,
            orders: orders.into_iter().enumerate().map(record).collect(),
        }
    }

    #[test]
    fn only_suggestions_that_agree_with_labels_are_accepted() {
        let kept = |orders, known| agreeing(suggested(orders), known).map(|j| j.orders.len());
        assert_eq!(kept([[4, 1], [5, 2]], [3.0, 1.0]), Ok(2));
        // Only one presentation order contradicts the labels.
        assert_eq!(kept([[5, 1], [2, 3]], [3.0, 1.0]), Ok(1));
        assert_eq!(kept([[3, 3], [2, 2]], [4.0, 4.0]), Ok(2));
        let contradicts = kept([[1, 4], [2, 4]], [3.0, 1.0]).unwrap_err();
        assert_eq!(
            contradicts,
            "suggested order: second response better, labelled order: first response better"
        );
        // Both presentation orders prefer the response shown first, which is not a tie.
        let neither = kept([[4, 2], [2, 4]], [3.0, 3.0]).unwrap_err();
        assert!(neither.contains("neither"), "{neither}");
    }
}
