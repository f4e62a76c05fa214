//! How many labelled cases have a verdict, and what those without one could change.

use super::statistic::Statistic;

/// How many labelled cases have a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Labelled cases with a verdict.
    pub judged: usize,
    /// Labelled cases.
    pub labelled: usize,
}

impl Coverage {
    /// The part that has a verdict, 0 to 1.
    pub fn share(self) -> f64 {
        self.judged as f64 / self.labelled.max(1) as f64
    }

    /// Whether every labelled case has a verdict.
    pub fn is_whole(self) -> bool {
        self.judged == self.labelled
    }

    /// The definition, with its numbers; `cases` is what they are called.
    pub fn told(self, cases: &str) -> String {
        format!("{} of {} labelled {cases}", self.judged, self.labelled)
    }

    /// A share of the cases with a verdict, as it would be of all labelled ones if those without were all wrong,
    /// and if they were all right (the bounds of Manski, 1989).
    pub fn bounds(self, share: f64) -> [f64; 2] {
        let (right, all) = (share * self.judged as f64, self.labelled.max(1) as f64);
        let missing = (self.labelled - self.judged.min(self.labelled)) as f64;
        [right / all, (right + missing) / all]
    }
}

impl Statistic {
    /// What its cases are called.
    pub(super) fn cases(self) -> &'static str {
        match self {
            Self::AccuracyTriple => "triples",
            other if Self::ORDERS.contains(&other) => "pairs",
            _ => "responses",
        }
    }

    /// Whether it is a share of all cases with a verdict, to which those without one could add.
    pub(super) fn is_bounded(self) -> bool {
        matches!(self, Self::Accuracy | Self::AccuracyTriple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_are_all_wrong_or_all_right() {
        let coverage = Coverage {
            judged: 6,
            labelled: 8,
        };
        let near = |coverage: Coverage, share: f64, expected: [f64; 2]| {
            for (found, expected) in coverage.bounds(share).into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        };
        near(coverage, 0.5, [0.375, 0.625]);
        assert_eq!(coverage.told("pairs"), "6 of 8 labelled pairs");
        let none = Coverage {
            judged: 0,
            labelled: 3,
        };
        near(none, 0.0, [0.0, 1.0]);
        let all = Coverage {
            judged: 3,
            labelled: 3,
        };
        near(all, 0.25, [0.25; 2]);
        assert!(all.is_whole());
    }
}
