//! Comparison of a suggested verdict with the labels.

use std::cmp::Ordering;

use acem3_conclusion::compare_scores;

use crate::judging::judge::recorded_verdict::{RecordedVerdict, pair_values};

/// Restricts a suggested verdict to the presentation orders that agree with the labels. Returns an
/// error if the combined order or all presentation orders contradict them.
pub(crate) fn filter_agreeing(
    mut suggested: RecordedVerdict,
    labels: [f64; 2],
) -> Result<RecordedVerdict, String> {
    let labelled_order = compare_scores(labels);
    let suggested_order = suggested.order.map_or(Ordering::Equal, Ordering::from);
    if suggested_order != labelled_order {
        return Err(format!(
            "suggested order: {}, labelled order: {}",
            describe_order(suggested_order),
            describe_order(labelled_order)
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

/// Describes the order of a pair.
pub(crate) fn describe_order(order: Ordering) -> &'static str {
    match order {
        Ordering::Greater => "first response better",
        Ordering::Equal => "tie",
        Ordering::Less => "second response better",
    }
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
                alternatives: None,
                between: None,
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
