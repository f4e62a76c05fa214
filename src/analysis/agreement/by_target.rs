//! All figures of a judge, by what is scored and by subgroup.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::Serialize;

use super::statistic::Statistic;
use super::units::{LabelledUnits, TargetUnits};
use crate::analysis::agreement::agreement_statistic::{AgreementStatistic, figures};
use crate::analysis::agreement::statistic_group::StatisticGroup;
use crate::analysis::verdicts::{PairVerdict, Verdicts, dimensions, length_bin};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// What is computed.
#[derive(Clone, Debug, Default)]
pub struct AgreementConfig {
    /// The draws.
    pub bootstrap: Bootstrap,
    /// What is looked at; all that is labelled if empty. The first is told in full.
    pub on: Vec<ScoreTarget>,
    /// Fields of cases that make subgroups, beside those that data sets tell of.
    pub by: Vec<String>,
}

/// The figures on one target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetAgreement {
    /// What is scored.
    pub target: ScoreTarget,
    /// The figures.
    pub figures: Vec<AgreementStatistic>,
}

/// The figures of a subgroup on the first target.
#[derive(Clone, Debug, Serialize)]
pub struct SubgroupAgreement {
    /// What makes the subgroups.
    pub by: String,
    /// What all cases of this one have in common.
    pub value: String,
    /// The figures.
    pub figures: Vec<AgreementStatistic>,
}

/// How far a judge agrees with labels.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// The judge's name.
    pub name: String,
    /// Its hash, as records have it.
    pub judge: String,
    /// Its records.
    pub records: String,
    /// Pairs in the records.
    pub pairs: usize,
    /// Those without a score.
    pub unscored: usize,
    /// The label file; `None` where the records' own labels were taken.
    pub labels: Option<String>,
    /// The raters.
    pub raters: Vec<String>,
    /// Labels that are about cases of the records.
    pub joined: usize,
    /// Labels that are not.
    pub unmatched: usize,
    /// Draws of the bootstrap.
    pub draws: usize,
    /// Its seed.
    pub seed: u64,
    /// By what is scored.
    pub sections: Vec<TargetAgreement>,
    /// By subgroup, on the first section's target.
    pub groups: Vec<SubgroupAgreement>,
}

impl TargetAgreement {
    /// A figure by its name.
    pub fn figure(&self, statistic: Statistic) -> Option<&AgreementStatistic> {
        self.figures
            .iter()
            .find(|figure| figure.statistic == statistic)
    }
}

impl SubgroupAgreement {
    /// A figure by its name.
    pub fn figure(&self, statistic: Statistic) -> Option<&AgreementStatistic> {
        self.figures
            .iter()
            .find(|figure| figure.statistic == statistic)
    }
}

/// Computes all figures.
///
/// # Errors
///
/// If nothing is labelled on a target asked for, or no case has a field asked for.
pub fn agreement(
    verdicts: &Verdicts,
    units: &LabelledUnits,
    labels: Option<String>,
    plan: &AgreementConfig,
) -> Result<Agreement> {
    let targets = targets(units, &plan.on)?;
    let several = StatisticsBuilder {
        verdicts: &verdicts.pairs,
        raters: units.raters.len(),
        bootstrap: plan.bootstrap,
    };
    let all = |_: usize, _: Option<usize>| true;
    let mut sections = Vec::new();
    for (target, of) in &targets {
        sections.push(TargetAgreement {
            target: *target,
            figures: several.figures(of, &all),
        });
    }
    let mut groups = Vec::new();
    if let Some((_, of)) = targets.first() {
        for Subgroup { by, value, within } in subgroups(&verdicts.pairs, &plan.by)? {
            let within = |v: usize, side: Option<usize>| within(&verdicts.pairs, v, side);
            let figures = several.figures(of, &within);
            groups.push(SubgroupAgreement { by, value, figures });
        }
    }
    groups.retain(|group| {
        group
            .figures
            .iter()
            .any(|figure| figure.coverage.labelled > 0)
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
        draws: plan.bootstrap.draws,
        seed: plan.bootstrap.seed,
        sections,
        groups,
    })
}

/// What is labelled and asked for.
fn targets<'a>(
    units: &'a LabelledUnits,
    on: &[ScoreTarget],
) -> Result<Vec<(ScoreTarget, &'a TargetUnits)>> {
    if on.is_empty() {
        return Ok(units.targets.iter().map(|(t, of)| (*t, of)).collect());
    }
    let mut found = Vec::new();
    for target in on {
        let Some(of) = units.targets.get(target) else {
            let labelled: Vec<&str> = units.targets.keys().map(|t| t.key()).collect();
            bail!(
                "--target {}: nothing is labelled on it\nhint: there are labels on {}",
                target.key(),
                labelled.join(", ")
            );
        };
        found.push((*target, of));
    }
    Ok(found)
}

