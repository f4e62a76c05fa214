//! What the raters think of the judges so far.

use super::rated_items::{RatedItem, RatedTarget};
use crate::annotation::study::JudgeEvaluations;
use crate::statistics::{Bootstrap, Clusters, Estimate, mean};

/// Resamples of an interval. It is computed anew after every entry.
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 500, seed: 2 };

/// The mean rating of the evaluations of a judge.
#[derive(Clone, Debug)]
pub(crate) struct JudgeRating {
    /// What is rated.
    pub(crate) name: String,
    /// Mean score, or proportion of cases in which the first judge is preferred, with ties as one half.
    pub(crate) mean: Estimate,
}

impl JudgeRating {
    /// Computes the mean over cases of the mean over raters. Intervals resample cases.
    pub(crate) fn new(target: &RatedTarget, judges: &[JudgeEvaluations]) -> Self {
        let value = |item: &RatedItem| {
            let sum: f64 = item.ratings.iter().map(|(_, value)| value).sum();
            let mean = sum / item.ratings.len() as f64;
            if target.is_preference { f64::midpoint(mean, 1.0) } else { mean }
        };
        let values: Vec<Option<f64>> = target.items.iter().map(|item| Some(value(item))).collect();
        let clusters = Clusters::new(target.items.iter().map(|item| item.case.as_str()));
        let name = match judges {
            [first, second] => format!("{} preferred to {}", first.judge, second.judge),
            _ => target.name.clone(),
        };
        let mean = BOOTSTRAP.estimate(&clusters, values.len(), |weights| mean(&values, weights));
        Self { name, mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::study::Part;

    #[test]
    fn ties_count_half() {
        let item = |case: &str, values: &[f64]| RatedItem {
            case: case.to_owned(),
            models: vec!["m".to_owned(), "n".to_owned()],
            ratings: (0..).zip(values.iter().copied()).collect(),
        };
        let target = |is_preference| RatedTarget {
            key: "t".to_owned(),
            name: "t".to_owned(),
            is_preference,
            part: Part::Evaluations,
            items: vec![item("1", &[1.0, 1.0]), item("2", &[-1.0, 0.0]), item("3", &[0.0])],
        };
        let run =
            |judge: &str| JudgeEvaluations { judge: judge.to_owned(), evaluations: Vec::new() };
        let judges = [run("x"), run("y")];
        let preferred = JudgeRating::new(&target(true), &judges);
        // 1, 1/4 and 1/2.
        assert!((preferred.mean.value.unwrap() - 1.75 / 3.0).abs() < 1e-12);
        assert_eq!((preferred.name.as_str(), preferred.mean.n), ("x preferred to y", 3));
        let scored = JudgeRating::new(&target(false), &judges[..1]);
        assert!((scored.mean.value.unwrap() - 0.5 / 3.0).abs() < 1e-12);
    }
}
