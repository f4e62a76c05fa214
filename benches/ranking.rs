//! Time of `acem3 rank` by the number of models: 10,000 verdicts, 2,000 resamples.
//!
//! `cargo bench --bench ranking` prints the seconds for each number of models, and their ratio to
//! the seconds for 10 models.

#![expect(clippy::unwrap_used, reason = "a failed benchmark may panic")]
#![expect(clippy::print_stdout, reason = "the times are the result")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use acem3::analysis::ranking::rank_models;
use acem3::analysis::verdicts::{PairVerdict, Verdicts};
use acem3::data::labels::ScoreTarget;
use acem3::judging::run::run_state::RunState;
use acem3::statistics::Bootstrap;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const VERDICTS: u64 = 10_000;
const IMAGES: u32 = 1_000;

/// Generates verdicts on random pairs of models, of which later ones are stronger.
fn generate_verdicts(models: u32) -> Verdicts {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut pair = |line: u64| {
        let first = rng.random_range(0..models);
        let second = (first + rng.random_range(1..models)) % models;
        let mut score = |model: u32| {
            let quality = 2.0 * f64::from(model) / f64::from(models);
            (quality + f64::from(rng.random_range(0..4_u32))).round().min(5.0)
        };
        let scores = [score(first), score(second)];
        PairVerdict {
            case: format!("case {line}"),
            pair: [first, second].map(|model| format!("model {model:03}")),
            has_image: true,
            cluster: rng.random_range(0..IMAGES).to_string(),
            scores: Some(BTreeMap::from([(ScoreTarget::Final, scores)])),
            orders: Vec::new(),
            words: [10; 2],
            has_identical_responses: false,
            meta: serde_json::Map::new(),
            line,
            key: None,
        }
    };
    Verdicts {
        path: PathBuf::from("generated"),
        judge: String::new(),
        name: String::new(),
        score_range: [0, 5],
        pairs: (1..=VERDICTS).map(&mut pair).collect(),
        labels: Vec::new(),
        without_pair: 0,
        unlisted_pairs: BTreeMap::new(),
        run: RunState::default(),
    }
}

fn main() {
    let mut first = None;
    for models in [10, 20, 40, 80, 100] {
        let verdicts = [generate_verdicts(models)];
        let start = Instant::now();
        let ranking = rank_models(&verdicts, ScoreTarget::Final, Bootstrap::default()).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        let ratio = seconds / *first.get_or_insert(seconds);
        println!("{:3} models: {seconds:6.2} s, {ratio:5.1} times the first", ranking.models.len());
    }
}
