//! Calibration of the probability that a response is correct to the labels of people.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::graded_run::GradedRun;
use super::labelled::{LabelledResponse, LabelledResponses};
use super::model_accuracy::indicator;
use super::reliability::ProbabilityReliability;
use crate::analysis::calibration::{Curve, Method};
use crate::data::labels::LabelEntry;
use crate::statistics::{Bootstrap, Clusters, Defined, Estimate};
use crate::support::files::file_form::{FileForm, has_json_fields};
use crate::support::files::out_file::OutFile;
use crate::support::tables::{Table, TableSection};
use crate::support::text::format_count;

/// Schema version of the file. Fields are added, never renamed.
const SCHEMA: u32 = 1;
/// Minimum number of labelled responses for a map.
const MIN_RESPONSES: usize = 20;
/// Number of labelled responses below which a note warns.
const RECOMMENDED_RESPONSES: usize = 200;

/// A map from the judge's probability that a response is correct to the proportion of such responses
/// that people call correct.
#[derive(Clone, Debug, Serialize)]
pub struct ProbabilityCalibration {
    /// Schema version.
    pub schema: u32,
    /// The form of judging: `correctness`.
    pub form: &'static str,
    /// Judge hash, as in the records.
    pub judge: String,
    /// Name of the judge.
    pub name: String,
    /// Fitting method.
    pub method: Method,
    /// Source of the labels.
    pub labels: String,
    /// Number of raters.
    pub raters: usize,
    /// Number of labelled responses used for the fit.
    pub n: usize,
    /// Number of images of those responses.
    pub images: usize,
    /// The map; values are limited to 0 and 1.
    pub curve: Curve,
    /// Reliability of the judge's probabilities.
    pub before: ProbabilityReliability,
    /// Reliability of cross-fitted probabilities: each response is mapped by a fit that excludes its
    /// image.
    pub after: ProbabilityReliability,
    /// Number of bootstrap resamples.
    pub draws: usize,
    /// Seed of the bootstrap and of the folds.
    pub seed: u64,
}

/// How a map of probabilities is fitted.
#[derive(Clone, Copy, Debug)]
pub struct ProbabilityFit {
    /// Fitting method.
    pub method: Method,
    /// Number of cross-fitting folds, split by image.
    pub folds: usize,
    /// Bootstrap settings.
    pub bootstrap: Bootstrap,
}

impl ProbabilityCalibration {
    /// The form of a file with a calibration of probabilities.
    pub const FORM: FileForm = FileForm {
        name: "a calibration of acem3",
        recognise: |file| {
            has_json_fields(file, &["schema", "form", "judge", "method", "raters", "curve"])
        },
    };

    /// Fits a map to the labels of a run. `source`: file of the labels.
    ///
    /// # Errors
    ///
    /// A label is neither 0 nor 1, no label matches, or there are too few labels.
    pub fn fit(
        run: &GradedRun,
        entries: &[LabelEntry],
        source: &Path,
        fit: &ProbabilityFit,
    ) -> Result<Self> {
        let joined = LabelledResponses::join(run, entries, source)?;
        let responses = &joined.responses;
        let clusters = Clusters::new(responses.iter().map(|l| l.response.cluster.as_str()));
        let correct = responses.iter().filter(|l| l.is_correct).count();
        if responses.len() < MIN_RESPONSES || clusters.count() < fit.folds {
            bail!(
                "{}: {} with a verdict and a label, of {}; a map needs {MIN_RESPONSES}, of {} images\n\
                 hint: label more responses",
                source.display(),
                format_count(responses.len() as u64, "response"),
                format_count(clusters.count() as u64, "image"),
                fit.folds
            );
        }
        if correct == 0 || correct == responses.len() {
            bail!(
                "{}: all labels are equal, so there is nothing to fit\n\
                 hint: label correct and wrong responses",
                source.display()
            );
        }
        let undefined = || format!("{}: the map cannot be fitted", source.display());
        let unit_weights = vec![1.0; responses.len()];
        let fit_all = || -> Defined<_> {
            let curve = fit_curve(responses, fit.method, &unit_weights)?;
            let mapped = cross_fit(responses, &clusters, fit)?;
            let before = ProbabilityReliability::new(responses, fit.bootstrap)?;
            let after =
                ProbabilityReliability::of_probabilities(&mapped, responses, fit.bootstrap)?;
            Ok((curve, before, after))
        };
        let (curve, before, after) = fit_all()
            .map_err(|reason| anyhow::anyhow!(reason.with_names(["the probability", "the label"])))
            .with_context(undefined)?;
        Ok(Self {
            schema: SCHEMA,
            form: "correctness",
            judge: run.judge.clone(),
            name: run.name.clone(),
            method: fit.method,
            labels: source.display().to_string(),
            raters: joined.raters,
            n: responses.len(),
            images: clusters.count(),
            curve,
            before,
            after,
            draws: fit.bootstrap.resamples,
            seed: fit.bootstrap.seed,
        })
    }

