//! Wins, win rates, strengths, ranks, and which differences are more than chance.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::analysis::ranking::comparison_data::{ComparisonData, ReplicateStrengths};
use crate::analysis::ranking::pairwise::{PairwiseComparison, duels};
use crate::analysis::verdicts::Verdicts;
use crate::data::labels::ScoreTarget;
use crate::statistics::{Bootstrap, PairwiseOutcomes, interval, share_interval};

/// All models of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// The judge's name.
    pub name: String,
    /// Its hash, as records have it.
    pub judge: String,
    /// What is scored.
    pub target: ScoreTarget,
    /// Pairs with a verdict.
    pub n: usize,
    /// All pairs.
    pub pairs: usize,
    /// Images they are about.
    pub images: usize,
    /// Draws of the bootstrap.
    pub draws: usize,
    /// Its seed.
    pub seed: u64,
    /// The models, best first.
    pub models: Vec<RankedModel>,
    /// How readily equal models tie (Davidson's ν); `None` where strengths are undefined.
    pub ties: Option<f64>,
    /// Why strengths, or their intervals, are undefined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
    /// Every two models, the better one first.
    pub duels: Vec<PairwiseComparison>,
}

/// One model.
#[derive(Clone, Debug, Serialize)]
pub struct RankedModel {
    /// Its name.
    pub model: String,
    /// Its rank, 1 for the best; equal models share it.
    pub rank: usize,
    /// The ranks that are left to it by the models that are better and worse for more than chance; those of all
    /// models are right at once with 95 % confidence.
    pub rank_interval: [usize; 2],
    /// The part of its pairs it won, a tie being half a win.
    pub win_rate: Option<f64>,
    /// Its 95 % interval.
    pub win_rate_interval: Option<[f64; 2]>,
    /// The logarithm of its strength, the mean of all being 0.
    pub strength: Option<f64>,
    /// Its 95 % interval.
    pub strength_interval: Option<[f64; 2]>,
    /// Pairs won.
    pub wins: u64,
    /// Pairs tied.
    pub ties: u64,
    /// Pairs lost.
    pub losses: u64,
    /// Pairs with a verdict.
    pub n: u64,
    /// The part of its pairs that has one.
    pub coverage: f64,
}

/// Ranks the models of some runs of one judge.
///
/// # Errors
///
/// If the runs are of different judges, or no pair has a verdict.
pub fn ranking(runs: &[Verdicts], target: ScoreTarget, bootstrap: Bootstrap) -> Result<Ranking> {
    let Some(first) = runs.first() else {
        bail!("no records\nhint: name the folder that `acem3 judge --out` wrote");
    };
    if let Some(other) = runs.iter().find(|run| run.judge != first.judge) {
        bail!(
            "{} and {}: verdicts of two judges ({} and {})\n\
             hint: rank the records of each judge by themselves, and compare judges with \
             `acem3 agree --against`",
            first.path.display(),
            other.path.display(),
            first.name,
            other.name
        );
    }
    let games = ComparisonData::new(runs, target);
    if games.pairs.is_empty() {
        bail!(
            "{}: no pair has a verdict\nhint: `acem3 judge` says why with --verbose",
            first.path.display()
        );
    }
    let once = vec![1.0; games.pairs.len()];
    let whole = games.draw(&once);
    let draws = bootstrap.draw(&games.clusters, |weights| games.draw(weights));
    let fitted = draws.iter().filter(|draw| draw.fit.is_ok()).count();
    let strengths_undefined = match &whole.fit {
        Err(reason) => Some(reason.to_string()),
        Ok(_) if fitted * 20 < draws.len() * 19 => Some(format!(
            "strengths have no interval: in {} of {} draws some model lost to no other, or met none",
            draws.len() - fitted,
            draws.len()
        )),
        Ok(_) => None,
    };
    let mut order: Vec<usize> = (0..games.models.len()).collect();
    let strengths = &whole.best().strengths;
    order.sort_by(|a, b| strengths[*b].total_cmp(&strengths[*a]));
    let outcomes = games.outcomes(&once);
    let duels = duels(&games, &order, &whole, &draws);
    let models = order.iter().map(|i| {
        let mut model = model(&games, *i, &whole, &draws, &outcomes);
        model.rank_interval = left_ranks(&model.model, order.len(), &duels);
        model
    });
    Ok(Ranking {
        name: first.name.clone(),
        judge: first.judge.clone(),
        target,
        n: games.pairs.len(),
        pairs: runs.iter().map(|run| run.pairs.len()).sum(),
        images: games.clusters.count(),
        draws: bootstrap.draws,
        seed: bootstrap.seed,
        models: models.collect(),
        ties: whole.fit.as_ref().ok().map(|fit| fit.ties),
        undefined: strengths_undefined,
        duels,
    })
}

fn model(
    games: &ComparisonData,
    i: usize,
    whole: &ReplicateStrengths,
    draws: &[ReplicateStrengths],
    outcomes: &PairwiseOutcomes,
) -> RankedModel {
    let all = games.models.len();
    let sum = |of: &dyn Fn(usize) -> f64| (0..all).map(of).sum::<f64>() as u64;
    let wins = sum(&|j| outcomes.wins(i, j));
    let ties = sum(&|j| outcomes.ties(i, j));
    let losses = sum(&|j| outcomes.wins(j, i));
    let rate = whole.rates[i];
    let rates = interval(draws.iter().map(|d| d.rates[i]).collect(), &games.clusters);
    let strength = |draw: &ReplicateStrengths| {
        draw.fit
            .as_ref()
            .map(|fit| fit.strengths[i])
            .map_err(|e| *e)
    };
    let strengths = interval(draws.iter().map(strength).collect(), &games.clusters);
    let n = wins + ties + losses;
    let images = games.clusters.among(|at| games.pairs[at].0.contains(&i));
    RankedModel {
        model: games.models[i].clone(),
        rank: whole.best().ranks()[i],
        rank_interval: [1, all],
        win_rate: rate.ok(),
        win_rate_interval: rate
            .and_then(|rate| share_interval(rate, rates, images))
            .ok(),
        strength: strength(whole).ok(),
        strength_interval: strength(whole).and(strengths).ok(),
        wins,
        ties,
        losses,
        n,
        coverage: n as f64 / games.asked[i].max(1) as f64,
    }
}

/// The best and the worst rank of a model: below all that are better than it, above all that are worse, as far
/// as that is more than chance. As all tests together err once in twenty times at most, so do all ranks
/// (Mogstad, Romano, Shaikh and Wilhelm, Inference for ranks, 2024).
fn left_ranks(model: &str, all: usize, duels: &[PairwiseComparison]) -> [usize; 2] {
    let told = || duels.iter().filter(|duel| duel.is_significant());
    let better = told().filter(|duel| duel.second == model).count();
    let worse = told().filter(|duel| duel.first == model).count();
    [1 + better, all - worse]
}
