//! Ranking of models that are compared too rarely or too one-sidedly: penalised strengths, and
//! ranks of many models with few pairs each.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;

use acem3::analysis::ranking::{DifferenceTest, Ranking, rank_models};
use acem3::analysis::verdicts::{PairVerdict, Verdicts};
use acem3::data::labels::ScoreTarget;
use acem3::judging::run::run_state::RunState;
use acem3::statistics::{Bootstrap, Davidson, PairwiseOutcomes};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use crate::encoders::golden_folder;

/// Outcomes and the reference fit of `assets/golden/make_penalised.py`.
#[derive(Deserialize)]
struct PenalisedFit {
    name: String,
    models: usize,
    /// Both models, wins, ties and losses of the first.
    games: Vec<(usize, usize, usize, usize, usize)>,
    strengths: Vec<f64>,
    tie_parameter: f64,
}

#[test]
fn penalised_strengths_match_scipy() {
    let text = std::fs::read_to_string(golden_folder().join("statistics/penalised.json")).unwrap();
    let fits: Vec<PenalisedFit> = serde_json::from_str(&text).unwrap();
    assert!(fits.len() > 5);
    for reference in &fits {
        let games = reference.games.iter().flat_map(|&(i, j, wins, ties, losses)| {
            let counts =
                [(Ordering::Greater, wins), (Ordering::Equal, ties), (Ordering::Less, losses)];
            counts.into_iter().flat_map(move |(order, n)| std::iter::repeat_n(([i, j], order), n))
        });
        let games: Vec<_> = games.collect();
        let outcomes = PairwiseOutcomes::new(reference.models, &games, &vec![1.0; games.len()]);
        assert!(Davidson::fit(&outcomes).is_err(), "{}", reference.name);
        let fit = Davidson::fit_penalised(&outcomes);
        let found = fit.strengths.iter().zip(&reference.strengths);
        let mut differences =
            found.map(|(a, b)| a - b).chain([fit.tie_parameter - reference.tie_parameter]);
        assert!(differences.all(|d| d.abs() < 1e-7), "{}: {fit:?}", reference.name);
    }
}

/// Ranks models on random pairs. The win rate of a model depends on its number times `slope`.
fn rank(models: u32, pairs: u64, slope: f64) -> Ranking {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let pairs = (1..=pairs).map(|line| {
        let first = rng.random_range(0..models);
        let second = (first + rng.random_range(1..models)) % models;
        let difference = slope * (f64::from(first) - f64::from(second));
        let wins = rng.random_bool(1.0 / (1.0 + (-difference).exp()));
        let scores = if wins { [4.0, 3.0] } else { [3.0, 4.0] };
        PairVerdict {
            case: line.to_string(),
            pair: [first, second].map(|model| format!("model {model:03}")),
            has_image: true,
            cluster: (line / 2).to_string(),
            scores: Some(BTreeMap::from([(ScoreTarget::Final, scores)])),
            orders: Vec::new(),
            words: [10; 2],
            has_identical_responses: false,
            meta: serde_json::Map::new(),
            line,
            key: None,
        }
    });
    let verdicts = Verdicts {
        path: PathBuf::from("generated"),
        judge: String::new(),
        name: String::new(),
        score_range: [0, 5],
        pairs: pairs.collect(),
        labels: Vec::new(),
        without_pair: 0,
        unlisted_pairs: BTreeMap::new(),
        run: RunState::default(),
    };
    let bootstrap = Bootstrap { resamples: 200, seed: 1 };
    rank_models(&[verdicts], ScoreTarget::Final, bootstrap).unwrap()
}

/// With three pairs of every two models, the exact test can never be significant, so every model
/// would have every rank.
#[test]
fn rarely_compared_models_have_narrow_ranks_if_they_differ() {
    let ranking = rank(30, 1500, 0.15);
    assert!(!ranking.penalised, "{:?}", ranking.undefined);
    let by_strengths = |test| test == Some(DifferenceTest::Strengths);
    assert!(ranking.comparisons.iter().all(|c| by_strengths(c.test)));
    let width = |[best, worst]: [usize; 2]| worst - best + 1;
    let widths: usize = ranking.models.iter().map(|model| width(model.rank_interval)).sum();
    assert!(widths < 30 * 22, "{widths}");
    for model in &ranking.models {
        let number: usize = model.model["model ".len()..].parse().unwrap();
        let [best, worst] = model.rank_interval;
        assert!((best..=worst).contains(&(30 - number)), "{model:?}");
    }
}

#[test]
fn rarely_compared_models_of_equal_strength_share_all_ranks() {
    let ranking = rank(30, 1500, 0.0);
    assert!(ranking.models.iter().all(|model| model.rank_interval == [1, 30]));
}

/// A model that always won has a finite strength, and no interval that pretends to know it.
#[test]
fn model_that_never_lost_has_a_penalised_strength() {
    let ranking = rank(2, 40, 50.0);
    assert!(ranking.penalised);
    let [first, second] = ranking.models.as_slice() else { panic!("{ranking:?}") };
    assert!((first.strength + second.strength).abs() < 1e-9);
    assert!((4.0..5.0).contains(&(first.strength - second.strength)), "{ranking:?}");
    assert_eq!((first.strength_interval, ranking.comparisons[0].interval), (None, None));
    assert!(ranking.comparisons[0].is_significant());
}
