//! Compares the agreement of two judges with labels, on the same cases.

use std::cmp::Ordering;
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

/// The statistics that are compared.
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

/// Comparison of two judges.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeComparison {
    /// Name of the first judge.
    pub first: String,
    /// Name of the second judge.
    pub second: String,
    /// Records of the second judge.
    pub records: String,
    /// The score target.
    pub target: ScoreTarget,
    /// Number of labelled pairs that both judged.
    pub pairs: usize,
    /// Number of labelled responses that both judged.
    pub responses: usize,
    /// The statistics of both, with their differences.
    pub differences: Vec<StatisticComparison>,
    /// McNemar's test of the pairwise accuracy.
    pub mcnemar: McNemar,
}

/// A statistic of both judges and its difference.
#[derive(Clone, Debug, Serialize)]
pub struct StatisticComparison {
    /// The statistic.
    pub statistic: Statistic,
    /// Number of cases.
    pub n: usize,
    /// Value of the first judge.
    pub first: Option<f64>,
    /// Value of the second judge.
    pub second: Option<f64>,
    /// First minus second.
    pub difference: Option<f64>,
    /// 95 % interval of the difference, by a bootstrap that resamples the same images for both.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of that bootstrap.
    pub p: Option<f64>,
    /// The p-value after Holm's correction over all statistics of the comparison.
    pub p_holm: Option<f64>,
    /// Minimum detectable effect: the smallest true difference found with 80 % power.
    pub smallest_detectable: Option<f64>,
    /// Why a value is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// Compares two judges on the labelled cases that both judged; `units` are those of the first.
///
/// # Errors
///
/// If there is no such case.
pub fn compare_judges(
    [verdicts, other]: [&Verdicts; 2],
    units: &TargetUnits,
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
    let groups = [0, 1].map(|judge| {
        let pairs: Vec<_> = pairs.iter().map(|p| &p[judge]).collect();
        let responses: Vec<_> = responses.iter().map(|r| &r[judge]).collect();
        let verdicts = &verdicts.pairs;
        [
            StatisticGroup::orders(&pairs, verdicts),
            StatisticGroup::scores(&responses, verdicts),
        ]
    });
    let [[a, c], [b, d]] = &groups;
    let mut differences = differences(a, b, bootstrap);
    differences.extend(self::differences(c, d, bootstrap));
    holm_correct(&mut differences);
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

/// Applies Holm's correction to all p-values.
fn holm_correct(differences: &mut [StatisticComparison]) {
    let p: Vec<f64> = differences.iter().filter_map(|d| d.p).collect();
    let with_p = differences.iter_mut().filter(|d| d.p.is_some());
    for (difference, p) in with_p.zip(holm(&p)) {
        difference.p_holm = Some(p);
    }
}

/// Compares two groups of statistics of the same cases, resampled together.
fn differences(
    first: &StatisticGroup,
    second: &StatisticGroup,
    bootstrap: Bootstrap,
) -> Vec<StatisticComparison> {
    let resamples = bootstrap.draw(&first.clusters, |weights| {
        let (a, b) = ((first.compute)(weights), (second.compute)(weights));
        a.into_iter()
            .zip(b)
            .map(|(a, b)| Ok(a? - b?))
            .collect::<Vec<Defined<f64>>>()
    });
    let values = first.values().into_iter().zip(second.values()).enumerate();
    let compared = values.filter_map(|(i, (a, b))| {
        let statistic = *first.statistics.get(i)?;
        let resampled: Vec<Defined<f64>> = resamples
            .iter()
            .filter_map(|resample| resample.get(i).copied())
            .collect();
        let present: Vec<f64> = resampled.iter().copied().filter_map(Result::ok).collect();
        let difference = a.and_then(|a| Ok(a - b?));
        let bounds = difference.and_then(|_| {
            first.clusters.enough()?;
            interval(resampled, &first.clusters)
        });
        let reason = difference.err().or(bounds.err());
        Some(StatisticComparison {
            statistic,
            // The smaller one: without ties, the judges have different pairs.
            n: first.counts[i].n.min(second.counts[i].n),
            first: a.ok(),
            second: b.ok(),
            difference: difference.ok(),
            interval: bounds.ok(),
            p: bounds.ok().map(|_| two_sided(&present)),
            p_holm: None,
            smallest_detectable: bounds.and_then(|_| smallest_detectable(&present)).ok(),
            undefined: reason.map(|r| r.named(["a judge's verdict", "the label"])),
        })
    });
    compared
        .filter(|c| COMPARED.contains(&c.statistic))
        .collect()
}

/// Scores of the second judge on one target, by case and model.
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
            pairs.insert((verdict.case.as_str(), sorted_models(verdict)), verdict);
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

    /// The second judge's order of a pair, with the models as in the first judge's verdict.
    fn order(&self, first: &PairVerdict) -> Option<Ordering> {
        let verdict = self
            .pairs
            .get(&(first.case.as_str(), sorted_models(first)))?;
        let order = verdict.order(self.target)?;
        Some(if verdict.pair == first.pair {
            order
        } else {
            order.reverse()
        })
    }

    /// The second judge's mean score of a response.
    fn mean(&self, first: &PairVerdict, side: usize) -> Option<f64> {
        let model = first.pair.get(side)?;
        let key = (first.case.as_str(), model.as_str());
        let (sum, n) = self.responses.get(&key)?;
        Some(sum / n)
    }
}

/// The models of a pair in alphabetical order.
fn sorted_models(verdict: &PairVerdict) -> [&str; 2] {
    let mut names = verdict.pair.each_ref().map(String::as_str);
    names.sort_unstable();
    names
}
