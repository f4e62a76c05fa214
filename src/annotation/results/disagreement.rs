//! Ratings that differ so much that somebody should decide.

use super::rated_items::{RatedItem, RatedTarget};
use crate::annotation::journal::AdjudicationEntry;
use crate::support::digest::Digest;

/// Difference between two scores from which on raters disagree.
const MIN_SPREAD: f64 = 2.0;
/// Number of characters of an id.
const ID_LENGTH: usize = 16;

/// An item on which raters disagree.
#[derive(Clone, Debug)]
pub(crate) struct Disagreement {
    /// Id in addresses.
    pub(crate) id: String,
    /// Key of the target.
    pub(crate) target: String,
    /// Name of the target.
    pub(crate) name: String,
    /// True for a preference.
    pub(crate) is_preference: bool,
    /// True if the administrator sees the second response of a preference first.
    pub(crate) is_swapped: bool,
    /// The item.
    pub(crate) item: RatedItem,
    /// The last decision about it.
    pub(crate) decided: Option<AdjudicationEntry>,
}

/// Returns the items whose scores differ by two points or more, or whose preferences are opposite; in the
/// order of the targets and cases.
pub(crate) fn disagreements(
    targets: &[RatedTarget],
    decided: &[AdjudicationEntry],
) -> Vec<Disagreement> {
    let mut found = Vec::new();
    // Nobody decides about ratings of evaluations: they are opinions about a judge.
    for target in targets.iter().filter(|target| target.part.is_responses()) {
        for item in target.items.iter().filter(|item| differs(item)) {
            let is_about = |entry: &&AdjudicationEntry| {
                entry.target == target.key && entry.case == item.case && entry.models == item.models
            };
            let text = [&[target.key.clone(), item.case.clone()], item.models.as_slice()].concat();
            let digest = Digest::sha256(text.join("\0").as_bytes()).to_string();
            // A pseudo-random side.
            let is_odd =
                digest.ends_with(|digit: char| digit.to_digit(16).is_some_and(|d| d % 2 == 1));
            found.push(Disagreement {
                id: digest.chars().take(ID_LENGTH).collect(),
                is_swapped: target.is_preference && is_odd,
                target: target.key.clone(),
                name: target.name.clone(),
                is_preference: target.is_preference,
                item: item.clone(),
                decided: decided.iter().rev().find(is_about).cloned(),
            });
        }
    }
    found
}

impl Disagreement {
    /// Converts a value between the order of the case and the order in which the administrator sees the
    /// responses.
    pub(crate) fn seen(&self, value: f64) -> f64 {
        if self.is_swapped { -value } else { value }
    }

    /// Returns the ratings as the administrator sees them, from the lowest to the highest, so that their
    /// order says nothing of the raters.
    pub(crate) fn seen_ratings(&self) -> Vec<f64> {
        let values = self.item.ratings.iter().map(|(_, value)| self.seen(*value));
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// Returns the decided value as the administrator sees it.
    pub(crate) fn seen_decision(&self) -> Option<f64> {
        self.decided.as_ref().map(|entry| self.seen(f64::from(entry.value)))
    }
}

/// Returns true if the ratings are far apart. Opposite preferences are 1 and −1.
fn differs(item: &RatedItem) -> bool {
    let values = item.ratings.iter().map(|(_, value)| *value);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    high - low >= MIN_SPREAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::study::Part;

    #[test]
    fn only_large_differences_are_listed() {
        let item = |case: &str, values: &[f64]| RatedItem {
            case: case.to_owned(),
            models: vec!["m".to_owned()],
            ratings: (0..).zip(values.iter().copied()).collect(),
        };
        let target = RatedTarget {
            key: "final".to_owned(),
            name: "Final score".to_owned(),
            is_preference: false,
            part: Part::Responses,
            items: vec![item("1", &[5.0]), item("2", &[5.0, 4.0]), item("3", &[1.0, 4.0, 3.0])],
        };
        let entry = AdjudicationEntry {
            schema: 1,
            time: String::new(),
            target: "final".to_owned(),
            case: "3".to_owned(),
            models: vec!["m".to_owned()],
            value: 2,
            comment: String::new(),
        };
        let found = disagreements(std::slice::from_ref(&target), &[]);
        assert!(found.len() == 1 && found[0].item.case == "3" && found[0].decided.is_none());
        let later = AdjudicationEntry { value: 4, ..entry.clone() };
        let found = disagreements(&[target], &[entry, later]);
        assert_eq!(found[0].decided.as_ref().map(|entry| entry.value), Some(4));
    }
}
