//! Ranking: wins, win rates, strengths, ranks and pairwise comparisons.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::analysis::ranking::comparison_data::{
    ComparisonData, FittedStrengths, ReplicateStrengths,
};
use crate::analysis::ranking::pairwise::{PairwiseComparison, pairwise_comparisons};
use crate::analysis::verdicts::Verdicts;
use crate::data::labels::ScoreTarget;
use crate::statistics::{Bootstrap, PairwiseOutcomes, percentile_interval, proportion_interval};

/// Ranking of all models.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// Name of the judge.
    pub name: String,
    /// Judge hash, as in the records.
    pub judge: String,
    /// Score target.
    pub target: ScoreTarget,
    /// Number of pairs with a verdict.
    pub n: usize,
    /// Number of all pairs.
    pub pairs: usize,
    /// Number of images of the pairs with a verdict.
    pub images: usize,
    /// Number of bootstrap resamples.
    pub draws: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Models, best first.
    pub models: Vec<RankedModel>,
    /// Tie parameter (Davidson's ν).
    pub ties: f64,
    /// True if no maximum-likelihood strengths exist: then strengths, tie parameter and differences
    /// are penalised and have no intervals.
    pub penalised: bool,
    /// Reason if the maximum-likelihood strengths or their intervals are undefined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
    /// Pairwise comparisons, the stronger model first.
    #[serde(rename = "duels")]
    pub comparisons: Vec<PairwiseComparison>,
}

/// Statistics of one model.
#[derive(Clone, Debug, Serialize)]
pub struct RankedModel {
    /// Name of the model.
    pub model: String,
    /// Rank, 1 for the best; models with equal strength have the same rank.
    pub rank: usize,
    /// Simultaneous 95 % rank interval, from the significant comparisons.
    pub rank_interval: [usize; 2],
    /// Proportion of pairs won; a tie counts as ½.
    pub win_rate: Option<f64>,
    /// 95 % interval of the win rate.
    pub win_rate_interval: Option<[f64; 2]>,
    /// Log strength; the mean over all models is 0.
    pub strength: f64,
    /// 95 % interval of the strength.
    pub strength_interval: Option<[f64; 2]>,
    /// Number of pairs won.
    pub wins: u64,
    /// Number of pairs tied.
    pub ties: u64,
    /// Number of pairs lost.
    pub losses: u64,
    /// Number of pairs with a verdict.
    pub n: u64,
    /// Proportion of pairs that have a verdict.
    pub coverage: f64,
}

/// Ranks the models of one judge's runs.
///
/// # Errors
///
/// The runs are from different judges, or no pair has a verdict.
pub fn rank_models(
    runs: &[Verdicts],
    target: ScoreTarget,
    bootstrap: Bootstrap,
) -> Result<Ranking> {
    let Some(first) = runs.first() else {
        bail!("no records\nhint: pass the output folder of `acem3 judge`");
    };
    if let Some(other) = runs.iter().find(|run| run.judge != first.judge) {
        bail!(
            "{} and {}: expected records of one judge, found {} ({}) and {} ({})\n\
             hint: rank each judge separately; compare judges with `acem3 agree --against`. Another \
             form, reference or rubric is another judge",
            first.path.display(),
            other.path.display(),
            first.name,
            first.judge,
            other.name,
            other.judge
        );
    }
    let data = ComparisonData::new(runs, target);
    if data.pairs.is_empty() {
        bail!(
            "{}: no pair has a verdict\nhint: run `acem3 judge` with --verbose to see the reasons",
            first.path.display()
        );
    }
    let fitted = data.fit_strengths(bootstrap);
    let FittedStrengths { original, for_ranks, resamples } = &fitted;
    let fits = resamples.iter().filter(|resample| resample.fit.is_ok()).count();
    let undefined = match &original.fit {
        Err(reason) => Some(reason.to_string()),
        Ok(_) if fits * 20 < resamples.len() * 19 => Some(format!(
            "no strength intervals: strengths are undefined in {} of {} resamples, in which a \
             model has no wins, no losses or no opponents",
            resamples.len() - fits,
            resamples.len()
        )),
        Ok(_) => None,
    };
    let mut order: Vec<usize> = (0..data.models.len()).collect();
    let strengths = &for_ranks.strengths;
    order.sort_by(|a, b| strengths[*b].total_cmp(&strengths[*a]));
    let outcomes = data.outcomes(&vec![1.0; data.pairs.len()]);
    let comparisons = pairwise_comparisons(&data, &order, &fitted);
    let models = order.iter().map(|i| {
        let mut model = rank_model(&data, *i, &fitted, &outcomes);
        model.rank_interval = rank_interval(&model.model, order.len(), &comparisons);
        model
    });
    Ok(Ranking {
        name: first.name.clone(),
        judge: first.judge.clone(),
        target,
        n: data.pairs.len(),
        pairs: runs.iter().map(|run| run.pairs.len()).sum(),
        images: data.image_count,
        draws: bootstrap.resamples,
        seed: bootstrap.seed,
        models: models.collect(),
        ties: for_ranks.tie_parameter,
        penalised: original.fit.is_err(),
        undefined,
        comparisons,
    })
}

fn rank_model(
    data: &ComparisonData,
    i: usize,
    fitted: &FittedStrengths,
    outcomes: &PairwiseOutcomes,
) -> RankedModel {
    let FittedStrengths { original, for_ranks, resamples } = fitted;
    let models = data.models.len();
    let sum = |count: &dyn Fn(usize) -> f64| (0..models).map(count).sum::<f64>() as u64;
    let wins = sum(&|j| outcomes.wins(i, j));
    let ties = sum(&|j| outcomes.ties(i, j));
    let losses = sum(&|j| outcomes.wins(j, i));
    let rate = original.rates[i];
    let rate_interval =
        percentile_interval(resamples.iter().map(|r| r.rates[i]).collect(), &data.clusters);
    let strength = |resample: &ReplicateStrengths| {
        resample.fit.as_ref().map(|fit| fit.strengths[i]).map_err(|e| *e)
    };
    let strength_interval =
        percentile_interval(resamples.iter().map(strength).collect(), &data.clusters);
    let n = wins + ties + losses;
    let images = data.clusters.count_among(|index| data.pairs[index].0.contains(&i));
    RankedModel {
        model: data.models[i].clone(),
        rank: for_ranks.ranks()[i],
        rank_interval: [1, models],
        win_rate: rate.ok(),
        win_rate_interval: rate
            .and_then(|rate| proportion_interval(rate, rate_interval, images))
            .ok(),
        strength: for_ranks.strengths[i],
        strength_interval: strength(original).and(strength_interval).ok(),
        wins,
        ties,
        losses,
        n,
        coverage: n as f64 / data.pair_counts[i].max(1) as f64,
    }
}

/// Returns the best and the worst rank of a model: below all significantly better models, above all
/// significantly worse ones. The tests have a family-wise error rate of at most 5 %, so the
/// intervals of all models hold together with 95 % confidence (Mogstad, Romano, Shaikh and Wilhelm,
/// Inference for ranks, 2024).
fn rank_interval(model: &str, models: usize, comparisons: &[PairwiseComparison]) -> [usize; 2] {
    let significant = || comparisons.iter().filter(|comparison| comparison.is_significant());
    let better = significant().filter(|comparison| comparison.second == model).count();
    let worse = significant().filter(|comparison| comparison.first == model).count();
    [1 + better, models - worse]
}
