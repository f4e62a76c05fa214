//! Responses with the label of people: correct or not.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, bail};

use super::graded_run::{GradedResponse, GradedRun};
use crate::data::labels::{LabelEntry, LabelValue, ScoreTarget};
use crate::statistics::{DistanceMetric, RatingMatrix, alpha};

/// A response with a verdict and a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelledResponse<'a> {
    /// The response.
    pub response: &'a GradedResponse,
    /// The judge's probability that the response is correct.
    pub probability: f64,
    /// True if most raters call the response correct.
    pub is_correct: bool,
}

/// The responses of a run with labels.
#[derive(Clone, Debug)]
pub struct LabelledResponses<'a> {
    /// Responses with a verdict and a majority of the raters.
    pub responses: Vec<LabelledResponse<'a>>,
    /// Number of raters.
    pub raters: usize,
    /// Labelled responses without a majority, which are left out.
    pub ties: usize,
    /// Labelled responses without a verdict.
    pub unscored: usize,
    /// Labels whose case or model is not in the records.
    pub unmatched: usize,
    /// Krippendorff's alpha of the raters, for nominal values; `None` with one rater.
    pub alpha: Option<f64>,
}

/// The votes on one response: rater and label.
type Votes<'a> = BTreeMap<&'a str, bool>;

impl<'a> LabelledResponses<'a> {
    /// Joins labels to the responses of a run by case and model.
    ///
    /// # Errors
    ///
    /// A label is neither 0 nor 1, a rater labelled a response twice, or no label matches.
    pub fn join(run: &'a GradedRun, labels: &'a [LabelEntry], source: &Path) -> Result<Self> {
        let known: HashMap<(&str, &str), usize> = run
            .responses
            .iter()
            .enumerate()
            .map(|(i, r)| ((r.case.as_str(), r.model.as_str()), i))
            .collect();
        let mut votes: BTreeMap<usize, Votes<'a>> = BTreeMap::new();
        let (mut unmatched, mut example) = (0, String::new());
        for entry in labels {
            let (model, is_correct) = binary_label(entry, source)?;
            let Some(index) = known.get(&(entry.case.as_str(), model)) else {
                if unmatched == 0 {
                    example = format!("line {}: case {}, model {model}", entry.line, entry.case);
                }
                unmatched += 1;
                continue;
            };
            let of_response = votes.entry(*index).or_default();
            if of_response.insert(&entry.rater, is_correct).is_some() {
                bail!(
                    "{} line {}: a second label of rater {} for the response of {model} to case {}\n\
                     hint: remove one of the two",
                    source.display(),
                    entry.line,
                    entry.rater,
                    entry.case
                );
            }
        }
        if votes.is_empty() {
            let first = run.responses.first();
            let record =
                first.map(|response| format!("case {} of {}", response.case, response.model));
            bail!(
                "{}: none of the {unmatched} labels matches these records (label: {example}; record: {})\n\
                 hint: use the case ids and model names of the records",
                source.display(),
                record.unwrap_or_default()
            );
        }
        Ok(Self::from_votes(run, &votes, unmatched))
    }

    fn from_votes(
        run: &'a GradedRun,
        votes: &BTreeMap<usize, Votes<'_>>,
        unmatched: usize,
    ) -> Self {
        let mut raters: Vec<&str> = votes.values().flat_map(|v| v.keys().copied()).collect();
        raters.sort_unstable();
        raters.dedup();
        let mut joined = Self {
            responses: Vec::new(),
            raters: raters.len(),
            ties: 0,
            unscored: 0,
            unmatched,
            alpha: alpha_of_raters(&raters, votes),
        };
        for (index, of_response) in votes {
            let Some(response) = run.responses.get(*index) else { continue };
            let correct = of_response.values().filter(|is_correct| **is_correct).count();
            if 2 * correct == of_response.len() {
                joined.ties += 1;
                continue;
            }
            match response.probability {
                Some(probability) => joined.responses.push(LabelledResponse {
                    response,
                    probability,
                    is_correct: 2 * correct > of_response.len(),
                }),
                None => joined.unscored += 1,
            }
        }
        joined
    }
}

/// Returns the model of a label and whether it calls the response correct.
fn binary_label<'a>(entry: &'a LabelEntry, source: &Path) -> Result<(&'a str, bool)> {
    let found = match &entry.value {
        LabelValue::Score { model, value } if entry.target == ScoreTarget::Final => {
            match [0.0, 1.0].iter().position(|binary| value.total_cmp(binary).is_eq()) {
                Some(label) => return Ok((model, label == 1)),
                None => format!("found {value}"),
            }
        }
        LabelValue::Score { .. } => format!("found a score of {}", entry.target.key()),
        LabelValue::Preference { .. } => "found a preference between two responses".to_owned(),
    };
    bail!(
        "{} line {}: expected a final label of 1 (correct) or 0 (wrong) for one response, {found}\n\
         hint: write the columns case, model, rater and score with scores of 1 and 0",
        source.display(),
        entry.line
    );
}

/// Computes the agreement among the raters; `None` with one rater, or if it is undefined.
fn alpha_of_raters(raters: &[&str], votes: &BTreeMap<usize, Votes<'_>>) -> Option<f64> {
    let number = |name: &str| raters.binary_search(&name).unwrap_or_default() as u32;
    let value = |is_correct: &bool| f64::from(u8::from(*is_correct));
    let of_response = |of_response: &Votes<'_>| {
        of_response.iter().map(|(rater, vote)| (number(rater), value(vote))).collect()
    };
    let matrix = RatingMatrix::new(votes.values().map(of_response).collect()).ok()?;
    let units = matrix.to_rated_units();
    let weights = vec![1.0; votes.len()];
    (raters.len() > 1).then(|| alpha(&units, DistanceMetric::Nominal, &weights).ok()).flatten()
}
