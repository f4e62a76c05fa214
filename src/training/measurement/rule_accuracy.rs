//! How often trivial rules prefer the better response.

use std::cmp::Ordering;

use super::interval::proportion_with_interval;
use super::test_pair::TestPair;
use super::test_sets::{KnownOrder, TestSet};
use super::trivial_rules::TrivialRules;

/// Applies the trivial rules to a test set.
pub(super) fn apply_rules(set: &TestSet) -> TrivialRules {
    let proportion = |value: &dyn Fn(&TestPair, Ordering, &KnownOrder) -> Option<f64>| {
        let values = set.pairs.iter().zip(&set.known_orders).filter_map(|(pair, known)| {
            let order = known.order.filter(|order| order.is_ne())?;
            Some((pair.cluster.clone(), value(pair, order, known)?))
        });
        proportion_with_interval(&values.collect::<Vec<_>>())
    };
    TrivialRules {
        longer: proportion(&|pair, order, _| Some(accuracy(compare_lengths(pair), order))),
        shorter: proportion(&|pair, order, _| {
            Some(accuracy(compare_lengths(pair).reverse(), order))
        }),
        first: proportion(&|_, order, _| Some(accuracy(Ordering::Greater, order))),
        majority: proportion(&|_, _, known| known.majority),
    }
}

/// Returns 1 if a rule has the known order, ½ if it prefers neither response, and 0 otherwise.
fn accuracy(rule: Ordering, known: Ordering) -> f64 {
    match rule {
        Ordering::Equal => 0.5,
        order => f64::from(u8::from(order == known)),
    }
}

/// Compares the numbers of words of the responses; if they are equal, the numbers of characters.
pub(super) fn compare_lengths(pair: &TestPair) -> Ordering {
    let [first, second] = pair
        .responses
        .each_ref()
        .map(|text| (text.split_whitespace().count(), text.chars().count()));
    first.cmp(&second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::measurement::Proportion;
    use crate::training::measurement::test_pair::TestImage;

    #[test]
    fn rules_know_only_lengths_positions_and_frequencies() {
        let pair = |responses: [&str; 2]| TestPair {
            cluster: responses.concat(),
            image: TestImage::None,
            question: "Which side?".to_owned(),
            responses: responses.map(str::to_owned),
        };
        let set = TestSet {
            name: "test",
            pairs: vec![
                pair(["left lung", "right"]),
                pair(["left", "right"]),
                pair(["no", "on"]),
                pair(["same", "as good"]),
            ],
            known_orders: vec![
                KnownOrder::of_answers(Ordering::Greater, true, 1.0),
                KnownOrder::of_answers(Ordering::Less, true, 0.5),
                KnownOrder::of_answers(Ordering::Less, true, 0.0),
                KnownOrder::of_answers(Ordering::Equal, true, 1.0),
            ],
            tests_other_images: false,
        };
        let rules = apply_rules(&set);
        let value = |proportion: Option<Proportion>| proportion.map(|p| (p.value * 6.0).round());
        assert_eq!(rules.longer.map(|p| p.n), Some(3));
        // 1 of 3, ½ of 3 for the equally long pair.
        assert_eq!(value(rules.longer), Some(5.0));
        assert_eq!(value(rules.shorter), Some(1.0));
        assert_eq!(value(rules.first), Some(2.0));
        assert_eq!(value(rules.majority), Some(3.0));
    }
}
