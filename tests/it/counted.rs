//! Each figure counts the cases and images that it is of, and no others: its n, and its interval.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use acem3::statistics::wilson;
use serde_json::{Value, json};

use crate::folder::{Folder, case};

const N: usize = 20;

/// Twenty cases of two models, two about each image, judged.
fn judged() -> Folder {
    let folder = Folder::of(N);
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

fn found(folder: &Folder, labels: &str) -> Value {
    folder.write("labels.csv", labels);
    let args = ["agree", "out", "--resamples", "100", "--format", "json"];
    let said = folder.run(&[&args[..], &["--labels", "labels.csv"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

fn figure<'a>(found: &'a Value, name: &str) -> &'a Value {
    let sections = found["sections"].as_array().unwrap();
    let mut figures = sections
        .iter()
        .flat_map(|section| section["figures"].as_array().unwrap());
    figures.find(|figure| figure["statistic"] == name).unwrap()
}

fn assert_near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
}

#[test]
fn a_share_of_four_pairs_has_the_interval_of_their_images() {
    let folder = judged();
    let mut labels = "case,model_a,model_b,preference\n".to_owned();
    let (mut told, mut images) = (0, BTreeSet::new());
    for record in folder.records("out") {
        let side = match record["order"].as_str().unwrap() {
            ">" if told < 4 => "A",
            "<" if told < 4 => "B",
            _ => "tie",
        };
        if side != "tie" {
            told += 1;
            images.insert(record["image"]["name"].to_string());
        }
        let (case, pair) = (&record["case"], &record["pair"]);
        let words = [case, &pair[0], &pair[1]].map(|word| word.as_str().unwrap());
        let _ = writeln!(labels, "{},{side}", words.join(","));
    }
    assert_eq!(told, 4);
    let found = found(&folder, &labels);
    let preferred = figure(&found, "accuracy_without_ties");
    assert_eq!(
        (&preferred["value"], &preferred["n"]),
        (&json!(1.0), &json!(4))
    );
    assert_eq!(preferred["images"], images.len());
    let [low, high] = wilson(1.0, images.len() as f64);
    assert_near(&preferred["interval"][0], low);
    assert_near(&preferred["interval"][1], high);
}

#[test]
fn a_model_that_met_others_over_two_images_has_the_interval_of_two() {
    let folder = Folder::of(N);
    let with_third = |i: usize| {
        let mut case = case(i);
        if i < 4 {
            let third = json!({"model": "gamma", "text": format!("perhaps, {i}")});
            case["responses"].as_array_mut().unwrap().push(third);
            case["labels"] = json!({"final": [4, 1.5, 2]});
        }
        case
    };
    folder.write_cases(&(0..N).map(with_third).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).code, 0);
    let said = folder.run(&["rank", "out", "--resamples", "100", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let models = found["models"].as_array().unwrap();
    let third = models
        .iter()
        .find(|model| model["model"] == "gamma")
        .unwrap();
    assert_eq!(third["n"], 8);
    let [low, high] = wilson(third["win_rate"].as_f64().unwrap(), 2.0);
    assert_near(&third["win_rate_interval"][0], low);
    assert_near(&third["win_rate_interval"][1], high);
}

#[test]
fn how_often_most_are_rated_is_asked_of_cases_not_of_opinions() {
    let folder = judged();
    let mut labels = "case,model,rater,score\n".to_owned();
    let mut rate = |i: usize, model: &str, scores: &[usize]| {
        for (rater, score) in scores.iter().enumerate() {
            let _ = writeln!(labels, "c{i},{model},rater_{rater},{score}");
        }
    };
    // Twelve responses 5 and 5, six 0 and 0, six 0 and 5: three opinions on 24 responses.
    for i in 0..12 {
        let [a, b] = match i {
            0..6 => [[5, 5], [5, 5]],
            6..9 => [[0, 0], [0, 0]],
            _ => [[0, 5], [0, 5]],
        };
        rate(i, "alpha", &a);
        rate(i, "beta", &b);
    }
    // Ten responses rated three times, each in another way.
    for i in 12..17 {
        rate(i, "alpha", &[i - 12, 17 - i, (2 * i) % 6]);
        rate(i, "beta", &[17 - i, (i * i) % 6, i - 12]);
    }
    let found = found(&folder, &labels);
    let fleiss = &figure(&found, "fleiss")["ceiling"];
    // By hand: 18 of 24 agree, 30 of 48 ratings are 5.
    let chance = 0.625 * 0.625 + 0.375 * 0.375;
    assert_near(&fleiss["value"], (0.75 - chance) / (1.0 - chance));
    assert_eq!(fleiss["n"], 24);
    assert_eq!(figure(&found, "icc_1_1")["ceiling"]["n"], 24);
    assert_eq!(figure(&found, "order_fleiss")["ceiling"]["n"], 12);
}

#[test]
fn who_rated_one_response_alone_does_not_turn_the_order_of_who_rated_both() {
    let folder = judged();
    let mut labels = "case,model,rater,score\n".to_owned();
    for i in 0..N {
        let _ = writeln!(
            labels,
            "c{i},alpha,first,2\nc{i},beta,first,1\nc{i},beta,second,5"
        );
    }
    let found = found(&folder, &labels);
    let right = folder.records("out");
    let right = right.iter().filter(|record| record["order"] == ">").count();
    assert!(right > 0);
    assert_near(
        &figure(&found, "accuracy")["value"],
        right as f64 / N as f64,
    );
}

#[test]
fn an_empty_table_and_a_slip_are_told_by_what_they_are() {
    let folder = judged();
    for empty in ["", "\n\n"] {
        folder.write("labels.csv", empty);
        let said = folder.run(&["agree", "out", "--labels", "labels.csv"]);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(
            said.err.contains("labels.csv: the table is empty"),
            "{}",
            said.err
        );
    }
    folder.write(
        "labels.csv",
        "case,model,score\nc0,alpha,5\nc0,beta,1\nc1,alpha,55\nc1,beta,2\n",
    );
    let said = folder.run(&["agree", "out", "--labels", "labels.csv"]);
    let slip = "1 of 4 scores are not from 0 to 5 as the judge's are, first 55 in line 4";
    assert!(said.err.contains(slip), "{}", said.err);
}
