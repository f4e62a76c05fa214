//! What people think of sampled evaluations: the accepted proportion, and the evaluations without the rejected
//! ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use super::evaluation_rows::EvaluationRows;
use super::sheet::ReviewSheets;
use crate::statistics::{DistanceMetric, RatingMatrix, alpha, wilson_interval};
use crate::support::files::folder::parent_folder;
use crate::training::preferences::make_image_paths_absolute;

/// A proportion of evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AcceptedProportion {
    /// Number of accepted evaluations.
    pub accepted: usize,
    /// Number of rated evaluations.
    pub rated: usize,
    /// Wilson's 95 % interval of the proportion.
    pub interval: [f64; 2],
}

/// The result of a review.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Acceptance {
    /// Evaluations that every point accepts.
    pub overall: AcceptedProportion,
    /// By point.
    pub points: Vec<(String, AcceptedProportion)>,
    /// By stratum, over all points.
    pub strata: BTreeMap<String, AcceptedProportion>,
    /// Krippendorff's alpha (nominal) by point; `None` if no evaluation has two raters or all agree on one
    /// answer.
    pub alpha: Vec<(String, Option<f64>)>,
    /// Number of raters.
    pub raters: usize,
    /// Keys of the rejected evaluations.
    #[serde(skip)]
    pub rejected: BTreeSet<String>,
    /// Keys of all rated evaluations.
    #[serde(skip)]
    rated: BTreeSet<String>,
}

impl AcceptedProportion {
    fn new(accepted: usize, rated: usize) -> Self {
        let interval = match rated {
            0 => [0.0, 1.0],
            _ => wilson_interval(accepted as f64 / rated as f64, rated as f64),
        };
        Self { accepted, rated, interval }
    }

    /// Returns the accepted percentage.
    pub fn percent(&self) -> f64 {
        100.0 * self.accepted as f64 / self.rated.max(1) as f64
    }
}

impl Acceptance {
    /// Evaluates the sheets. The majority of raters decides each point; an equal vote rejects.
    ///
    /// # Errors
    ///
    /// A row is about no evaluation of the file, or one person rated an evaluation twice.
    pub fn new(rows: &EvaluationRows, sheets: &ReviewSheets, by: &str) -> Result<Self> {
        let strata: BTreeMap<&str, String> =
            rows.rows.iter().map(|row| (row.key.as_str(), row.stratum(by))).collect();
        let mut votes: BTreeMap<&str, Vec<BTreeMap<&str, bool>>> = BTreeMap::new();
        let mut raters: BTreeSet<&str> = BTreeSet::new();
        for row in &sheets.rows {
            if !strata.contains_key(row.key.as_str()) {
                bail!(
                    "{}: no evaluation has the key {}\n\
                     hint: pass the file that was sampled; a changed prompt or evaluation has another key",
                    row.place,
                    row.key
                );
            }
            raters.insert(&row.rater);
            let points =
                votes.entry(&row.key).or_insert_with(|| vec![BTreeMap::new(); sheets.points.len()]);
            for (votes, answer) in points.iter_mut().zip(&row.answers) {
                if let Some(answer) = answer
                    && votes.insert(&row.rater, *answer).is_some()
                {
                    bail!("{}: {} rated this evaluation before", row.place, row.rater);
                }
            }
        }
        let is_accepted = |votes: &BTreeMap<&str, bool>| {
            let yes = votes.values().filter(|answer| **answer).count();
            (!votes.is_empty()).then_some(2 * yes > votes.len())
        };
        let decide = |points: &Vec<BTreeMap<&str, bool>>| {
            points.iter().filter_map(is_accepted).all(|accepted| accepted)
        };
        let count = |decisions: Vec<bool>| {
            let accepted = decisions.iter().filter(|accepted| **accepted).count();
            AcceptedProportion::new(accepted, decisions.len())
        };
        let mut by_stratum: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        for (key, points) in &votes {
            let stratum = strata.get(key).cloned().unwrap_or_default();
            by_stratum.entry(stratum).or_default().push(decide(points));
        }
        let points = sheets.points.iter().enumerate().map(|(i, name)| {
            let of_point = votes.values().filter_map(|points| points.get(i));
            (name.clone(), count(of_point.filter_map(is_accepted).collect()))
        });
        let alphas = sheets.points.iter().enumerate().map(|(i, name)| {
            let of_point = votes.values().filter_map(|points| points.get(i));
            (name.clone(), point_alpha(of_point, &raters))
        });
        let rejected = votes.iter().filter(|(_, points)| !decide(points));
        Ok(Self {
            overall: count(votes.values().map(decide).collect()),
            points: points.collect(),
            strata: by_stratum.into_iter().map(|(name, all)| (name, count(all))).collect(),
            alpha: alphas.collect(),
            raters: raters.len(),
            rejected: rejected.map(|(key, _)| (*key).to_owned()).collect(),
            rated: votes.keys().map(|key| (*key).to_owned()).collect(),
        })
    }

    /// Returns the lines of the file without the rejected evaluations. Rated ones get `"reviewed": true`.
    /// `out`: the file that they are written to; image paths become absolute if it is in another folder.
    ///
    /// # Errors
    ///
    /// The folder of `out` is unknown, or a line cannot be written.
    pub fn accepted_lines(&self, rows: &EvaluationRows, out: &Path) -> Result<String> {
        let is_same_folder = parent_folder(out)? == rows.folder;
        let mut text = String::new();
        for row in rows.rows.iter().filter(|row| !self.rejected.contains(&row.key)) {
            let mut fields = row.fields.clone();
            if !is_same_folder {
                make_image_paths_absolute(&mut fields, &rows.folder);
            }
            if self.rated.contains(&row.key) {
                fields.insert("reviewed".to_owned(), true.into());
            }
            text += &serde_json::to_string(&fields)?;
            text.push('\n');
        }
        Ok(text)
    }
}

/// Returns Krippendorff's alpha of one point.
fn point_alpha<'a>(
    votes: impl Iterator<Item = &'a BTreeMap<&'a str, bool>>,
    raters: &BTreeSet<&str>,
) -> Option<f64> {
    let number = |name: &str| raters.iter().position(|rater| *rater == name).unwrap_or(0) as u32;
    let units: Vec<Vec<(u32, f64)>> = votes
        .map(|votes| {
            votes.iter().map(|(name, yes)| (number(name), f64::from(u8::from(*yes)))).collect()
        })
        .collect();
    let weights = vec![1.0; units.len()];
    let units = RatingMatrix::new(units).ok()?.to_rated_units();
    alpha(&units, DistanceMetric::Nominal, &weights).ok()
}
