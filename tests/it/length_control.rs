//! Win rates at equal length against statsmodels: `assets/golden/make_length_control.py`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use acem3::analysis::audit::{AuditVerdicts, Probe};
use acem3::analysis::verdicts::{OrderScores, PairVerdict, Verdicts};
use acem3::data::labels::ScoreTarget;
use acem3::statistics::Bootstrap;
use serde::Deserialize;

use crate::encoders::golden;

#[derive(Deserialize)]
struct Known {
    models: usize,
    /// Two models, how much longer the first is, how far it won, and how often.
    pairs: Vec<(usize, usize, i64, f64, usize)>,
    coefficients: Vec<f64>,
    win_rates: Vec<f64>,
}

fn verdict(number: u64, (i, j, longer, outcome): (usize, usize, i64, f64)) -> PairVerdict {
    let scores = [2.0 + outcome, 3.0 - outcome];
    PairVerdict {
        case: number.to_string(),
        pair: [i, j].map(|model| format!("model {model}")),
        cluster: number.to_string(),
        scores: Some(BTreeMap::from([(ScoreTarget::Final, scores)])),
        orders: vec![OrderScores {
            swapped: false,
            scores,
        }],
        words: [(40 + longer) as usize, 40],
        identical: false,
        meta: serde_json::Map::new(),
        line: number,
    }
}

#[test]
fn win_rates_at_equal_length_as_statsmodels() {
    let text = std::fs::read_to_string(golden().join("statistics/length_control.json")).unwrap();
    let all: Vec<Known> = serde_json::from_str(&text).unwrap();
    assert!(all.len() > 50);
    for known in &all {
        let pairs = known
            .pairs
            .iter()
            .flat_map(|&(i, j, longer, outcome, times)| {
                std::iter::repeat_n((i, j, longer, outcome), times)
            });
        let pairs = (1..)
            .zip(pairs)
            .map(|(number, pair)| verdict(number, pair))
            .collect();
        let verdicts = Verdicts {
            path: PathBuf::from("golden"),
            judge: String::new(),
            name: String::new(),
            pairs,
            labels: Vec::new(),
            without_pair: 0,
            torn: false,
        };
        let bootstrap = Bootstrap { draws: 2, seed: 1 };
        let finding = AuditVerdicts::new(&verdicts, None, bootstrap).run_probe(Probe::Verbosity);
        let value = |key: &str| finding.measure(key).unwrap().reading.value.unwrap();
        let effect = value("length_effect");
        let expected = known.coefficients.last().unwrap();
        assert!(
            (effect - expected).abs() < 1e-5,
            "{effect}, expected {expected}"
        );
        for model in 0..known.models {
            let rate = value(&format!("length_controlled_win_rate:model {model}"));
            let expected = known.win_rates[model];
            assert!(
                (rate - expected).abs() < 1e-5,
                "{rate}, expected {expected}"
            );
        }
    }
}
