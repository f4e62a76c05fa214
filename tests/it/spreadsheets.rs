//! Tables that come from spreadsheets and go to them: forms in which people publish ratings, and answers that a
//! spreadsheet would run.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::folder::{Folder, Said, case};

/// An answer that would run a program, and a name that would be a sum.
const FORMULA: &str = "=cmd|' /C calc'!A0, and more";
const NAME: &str = "@model";

fn judged(cases: &[Value]) -> Folder {
    let folder = Folder::of(cases.len());
    folder.write_cases(cases);
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

fn agree(folder: &Folder, name: &str, text: &str, more: &[&str]) -> Said {
    folder.write(name, text);
    let args = ["agree", "out", "--resamples", "100", "--format", "json"];
    folder.run(&[&args[..], &["--labels", name], more].concat())
}

fn sections(said: &Said) -> HashMap<String, Value> {
    assert_eq!(said.code, 0, "{}", said.err);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    let all = told["sections"].as_array().unwrap().iter();
    let target = |section: &Value| section["target"].as_str().unwrap().to_owned();
    all.map(|section| (target(section), section["figures"].clone()))
        .collect()
}

fn hostile() -> Folder {
    let mut cases: Vec<Value> = (0..8).map(case).collect();
    for (i, case) in cases.iter_mut().enumerate() {
        case["id"] = json!(format!("-c{i}"));
        case["responses"][0] = json!({"model": NAME, "text": FORMULA});
        case["responses"][1]["text"] = json!(["- a list", "+1", "-3.5", "fine"][i % 4]);
    }
    judged(&cases)
}

fn table(text: &str) -> Vec<HashMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn no_text_of_an_answer_is_a_formula() {
    let folder = hostile();
    let said = folder.run(&["report", "out", "--resamples", "50", "--format", "csv"]);
    let rows = table(&said.out);
    assert_eq!(rows.len(), 8);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row["answer_a"], format!("'{FORMULA}"));
        assert_eq!(row["model_a"], format!("'{NAME}"));
        assert_eq!(row["case"], format!("'-c{i}"));
        // Numbers stay numbers, and orders signs.
        assert_eq!(row["answer_b"], ["'- a list", "+1", "-3.5", "fine"][i % 4]);
        assert!([">", "=", "<"].contains(&row["order"].as_str()));
        assert!(row["final_a"].parse::<f64>().is_ok());
    }
    for command in ["rank", "agree", "audit"] {
        let said = folder.run(&[command, "out", "--resamples", "50", "--format", "csv"]);
        assert_eq!(said.code, 0, "{command}: {}", said.err);
        let started = |cell: &&str| {
            let sign = cell.starts_with(['=', '+', '-', '@']) && cell.len() > 1;
            sign && cell.parse::<f64>().is_err()
        };
        let mut reader = csv::Reader::from_reader(said.out.as_bytes());
        for row in reader.records() {
            let row = row.unwrap();
            assert_eq!(row.iter().find(started), None, "{command}");
        }
    }
    let said = folder.run(&["rank", "out", "--resamples", "50", "--format", "csv"]);
    for row in table(&said.out) {
        let low = row["strength_low"].parse::<f64>();
        let high = row["strength_high"].parse::<f64>();
        assert!(low.unwrap() < high.unwrap(), "{row:?}");
    }
    let said = folder.run(&["metrics", "cases", "--format", "csv"]);
    assert!(said.out.contains("\n'@model,"), "{}", said.out);
}

