//! Agreement of a judge with labels, by score target and by subgroup.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::analysis::agreement::statistics::agreement_statistic::{
    AgreementStatistic, compute_statistics,
};
use crate::analysis::agreement::statistics::statistic::Statistic;
use crate::analysis::agreement::statistics::statistic_group::StatisticGroup;
use crate::analysis::agreement::units::labelled_units::{LabelledUnits, TargetUnits};
use crate::analysis::agreement::units::subgroups::{Subgroup, find_subgroups};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// Settings of [`compute_agreement`].
#[derive(Clone, Debug, Default)]
pub struct AgreementConfig {
    /// Bootstrap settings.
    pub bootstrap: Bootstrap,
    /// Score targets; all labelled targets if empty. Only the first one gets a full table.
    pub targets: Vec<ScoreTarget>,
    /// Case fields that define subgroups, in addition to known fields of data sets.
    pub group_by: Vec<String>,
}

/// Agreement on one score target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetAgreement {
    /// The score target.
    pub target: ScoreTarget,
    /// The statistics.
    #[serde(rename = "figures")]
    pub statistics: Vec<AgreementStatistic>,
}

/// Agreement within a subgroup, on the first target.
#[derive(Clone, Debug, Serialize)]
pub struct SubgroupAgreement {
    /// Field of the subgroups.
    pub by: String,
    /// Value of the field in this subgroup.
    pub value: String,
    /// The statistics.
    #[serde(rename = "figures")]
    pub statistics: Vec<AgreementStatistic>,
}

/// Agreement of a judge with labels.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// Name of the judge.
    pub name: String,
    /// Hash of the judge, as in records.
    pub judge: String,
    /// File of the records.
    pub records: String,
    /// Number of pairs in the records.
    pub pairs: usize,
    /// Number of pairs without a score.
    pub unscored: usize,
    /// File of the labels; `None` for the labels of the records.
    pub labels: Option<String>,
    /// Names of the raters.
    pub raters: Vec<String>,
    /// Number of labels that match the records.
    pub joined: usize,
    /// Number of labels that match no record.
    pub unmatched: usize,
    /// Number of bootstrap resamples.
    pub draws: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Agreement on each target.
    pub sections: Vec<TargetAgreement>,
    /// Agreement within each subgroup, on the first target.
    pub groups: Vec<SubgroupAgreement>,
}

impl TargetAgreement {
    /// Finds a statistic.
    pub fn statistic(&self, statistic: Statistic) -> Option<&AgreementStatistic> {
        self.statistics.iter().find(|found| found.statistic == statistic)
    }
}

impl SubgroupAgreement {
    /// Finds a statistic.
    pub fn statistic(&self, statistic: Statistic) -> Option<&AgreementStatistic> {
        self.statistics.iter().find(|found| found.statistic == statistic)
    }
}

/// Computes the agreement of a judge with labels.
///
/// # Errors
///
/// If a requested target has no labels, or no case has a requested field.
pub fn compute_agreement(
    verdicts: &Verdicts,
    units: &LabelledUnits,
    labels: Option<String>,
    config: &AgreementConfig,
) -> Result<Agreement> {
    let targets = select_targets(units, &config.targets)?;
    let builder = StatisticsBuilder {
        verdicts: &verdicts.pairs,
        raters: units.raters.len(),
        bootstrap: config.bootstrap,
    };
    let mut sections = Vec::new();
    for (target, target_units) in &targets {
        sections.push(TargetAgreement {
            target: *target,
            statistics: builder.estimate(target_units, None),
        });
    }
    let mut groups = Vec::new();
    if let Some((_, target_units)) = targets.first() {
        for group in find_subgroups(&verdicts.pairs, &config.group_by)? {
            let statistics = builder.estimate(target_units, Some(&group));
            let Subgroup { by, value, .. } = group;
            groups.push(SubgroupAgreement { by, value, statistics });
        }
    }
    groups.retain(|group| group.statistics.iter().any(|statistic| statistic.coverage.labelled > 0));
    Ok(Agreement {
        name: verdicts.name.clone(),
        judge: verdicts.judge.clone(),
        records: verdicts.path.display().to_string(),
        pairs: verdicts.pairs.len(),
        unscored: verdicts.count_unscored(),
        labels,
        raters: units.raters.clone(),
        joined: units.joined,
        unmatched: units.unmatched,
        draws: config.bootstrap.resamples,
        seed: config.bootstrap.seed,
        sections,
        groups,
    })
}

/// Selects the requested targets, with their labelled units.
fn select_targets<'a>(
    units: &'a LabelledUnits,
    requested: &[ScoreTarget],
) -> Result<Vec<(ScoreTarget, &'a TargetUnits)>> {
    if requested.is_empty() {
        return Ok(units.targets.iter().map(|(target, units)| (*target, units)).collect());
    }
    let mut selected = Vec::new();
    for target in requested {
        let Some(target_units) = units.targets.get(target) else {
            let labelled: Vec<&str> = units.targets.keys().map(|t| t.key()).collect();
            bail!(
                "--target {}: this target has no labels\nhint: targets with labels: {}",
                target.key(),
                labelled.join(", ")
            );
        };
        selected.push((*target, target_units));
    }
    Ok(selected)
}

/// Inputs of the statistics of one judge.
struct StatisticsBuilder<'a> {
    verdicts: &'a [PairVerdict],
    raters: usize,
    bootstrap: Bootstrap,
}

impl StatisticsBuilder<'_> {
    /// Estimates the statistics of all units, or of the units of a subgroup.
    fn estimate(&self, units: &TargetUnits, group: Option<&Subgroup>) -> Vec<AgreementStatistic> {
        let is_included = |verdict: usize, side: Option<usize>| {
            let verdict = self.verdicts.get(verdict);
            group.is_none_or(|group| verdict.is_some_and(|v| group.contains(v, side)))
        };
        let pairs = units.pairs.iter().filter(|u| is_included(u.verdict, None));
        let pairs: Vec<_> = pairs.collect();
        let triples = units.triples.iter();
        let triples: Vec<_> = triples.filter(|u| is_included(u.verdict, None)).collect();
        let responses = units.responses.iter();
        let responses: Vec<_> =
            responses.filter(|u| is_included(u.verdict, Some(u.side))).collect();
        let (verdicts, raters) = (self.verdicts, self.raters);
        let mut statistics = Vec::new();
        if !pairs.is_empty() {
            let ceiling = StatisticGroup::from_rater_orders(&pairs, verdicts, raters);
            let group = StatisticGroup::from_pairs(&pairs, verdicts);
            statistics.extend(self.estimate_group(&group, Some(&ceiling)));
        }
        if !triples.is_empty() {
            let group = StatisticGroup::from_triples(&triples, verdicts);
            statistics.extend(self.estimate_group(&group, None));
        }
        if !responses.is_empty() {
            let ceiling = StatisticGroup::from_rater_scores(&responses, verdicts, raters);
            let group = StatisticGroup::from_responses(&responses, verdicts);
            statistics.extend(self.estimate_group(&group, Some(&ceiling)));
        }
        statistics
    }

    /// Estimates the statistics of a group; omits the human ceiling if no case has two raters.
    fn estimate_group(
        &self,
        group: &StatisticGroup,
        ceiling: Option<&StatisticGroup>,
    ) -> Vec<AgreementStatistic> {
        let ceiling = ceiling.filter(|ceiling| ceiling.n > 0);
        compute_statistics(group, ceiling, self.bootstrap)
    }
}
