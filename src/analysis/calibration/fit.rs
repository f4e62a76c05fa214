//! Fitting of calibration maps, with cross-fitted estimates of their quality.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::curve::{Curve, Method};
use super::file::{Calibration, CalibrationQuality, FittedMap};
use crate::analysis::agreement::{LabelledUnits, TargetUnits};
use crate::analysis::verdicts::{PairVerdict, ScoreKind, Verdicts};
use crate::statistics::{
    Bootstrap, Clusters, ContingencyCells, Defined, RatingColumn, Undefined, bias, mean_absolute,
    percentile_interval, reliability,
};

/// Minimum number of labelled responses for a map.
const MIN_RESPONSES: usize = 20;
/// Number of bootstrap curves stored with a map.
const STORED_CURVES: usize = 100;

/// Settings of the fit.
#[derive(Clone, Copy, Debug)]
pub struct FitConfig {
    /// Kind of score to map: chosen or expected.
    pub score_kind: ScoreKind,
    /// Fitting method.
    pub method: Method,
    /// Number of cross-fitting folds, split by image.
    pub folds: usize,
    /// Bootstrap settings.
    pub bootstrap: Bootstrap,
}

/// Scores and labels of responses, with their images.
struct ScoreLabelPairs {
    scores: Vec<f64>,
    labels: Vec<f64>,
    clusters: Clusters,
}

/// Fits a map for every target with label scores.
///
/// # Errors
///
/// No target has enough labels.
pub fn fit_calibration(
    verdicts: &Verdicts,
    units: &LabelledUnits,
    labels: String,
    config: &FitConfig,
) -> Result<Calibration> {
    let (mut targets, mut left_out) = (BTreeMap::new(), BTreeMap::new());
    for (target, target_units) in &units.targets {
        let pairs = ScoreLabelPairs::new(target_units, &verdicts.pairs);
        let fitted = pairs.and_then(|pairs| pairs.fit_map(config));
        match fitted {
            Ok(fitted) => {
                targets.insert(*target, fitted);
            }
            Err(reason) => {
                left_out.insert(*target, reason.with_names(["the judge's score", "the label"]));
            }
        }
    }
    if targets.is_empty() {
        let reasons: Vec<String> =
            left_out.iter().map(|(target, reason)| format!("{}: {reason}", target.key())).collect();
        bail!(
            "too few labels for a calibration ({})\n\
             hint: label at least {MIN_RESPONSES} responses on several images with scores",
            reasons.join("; ")
        );
    }
    Ok(Calibration {
        schema: Calibration::SCHEMA,
        judge: verdicts.judge.clone(),
        name: verdicts.name.clone(),
        scores: config.score_kind,
        method: config.method,
        labels,
        raters: units.raters.len(),
        targets,
        left_out,
        run_problems: verdicts.run.problems.iter().map(|p| p.problem.clone()).collect(),
    })
}

impl ScoreLabelPairs {
    fn new(units: &TargetUnits, verdicts: &[PairVerdict]) -> Defined<Self> {
        let judged = units.responses.iter().filter_map(|unit| {
            let cluster = verdicts.get(unit.verdict)?.cluster.as_str();
            Some((cluster, unit.judge?, unit.label(None)?))
        });
        let judged: Vec<_> = judged.collect();
        if judged.len() < MIN_RESPONSES {
            return Err(Undefined::TooFew {
                items: ["labelled response with a score", "labelled responses with a score"],
                found: judged.len(),
                needed: MIN_RESPONSES,
            });
        }
        Ok(Self {
            scores: judged.iter().map(|j| j.1).collect(),
            labels: judged.iter().map(|j| j.2).collect(),
            clusters: Clusters::new(judged.iter().map(|j| j.0)),
        })
    }

    fn fit_map(&self, config: &FitConfig) -> Defined<FittedMap> {
        if self.clusters.count() < config.folds {
            return Err(Undefined::TooFew {
                items: ["image", "images"],
                found: self.clusters.count(),
                needed: config.folds,
            });
        }
        for (column, values) in
            [(RatingColumn::First, &self.scores), (RatingColumn::Second, &self.labels)]
        {
            // A map needs at least two distinct scores and labels.
            if values.iter().all(|v| Some(v) == values.first()) {
                return Err(Undefined::Constant(column));
            }
        }
        let unit_weights = vec![1.0; self.scores.len()];
        let curve = self.fit_curve(config.method, &unit_weights)?;
        let curve_bootstrap = Bootstrap { resamples: STORED_CURVES, ..config.bootstrap };
        let curves = curve_bootstrap
            .resample(&self.clusters, |weights| self.fit_curve(config.method, weights));
        let on_grid = |curve: Curve| score_grid().map(|x| round_to_4(curve.eval(x))).collect();
        Ok(FittedMap {
            before: self.measure_quality(&self.scores, config.bootstrap)?,
            after: self.measure_quality(&self.cross_fit(config)?, config.bootstrap)?,
            n: self.scores.len(),
            images: self.clusters.count(),
            draws: curves.into_iter().flatten().map(on_grid).collect(),
            curve,
        })
    }

    fn fit_curve(&self, method: Method, weights: &[f64]) -> Defined<Curve> {
        Curve::fit(method, &self.scores, &self.labels, weights)
    }

    /// Maps every score with the fit of the other folds.
    fn cross_fit(&self, config: &FitConfig) -> Defined<Vec<f64>> {
        let folds = self.clusters.folds(config.folds, config.bootstrap.seed);
        let mut mapped = self.scores.clone();
        for fold in 0..config.folds {
            let others: Vec<f64> = folds.iter().map(|f| f64::from(u8::from(*f != fold))).collect();
            let curve = self.fit_curve(config.method, &others)?;
            let held_out = mapped.iter_mut().zip(&folds).filter(|(_, f)| **f == fold);
            held_out.for_each(|(score, _)| *score = curve.eval(*score));
        }
        Ok(mapped)
    }

    fn measure_quality(&self, scores: &[f64], bootstrap: Bootstrap) -> Defined<CalibrationQuality> {
        let cells = ContingencyCells::new(scores, &self.labels)?;
        let resamples = bootstrap.resample(&self.clusters, |weights| {
            let table = cells.weighted_table(weights);
            (mean_absolute(&table), bias(&table))
        });
        let (errors, biases): (Vec<_>, Vec<_>) = resamples.into_iter().unzip();
        // Means of two presentation orders are multiples of ½: use one bin around each.
        let inner_edges = (0..10).map(|i| 0.25 + f64::from(i) / 2.0);
        let edges: Vec<f64> = [0.0].into_iter().chain(inner_edges).chain([5.0]).collect();
        Ok(CalibrationQuality {
            error: mean_absolute(&cells.table())?,
            error_interval: percentile_interval(errors, &self.clusters).ok(),
            bias: bias(&cells.table())?,
            bias_interval: percentile_interval(biases, &self.clusters).ok(),
            reliability: reliability(scores, &self.labels, &edges)?,
        })
    }
}

/// Returns the scores at which the bootstrap curves are stored.
pub(super) fn score_grid() -> impl Iterator<Item = f64> {
    (0..=20).map(|i| f64::from(i) / 4.0)
}

/// Rounds to four decimals, like scores in records.
pub(super) fn round_to_4(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
