//! A calibration as a file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::curve::{Curve, Method};
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::Reliability;
use crate::support::files::atomic_file;

/// The version of this form.
const SCHEMA: u32 = 1;

/// Maps from one judge's scores to the scale of labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The version of this form.
    pub schema: u32,
    /// The hash of the judge it belongs to, as records have it.
    pub judge: String,
    /// The judge's name.
    pub name: String,
    /// Which of its scores are mapped.
    pub scores: ScoreKind,
    /// The form of the maps.
    pub method: Method,
    /// Where the labels are from.
    pub labels: String,
    /// How many raters gave them.
    pub raters: usize,
    /// The maps.
    pub targets: BTreeMap<ScoreTarget, FittedMap>,
    /// What could not be fitted, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<ScoreTarget, String>,
}

/// The map of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedMap {
    /// The map.
    pub curve: Curve,
    /// Labelled responses it was fitted on.
    pub n: usize,
    /// The images they are about.
    pub images: usize,
    /// How the scores agree with the labels as they are.
    pub before: CalibrationQuality,
    /// The same of mapped scores, each by a map that was fitted without its image.
    pub after: CalibrationQuality,
    /// The map refitted on draws of whole images: its values at 0, ¼, ½, … 5. What is not known of the map
    /// for want of labels is in their spread.
    pub draws: Vec<Vec<f64>>,
}

/// How scores agree with labels, in points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationQuality {
    /// The mean absolute error.
    pub error: f64,
    /// Its 95 % interval.
    pub error_interval: Option<[f64; 2]>,
    /// The mean of score less label.
    pub bias: f64,
    /// Its 95 % interval.
    pub bias_interval: Option<[f64; 2]>,
    /// Whether scores mean what they say, by half points.
    pub reliability: Reliability,
}

impl Calibration {
    /// Reads a calibration.
    ///
    /// # Errors
    ///
    /// If the file is none.
    pub fn read(path: &Path) -> Result<Self> {
        let hint = "hint: expected what `acem3 calibrate fit --out` wrote";
        let place = || format!("calibration {} cannot be read\n{hint}", path.display());
        let bytes = std::fs::read(path).with_context(place)?;
        let found: Self = serde_json::from_slice(&bytes).with_context(place)?;
        if found.schema > SCHEMA {
            bail!(
                "{}: written by a newer program (schema {}, this one knows {SCHEMA})\n\
                 hint: update this program",
                path.display(),
                found.schema
            );
        }
        Ok(found)
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).context("cannot write a calibration")?;
        atomic_file::write(path, (text + "\n").as_bytes())
    }

    /// The version of the form it is written in.
    pub const SCHEMA: u32 = SCHEMA;

    /// Finds that verdicts are of the judge it belongs to.
    ///
    /// # Errors
    ///
    /// If they are another's.
    pub fn check(&self, verdicts: &Verdicts) -> Result<()> {
        if self.judge != verdicts.judge {
            bail!(
                "{}: verdicts of {} ({}), but the calibration is of {} ({})\n\
                 hint: what one judge means by a score, another does not; fit a calibration for this \
                 one with `acem3 calibrate fit`",
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
