//! Statistics of one judge.

use std::cmp::Ordering;
use std::collections::HashMap;

use anyhow::Result;
use serde::Serialize;

use crate::analysis::agreement::{Agreement, AgreementConfig, LabelledUnits, compute_agreement};
use crate::analysis::audit::{AuditVerdicts, Finding, Probe};
use crate::analysis::calibration::CalibratedMean;
use crate::analysis::ranking::{Ranking, rank_models};
use crate::analysis::report::verdicts::counts::RecordCounts;
use crate::analysis::report::verdicts::deciding::DecidingCriteria;
use crate::analysis::report::verdicts::groups::{GroupScores, compute_groups};
use crate::analysis::report::verdicts::histogram::{Histogram, compute_histograms};
use crate::analysis::report::verdicts::record_summary::RecordSummary;
use crate::analysis::report::verdicts::scores::{ModelScores, compute_model_scores};
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::judging::run::run_state::RunState;
use crate::statistics::Bootstrap;

/// All statistics of one judge.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeReport {
    /// Name of the judge in the report.
    pub name: String,
    /// Judge hash, as in the records.
    pub judge: String,
    /// Path of the records file.
    pub records: String,
    /// State of the run: finished or not, and its damaged records, which do not count.
    pub run: RunState,
    /// Counts of records, verdicts and unscored pairs.
    pub counts: RecordCounts,
    /// Ranking of the models; `None` if no pair has a verdict.
    pub ranking: Option<Ranking>,
    /// Mean scores of the models.
    pub models: Vec<ModelScores>,
    /// Which criteria decided the pairs.
    pub deciding: DecidingCriteria,
    /// Score histograms of the models.
    pub histograms: Vec<Histogram>,
    /// Findings of the audit probes that need no new verdicts.
    #[serde(rename = "leanings")]
    pub bias_findings: Vec<Finding>,
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
    pub summaries: Vec<RecordSummary>,
    /// Labels joined with the verdicts.
    #[serde(skip)]
    pub units: Option<LabelledUnits>,
}

/// Settings that apply to every judge.
#[derive(Clone, Debug)]
pub struct JudgeReportSettings {
    /// Score target for comparisons and the ranking.
    pub target: ScoreTarget,
    /// Kind of score: chosen or expected.
    pub score_kind: ScoreKind,
    /// Case fields that define subgroups.
    pub group_by: Vec<String>,
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
    pub fn new(
        verdicts: Verdicts,
        summaries: Vec<RecordSummary>,
        units: Option<LabelledUnits>,
        settings: &JudgeReportSettings,
    ) -> Result<Self> {
        let bootstrap = settings.bootstrap;
        let agreement =
            units.as_ref().map(|units| label_agreement(&verdicts, units, settings)).transpose()?;
        let targets: Vec<ScoreTarget> = ScoreTarget::all().collect();
        let has_scores = verdicts.pairs.iter().any(|pair| pair.scores.is_some());
        let ranking = has_scores
            .then(|| rank_models(std::slice::from_ref(&verdicts), settings.target, bootstrap))
            .transpose()?;
        let audit_verdicts = AuditVerdicts::new(&verdicts, units.as_ref(), bootstrap);
        let probes = Probe::ALL.into_iter().filter(|p| !p.needs_judging());
        let bias_findings = probes.map(|probe| audit_verdicts.run_probe(probe)).collect();
        Ok(Self {
            name: verdicts.name.clone(),
            judge: verdicts.judge.clone(),
            records: verdicts.path.display().to_string(),
            run: verdicts.run.clone(),
            counts: RecordCounts::from_summaries(&summaries),
            ranking,
            models: compute_model_scores(verdicts.pairs.iter(), &targets, bootstrap),
            deciding: DecidingCriteria::new(&verdicts.pairs),
            histograms: compute_histograms(&verdicts.pairs, settings.target),
            bias_findings,
            groups: compute_groups(&verdicts.pairs, &settings.group_by, settings.target, bootstrap),
            agreement,
            calibrated: None,
            verdicts,
            summaries,
            units,
        })
    }

    /// Returns the label order of each pair on a target, by index of the verdict.
    pub(super) fn label_orders(&self, target: ScoreTarget) -> HashMap<usize, Ordering> {
        label_orders_of(self.units.as_ref(), target)
    }
}

fn label_agreement(
    verdicts: &Verdicts,
    units: &LabelledUnits,
    settings: &JudgeReportSettings,
) -> Result<Agreement> {
    let mut targets: Vec<ScoreTarget> = units.targets.keys().copied().collect();
    // The ranking target comes first: only its tables are shown in full.
    targets.sort_by_key(|target| *target != settings.target);
    let config = AgreementConfig {
        bootstrap: settings.bootstrap,
        targets,
        group_by: settings.group_by.clone(),
    };
    compute_agreement(verdicts, units, settings.labels.clone(), &config)
}

fn label_orders_of(units: Option<&LabelledUnits>, target: ScoreTarget) -> HashMap<usize, Ordering> {
    let target_units = units.and_then(|units| units.targets.get(&target));
    let pairs = target_units.into_iter().flat_map(|units| &units.pairs);
    pairs.filter_map(|unit| Some((unit.verdict, unit.ratings.order(None)?))).collect()
}
