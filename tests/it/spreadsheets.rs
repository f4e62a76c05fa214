//! Tables from and for spreadsheets: label tables in published formats, and protection against
//! formula injection.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput, valid_case};

/// A response that a spreadsheet would run as a program.
const FORMULA: &str = "=cmd|' /C calc'!A0, and more";
/// A model name that a spreadsheet would evaluate.
const FORMULA_MODEL: &str = "@model";

fn judge_cases(cases: &[Value]) -> Folder {
    let folder = Folder::with_cases(cases.len());
    folder.write_cases(cases);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

fn run_agree(folder: &Folder, labels_file: &str, text: &str, flags: &[&str]) -> ProgramOutput {
    folder.write(labels_file, text);
    let args = ["agree", "out", "--resamples", "100", "--format", "json"];
    folder.run(&[&args[..], &["--labels", labels_file], flags].concat())
}

fn statistics_by_target(output: &ProgramOutput) -> HashMap<String, Value> {
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let agreement: Value = serde_json::from_str(&output.stdout).unwrap();
    let sections = agreement["sections"].as_array().unwrap().iter();
    let target = |section: &Value| section["target"].as_str().unwrap().to_owned();
    sections.map(|section| (target(section), section["figures"].clone())).collect()
}

/// Judges cases whose ids, model names and responses start like formulas.
fn judge_formula_cases() -> Folder {
    let mut cases: Vec<Value> = (0..8).map(valid_case).collect();
    for (i, case) in cases.iter_mut().enumerate() {
        case["id"] = json!(format!("-c{i}"));
        case["responses"][0] = json!({"model": FORMULA_MODEL, "text": FORMULA});
        case["responses"][1]["text"] = json!(["- a list", "+1", "-3.5", "fine"][i % 4]);
    }
    judge_cases(&cases)
}

fn parse_csv(text: &str) -> Vec<HashMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn csv_output_contains_no_formulas() {
    let folder = judge_formula_cases();
    let output = folder.run(&["report", "out", "--resamples", "50", "--format", "csv"]);
    let rows = parse_csv(&output.stdout);
    assert_eq!(rows.len(), 8);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row["answer_a"], format!("'{FORMULA}"));
        assert_eq!(row["model_a"], format!("'{FORMULA_MODEL}"));
        assert_eq!(row["case"], format!("'-c{i}"));
        // Numbers and order signs are not escaped.
        assert_eq!(row["answer_b"], ["'- a list", "+1", "-3.5", "fine"][i % 4]);
        assert!([">", "=", "<"].contains(&row["order"].as_str()));
        assert!(row["final_a"].parse::<f64>().is_ok());
    }
    for command in ["rank", "agree", "audit"] {
        let output = folder.run(&[command, "out", "--resamples", "50", "--format", "csv"]);
        assert_eq!(output.exit_code, 0, "{command}: {}", output.stderr);
        let is_formula = |cell: &&str| {
            let has_prefix = cell.starts_with(['=', '+', '-', '@']) && cell.len() > 1;
            has_prefix && cell.parse::<f64>().is_err()
        };
        let mut reader = csv::Reader::from_reader(output.stdout.as_bytes());
        for row in reader.records() {
            let row = row.unwrap();
            assert_eq!(row.iter().find(is_formula), None, "{command}");
        }
    }
    let output = folder.run(&["rank", "out", "--resamples", "50", "--format", "csv"]);
    for row in parse_csv(&output.stdout) {
        let low = row["strength_low"].parse::<f64>();
        let high = row["strength_high"].parse::<f64>();
        assert!(low.unwrap() < high.unwrap(), "{row:?}");
    }
    let output = folder.run(&["metrics", "cases", "--format", "csv"]);
    assert!(output.stdout.contains("\n'@model,"), "{}", output.stdout);
}

