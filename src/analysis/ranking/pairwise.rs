//! Every two models, and whether the one is better for more than chance.

use serde::Serialize;

use crate::analysis::ranking::comparison_data::{ComparisonData, ReplicateStrengths};
use crate::statistics::{Clusters, Davidson, Defined, PairwiseOutcomes, holm, interval, sign_flip};

/// The fewest images by which any difference could be told: of five that all speak for the same model chance
/// makes one in sixteen.
const ENOUGH: usize = 6;

/// Two models.
#[derive(Clone, Debug, Serialize)]
pub struct PairwiseComparison {
    /// The higher ranked one.
    pub first: String,
    /// The other.
    pub second: String,
    /// Their pairs that the first won.
    pub wins: u64,
    /// Their pairs that were tied.
    pub ties: u64,
    /// Their pairs that the second won.
    pub losses: u64,
    /// How much the logarithm of the first's strength is above the second's, over all pairs of all models;
    /// where strengths are undefined, of strengths drawn a little to each other.
    pub difference: f64,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// The two-sided p-value of the points by which the first is ahead, image by image, were the two to change
    /// places by the toss of a coin; exact, and 1 where their strengths say the contrary.
    pub p: Option<f64>,
    /// After Holm's correction for all pairs of models.
    pub p_holm: Option<f64>,
    /// What that says: whether the one is better, or no significant difference.
    pub words: String,
}

impl PairwiseComparison {
    /// Whether the first is better for more than chance.
    pub fn is_significant(&self) -> bool {
        self.p_holm.is_some_and(|p| p < 0.05)
    }
}

/// All duels, the models in the order given, best first.
pub(super) fn duels(
    games: &ComparisonData,
    order: &[usize],
    whole: &ReplicateStrengths,
    draws: &[ReplicateStrengths],
) -> Vec<PairwiseComparison> {
    let outcomes = games.outcomes(&vec![1.0; games.pairs.len()]);
    let mut duels = Vec::new();
    for (place, i) in order.iter().enumerate() {
        for j in order.iter().skip(place + 1) {
            duels.push(duel(games, [*i, *j], &outcomes, whole, draws));
        }
    }
    let p: Vec<f64> = duels.iter().filter_map(|duel| duel.p).collect();
    let tested = duels.iter_mut().filter(|duel| duel.p.is_some());
    for (duel, p) in tested.zip(holm(&p)) {
        duel.p_holm = Some(p);
    }
    for duel in &mut duels {
        duel.words = words(duel, &games.clusters);
    }
    duels
}

fn duel(
    games: &ComparisonData,
    [i, j]: [usize; 2],
    outcomes: &PairwiseOutcomes,
    whole: &ReplicateStrengths,
    draws: &[ReplicateStrengths],
) -> PairwiseComparison {
    let apart = |of: &Davidson| of.strengths[i] - of.strengths[j];
    // One kind of strengths for the difference and all its draws.
    let fitted = |draw: &ReplicateStrengths| draw.fit.as_ref().map(apart).map_err(|e| *e);
    let shrunk = |draw: &ReplicateStrengths| -> Defined<f64> { Ok(apart(&draw.shrunk)) };
    let drawn = match whole.fit {
        Ok(_) => draws.iter().map(fitted).collect(),
        Err(_) => draws.iter().map(shrunk).collect(),
    };
    let difference = apart(whole.best());
    let lead = games.lead([i, j]);
    // Who is ahead of few opponents may be behind in strength: neither is better then.
    let p = lead.map(|lead| {
        let agrees = lead.iter().sum::<i64>() as f64 * difference >= 0.0;
        if agrees { sign_flip(&lead) } else { 1.0 }
    });
    PairwiseComparison {
        first: games.models[i].clone(),
        second: games.models[j].clone(),
        wins: outcomes.wins(i, j) as u64,
        ties: outcomes.ties(i, j) as u64,
        losses: outcomes.wins(j, i) as u64,
        difference,
        interval: interval(drawn, &games.clusters).ok(),
        p: p.filter(|_| games.clusters.count() >= ENOUGH),
        p_holm: None,
        words: String::new(),
    }
}

fn words(duel: &PairwiseComparison, clusters: &Clusters) -> String {
    let (first, second) = (&duel.first, &duel.second);
    match duel.p_holm {
        Some(_) if duel.is_significant() => format!("{first} is better than {second}"),
        Some(_) => format!("{first} and {second}: no significant difference"),
        None if clusters.count() >= ENOUGH => {
            format!("{first} and {second}: no case in which both were compared with the same model")
        }
        None => format!(
            "{first} and {second}: too few images to tell ({}, at least {ENOUGH} are needed)",
            clusters.count()
        ),
    }
}
