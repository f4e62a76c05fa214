//! Two judges on the same cases: which agrees better with people, if either.

use std::collections::HashMap;

use anyhow::{Result, bail};
use serde::Serialize;

use super::statistic::Statistic;
use super::units::{PairUnit, ResponseUnit, TargetUnits};
use crate::analysis::agreement::statistic_group::StatisticGroup;
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::{
    Bootstrap, Defined, McNemar, holm, interval, mcnemar, smallest_detectable, two_sided,
};

/// The statistics that two judges are compared by.
const COMPARED: [Statistic; 10] = [
    Statistic::Accuracy,
    Statistic::AccuracyWithoutTies,
    Statistic::AccuracyPreferred,
    Statistic::Pearson,
    Statistic::Spearman,
    Statistic::Kendall,
    Statistic::KappaQuadratic,
    Statistic::AlphaInterval,
    Statistic::Icc21,
    Statistic::MeanAbsoluteError,
];

/// Two judges compared.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeComparison {
    /// The first judge's name.
    pub first: String,
    /// The second judge's name.
    pub second: String,
    /// The second judge's records.
    pub records: String,
    /// What is scored.
    pub target: ScoreTarget,
    /// Pairs that both judged and that are labelled.
    pub pairs: usize,
    /// Responses that both judged and that are labelled.
    pub responses: usize,
    /// The differences.
    pub differences: Vec<StatisticComparison>,
    /// McNemar's test of whose order is the label's.
    pub mcnemar: McNemar,
}

/// One statistic of both judges.
#[derive(Clone, Debug, Serialize)]
pub struct StatisticComparison {
    /// Which.
    pub statistic: Statistic,
    /// The cases.
    pub n: usize,
    /// The first judge's.
    pub first: Option<f64>,
    /// The second judge's.
    pub second: Option<f64>,
    /// The first's less the second's.
    pub difference: Option<f64>,
    /// Its 95 % interval, by a bootstrap that draws the same images for both.
    pub interval: Option<[f64; 2]>,
    /// The two-sided p-value of that bootstrap.
    pub p: Option<f64>,
    /// After Holm's correction for all statistics here.
    pub p_holm: Option<f64>,
    /// The smallest true difference that so many cases would have shown four times out of five.
    pub smallest_detectable: Option<f64>,
    /// Why something is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// Compares two judges on what both judged.
///
/// # Errors
///
/// If there is nothing of that kind.
pub fn compare(
    (verdicts, units): (&Verdicts, &TargetUnits),
    other: &Verdicts,
    target: ScoreTarget,
    bootstrap: Bootstrap,
) -> Result<JudgeComparison> {
    let scores = SecondJudgeScores::new(&other.pairs, target);
    let pairs: Vec<[PairUnit; 2]> = units
        .pairs
        .iter()
        .filter_map(|unit| {
            let (own, verdict) = (unit.judge?, verdicts.pairs.get(unit.verdict)?);
            let judge = Some(scores.order(verdict)?);
            let second = PairUnit {
                judge,
                ..unit.clone()
            };
            unit.rated.order(None)?;
            Some([
                PairUnit {
                    judge: Some(own),
                    ..unit.clone()
                },
                second,
            ])
        })
        .collect();
    let responses: Vec<[ResponseUnit; 2]> = units
        .responses
        .iter()
        .filter_map(|unit| {
            let (own, verdict) = (unit.judge?, verdicts.pairs.get(unit.verdict)?);
            let judge = Some(scores.mean(verdict, unit.side)?);
            let second = ResponseUnit {
                judge,
                ..unit.clone()
            };
            Some([
                ResponseUnit {
                    judge: Some(own),
                    ..unit.clone()
                },
                second,
            ])
        })
        .collect();
    if pairs.is_empty() && responses.is_empty() {
        bail!(
            "--against {}: it judged nothing that is labelled and judged here\n\
             hint: both judges must have judged the same cases of the same models",
            other.path.display()
        );
    }
    let families = [0, 1].map(|judge| {
        let pairs: Vec<_> = pairs.iter().map(|p| &p[judge]).collect();
        let responses: Vec<_> = responses.iter().map(|r| &r[judge]).collect();
        let verdicts = &verdicts.pairs;
        [
            StatisticGroup::orders(&pairs, verdicts),
            StatisticGroup::scores(&responses, verdicts),
        ]
    });
    let [[a, c], [b, d]] = &families;
    let mut differences = differences(a, b, bootstrap);
    differences.extend(self::differences(c, d, bootstrap));
    correct(&mut differences);
    let right = |unit: &PairUnit| unit.judge == unit.rated.order(None);
    Ok(JudgeComparison {
        first: verdicts.name.clone(),
        second: other.name.clone(),
        records: other.path.display().to_string(),
        target,
        pairs: pairs.len(),
        responses: responses.len(),
        differences,
        mcnemar: mcnemar(pairs.iter().map(|[a, b]| (right(a), right(b)))),
    })
}

/// Holm's correction of all p-values there are.
fn correct(differences: &mut [StatisticComparison]) {
    let p: Vec<f64> = differences.iter().filter_map(|d| d.p).collect();
    let with_p = differences.iter_mut().filter(|d| d.p.is_some());
    for (difference, p) in with_p.zip(holm(&p)) {
        difference.p_holm = Some(p);
    }
}

/// The differences of two families of the same cases, drawn together.
fn differences(
    first: &StatisticGroup,
    second: &StatisticGroup,
    bootstrap: Bootstrap,
) -> Vec<StatisticComparison> {
    let draws = bootstrap.draw(&first.clusters, |weights| {
        let (a, b) = ((first.compute)(weights), (second.compute)(weights));
        a.into_iter()
            .zip(b)
            .map(|(a, b)| Ok(a? - b?))
            .collect::<Vec<Defined<f64>>>()
    });
    let values = first.values().into_iter().zip(second.values()).enumerate();
    let compared = values.filter_map(|(i, (a, b))| {
        let statistic = *first.statistics.get(i)?;
        let own: Vec<Defined<f64>> = draws
            .iter()
            .filter_map(|draw| draw.get(i).copied())
            .collect();
        let present: Vec<f64> = own.iter().copied().filter_map(Result::ok).collect();
        let difference = a.and_then(|a| Ok(a - b?));
        let ends = difference.and_then(|_| {
            first.clusters.enough()?;
            interval(own, &first.clusters)
        });
        let reason = difference.err().or(ends.err());
        Some(StatisticComparison {
            statistic,
            // The least of both: without ties, each judge has its own pairs.
            n: first.counts[i].n.min(second.counts[i].n),
            first: a.ok(),
            second: b.ok(),
            difference: difference.ok(),
            interval: ends.ok(),
            p: ends.ok().map(|_| two_sided(&present)),
            p_holm: None,
            smallest_detectable: ends.and_then(|_| smallest_detectable(&present)).ok(),
            undefined: reason.map(|r| r.named(["a judge's verdict", "the label"])),
        })
    });
    compared
        .filter(|c| COMPARED.contains(&c.statistic))
        .collect()
}

/// The other judge's scores on one target, by case and model.
struct SecondJudgeScores<'a> {
    target: ScoreTarget,
    pairs: HashMap<(&'a str, [&'a str; 2]), &'a PairVerdict>,
    responses: HashMap<(&'a str, &'a str), (f64, f64)>,
}

