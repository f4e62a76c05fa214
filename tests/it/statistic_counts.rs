//! `n` and confidence interval of a statistic count only the cases and images that it uses.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use acem3::statistics::wilson_interval;
use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

const CASES: usize = 20;

/// Judges twenty cases of two models, two cases per image.
fn judge_cases() -> Folder {
    let folder = Folder::with_cases(CASES);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

fn run_agree(folder: &Folder, labels: &str) -> Value {
    folder.write("labels.csv", labels);
    let args = ["agree", "out", "--resamples", "100", "--format", "json"];
    let output = folder.run(&[&args[..], &["--labels", "labels.csv"]].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn find_statistic<'a>(agreement: &'a Value, name: &str) -> &'a Value {
    let sections = agreement["sections"].as_array().unwrap();
    let mut statistics = sections.iter().flat_map(|section| section["figures"].as_array().unwrap());
    statistics.find(|statistic| statistic["statistic"] == name).unwrap()
}

fn assert_near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{value}, expected {expected}");
}

#[test]
fn proportion_interval_is_clustered_by_image() {
    let folder = judge_cases();
    let mut labels = "case,model_a,model_b,preference\n".to_owned();
    let (mut strict_preferences, mut images) = (0, BTreeSet::new());
    for record in folder.records("out") {
        let side = match record["order"].as_str().unwrap() {
            ">" if strict_preferences < 4 => "A",
            "<" if strict_preferences < 4 => "B",
            _ => "tie",
        };
        if side != "tie" {
            strict_preferences += 1;
            images.insert(record["image"]["name"].to_string());
        }
        let (case, pair) = (&record["case"], &record["pair"]);
        let fields = [case, &pair[0], &pair[1]].map(|field| field.as_str().unwrap());
        let _ = writeln!(labels, "{},{side}", fields.join(","));
    }
    assert_eq!(strict_preferences, 4);
    let agreement = run_agree(&folder, &labels);
    let accuracy = find_statistic(&agreement, "accuracy_without_ties");
    assert_eq!((&accuracy["value"], &accuracy["n"]), (&json!(1.0), &json!(4)));
    assert_eq!(accuracy["images"], images.len());
    let [low, high] = wilson_interval(1.0, images.len() as f64);
    assert_near(&accuracy["interval"][0], low);
    assert_near(&accuracy["interval"][1], high);
}

#[test]
fn win_rate_interval_counts_only_images_of_the_model() {
    let folder = Folder::with_cases(CASES);
    let with_third = |i: usize| {
        let mut case = valid_case(i);
        if i < 4 {
            let third = json!({"model": "gamma", "text": format!("perhaps, {i}")});
            case["responses"].as_array_mut().unwrap().push(third);
            case["labels"] = json!({"final": [4, 1.5, 2]});
        }
        case
    };
    folder.write_cases(&(0..CASES).map(with_third).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let output = folder.run(&["rank", "out", "--resamples", "100", "--format", "json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let ranking: Value = serde_json::from_str(&output.stdout).unwrap();
    let models = ranking["models"].as_array().unwrap();
    let third = models.iter().find(|model| model["model"] == "gamma").unwrap();
    assert_eq!(third["n"], 8);
    let [low, high] = wilson_interval(third["win_rate"].as_f64().unwrap(), 2.0);
    assert_near(&third["win_rate_interval"][0], low);
    assert_near(&third["win_rate_interval"][1], high);
}

#[test]
fn ceiling_uses_units_with_the_typical_number_of_ratings() {
    let folder = judge_cases();
    let mut labels = "case,model,rater,score\n".to_owned();
    let mut rate = |i: usize, model: &str, scores: &[usize]| {
        for (rater, score) in scores.iter().enumerate() {
            let _ = writeln!(labels, "c{i},{model},rater_{rater},{score}");
        }
    };
    // Twelve responses rated 5 and 5, six rated 0 and 0, six rated 0 and 5: three rating patterns
    // on 24 responses.
    for i in 0..12 {
        let [a, b] = match i {
            0..6 => [[5, 5], [5, 5]],
            6..9 => [[0, 0], [0, 0]],
            _ => [[0, 5], [0, 5]],
        };
        rate(i, "alpha", &a);
        rate(i, "beta", &b);
    }
    // Ten responses with three different ratings each.
    for i in 12..17 {
        rate(i, "alpha", &[i - 12, 17 - i, (2 * i) % 6]);
        rate(i, "beta", &[17 - i, (i * i) % 6, i - 12]);
    }
    let agreement = run_agree(&folder, &labels);
    let fleiss = &find_statistic(&agreement, "fleiss")["ceiling"];
    // By hand: 18 of 24 agree, 30 of 48 ratings are 5.
    let chance = 0.625 * 0.625 + 0.375 * 0.375;
    assert_near(&fleiss["value"], (0.75 - chance) / (1.0 - chance));
    assert_eq!(fleiss["n"], 24);
    assert_eq!(find_statistic(&agreement, "icc_1_1")["ceiling"]["n"], 24);
    assert_eq!(find_statistic(&agreement, "order_fleiss")["ceiling"]["n"], 12);
}

#[test]
fn raters_of_one_response_do_not_change_pair_orders() {
    let folder = judge_cases();
    let mut labels = "case,model,rater,score\n".to_owned();
    for i in 0..CASES {
        let _ = writeln!(labels, "c{i},alpha,first,2\nc{i},beta,first,1\nc{i},beta,second,5");
    }
    let agreement = run_agree(&folder, &labels);
    let records = folder.records("out");
    let correct = records.iter().filter(|record| record["order"] == ">").count();
    assert!(correct > 0);
    assert_near(&find_statistic(&agreement, "accuracy")["value"], correct as f64 / CASES as f64);
}

#[test]
fn empty_table_and_mistyped_score_are_reported() {
    let folder = judge_cases();
    for empty in ["", "\n\n"] {
        folder.write("labels.csv", empty);
        let output = folder.run(&["agree", "out", "--labels", "labels.csv"]);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains("labels.csv: the table is empty"), "{}", output.stderr);
    }
    folder.write("labels.csv", "case,model,score\nc0,alpha,5\nc0,beta,1\nc1,alpha,55\nc1,beta,2\n");
    let output = folder.run(&["agree", "out", "--labels", "labels.csv"]);
    let warning = "1 of 4 scores is outside the judge's range 0 to 5, first 55 in line 4";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
}