/// Whether a unit, by its verdict and the response of it, is in a subgroup.
type SubgroupFilter = Box<dyn Fn(&[PairVerdict], usize, Option<usize>) -> bool>;

/// A subgroup: what makes it, its value, and what is in it.
struct Subgroup {
    by: String,
    value: String,
    within: SubgroupFilter,
}

/// All subgroups.
fn subgroups(verdicts: &[PairVerdict], by: &[String]) -> Result<Vec<Subgroup>> {
    let mut all = Vec::new();
    let mut fields = dimensions(verdicts);
    for field in by {
        if !verdicts.iter().any(|v| v.field(field).is_some()) {
            let mut known: Vec<&str> = verdicts
                .iter()
                .flat_map(|v| v.meta.keys())
                .map(String::as_str)
                .collect();
            known.sort_unstable();
            known.dedup();
            bail!(
                "--group-by {field}: no case has this field in `meta`\nhint: there are {}",
                known.join(", ")
            );
        }
        if !fields.iter().any(|(_, known)| known == field) {
            fields.push((field.clone(), field.clone()));
        }
    }
    for (name, field) in fields {
        let mut values: BTreeSet<String> = BTreeSet::new();
        values.extend(verdicts.iter().filter_map(|v| v.field(&field)));
        for value in values {
            let (field, wanted) = (field.clone(), value.clone());
            let within: SubgroupFilter = Box::new(move |verdicts, v, _| {
                verdicts.get(v).and_then(|v| v.field(&field)).as_deref() == Some(&wanted)
            });
            all.push(Subgroup {
                by: name.clone(),
                value,
                within,
            });
        }
    }
    // A pair is as long as its longer answer.
    let length = |verdict: &PairVerdict, side: Option<usize>| {
        let [a, b] = verdict.words;
        length_bin(side.map_or(a.max(b), |side| verdict.words[side]))
    };
    let mut bins: Vec<_> = verdicts
        .iter()
        .flat_map(|v| [length(v, None), length(v, Some(0)), length(v, Some(1))])
        .collect();
    bins.sort_unstable();
    bins.dedup();
    for bin in bins {
        let within: SubgroupFilter = Box::new(move |verdicts, v, side| {
            verdicts
                .get(v)
                .is_some_and(|verdict| length(verdict, side) == bin)
        });
        all.push(Subgroup {
            by: "answer length".to_owned(),
            value: bin.1.to_owned(),
            within,
        });
    }
    Ok(all)
}

/// How figures are made of units.
struct StatisticsBuilder<'a> {
    verdicts: &'a [PairVerdict],
    raters: usize,
    bootstrap: Bootstrap,
}

impl StatisticsBuilder<'_> {
    fn figures(
        &self,
        of: &TargetUnits,
        within: &dyn Fn(usize, Option<usize>) -> bool,
    ) -> Vec<AgreementStatistic> {
        let pairs: Vec<_> = of
            .pairs
            .iter()
            .filter(|u| within(u.verdict, None))
            .collect();
        let triples: Vec<_> = of
            .triples
            .iter()
            .filter(|u| within(u.verdict, None))
            .collect();
        let responses = of
            .responses
            .iter()
            .filter(|u| within(u.verdict, Some(u.side)));
        let responses: Vec<_> = responses.collect();
        let (verdicts, raters) = (self.verdicts, self.raters);
        let mut found = Vec::new();
        if !pairs.is_empty() {
            let ceiling = StatisticGroup::raters_orders(&pairs, verdicts, raters);
            self.add(
                &mut found,
                &StatisticGroup::orders(&pairs, verdicts),
                Some(ceiling),
            );
        }
        if !triples.is_empty() {
            self.add(
                &mut found,
                &StatisticGroup::triples(&triples, verdicts),
                None,
            );
        }
        if !responses.is_empty() {
            let ceiling = StatisticGroup::raters_scores(&responses, verdicts, raters);
            self.add(
                &mut found,
                &StatisticGroup::scores(&responses, verdicts),
                Some(ceiling),
            );
        }
        found
    }

    fn add(
        &self,
        found: &mut Vec<AgreementStatistic>,
        family: &StatisticGroup,
        ceiling: Option<StatisticGroup>,
    ) {
        let ceiling = ceiling.filter(|ceiling| ceiling.n > 0);
        found.extend(figures(family, ceiling.as_ref(), self.bootstrap));
    }
}