impl<'a> SecondJudgeScores<'a> {
    fn new(verdicts: &'a [PairVerdict], target: ScoreTarget) -> Self {
        let mut pairs = HashMap::new();
        let mut responses: HashMap<(&str, &str), (f64, f64)> = HashMap::new();
        for verdict in verdicts {
            let Some(scores) = verdict.scores.as_ref().and_then(|s| s.get(&target)) else {
                continue;
            };
            pairs.insert((verdict.case.as_str(), names(verdict)), verdict);
            for (model, score) in verdict.pair.iter().zip(scores) {
                let (sum, n) = responses.entry((&verdict.case, model)).or_default();
                (*sum, *n) = (*sum + score, *n + 1.0);
            }
        }
        Self {
            target,
            pairs,
            responses,
        }
    }

    /// The order of a pair, in the order in which the first judge's record names the models.
    fn order(&self, of: &PairVerdict) -> Option<std::cmp::Ordering> {
        let verdict = self.pairs.get(&(of.case.as_str(), names(of)))?;
        let order = verdict.order(self.target)?;
        Some(if verdict.pair == of.pair {
            order
        } else {
            order.reverse()
        })
    }

    fn mean(&self, of: &PairVerdict, side: usize) -> Option<f64> {
        let model = of.pair.get(side)?;
        let (sum, n) = self.responses.get(&(of.case.as_str(), model.as_str()))?;
        Some(sum / n)
    }
}

fn names(verdict: &PairVerdict) -> [&str; 2] {
    let mut names = verdict.pair.each_ref().map(String::as_str);
    names.sort_unstable();
    names
}
