//! Length-controlled win rates compared with statsmodels. `assets/golden/make_length_control.py`
//! generates the expected values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use acem3::analysis::audit::{AuditVerdicts, Probe};
use acem3::analysis::verdicts::{OrderScores, PairVerdict, Verdicts};
use acem3::data::labels::ScoreTarget;
use acem3::judging::run::run_state::RunState;
use acem3::statistics::Bootstrap;
use serde::Deserialize;

use crate::encoders::golden_folder;

/// Outcomes of pairs and the reference fit.
#[derive(Deserialize)]
struct ReferenceFit {
    models: usize,
    /// Both models, length difference in words (first − second), outcome of the first (0, ½ or 1),
    /// and number of such pairs.
    pairs: Vec<(usize, usize, i64, f64, usize)>,
    coefficients: Vec<f64>,
    win_rates: Vec<f64>,
}

fn verdict(line: u64, (i, j, length_difference, outcome): (usize, usize, i64, f64)) -> PairVerdict {
    let scores = [2.0 + outcome, 3.0 - outcome];
    PairVerdict {
        case: line.to_string(),
        pair: [i, j].map(|model| format!("model {model}")),
        has_image: true,
        cluster: line.to_string(),
        scores: Some(BTreeMap::from([(ScoreTarget::Final, scores)])),
        orders: vec![OrderScores { swapped: false, scores }],
        words: [(40 + length_difference) as usize, 40],
        has_identical_responses: false,
        meta: serde_json::Map::new(),
        line,
        key: None,
    }
}

#[test]
fn length_controlled_win_rates_match_statsmodels() {
    let text =
        std::fs::read_to_string(golden_folder().join("statistics/length_control.json")).unwrap();
    let fits: Vec<ReferenceFit> = serde_json::from_str(&text).unwrap();
    assert!(fits.len() > 50);
    for reference in &fits {
        let pairs = reference.pairs.iter().flat_map(|&(i, j, longer, outcome, count)| {
            std::iter::repeat_n((i, j, longer, outcome), count)
        });
        let pairs = (1..).zip(pairs).map(|(line, pair)| verdict(line, pair)).collect();
        let verdicts = Verdicts {
            path: PathBuf::from("golden"),
            judge: String::new(),
            name: String::new(),
            score_range: [0, 5],
            pairs,
            labels: Vec::new(),
            without_pair: 0,
            unlisted_pairs: BTreeMap::new(),
            run: RunState::default(),
        };
        let bootstrap = Bootstrap { resamples: 2, seed: 1 };
        let finding = AuditVerdicts::new(&verdicts, None, bootstrap).run_probe(Probe::Verbosity);
        let value = |key: &str| finding.measure(key).unwrap().estimate.value.unwrap();
        let effect = value("length_effect");
        let expected = reference.coefficients.last().unwrap();
        assert!((effect - expected).abs() < 1e-5, "{effect}, expected {expected}");
        for model in 0..reference.models {
            let rate = value(&format!("length_controlled_win_rate:model {model}"));
            let expected = reference.win_rates[model];
            assert!((rate - expected).abs() < 1e-5, "{rate}, expected {expected}");
        }
    }
}
