//! Requests to the adviser about misjudged pairs, and acceptance of its suggestions.

use std::cmp::Ordering;

use acem3_conclusion::compare_scores;
use anyhow::Result;
use serde_json::json;

use crate::judging::judge::recorded_verdict::{RecordedVerdict, pair_values};
use crate::training::introspection::adviser::Adviser;
use crate::training::introspection::adviser::advice_log::{Advice, AdviceLog};
use crate::training::introspection::misjudged_pair::MisjudgedPair;

/// Requests suggestions for pairs that the log does not contain, with up to `max_attempts` each.
pub(crate) fn request_advice(
    batch: &[MisjudgedPair],
    adviser: &mut Adviser,
    max_attempts: u32,
    log: &mut AdviceLog,
) -> Result<()> {
    let mut pending: Vec<&MisjudgedPair> = batch.iter().collect();
    pending.retain(|pair| log.get(&pair.id()).is_none());
    let max_attempts = adviser.attempts(max_attempts);
    for attempt in 0..max_attempts {
        let suggestions = adviser.request(&pending, attempt)?;
        let mut rejected = Vec::new();
        for (pair, suggestion) in pending.into_iter().zip(suggestions) {
            let agreeing = suggestion.and_then(|s| filter_agreeing(s, pair.labels));
            let (accepted, rejection) = match agreeing {
                Ok(accepted) => (Some(accepted), None),
                Err(reason) => (None, Some(reason)),
            };
            if accepted.is_none() && attempt + 1 < max_attempts {
                rejected.push(pair);
                continue;
            }
            let (case, pair) = pair.id();
            log.append(Advice {
                case,
                pair,
                adviser: log.adviser_name().to_owned(),
                attempts: attempt + 1,
                rejection,
                accepted,
            })?;
        }
        pending = rejected;
    }
    Ok(())
}

/// Restricts a suggested verdict to the presentation orders that agree with the labels. Returns an
/// error if the combined order or all presentation orders contradict them.
fn filter_agreeing(
    mut suggested: RecordedVerdict,
    labels: [f64; 2],
) -> Result<RecordedVerdict, String> {
    let labelled_order = compare_scores(labels);
    let suggested_order = suggested.order.map_or(Ordering::Equal, Ordering::from);
    if suggested_order != labelled_order {
        return Err(format!(
            "suggested order: {}, labelled order: {}",
            describe(suggested_order),
            describe(labelled_order)
        ));
    }
    suggested.orders.retain(|order| compare_scores(pair_values(&order.scores)) == labelled_order);
    if suggested.orders.is_empty() {
        return Err(
            "neither presentation order of the suggestion agrees with the labels".to_owned()
        );
    }
    Ok(suggested)
}

fn describe(order: Ordering) -> &'static str {
    match order {
        Ordering::Greater => "first response better",
        Ordering::Equal => "tie",
        Ordering::Less => "second response better",
    }
}

/// Returns a line of `unresolved.jsonl`: a pair for manual review.
pub(crate) fn unresolved_line(misjudged: &MisjudgedPair, reason: Option<&str>) -> Result<String> {
    let (case, pair) = misjudged.id();
    let line = json!({
        "case": case,
        "pair": pair,
        "image": misjudged.job.image.as_ref().map(|image| &image.name),
        "question": misjudged.job.question(),
        "responses": misjudged.job.texts(),
        "known": misjudged.labels,
        "reason": reason,
    });
    Ok(serde_json::to_string(&line)? + "\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::judging::judge::recorded_verdict::{RecordedOrder, ResponseScores};

    fn suggested(orders: [[u8; 2]; 2]) -> RecordedVerdict {
        let recorded_order = |(i, scores): (usize, [u8; 2])| RecordedOrder {
            swapped: i == 1,
            first_shown: None,
            scores: scores.into(),
            expected: scores.map(f64::from).into(),
            aspects: BTreeMap::new(),
            conclusion: ResponseScores {
                scores: scores.into(),
                expected: scores.map(f64::from).into(),
                spread: vec![0.0; 2],
                analyses: None,
                cut: None,
                lookups: None,
                probabilities: vec![vec![0.0; 6]; 2],
                label_mass: None,
                partial: None,
            },
        };
        let scores = [0, 1].map(|r| orders.iter().map(|o| f64::from(o[r])).sum::<f64>() / 2.0);
        RecordedVerdict {
            order: Some(compare_scores(scores).into()),
            scores: scores.into(),
            expected: scores.into(),
            aspects: BTreeMap::new(),
            criteria: BTreeMap::new(),
            reproducible: None,
            flip: None,
            orders: orders.into_iter().enumerate().map(recorded_order).collect(),
        }
    }

    #[test]
    fn only_suggestions_that_agree_with_labels_are_accepted() {
        let accepted_orders =
            |orders, labels| filter_agreeing(suggested(orders), labels).map(|v| v.orders.len());
        assert_eq!(accepted_orders([[4, 1], [5, 2]], [3.0, 1.0]), Ok(2));
        // Only one presentation order contradicts the labels.
        assert_eq!(accepted_orders([[5, 1], [2, 3]], [3.0, 1.0]), Ok(1));
        assert_eq!(accepted_orders([[3, 3], [2, 2]], [4.0, 4.0]), Ok(2));
        let contradicting = accepted_orders([[1, 4], [2, 4]], [3.0, 1.0]).unwrap_err();
        assert_eq!(
            contradicting,
            "suggested order: second response better, labelled order: first response better"
        );
        // Both presentation orders prefer the response shown first, which is not a tie.
        let neither = accepted_orders([[4, 2], [2, 4]], [3.0, 3.0]).unwrap_err();
        assert!(neither.contains("neither"), "{neither}");
    }
}