    /// Writes the calibration to a file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, out: &OutFile) -> Result<()> {
        let text = serde_json::to_string(self).context("could not serialise the calibration")?;
        out.write((text + "\n").as_bytes())
    }

    /// Returns the tables: errors before and after, and the reliability before.
    pub fn tables(&self) -> Vec<TableSection> {
        let mut notes = vec![
            "after: cross-fitted (each response is mapped by a fit that excludes its image)".to_owned(),
            "Brier score: mean squared difference between probability and label (1 or 0); in brackets: 95 % CI, \
             clustered by image; ECE: expected calibration error, the mean gap between probabilities and labels in \
             bins of 0.1"
                .to_owned(),
        ];
        if self.n < RECOMMENDED_RESPONSES {
            notes.push(format!(
                "{} are few: use at least {RECOMMENDED_RESPONSES}",
                format_count(self.n as u64, "labelled response")
            ));
        }
        let title = format!("{} calibrated to {}", self.name, self.labels);
        vec![
            TableSection::new(title, self.error_table(format_error)).with_notes(notes),
            self.before.table("reliability before calibration"),
        ]
    }

    /// Returns the errors before and after calibration.
    pub fn csv_table(&self) -> Table {
        self.error_table(|estimate| {
            estimate.value.map_or_else(|_| String::new(), |v| v.to_string())
        })
    }

    fn error_table(&self, format: fn(&Estimate) -> String) -> Table {
        let mut table = Table::new([
            "",
            "n",
            "images",
            "Brier score before",
            "Brier score after",
            "ECE before",
            "ECE after",
        ]);
        table.push_row([
            "correctness".to_owned(),
            self.n.to_string(),
            self.images.to_string(),
            format(&self.before.brier),
            format(&self.after.brier),
            format!("{:.3}", self.before.reliability.error),
            format!("{:.3}", self.after.reliability.error),
        ]);
        table
    }
}

fn format_error(estimate: &Estimate) -> String {
    let interval = estimate.interval.ok();
    let interval = interval.map_or_else(String::new, |[a, b]| format!(" [{a:.3}, {b:.3}]"));
    estimate.value.map_or_else(|_| "unknown".to_owned(), |value| format!("{value:.3}{interval}"))
}

fn fit_curve(
    responses: &[LabelledResponse<'_>],
    method: Method,
    weights: &[f64],
) -> Defined<Curve> {
    let probabilities: Vec<f64> = responses.iter().map(|l| l.probability).collect();
    let labels: Vec<f64> = responses.iter().map(|l| indicator(l.is_correct)).collect();
    Curve::fit(method, &probabilities, &labels, weights)
}

/// Maps every probability with the fit of the other folds.
fn cross_fit(
    responses: &[LabelledResponse<'_>],
    clusters: &Clusters,
    fit: &ProbabilityFit,
) -> Defined<Vec<f64>> {
    let folds = clusters.folds(fit.folds, fit.bootstrap.seed);
    let mut mapped: Vec<f64> = responses.iter().map(|l| l.probability).collect();
    for fold in 0..fit.folds {
        let others: Vec<f64> = folds.iter().map(|f| indicator(*f != fold)).collect();
        let curve = fit_curve(responses, fit.method, &others)?;
        let held_out = mapped.iter_mut().zip(&folds).filter(|(_, f)| **f == fold);
        held_out.for_each(|(value, _)| *value = curve.eval(*value).clamp(0.0, 1.0));
    }
    Ok(mapped)
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{response, run};
    use super::*;
    use crate::data::labels::{LabelValue, ScoreTarget};

    /// The judge gives 0.9 to responses of which every second one is correct, and 0.1 to the others,
    /// which are all wrong: the map gives 0.5 and 0.
    #[test]
    fn map_gives_the_proportion_that_people_call_correct() {
        let is_high = |i: usize| (i / 2).is_multiple_of(2);
        let responses =
            (0..200).map(|i| response(i, "a", Some(if is_high(i) { 0.9 } else { 0.1 })));
        let run = run(responses.collect());
        let entries: Vec<LabelEntry> = (0..200)
            .map(|i| LabelEntry {
                line: i as u64 + 1,
                case: i.to_string(),
                rater: "r".to_owned(),
                target: ScoreTarget::Final,
                value: LabelValue::Score {
                    model: "a".to_owned(),
                    value: indicator(is_high(i) && i.is_multiple_of(2)),
                },
            })
            .collect();
        let bootstrap = Bootstrap { resamples: 50, ..Bootstrap::default() };
        let fit = ProbabilityFit { method: Method::Isotonic, folds: 5, bootstrap };
        let source = Path::new("labels.csv");
        let found = ProbabilityCalibration::fit(&run, &entries, source, &fit).unwrap();
        assert!((found.curve.eval(0.9) - 0.5).abs() < 1e-12 && found.curve.eval(0.1).abs() < 1e-12);
        // Before: (0.1² + 0.9²) / 2 in one half, 0.1² in the other. After: 0.5² in one half.
        assert!((found.before.brier.value.unwrap() - 0.21).abs() < 1e-12);
        assert!((found.after.brier.value.unwrap() - 0.125).abs() < 1e-12);
        assert!((found.before.reliability.error - 0.25).abs() < 1e-12);
        assert!(found.after.reliability.error < 1e-12);
        let few = ProbabilityCalibration::fit(&run, &entries[..4], source, &fit).unwrap_err();
        assert!(few.to_string().contains("4 responses with a verdict and a label, of 2 images"));
    }
}
