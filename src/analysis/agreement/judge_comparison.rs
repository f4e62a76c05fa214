//! Compares the agreement of two judges with labels, on the same cases.

use std::cmp::Ordering;
use std::collections::HashMap;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::analysis::agreement::statistics::statistic::Statistic;
use crate::analysis::agreement::statistics::statistic_group::StatisticGroup;
use crate::analysis::agreement::units::labelled_units::{PairUnit, ResponseUnit, TargetUnits};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::{
    Bootstrap, Defined, McNemar, holm_adjust, mcnemar, minimum_detectable_effect,
    percentile_interval, two_sided_p,
};

/// Statistics that a comparison includes.
const COMPARED_STATISTICS: [Statistic; 10] = [
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
    /// 95 % bootstrap interval of the difference. Each resample uses the same images for both judges.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of that bootstrap.
    pub p: Option<f64>,
    /// The p-value after Holm's correction over all statistics of the comparison.
    pub p_holm: Option<f64>,
    /// Minimum detectable effect: the smallest true difference found with 80 % power.
    #[serde(rename = "smallest_detectable")]
    pub minimum_detectable_effect: Option<f64>,
    /// Reason for a missing value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// Compares two judges on the labelled cases that both judged; `units` belong to the first judge.
///
/// # Errors
///
/// If they have no such case in common.
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
            let (first_judge, verdict) = (unit.judge?, verdicts.pairs.get(unit.verdict)?);
            let second = PairUnit { judge: Some(scores.pair_order(verdict)?), ..unit.clone() };
            unit.ratings.order(None)?;
            Some([PairUnit { judge: Some(first_judge), ..unit.clone() }, second])
        })
        .collect();
    let responses: Vec<[ResponseUnit; 2]> = units
        .responses
        .iter()
        .filter_map(|unit| {
            let (first_judge, verdict) = (unit.judge?, verdicts.pairs.get(unit.verdict)?);
            let second = ResponseUnit {
                judge: Some(scores.mean_score(verdict, unit.side)?),
                ..unit.clone()
            };
            Some([ResponseUnit { judge: Some(first_judge), ..unit.clone() }, second])
        })
        .collect();
    if pairs.is_empty() && responses.is_empty() {
        bail!(
            "--against {}: no labelled response or pair was judged by both judges\n\
             hint: pass records of the same cases and models",
            other.path.display()
        );
    }
    let groups = [0, 1].map(|judge| {
        let pairs: Vec<_> = pairs.iter().map(|p| &p[judge]).collect();
        let responses: Vec<_> = responses.iter().map(|r| &r[judge]).collect();
        let verdicts = &verdicts.pairs;
        [
            StatisticGroup::from_pairs(&pairs, verdicts),
            StatisticGroup::from_responses(&responses, verdicts),
        ]
    });
    let [first, second] = &groups;
    let compared = first.iter().zip(second);
    let mut differences: Vec<StatisticComparison> =
        compared.flat_map(|(first, second)| compare_statistics(first, second, bootstrap)).collect();
    holm_correct(&mut differences);
    let is_correct = |unit: &PairUnit| unit.judge == unit.ratings.order(None);
    Ok(JudgeComparison {
        first: verdicts.name.clone(),
        second: other.name.clone(),
        records: other.path.display().to_string(),
        target,
        pairs: pairs.len(),
        responses: responses.len(),
        differences,
        mcnemar: mcnemar(pairs.iter().map(|[a, b]| (is_correct(a), is_correct(b)))),
    })
}

/// Applies Holm's correction to all p-values.
fn holm_correct(differences: &mut [StatisticComparison]) {
    let p_values: Vec<f64> = differences.iter().filter_map(|d| d.p).collect();
    let with_p = differences.iter_mut().filter(|d| d.p.is_some());
    for (difference, p) in with_p.zip(holm_adjust(&p_values)) {
        difference.p_holm = Some(p);
    }
}

/// Compares two groups of statistics of the same cases, resampled together.
fn compare_statistics(
    first: &StatisticGroup,
    second: &StatisticGroup,
    bootstrap: Bootstrap,
) -> Vec<StatisticComparison> {
    let resamples = bootstrap.resample(&first.clusters, |weights| {
        let (a, b) = ((first.compute)(weights), (second.compute)(weights));
        a.into_iter().zip(b).map(|(a, b)| Ok(a? - b?)).collect::<Vec<Defined<f64>>>()
    });
    let values = first.values().into_iter().zip(second.values()).enumerate();
    let compared = values.filter_map(|(i, (a, b))| {
        let statistic = *first.statistics.get(i)?;
        let resampled: Vec<Defined<f64>> =
            resamples.iter().filter_map(|resample| resample.get(i).copied()).collect();
        let defined: Vec<f64> = resampled.iter().copied().filter_map(Result::ok).collect();
        let difference = a.and_then(|a| Ok(a - b?));
        let bounds = difference.and_then(|_| {
            first.clusters.check_enough()?;
            percentile_interval(resampled, &first.clusters)
        });
        let reason = difference.err().or(bounds.err());
        Some(StatisticComparison {
            statistic,
            // Statistics without ties may include different pairs for the two judges: report the
            // smaller number.
            n: first.counts[i].n.min(second.counts[i].n),
            first: a.ok(),
            second: b.ok(),
            difference: difference.ok(),
            interval: bounds.ok(),
            p: bounds.ok().map(|_| two_sided_p(&defined)),
            p_holm: None,
            minimum_detectable_effect: bounds
                .and_then(|_| minimum_detectable_effect(&defined))
                .ok(),
            undefined: reason.map(|r| r.with_names(["a judge's score", "the label"])),
        })
    });
    compared.filter(|c| COMPARED_STATISTICS.contains(&c.statistic)).collect()
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
        Self { target, pairs, responses }
    }

    /// Returns the second judge's order of a pair. The order refers to the models as the first
    /// judge's verdict lists them.
    fn pair_order(&self, first: &PairVerdict) -> Option<Ordering> {
        let verdict = self.pairs.get(&(first.case.as_str(), sorted_models(first)))?;
        let order = verdict.order(self.target)?;
        Some(if verdict.pair == first.pair { order } else { order.reverse() })
    }

    /// Returns the second judge's mean score of a response.
    fn mean_score(&self, first: &PairVerdict, side: usize) -> Option<f64> {
        let model = first.pair.get(side)?;
        let key = (first.case.as_str(), model.as_str());
        let (sum, n) = self.responses.get(&key)?;
        Some(sum / n)
    }
}

/// Returns the models of a pair in alphabetical order.
fn sorted_models(verdict: &PairVerdict) -> [&str; 2] {
    let mut names = verdict.pair.each_ref().map(String::as_str);
    names.sort_unstable();
    names
}