#[test]
fn report_table_is_read_as_labels_without_its_verdicts() {
    let folder = judge_formula_cases();
    let without_table = folder.run(&["agree", "out", "--resamples", "100", "--format", "json"]);
    let table = folder.run(&["report", "out", "--resamples", "50", "--format", "csv"]);
    let with_table = run_agree(&folder, "report.csv", &table.stdout, &["--target", "final"]);
    let statistics = statistics_by_target(&with_table);
    let accuracy = |statistics: &Value| {
        let mut all = statistics.as_array().unwrap().iter();
        all.find(|s| s["statistic"] == "accuracy").unwrap()["value"].clone()
    };
    let expected = statistics_by_target(&without_table);
    assert_eq!(accuracy(&statistics["final"]), accuracy(&expected["final"]));
    // An added `preference` column replaces the labels of the table.
    let mut reader = csv::Reader::from_reader(table.stdout.as_bytes());
    let mut headers = reader.headers().unwrap().clone();
    headers.push_field("preference");
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&headers).unwrap();
    for row in reader.records() {
        let mut row = row.unwrap();
        // Column 9 is the preference of the judge.
        let order = row.get(9).unwrap().to_owned();
        row.push_field(&order);
        writer.write_record(&row).unwrap();
    }
    let rated = String::from_utf8(writer.into_inner().unwrap()).unwrap();
    let statistics = statistics_by_target(&run_agree(&folder, "rated.csv", &rated, &[]));
    assert_eq!(accuracy(&statistics["final"]), 1.0);
    // The judge's scores in the table are not read as labels.
    let mut cases: Vec<Value> = (0..4).map(valid_case).collect();
    for case in &mut cases {
        case.as_object_mut().unwrap().remove("labels");
    }
    let folder = judge_cases(&cases);
    let table = folder.run(&["report", "out", "--resamples", "50", "--format", "csv"]);
    let output = run_agree(&folder, "report.csv", &table.stdout, &[]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    assert!(output.stderr.contains("no labels found"), "{}", output.stderr);
}

/// Score that a rater gives to a response, 1 to 5.
fn score(case: usize, model: usize, rater: usize) -> usize {
    1 + (case * 3 + model * 2 + rater * (case % 2)) % 5
}

#[test]
fn label_tables_are_read_in_every_csv_dialect() {
    let folder = judge_cases(&(0..10).map(valid_case).collect::<Vec<_>>());
    let mut plain =
        "question_id,system,annotator_id,Factual accuracy,Clarity of Response,Overall,comment\n"
            .to_owned();
    for i in 0..10 {
        for (m, model) in ["alpha", "beta"].iter().enumerate() {
            for r in 0..3 {
                let score = score(i, m, r);
                let _ =
                    writeln!(plain, "c{i},{model},dr{r},{score},{},{score},\"so, so\"", 6 - score);
            }
        }
    }
    let scale = ["--scale", "1,5"];
    let first = run_agree(&folder, "plain.csv", &plain, &scale);
    assert!(first.stderr.contains("ignored columns: comment"), "{}", first.stderr);
    let first = statistics_by_target(&first);
    let mut targets: Vec<&str> = first.keys().map(String::as_str).collect();
    targets.sort_unstable();
    assert_eq!(targets, ["clarity_of_response", "factual_accuracy", "final"]);
    let windows = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
    let quoted = "\"so, so\"";
    let semicolons = plain.replace(quoted, "so so").replace(',', ";");
    let decimals = semicolons.replace(";so so", ",0;so so");
    let tabs = plain.replace(quoted, "so so").replace(',', "\t");
    for (name, text) in [
        ("windows.csv", windows),
        ("semicolons.csv", semicolons),
        ("decimals.csv", decimals),
        ("tabs.tsv", tabs),
    ] {
        let statistics = statistics_by_target(&run_agree(&folder, name, &text, &scale));
        assert_eq!(statistics, first, "{name}");
    }
}

#[test]
fn published_preference_spellings_are_read() {
    let folder = judge_cases(&(0..9).map(valid_case).collect::<Vec<_>>());
    let spellings: [[&str; 3]; 6] = [
        ["A", "B", "tie"],
        ["a", "b", "Tie"],
        ["model_a", "model_b", "tie (bothbad)"],
        ["Model A", "Model B", "Both bad"],
        ["response_1", "response_2", "both equal"],
        ["left", "right", "no preference"],
    ];
    let mut first = None;
    for [a, b, tie] in spellings {
        let mut text = "\u{feff}question_id,model_a,model_b,winner\r\n".to_owned();
        for i in 0..9 {
            let _ = write!(text, "c{i},alpha,beta,{}\r\n", [a, b, tie][i % 3]);
        }
        let statistics = statistics_by_target(&run_agree(&folder, "votes.csv", &text, &[]));
        let first = first.get_or_insert_with(|| statistics.clone());
        assert_eq!(*first, statistics, "{a}, {b}, {tie}");
    }
}

#[test]
fn ambiguous_label_tables_are_rejected_with_a_hint() {
    let folder = judge_cases(&(0..3).map(valid_case).collect::<Vec<_>>());
    for (text, message) in [
        ("case,model,score,rating\nc0,alpha,3,4\n", "`score` and `rating` both contain ratings"),
        ("case,model,quality\nc0,alpha,3\n", "no rating column"),
        ("case,model,score\nc0,alpha,4/5\n", "found `4/5`"),
        ("prompt,model,score\nx,alpha,4\n", "no column `case`"),
    ] {
        let output = run_agree(&folder, "labels.csv", text, &[]);
        assert_eq!(output.exit_code, 2, "{text}");
        let is_explained = output.stderr.contains(message) && output.stderr.contains("hint: ");
        assert!(is_explained, "{message} in {}", output.stderr);
    }
}
