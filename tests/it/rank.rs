//! `acem3 rank`: results compared with counts over the records.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// Creates a folder with `n` cases of three models, and judges all pairs.
fn judged_folder(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    let with_third = |i: usize| {
        let mut case = valid_case(i);
        let third = json!({"model": "gamma", "text": format!("perhaps, {i}")});
        case["responses"].as_array_mut().unwrap().push(third);
        case["labels"] = json!({"final": [4, 1.5, 2]});
        case
    };
    folder.write_cases(&(0..n).map(with_third).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

#[test]
fn ranking_matches_records() {
    let folder = judged_folder(12);
    let output = folder.run(&["rank", "out", "--resamples", "200", "--format", "json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let ranking: Value = serde_json::from_str(&output.stdout).unwrap();
    let mut counts: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for record in folder.records("out") {
        let order = record["order"].as_str().unwrap();
        for side in 0..2 {
            let model = record["pair"][side].as_str().unwrap().to_owned();
            let outcome = match (order, side) {
                ("=", _) => 1,
                (">", 0) | ("<", 1) => 0,
                _ => 2,
            };
            counts.entry(model).or_default()[outcome] += 1;
        }
    }
    assert_eq!(ranking["models"].as_array().unwrap().len(), 3);
    for model in ranking["models"].as_array().unwrap() {
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
    assert_eq!(ranking["duels"].as_array().unwrap().len(), 3);
}

#[test]
fn random_judge_has_no_significant_difference() {
    // Five images are too few for a test. With twelve, the test finds no difference.
    let few = judged_folder(10).run(&["rank", "out", "--resamples", "200"]);
    assert!(few.stdout.contains("too few images for a test (5"), "{}", few.stdout);
    let folder = judged_folder(24);
    let output = folder.run(&["rank", "out", "--resamples", "200"]);
    assert!(output.stdout.contains("no significant difference"), "{}", output.stdout);
    assert!(output.stdout.contains("win / tie / loss"), "{}", output.stdout);
    let markdown = folder.run(&["rank", "out", "--resamples", "50", "--format", "markdown"]);
    assert!(markdown.stdout.contains("| model | rank [95 % CI] |"), "{}", markdown.stdout);
}

#[test]
fn records_of_two_judges_are_rejected() {
    let folder = judged_folder(4);
    let other = ["judge", "cases", "--out", "other", "--panel", "scripted:seed=9"];
    assert_eq!(folder.run(&other).exit_code, 0);
    let output = folder.run(&["rank", "out", "other"]);
    assert!(
        output.exit_code == 2 && output.stderr.contains("expected records of one judge"),
        "{}",
        output.stderr
    );
}

/// Without this, each verdict counts twice and the intervals are too narrow.
#[test]
fn run_given_twice_is_read_once() {
    let folder = judged_folder(4);
    let rank = |more: &[&str]| {
        let args = [&["rank", "--resamples", "50", "--format", "json"], more].concat();
        let output = folder.run(&args);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let mut ranking: Value = serde_json::from_str(&output.stdout).unwrap();
        let object = ranking.as_object_mut().unwrap();
        object.remove("runs");
        let notices = object.remove("notices").unwrap_or_default();
        (ranking, notices.to_string(), output.stderr)
    };
    std::fs::create_dir(folder.path("copy")).unwrap();
    for name in ["records.jsonl", "run.json"] {
        std::fs::copy(folder.path("out").join(name), folder.path("copy").join(name)).unwrap();
    }
    let (once, none, _) = rank(&["out"]);
    assert_eq!(none, "null");
    for (second, message) in [
        ("out", "the same records, read once"),
        ("./out/records.jsonl", "the same records, read once"),
        ("copy", "12 of 12 pairs are also in an earlier argument, counted once"),
    ] {
        let (twice, notices, stderr) = rank(&["out", second]);
        assert_eq!(once, twice, "{second}");
        assert!(notices.contains(message) && stderr.contains(message), "{notices} {stderr}");
    }
}

/// The last record is incomplete while a run writes it, or after a crash.
#[test]
fn torn_last_record_is_ignored() {
    let folder = judged_folder(24);
    let path = folder.path("out/records.jsonl");
    let records = std::fs::read_to_string(&path).unwrap();
    let pairs = |output: &crate::folder::ProgramOutput| {
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let ranking: Value = serde_json::from_str(&output.stdout).unwrap();
        ranking["pairs"].as_u64().unwrap()
    };
    let rank = || folder.run(&["rank", "out", "--resamples", "50", "--format", "json"]);
    for (start, expected) in [
        ("", "records.jsonl: the file is empty\nhint: "),
        (&records[..40], "records.jsonl: the last record is incomplete and is ignored"),
    ] {
        std::fs::write(&path, start).unwrap();
        let output = rank();
        assert_eq!(output.exit_code, 2, "{}", output.stdout);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    std::fs::write(&path, &records[..records.len() - 40]).unwrap();
    let torn = rank();
    assert_eq!(pairs(&torn), 71);
    assert!(torn.stderr.contains("the last record is incomplete"), "{}", torn.stderr);
    let page = folder.run(&["report", "out", "--resamples", "50", "--out", "page.html"]);
    assert_eq!(page.exit_code, 0, "{}", page.stderr);
    // A last line without a newline is complete. A torn line in the middle of the file is damaged.
    std::fs::write(&path, records.trim_end()).unwrap();
    assert_eq!(pairs(&rank()), 72);
    std::fs::write(&path, format!("{}\n{records}", &records[..300])).unwrap();
    let output = rank();
    assert_eq!(pairs(&output), 72);
    assert!(output.stderr.contains("(case c0): not a record, EOF"), "{}", output.stderr);
}

/// Ranks two runs of a form and returns the JSON output.
fn rank_two(folder: &Folder, runs: [&str; 2]) -> Value {
    let args = [&["rank", "--resamples", "50", "--format", "json"], &runs[..]].concat();
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn cases_in_another_order_count_once_in_every_form() {
    let folder = Folder::with_cases(12);
    let with_reference = |i: usize| {
        let mut case = valid_case(i);
        // The second case has no reference, so its responses are unscored and have no key.
        if i != 1 {
            case["reference"] = json!("yes");
        }
        case
    };
    let mut cases: Vec<Value> = (0..12).map(with_reference).collect();
    let forms = ["pair", "single", "list", "correctness"];
    for (suffix, is_reversed) in [("", false), ("-reversed", true)] {
        if is_reversed {
            cases.reverse();
        }
        folder.write_cases(&cases);
        for form in forms {
            folder.judge(&format!("{form}{suffix}"), &["--form", form]);
        }
    }
    for form in forms {
        let ranking = rank_two(&folder, [form, &format!("{form}-reversed")]);
        let (n, unit) = if form == "correctness" { (22, "response") } else { (12, "pair") };
        assert_eq!(ranking["n"], n, "{form}: {ranking}");
        let notices = ranking["notices"].to_string();
        assert!(notices.contains(&format!("{unit}s are also in an earlier argument")), "{notices}");
    }
}

#[test]
fn different_texts_with_equal_ids_are_different_cases() {
    let folder = Folder::with_cases(12);
    let case = |i: usize, set: &str| {
        let mut case = valid_case(i);
        case["question"] = json!(format!("{set}: what is shown in {i}?"));
        case.as_object_mut().unwrap().remove("image");
        case
    };
    for set in ["first", "second"] {
        folder.write_cases(&(0..12).map(|i| case(i, set)).collect::<Vec<_>>());
        for form in ["pair", "single", "list"] {
            folder.judge(&format!("{set}-{form}"), &["--form", form]);
        }
    }
    for form in ["pair", "single", "list"] {
        let ranking = rank_two(&folder, [&format!("first-{form}"), &format!("second-{form}")]);
        assert_eq!((&ranking["pairs"], &ranking["images"]), (&json!(24), &json!(0)), "{form}");
    }
}
