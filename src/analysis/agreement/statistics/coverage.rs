//! Coverage: the proportion of labelled units (pairs, triples or responses) with a verdict, and the
//! resulting bounds of a statistic.

use super::statistic::Statistic;

/// Number of labelled units, and of those with a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Number of labelled units with a verdict.
    pub judged: usize,
    /// Number of labelled units.
    pub labelled: usize,
}

impl Coverage {
    /// Returns the proportion of labelled units with a verdict, 0 to 1.
    pub fn proportion(self) -> f64 {
        self.judged as f64 / self.labelled.max(1) as f64
    }

    /// Returns true if every labelled unit has a verdict.
    pub fn is_complete(self) -> bool {
        self.judged == self.labelled
    }

    /// Describes the coverage. `unit_noun` names the units in the plural, such as "pairs".
    pub fn describe(self, unit_noun: &str) -> String {
        format!("{} of {} labelled {unit_noun}", self.judged, self.labelled)
    }

    /// Computes the bounds of a proportion over all labelled units, given the proportion over the
    /// units with a verdict: the other units are all wrong, or all right (Manski, 1989).
    pub fn bounds(self, proportion: f64) -> [f64; 2] {
        let (correct, all) = (proportion * self.judged as f64, self.labelled.max(1) as f64);
        let missing = (self.labelled - self.judged.min(self.labelled)) as f64;
        [correct / all, (correct + missing) / all]
    }
}

impl Statistic {
    /// Returns the name of the statistic's units, in the plural.
    pub(crate) fn unit_noun(self) -> &'static str {
        match self {
            Self::AccuracyTriple => "triples",
            other if Self::ORDERS.contains(&other) => "pairs",
            _ => "responses",
        }
    }

    /// Returns true if the statistic is a proportion of all units. Only then does it have bounds
    /// when verdicts are missing.
    pub(crate) fn is_bounded(self) -> bool {
        matches!(self, Self::Accuracy | Self::AccuracyTriple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_count_missing_verdicts_as_wrong_or_right() {
        let coverage = Coverage { judged: 6, labelled: 8 };
        let assert_bounds = |coverage: Coverage, proportion: f64, expected: [f64; 2]| {
            for (found, expected) in coverage.bounds(proportion).into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        };
        assert_bounds(coverage, 0.5, [0.375, 0.625]);
        assert_eq!(coverage.describe("pairs"), "6 of 8 labelled pairs");
        let none = Coverage { judged: 0, labelled: 3 };
        assert_bounds(none, 0.0, [0.0, 1.0]);
        let all = Coverage { judged: 3, labelled: 3 };
        assert_bounds(all, 0.25, [0.25; 2]);
        assert!(all.is_complete());
    }
}
