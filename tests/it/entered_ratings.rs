//! Test helper: what scripted raters entered, and the ratings that follow from it.

use std::collections::BTreeMap;

use acem3_experts::Criterion;
use serde_json::Value;

/// What a rater entered for a case.
pub(crate) struct EnteredRating {
    /// Index of the rater.
    pub(crate) rater: usize,
    /// Id of the case.
    pub(crate) case: String,
    /// Scores by criterion, of the first and the second response of the case.
    pub(crate) scores: [Vec<u64>; 2],
    /// 1 for the first response of the case, 0 for none and −1 for the second.
    pub(crate) preference: f64,
    /// Number of times that the rater pressed the button.
    pub(crate) attempts: u64,
    /// True if the site said that the case is submitted.
    pub(crate) is_confirmed: bool,
}

/// What all raters entered.
pub(crate) struct EnteredRatings(pub(crate) Vec<EnteredRating>);

/// The ratings of a criterion, the final score or the preference.
pub(crate) struct RatedValues {
    /// Key of the target; `preference` for the preference.
    pub(crate) key: String,
    /// True for the preference.
    pub(crate) is_preference: bool,
    /// Values of all raters, for each response or pair.
    pub(crate) units: Vec<Vec<f64>>,
}

/// Returns the keys of all scores, in the order of the page.
pub(crate) fn score_keys() -> Vec<&'static str> {
    Criterion::ALL.iter().map(|criterion| criterion.key()).chain(["final"]).collect()
}

impl EnteredRatings {
    /// Reads the records of the script, which have texts instead of ids and models.
    pub(crate) fn parse(records: &str, cases: &[Value]) -> Self {
        let records = records.lines().map(|line| serde_json::from_str(line).unwrap());
        Self(records.map(|record| parse_record(&record, cases)).collect())
    }

    /// Returns the ratings by target, in the order of the page.
    pub(crate) fn targets(&self) -> Vec<RatedValues> {
        // In the order of the raters, which kappa compares.
        let mut by_case: BTreeMap<&str, BTreeMap<usize, &EnteredRating>> = BTreeMap::new();
        for rating in &self.0 {
            by_case.entry(&rating.case).or_default().insert(rating.rater, rating);
        }
        let units = |value: &dyn Fn(&EnteredRating) -> f64| -> Vec<Vec<f64>> {
            let of_case = |case: &BTreeMap<usize, &EnteredRating>| {
                case.values().map(|rating| value(rating)).collect()
            };
            by_case.values().map(of_case).collect()
        };
        let scored = score_keys().into_iter().enumerate().map(|(i, key)| {
            let units = [0, 1].map(|side| units(&|rating| rating.scores[side][i] as f64)).concat();
            RatedValues { key: key.to_owned(), is_preference: false, units }
        });
        let mut targets: Vec<RatedValues> = scored.collect();
        let units = units(&|rating| rating.preference);
        targets.push(RatedValues { key: "preference".to_owned(), is_preference: true, units });
        targets
    }
}

/// Replaces the texts of a record by the case, and the shown order of the answers by that of the case.
fn parse_record(record: &Value, cases: &[Value]) -> EnteredRating {
    let case = cases.iter().find(|case| case["question"] == record["question"]).unwrap();
    let texts = [0, 1].map(|i| case["responses"][i]["text"].as_str().unwrap());
    assert_ne!(texts[0], texts[1]);
    let is_swapped = record["answers"][0] == texts[1];
    let sides = if is_swapped { [1, 0] } else { [0, 1] };
    assert_eq!(sides.map(|i| record["answers"][i].as_str().unwrap()), texts);
    let scores: Vec<u64> =
        record["scores"].as_array().unwrap().iter().map(|score| score.as_u64().unwrap()).collect();
    let preference = match record["preference"].as_str().unwrap() {
        "first" => 1.0,
        "second" => -1.0,
        _ => 0.0,
    };
    EnteredRating {
        rater: record["rater"].as_u64().unwrap() as usize,
        case: case["id"].as_str().unwrap().to_owned(),
        scores: sides.map(|side| scores.iter().skip(side).step_by(2).copied().collect()),
        preference: if is_swapped { -preference } else { preference },
        attempts: record["attempts"].as_u64().unwrap(),
        is_confirmed: record["confirmed"] == true,
    }
}

impl RatedValues {
    fn of_rater(&self, rater: usize) -> Vec<f64> {
        self.units.iter().map(|unit| unit[rater]).collect()
    }

    /// Returns the mean of a coefficient over all pairs of raters.
    pub(crate) fn mean_kappa(&self, kappa: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        let raters = self.units[0].len();
        let pairs = (0..raters).flat_map(|a| (a + 1..raters).map(move |b| (a, b)));
        let values = pairs.map(|(a, b)| kappa(&self.of_rater(a), &self.of_rater(b)));
        mean(&values.collect::<Vec<f64>>())
    }

    /// Returns the mean of a coefficient of each rater with the mean of the others.
    pub(crate) fn mean_kappa_with_others(&self, kappa: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        let raters = self.units[0].len();
        let values = (0..raters).map(|rater| {
            let others = self.units.iter().map(|unit| {
                let total: f64 = unit.iter().sum();
                (total - unit[rater]) / (raters - 1) as f64
            });
            kappa(&self.of_rater(rater), &others.collect::<Vec<f64>>())
        });
        mean(&values.collect::<Vec<f64>>())
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