#[test]
fn a_report_s_own_table_is_read_back_without_its_verdicts() {
    let folder = hostile();
    let own = folder.run(&["agree", "out", "--resamples", "100", "--format", "json"]);
    let table = folder.run(&["report", "out", "--resamples", "50", "--format", "csv"]);
    let back = agree(&folder, "report.csv", &table.out, &["--target", "final"]);
    let said = sections(&back);
    let accuracy = |figures: &Value| {
        let mut all = figures.as_array().unwrap().iter();
        all.find(|f| f["statistic"] == "accuracy").unwrap()["value"].clone()
    };
    assert_eq!(accuracy(&said["final"]), accuracy(&sections(&own)["final"]));
    // Who adds what they prefer is the rater, and not the labels that were there.
    let mut reader = csv::Reader::from_reader(table.out.as_bytes());
    let mut head = reader.headers().unwrap().clone();
    head.push_field("preference");
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&head).unwrap();
    for row in reader.records() {
        let mut row = row.unwrap();
        let order = row.get(9).unwrap().to_owned();
        row.push_field(&order);
        writer.write_record(&row).unwrap();
    }
    let rated = String::from_utf8(writer.into_inner().unwrap()).unwrap();
    let said = sections(&agree(&folder, "rated.csv", &rated, &[]));
    assert_eq!(accuracy(&said["final"]), 1.0);
    // Without labels a judge is not held against itself.
    let mut cases: Vec<Value> = (0..4).map(case).collect();
    for case in &mut cases {
        case.as_object_mut().unwrap().remove("labels");
    }
    let folder = judged(&cases);
    let table = folder.run(&["report", "out", "--resamples", "50", "--format", "csv"]);
    let said = agree(&folder, "report.csv", &table.out, &[]);
    assert_eq!(said.code, 2, "{}", said.out);
    assert!(said.err.contains("no label in it"), "{}", said.err);
}

/// What a person gives a response, 1 to 5.
fn points(i: usize, m: usize, r: usize) -> usize {
    1 + (i * 3 + m * 2 + r * (i % 2)) % 5
}

#[test]
fn scores_by_criterion_are_read_however_a_spreadsheet_wrote_them() {
    let folder = judged(&(0..10).map(case).collect::<Vec<_>>());
    let mut plain =
        "question_id,system,annotator_id,Factual accuracy,Clarity of Response,Overall,comment\n"
            .to_owned();
    for i in 0..10 {
        for (m, model) in ["alpha", "beta"].iter().enumerate() {
            for r in 0..3 {
                let p = points(i, m, r);
                let _ = writeln!(plain, "c{i},{model},dr{r},{p},{},{p},\"so, so\"", 6 - p);
            }
        }
    }
    let scale = ["--scale", "1,5"];
    let first = agree(&folder, "plain.csv", &plain, &scale);
    assert!(
        first.err.contains("ignored columns: comment"),
        "{}",
        first.err
    );
    let first = sections(&first);
    let mut targets: Vec<&str> = first.keys().map(String::as_str).collect();
    targets.sort_unstable();
    assert_eq!(
        targets,
        ["clarity_of_response", "factual_accuracy", "final"]
    );
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
        let said = sections(&agree(&folder, name, &text, &scale));
        assert_eq!(said, first, "{name}");
    }
}

#[test]
fn preferences_are_read_as_people_publish_them() {
    let folder = judged(&(0..9).map(case).collect::<Vec<_>>());
    let spelt: [[&str; 3]; 6] = [
        ["A", "B", "tie"],
        ["a", "b", "Tie"],
        ["model_a", "model_b", "tie (bothbad)"],
        ["Model A", "Model B", "Both bad"],
        ["response_1", "response_2", "both equal"],
        ["left", "right", "no preference"],
    ];
    let mut first = None;
    for words in spelt {
        let mut text = "\u{feff}question_id,model_a,model_b,winner\r\n".to_owned();
        for i in 0..9 {
            let _ = write!(text, "c{i},alpha,beta,{}\r\n", words[i % 3]);
        }
        let said = sections(&agree(&folder, "votes.csv", &text, &[]));
        assert_eq!(first.get_or_insert(said.clone()), &said, "{words:?}");
    }
}

#[test]
fn what_cannot_be_told_is_refused_with_a_way_out() {
    let folder = judged(&(0..3).map(case).collect::<Vec<_>>());
    for (text, fault) in [
        (
            "case,model,score,rating\nc0,alpha,3,4\n",
            "`score` and `rating` both hold ratings",
        ),
        ("case,model,quality\nc0,alpha,3\n", "no column of ratings"),
        ("case,model,score\nc0,alpha,4/5\n", "holds `4/5`"),
        ("prompt,model,score\nx,alpha,4\n", "no column `case`"),
    ] {
        let said = agree(&folder, "labels.csv", text, &[]);
        assert_eq!(said.code, 2, "{text}");
        let told = said.err.contains(fault) && said.err.contains("hint: ");
        assert!(told, "{fault} in {}", said.err);
    }
}
