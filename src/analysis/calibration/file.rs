//! Calibration files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::curve::{Curve, Method};
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::Reliability;
use crate::support::files::file_form::{FileForm, has_json_fields};
use crate::support::files::out_file::OutFile;
use crate::support::files::regular_file;

/// Schema version of calibration files.
const SCHEMA: u32 = 1;

/// Calibration of one judge: a map to the label scale per score target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Schema version.
    pub schema: u32,
    /// Judge hash, as in the records.
    pub judge: String,
    /// Name of the judge.
    pub name: String,
    /// Kind of score that is mapped: chosen or expected.
    pub scores: ScoreKind,
    /// Fitting method.
    pub method: Method,
    /// Source of the labels.
    pub labels: String,
    /// Number of raters.
    pub raters: usize,
    /// Fitted maps by target.
    pub targets: BTreeMap<ScoreTarget, FittedMap>,
    /// Targets without a map, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<ScoreTarget, String>,
    /// What was wrong with the run when the maps were fitted: unfinished, or damaged records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_problems: Vec<String>,
}

/// Map of one score target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedMap {
    /// Curve.
    pub curve: Curve,
    /// Number of labelled responses used for the fit.
    pub n: usize,
    /// Number of images of those responses.
    pub images: usize,
    /// Error and bias of the raw scores.
    pub before: CalibrationQuality,
    /// Error and bias of the cross-fitted scores: each response is mapped by a fit that excludes
    /// its image.
    pub after: CalibrationQuality,
    /// Values at 0, ¼, ½, … 5 of curves fitted on bootstrap resamples, clustered by image. They
    /// give the uncertainty of the map.
    pub draws: Vec<Vec<f64>>,
}

/// Agreement of scores with labels, in points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationQuality {
    /// Mean absolute error.
    pub error: f64,
    /// 95 % interval of the error.
    pub error_interval: Option<[f64; 2]>,
    /// Mean signed error (score − label).
    pub bias: f64,
    /// 95 % interval of the bias.
    pub bias_interval: Option<[f64; 2]>,
    /// Reliability diagram in bins of half points.
    pub reliability: Reliability,
}

impl Calibration {
    /// Reads a calibration file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a calibration.
    pub fn read(path: &Path) -> Result<Self> {
        let hint = "hint: pass the output file of `acem3 calibrate fit`";
        let context = || format!("{}: could not read the calibration\n{hint}", path.display());
        let bytes = regular_file::read(path).with_context(context)?;
        let calibration: Self = serde_json::from_slice(&bytes).with_context(context)?;
        if calibration.schema > SCHEMA {
            bail!(
                "{}: written by a newer version of acem3 (schema {}, expected at most {SCHEMA})\n\
                 hint: update acem3",
                path.display(),
                calibration.schema
            );
        }
        Ok(calibration)
    }

    /// The form of a calibration file.
    pub const FORM: FileForm = FileForm {
        name: "a calibration of acem3",
        recognise: |file| {
            has_json_fields(file, &["schema", "judge", "scores", "method", "raters", "targets"])
        },
    };

    /// Writes the calibration to a file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, out: &OutFile) -> Result<()> {
        let text = serde_json::to_string(self).context("could not serialise the calibration")?;
        out.write((text + "\n").as_bytes())
    }

    /// Schema version of new files.
    pub const SCHEMA: u32 = SCHEMA;

    /// Checks that verdicts are from the judge of this calibration.
    ///
    /// # Errors
    ///
    /// The verdicts are from another judge.
    pub fn check_judge(&self, verdicts: &Verdicts) -> Result<()> {
        if self.judge != verdicts.judge {
            bail!(
                "{}: verdicts of {} ({}), but the calibration is of {} ({})\n\
                 hint: a calibration applies to one judge; fit one for this judge with `acem3 calibrate fit`",
                verdicts.path.display(),
                verdicts.name,
                verdicts.judge,
                self.name,
                self.judge
            );
        }
        Ok(())
    }
}
