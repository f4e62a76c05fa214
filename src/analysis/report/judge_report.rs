//! Statistics of one judge.

use std::cmp::Ordering;
use std::collections::HashMap;

use anyhow::Result;
use serde::Serialize;

use super::counts::RecordCounts;
use super::groups::{GroupScores, groups};
use super::histogram::{Histogram, histograms};
use super::scores::{ModelScores, scores};
use crate::analysis::agreement::{Agreement, AgreementConfig, LabelledUnits, agreement};
use crate::analysis::audit::{AuditVerdicts, Finding, Probe};
use crate::analysis::calibration::CalibratedMean;
use crate::analysis::ranking::{Ranking, ranking};
use crate::analysis::report::record_summary::RecordSummary;
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// All statistics of one judge.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeReport {
    /// Name on the page.
    pub name: String,
    /// Judge hash, as in the records.
    pub judge: String,
    /// Path of the records file.
    pub records: String,
    /// Counts of records, verdicts and unscored pairs.
    pub counts: RecordCounts,
    /// Ranking of the models; `None` if no pair has a verdict.
    pub ranking: Option<Ranking>,
    /// Mean scores of the models.
    pub models: Vec<ModelScores>,
    /// Score histograms of the models.
    pub histograms: Vec<Histogram>,
    /// Findings of the audit probes that need no new verdicts.
    pub leanings: Vec<Finding>,
    /// Mean scores by subgroup.
    pub groups: Vec<GroupScores>,
    /// Agreement with labels; `None` without labels.
    pub agreement: Option<Agreement>,
    /// Mean calibrated scores; `None` without a calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Vec<CalibratedMean>>,
    /// Verdicts.
    #[serde(skip)]
    pub verdicts: Verdicts,
    /// Record summaries.
    #[serde(skip)]
    pub seen: Vec<RecordSummary>,
    /// Labels joined with the verdicts.
    #[serde(skip)]
    pub units: Option<LabelledUnits>,
}

/// Settings that apply to every judge.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Score target for comparisons and the ranking.
    pub target: ScoreTarget,
    /// Kind of score: chosen or expected.
    pub scores: ScoreKind,
    /// Case fields that define subgroups.
    pub by: Vec<String>,
    /// Bootstrap settings.
    pub bootstrap: Bootstrap,
    /// Label file; `None` for the labels in the records.
    pub labels: Option<String>,
}

impl JudgeReport {
    /// Computes the statistics from verdicts, record summaries and optional labels.
    ///
    /// # Errors
    ///
    /// No case has a requested subgroup field.
    pub fn of(
        verdicts: Verdicts,
        seen: Vec<RecordSummary>,
        units: Option<LabelledUnits>,
        inputs: &Inputs,
    ) -> Result<Self> {
        let bootstrap = inputs.bootstrap;
        let found = units
            .as_ref()
            .map(|units| agreed(&verdicts, units, inputs))
            .transpose()?;
        let targets: Vec<ScoreTarget> = ScoreTarget::all().collect();
        let any = verdicts.pairs.iter().any(|pair| pair.scores.is_some());
        let ranked = any
            .then(|| ranking(std::slice::from_ref(&verdicts), inputs.target, bootstrap))
            .transpose()?;
        let evidence = AuditVerdicts::new(&verdicts, units.as_ref(), bootstrap);
        let probes = Probe::ALL.into_iter().filter(|p| !p.needs_judging());
        let leanings = probes.map(|probe| evidence.run_probe(probe)).collect();
        Ok(Self {
            name: verdicts.name.clone(),
            judge: verdicts.judge.clone(),
            records: verdicts.path.display().to_string(),
            counts: RecordCounts::of(&seen),
            ranking: ranked,
            models: scores(verdicts.pairs.iter(), &targets, bootstrap),
            histograms: histograms(&verdicts.pairs, inputs.target),
            leanings,
            groups: groups(&verdicts.pairs, &inputs.by, inputs.target, bootstrap),
            agreement: found,
            calibrated: None,
            verdicts,
            seen,
            units,
        })
    }

    /// Returns the label order of each pair on a target, by index of the verdict.
    pub(super) fn labelled(&self, target: ScoreTarget) -> HashMap<usize, Ordering> {
        labelled(self.units.as_ref(), target)
    }
}

fn agreed(verdicts: &Verdicts, units: &LabelledUnits, inputs: &Inputs) -> Result<Agreement> {
    let mut on: Vec<ScoreTarget> = units.targets.keys().copied().collect();
    // The ranking target comes first: only its tables are shown in full.
    on.sort_by_key(|target| *target != inputs.target);
    let plan = AgreementConfig {
        bootstrap: inputs.bootstrap,
        targets: on,
        group_by: inputs.by.clone(),
    };
    agreement(verdicts, units, inputs.labels.clone(), &plan)
}

fn labelled(units: Option<&LabelledUnits>, target: ScoreTarget) -> HashMap<usize, Ordering> {
    let of = units.and_then(|units| units.targets.get(&target));
    let pairs = of.into_iter().flat_map(|of| &of.pairs);
    pairs
        .filter_map(|unit| Some((unit.verdict, unit.rated.order(None)?)))
        .collect()
}
