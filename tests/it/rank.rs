//! `acem3 rank`: models of a run, counted by hand.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::folder::{Folder, case};

/// Cases of three models, judged in all pairs.
fn judged(n: usize) -> Folder {
    let folder = Folder::of(n);
    let with_third = |i: usize| {
        let mut case = case(i);
        let third = json!({"model": "gamma", "text": format!("perhaps, {i}")});
        case["responses"].as_array_mut().unwrap().push(third);
        case["labels"] = json!({"final": [4, 1.5, 2]});
        case
    };
    folder.write_cases(&(0..n).map(with_third).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

#[test]
fn wins_ties_and_losses_are_those_of_the_records() {
    let folder = judged(12);
    let said = folder.run(&["rank", "out", "--resamples", "200", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let mut counts: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for record in folder.records("out") {
        let order = record["order"].as_str().unwrap();
        for side in 0..2 {
            let model = record["pair"][side].as_str().unwrap().to_owned();
            let place = match (order, side) {
                ("=", _) => 1,
                (">", 0) | ("<", 1) => 0,
                _ => 2,
            };
            counts.entry(model).or_default()[place] += 1;
        }
    }
    assert_eq!(found["models"].as_array().unwrap().len(), 3);
    for model in found["models"].as_array().unwrap() {
        let [wins, ties, losses] = counts[model["model"].as_str().unwrap()];
        assert_eq!(model["wins"], wins);
        assert_eq!(model["ties"], ties);
        assert_eq!(model["losses"], losses);
        let rate = (wins as f64 + ties as f64 / 2.0) / (wins + ties + losses) as f64;
        assert!((model["win_rate"].as_f64().unwrap() - rate).abs() < 1e-9);
        let ranks: Vec<u64> = serde_json::from_value(model["rank_interval"].clone()).unwrap();
        let rank = model["rank"].as_u64().unwrap();
        assert!(ranks[0] <= rank && rank <= ranks[1], "{model}");
    }
    assert_eq!(found["duels"].as_array().unwrap().len(), 3);
}

#[test]
fn chance_is_not_taken_for_a_difference() {
    // Five images tell nothing, twelve tell that there is nothing.
    let few = judged(10).run(&["rank", "out", "--resamples", "200"]);
    assert!(
        few.out.contains("too few images for a test (5"),
        "{}",
        few.out
    );
    let folder = judged(24);
    let said = folder.run(&["rank", "out", "--resamples", "200"]);
    assert!(
        said.out.contains("no significant difference"),
        "{}",
        said.out
    );
    assert!(said.out.contains("win / tie / loss"), "{}", said.out);
    let markdown = folder.run(&["rank", "out", "--resamples", "50", "--format", "markdown"]);
    assert!(
        markdown.out.contains("| model | rank [95 % CI] |"),
        "{}",
        markdown.out
    );
}

#[test]
fn runs_of_two_judges_are_not_mixed() {
    let folder = judged(4);
    let other = [
        "judge",
        "cases",
        "--out",
        "other",
        "--panel",
        "scripted:seed=9",
    ];
    assert_eq!(folder.run(&other).code, 0);
    let said = folder.run(&["rank", "out", "other"]);
    assert!(
        said.code == 2 && said.err.contains("expected records of one judge"),
        "{}",
        said.err
    );
}

/// A record that is being written, or was as its program ended, costs no other one.
#[test]
fn a_torn_last_record_is_left_out() {
    let folder = judged(24);
    let path = folder.path("out/records.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let pairs = |said: &crate::folder::Said| {
        assert_eq!(said.code, 0, "{}", said.err);
        let found: Value = serde_json::from_str(&said.out).unwrap();
        found["pairs"].as_u64().unwrap()
    };
    let rank = || folder.run(&["rank", "out", "--resamples", "50", "--format", "json"]);
    std::fs::write(&path, &whole[..whole.len() - 40]).unwrap();
    let torn = rank();
    assert_eq!(pairs(&torn), 71);
    assert!(
        torn.err.contains("the last record is incomplete"),
        "{}",
        torn.err
    );
    let page = folder.run(&["report", "out", "--resamples", "50", "--out", "page.html"]);
    assert_eq!(page.code, 0, "{}", page.err);
    // One that only lacks its newline is whole; one torn in the middle of the file is a fault.
    std::fs::write(&path, whole.trim_end()).unwrap();
    assert_eq!(pairs(&rank()), 72);
    std::fs::write(&path, format!("{}\n{whole}", &whole[..300])).unwrap();
    let said = rank();
    assert!(
        said.code == 2 && said.err.contains("line 1: not a record"),
        "{}",
        said.err
    );
}
