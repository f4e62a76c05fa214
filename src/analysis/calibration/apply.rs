//! Applies calibrations to records and computes mean calibrated scores of models.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::file::{Calibration, FittedMap};
use super::fit::{round_to_4, score_grid};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::judging::run::record::checksum::append_checksum;
use crate::judging::run::record::record_reader::RecordReader;
use crate::judging::run::record::record_row::{RecordRow, RowIdentity};
use crate::statistics::{Bootstrap, Clusters, Defined, Isotonic, mean, percentile_interval};
use crate::support::files::file_form::{FileForm, has_json_line};
use crate::support::files::out_file::OutFile;

/// Mean raw and calibrated score of one model on one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibratedMean {
    /// Name of the model.
    pub model: String,
    /// Score target.
    pub target: ScoreTarget,
    /// Number of scores; a response counts once per scored pair.
    pub n: usize,
    /// Proportion of the model's pairs that have a verdict.
    pub coverage: f64,
    /// Mean of the judge's scores.
    pub score: f64,
    /// Mean of the calibrated scores.
    pub calibrated: f64,
    /// 95 % interval of the calibrated mean; includes the uncertainty of the map.
    pub interval: Option<[f64; 2]>,
}

/// Scores of one model on one target.
#[derive(Default)]
struct TargetScores<'a> {
    scores: Vec<f64>,
    clusters: Vec<&'a str>,
    pairs: usize,
}

/// Computes the raw and calibrated mean scores of every model.
pub fn calibrated_means(
    calibration: &Calibration,
    verdicts: &Verdicts,
    bootstrap: Bootstrap,
) -> Vec<CalibratedMean> {
    let mut all: BTreeMap<(ScoreTarget, &str), TargetScores<'_>> = BTreeMap::new();
    for verdict in &verdicts.pairs {
        for (side, model) in verdict.pair.iter().enumerate() {
            for target in calibration.targets.keys() {
                let model_scores = all.entry((*target, model)).or_default();
                model_scores.pairs += 1;
                let scores = verdict.scores.as_ref().and_then(|s| s.get(target));
                if let Some(scores) = scores {
                    model_scores.scores.push(scores[side]);
                    model_scores.clusters.push(&verdict.cluster);
                }
            }
        }
    }
    for ((_, model), scores) in &mut all {
        let unlisted = verdicts.unlisted_pairs.get(*model).copied().unwrap_or_default();
        scores.pairs += unlisted as usize;
    }
    let mean = |((target, model), scores): ((ScoreTarget, &str), TargetScores<'_>)| {
        let fitted = calibration.targets.get(&target)?;
        scores.calibrated_mean(model, target, fitted, bootstrap)
    };
    all.into_iter().filter_map(mean).collect()
}

impl TargetScores<'_> {
    fn calibrated_mean(
        &self,
        model: &str,
        target: ScoreTarget,
        fitted: &FittedMap,
        bootstrap: Bootstrap,
    ) -> Option<CalibratedMean> {
        let unit_weights = vec![1.0; self.scores.len()];
        let scores: Vec<Option<f64>> = self.scores.iter().copied().map(Some).collect();
        let map = |s: &f64| Some(fitted.curve.eval(*s));
        let mapped: Vec<Option<f64>> = self.scores.iter().map(map).collect();
        let clusters = Clusters::new(self.clusters.iter().copied());
        // Each resample of the responses uses one bootstrap curve.
        let curves: Vec<Isotonic> =
            fitted.draws.iter().map(|values| interpolate_curve(values)).collect();
        let mapped_by_curve: Vec<Vec<Option<f64>>> = curves
            .iter()
            .map(|curve| self.scores.iter().map(|s| Some(curve.eval(*s))).collect())
            .collect();
        let resamples: Vec<Defined<f64>> = bootstrap.resample_numbered(&clusters, |i, weights| {
            let calibrated = if mapped_by_curve.is_empty() {
                &mapped
            } else {
                &mapped_by_curve[i % mapped_by_curve.len()]
            };
            mean(calibrated, weights)
        });
        Some(CalibratedMean {
            model: model.to_owned(),
            target,
            n: self.scores.len(),
            coverage: self.scores.len() as f64 / self.pairs.max(1) as f64,
            score: mean(&scores, &unit_weights).ok()?,
            calibrated: mean(&mapped, &unit_weights).ok()?,
            interval: percentile_interval(resamples, &clusters).ok(),
        })
    }
}

/// Interpolates a bootstrap curve linearly between its stored values.
fn interpolate_curve(values: &[f64]) -> Isotonic {
    Isotonic { points: score_grid().zip(values).map(|(x, y)| [x, *y]).collect() }
}

/// All fields of a record, in their order, unknown ones included.
#[derive(Deserialize)]
#[serde(transparent)]
struct RecordFields(Map<String, Value>);

impl RecordRow for RecordFields {
    fn schema(&self) -> u32 {
        let schema = self.0.get("schema").and_then(Value::as_u64);
        schema.map_or(0, |schema| u32::try_from(schema).unwrap_or(u32::MAX))
    }

    fn identity(&self) -> RowIdentity<'_> {
        let text = |name: &str| self.0.get(name).and_then(Value::as_str);
        RowIdentity {
            judge: text("judge").unwrap_or_default(),
            case: text("case"),
            line: self.0.get("line").and_then(Value::as_u64).unwrap_or_default(),
            is_judged: text("status") == Some("judged"),
            is_noted: text("status") == Some("noted"),
        }
    }
}

/// The form of calibrated records. The records of a run have no calibrated scores.
pub const CALIBRATED_RECORDS_FORM: FileForm = FileForm {
    name: "a file of calibrated records",
    recognise: |file| has_json_line(file, &["schema", "case", "calibrated"]),
};

impl Calibration {
    /// Writes a copy of the records with the calibrated scores of each pair. The other fields stay,
    /// except the checksum, which is that of the new line.
    ///
    /// # Errors
    ///
    /// A record cannot be read, or the file cannot be written.
    pub fn write_calibrated_records(&self, verdicts: &Verdicts, out: &OutFile) -> Result<()> {
        let convert = |record: RecordFields, line: u64| Ok((record.0, line));
        let records = RecordReader::open(&verdicts.path, convert)?;
        let mut pairs = verdicts.pairs.iter().peekable();
        let lines = records.map(|record| -> Result<String> {
            let (mut record, line) = record?;
            if let Some(verdict) = pairs.next_if(|pair| pair.line == line) {
                let calibrated = self.map_record(verdict).unwrap_or_default();
                record.insert("calibrated".to_owned(), calibrated);
            }
            record.shift_remove("checksum");
            let text = serde_json::to_string(&record).context("cannot write a record as json")?;
            Ok(append_checksum(&text) + "\n")
        });
        out.write_chunks(lines)
    }

    /// Returns the calibrated scores of a record by target.
    pub fn map_record(&self, verdict: &PairVerdict) -> Option<Value> {
        let scores = verdict.scores.as_ref()?;
        let mut mapped = Map::new();
        for (target, fitted) in &self.targets {
            if let Some(pair) = scores.get(target) {
                let pair = pair.map(|score| round_to_4(fitted.curve.eval(score)));
                mapped.insert(target.key().to_owned(), Value::from(pair.to_vec()));
            }
        }
        Some(Value::Object(mapped))
    }
}
