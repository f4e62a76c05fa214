//! Agreement of a judge with labels, by score target and by subgroup.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::analysis::agreement::statistics::agreement_statistic::{
    AgreementStatistic, compute_statistics,
};
use crate::analysis::agreement::statistics::statistic::Statistic;
use crate::analysis::agreement::statistics::statistic_group::StatisticGroup;
use crate::analysis::agreement::units::labelled_units::{LabelledUnits, TargetUnits};
use crate::analysis::agreement::units::subgroups::{Subgroup, subgroups};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// Settings of [`agreement`].
#[derive(Clone, Debug, Default)]
pub struct AgreementConfig {
    /// Bootstrap settings.
    pub bootstrap: Bootstrap,
    /// The score targets; all labelled ones if empty. The first gets a full table.
    pub targets: Vec<ScoreTarget>,
    /// Case fields that make subgroups, in addition to the known fields of data sets.
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
    /// The raters.
    pub raters: Vec<String>,
    /// Number of labels about cases of the records.
    pub joined: usize,
    /// Number of other labels.
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
        self.statistics
            .iter()
            .find(|found| found.statistic == statistic)
    }
}

impl SubgroupAgreement {
    /// Finds a statistic.
    pub fn statistic(&self, statistic: Statistic) -> Option<&AgreementStatistic> {
        self.statistics
            .iter()
            .find(|found| found.statistic == statistic)
    }
}

/// Computes the agreement of a judge with labels.
///
/// # Errors
///
/// If a requested target has no labels, or no case has a requested field.
pub fn agreement(
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
    for (target, of) in &targets {
        sections.push(TargetAgreement {
            target: *target,
            statistics: builder.statistics(of, None),
        });
    }
    let mut groups = Vec::new();
    if let Some((_, of)) = targets.first() {
        for group in subgroups(&verdicts.pairs, &config.group_by)? {
            let statistics = builder.statistics(of, Some(&group));
            let Subgroup { by, value, .. } = group;
            groups.push(SubgroupAgreement {
                by,
                value,
                statistics,
            });
        }
    }
    groups.retain(|group| {
        group
            .statistics
            .iter()
            .any(|statistic| statistic.coverage.labelled > 0)
    });
    Ok(Agreement {
        name: verdicts.name.clone(),
        judge: verdicts.judge.clone(),
        records: verdicts.path.display().to_string(),
        pairs: verdicts.pairs.len(),
        unscored: verdicts.unscored(),
        labels,
        raters: units.raters.clone(),
        joined: units.joined,
        unmatched: units.unmatched,
        draws: config.bootstrap.draws,
        seed: config.bootstrap.seed,
        sections,
        groups,
    })
}

/// The requested targets with their labelled units.
fn select_targets<'a>(
    units: &'a LabelledUnits,
    requested: &[ScoreTarget],
) -> Result<Vec<(ScoreTarget, &'a TargetUnits)>> {
    if requested.is_empty() {
        return Ok(units.targets.iter().map(|(t, of)| (*t, of)).collect());
    }
    let mut found = Vec::new();
    for target in requested {
        let Some(of) = units.targets.get(target) else {
            let labelled: Vec<&str> = units.targets.keys().map(|t| t.key()).collect();
            bail!(
                "--target {}: this target has no labels\nhint: targets with labels: {}",
                target.key(),
                labelled.join(", ")
            );
        };
        found.push((*target, of));
    }
    Ok(found)
}

/// Computes statistics of units.
struct StatisticsBuilder<'a> {
    verdicts: &'a [PairVerdict],
    raters: usize,
    bootstrap: Bootstrap,
}

impl StatisticsBuilder<'_> {
    /// The statistics of all units, or of those in a subgroup.
    fn statistics(&self, units: &TargetUnits, group: Option<&Subgroup>) -> Vec<AgreementStatistic> {
        let is_included = |verdict: usize, side: Option<usize>| {
            let verdict = self.verdicts.get(verdict);
            group.is_none_or(|group| verdict.is_some_and(|v| group.contains(v, side)))
        };
        let pairs = units.pairs.iter().filter(|u| is_included(u.verdict, None));
        let pairs: Vec<_> = pairs.collect();
        let triples = units.triples.iter();
        let triples: Vec<_> = triples.filter(|u| is_included(u.verdict, None)).collect();
        let responses = units.responses.iter();
        let responses: Vec<_> = responses
            .filter(|u| is_included(u.verdict, Some(u.side)))
            .collect();
        let (verdicts, raters) = (self.verdicts, self.raters);
        let mut statistics = Vec::new();
        if !pairs.is_empty() {
            let ceiling = StatisticGroup::raters_orders(&pairs, verdicts, raters);
            let group = StatisticGroup::orders(&pairs, verdicts);
            statistics.extend(self.compute(&group, Some(&ceiling)));
        }
        if !triples.is_empty() {
            let group = StatisticGroup::triples(&triples, verdicts);
            statistics.extend(self.compute(&group, None));
        }
        if !responses.is_empty() {
            let ceiling = StatisticGroup::raters_scores(&responses, verdicts, raters);
            let group = StatisticGroup::scores(&responses, verdicts);
            statistics.extend(self.compute(&group, Some(&ceiling)));
        }
        statistics
    }

    fn compute(
        &self,
        group: &StatisticGroup,
        ceiling: Option<&StatisticGroup>,
    ) -> Vec<AgreementStatistic> {
        let ceiling = ceiling.filter(|ceiling| ceiling.n > 0);
        compute_statistics(group, ceiling, self.bootstrap)
    }
}
