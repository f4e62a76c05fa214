//! All figures of one judge.

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

/// One judge's figures.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeReport {
    /// How it is called on the page.
    pub name: String,
    /// Its hash, as records have it.
    pub judge: String,
    /// The file of its records.
    pub records: String,
    /// How much it judged.
    pub counts: RecordCounts,
    /// The models compared.
    pub ranking: Option<Ranking>,
    /// Their mean scores.
    pub models: Vec<ModelScores>,
    /// How the scores are distributed.
    pub histograms: Vec<Histogram>,
    /// What the records alone tell of its leanings, as an audit of them has it.
    pub leanings: Vec<Finding>,
    /// Means by subgroup.
    pub groups: Vec<GroupScores>,
    /// How it agrees with labels; absent without any.
    pub agreement: Option<Agreement>,
    /// Means on the scale of people; absent without a calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Vec<CalibratedMean>>,
    /// The verdicts.
    #[serde(skip)]
    pub verdicts: Verdicts,
    /// The records.
    #[serde(skip)]
    pub seen: Vec<RecordSummary>,
    /// The labels, joined.
    #[serde(skip)]
    pub units: Option<LabelledUnits>,
}

/// What is asked of every judge.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// What models are compared and ranked by.
    pub target: ScoreTarget,
    /// Which of its scores.
    pub scores: ScoreKind,
    /// Fields of cases that make subgroups.
    pub by: Vec<String>,
    /// The draws.
    pub bootstrap: Bootstrap,
    /// Where labels are from, where they are not the records' own.
    pub labels: Option<String>,
}

impl JudgeReport {
    /// The figures of verdicts and their records, with labels where there are any.
    ///
    /// # Errors
    ///
    /// If a field that was asked for is in no case.
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

    /// The order that labels give to each verdict's pair on a target, by the place of the verdict.
    pub(super) fn labelled(&self, target: ScoreTarget) -> HashMap<usize, Ordering> {
        labelled(self.units.as_ref(), target)
    }
}

fn agreed(verdicts: &Verdicts, units: &LabelledUnits, inputs: &Inputs) -> Result<Agreement> {
    let mut on: Vec<ScoreTarget> = units.targets.keys().copied().collect();
    // What models are ranked by comes first, and is told in full.
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
