//! All figures of a judge, by what is scored and by subgroup.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::Serialize;

use super::family::Family;
use super::figure::{Figure, figures};
use super::statistic::Statistic;
use super::units::{TargetUnits, Units};
use crate::analysis::verdicts::{Verdict, Verdicts, dimensions, length_bin};
use crate::data::labels::Target;
use crate::statistics::Bootstrap;

/// What is computed.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The draws.
    pub bootstrap: Bootstrap,
    /// What is looked at; all that is labelled if empty. The first is told in full.
    pub on: Vec<Target>,
    /// Fields of cases that make subgroups, beside those that data sets tell of.
    pub by: Vec<String>,
}

/// The figures on one target.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// What is scored.
    pub target: Target,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// The figures of a subgroup on the first target.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What makes the subgroups.
    pub by: String,
    /// What all cases of this one have in common.
    pub value: String,
    /// The figures.
    pub figures: Vec<Figure>,
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
    pub sections: Vec<Section>,
    /// By subgroup, on the first section's target.
    pub groups: Vec<Group>,
}

impl Section {
    /// A figure by its name.
    pub fn figure(&self, statistic: Statistic) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.statistic == statistic)
    }
}

impl Group {
    /// A figure by its name.
    pub fn figure(&self, statistic: Statistic) -> Option<&Figure> {
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
    units: &Units,
    labels: Option<String>,
    plan: &Plan,
) -> Result<Agreement> {
    let targets = targets(units, &plan.on)?;
    let several = Several {
        verdicts: &verdicts.pairs,
        raters: units.raters.len(),
        bootstrap: plan.bootstrap,
    };
    let all = |_: usize, _: Option<usize>| true;
    let mut sections = Vec::new();
    for (target, of) in &targets {
        sections.push(Section {
            target: *target,
            figures: several.figures(of, &all),
        });
    }
    let mut groups = Vec::new();
    if let Some((_, of)) = targets.first() {
        for Subgroup { by, value, within } in subgroups(&verdicts.pairs, &plan.by)? {
            let within = |v: usize, side: Option<usize>| within(&verdicts.pairs, v, side);
            let figures = several.figures(of, &within);
            groups.push(Group { by, value, figures });
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
fn targets<'a>(units: &'a Units, on: &[Target]) -> Result<Vec<(Target, &'a TargetUnits)>> {
    if on.is_empty() {
        return Ok(units.targets.iter().map(|(t, of)| (*t, of)).collect());
    }
    let mut found = Vec::new();
    for target in on {
        let Some(of) = units.targets.get(target) else {
            let labelled: Vec<&str> = units.targets.keys().map(|t| t.key()).collect();
            bail!(
                "--on {}: nothing is labelled on it\nhint: there are labels on {}",
                target.key(),
                labelled.join(", ")
            );
        };
        found.push((*target, of));
    }
    Ok(found)
}

/// Whether a unit, by its verdict and the response of it, is in a subgroup.
type Within = Box<dyn Fn(&[Verdict], usize, Option<usize>) -> bool>;

/// A subgroup: what makes it, its value, and what is in it.
struct Subgroup {
    by: String,
    value: String,
    within: Within,
}

/// All subgroups.
fn subgroups(verdicts: &[Verdict], by: &[String]) -> Result<Vec<Subgroup>> {
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
                "--by {field}: no case has this field in `meta`\nhint: there are {}",
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
            let within: Within = Box::new(move |verdicts, v, _| {
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
    let length = |verdict: &Verdict, side: Option<usize>| {
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
        let within: Within = Box::new(move |verdicts, v, side| {
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
struct Several<'a> {
    verdicts: &'a [Verdict],
    raters: usize,
    bootstrap: Bootstrap,
}

impl Several<'_> {
    fn figures(
        &self,
        of: &TargetUnits,
        within: &dyn Fn(usize, Option<usize>) -> bool,
    ) -> Vec<Figure> {
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
            let ceiling = Family::raters_orders(&pairs, verdicts, raters);
            self.add(&mut found, &Family::orders(&pairs, verdicts), Some(ceiling));
        }
        if !triples.is_empty() {
            self.add(&mut found, &Family::triples(&triples, verdicts), None);
        }
        if !responses.is_empty() {
            let ceiling = Family::raters_scores(&responses, verdicts, raters);
            self.add(
                &mut found,
                &Family::scores(&responses, verdicts),
                Some(ceiling),
            );
        }
        found
    }

    fn add(&self, found: &mut Vec<Figure>, family: &Family, ceiling: Option<Family>) {
        let ceiling = ceiling.filter(|ceiling| ceiling.n > 0);
        found.extend(figures(family, ceiling.as_ref(), self.bootstrap));
    }
}
