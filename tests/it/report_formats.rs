//! `acem3 report` in other formats, and with an audit, a calibration or labels.

use std::collections::BTreeMap;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput};

/// Creates a folder with `n` judged cases.
fn judged_folder(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

/// Runs `acem3 report out` with additional arguments.
fn report(folder: &Folder, more: &[&str]) -> ProgramOutput {
    folder.run(&[&["report", "out", "--resamples", "50"], more].concat())
}

#[test]
fn json_report_contains_results_of_other_commands() {
    let folder = judged_folder(12);
    let json_report: Value =
        serde_json::from_str(&report(&folder, &["--format", "json"]).stdout).unwrap();
    let output_of = |args: &[&str]| -> Value {
        let output = folder.run(&[args, &["--resamples", "50", "--format", "json"]].concat());
        let mut result: Value = serde_json::from_str(&output.stdout).unwrap();
        let runs = result.as_object_mut().unwrap().shift_remove("runs");
        assert_eq!(runs, Some(json!([json_report["judges"][0]["run"]])));
        result
    };
    let judge = &json_report["judges"][0];
    assert_eq!(judge["ranking"], output_of(&["rank", "out"]));
    assert_eq!(judge["agreement"], output_of(&["agree", "out"]));
    let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for record in folder.records("out") {
        for side in 0..2 {
            let model = record["pair"][side].as_str().unwrap().to_owned();
            let score = record["criteria"]["factual_accuracy"][side].as_f64().unwrap();
            sums.entry(model).or_default().push(score);
        }
    }
    for model in judge["models"].as_array().unwrap() {
        let scores = &sums[model["model"].as_str().unwrap()];
        let means = model["means"].as_array().unwrap();
        assert_eq!(means.len(), 14);
        let mean = means.iter().find(|m| m["target"] == "factual_accuracy").unwrap();
        let expected = scores.iter().sum::<f64>() / scores.len() as f64;
        assert!((mean["value"].as_f64().unwrap() - expected).abs() < 1e-9);
        let [low, high]: [f64; 2] = serde_json::from_value(mean["interval"].clone()).unwrap();
        assert!(low <= expected && expected <= high);
    }
    let counts = &judge["counts"];
    assert_eq!((&counts["records"], &counts["images"]), (&12.into(), &6.into()));
}

/// Flip rate, position and verbosity match counts over the records and the results of an audit.
#[test]
fn bias_findings_match_records_and_audit() {
    let folder = judged_folder(30);
    let json_report: Value =
        serde_json::from_str(&report(&folder, &["--format", "json"]).stdout).unwrap();
    let findings = &json_report["judges"][0]["leanings"];
    let measure = |key: &str| {
        let all = findings.as_array().unwrap().iter();
        let mut all = all.flat_map(|finding| finding["measures"].as_array().unwrap());
        all.find(|measure| measure["key"] == key).unwrap()["reading"].clone()
    };
    let proportion = |key: &str| measure(key)["value"].as_f64().unwrap();
    let records = folder.records("out");
    let flips = records.iter().filter(|r| r["flip"] == true).count();
    assert!((proportion("flip_rate") - flips as f64 / 30.0).abs() < 1e-6);
    let (mut first, mut longer) = (0.0, 0.0);
    for record in &records {
        for order in record["orders"].as_array().unwrap() {
            let [a, b]: [f64; 2] = serde_json::from_value(order["scores"].clone()).unwrap();
            let ahead = if order["swapped"] == true { b - a } else { a - b };
            first += if ahead == 0.0 { 0.5 } else { f64::from(ahead > 0.0) };
        }
        // "a shadow, 7" has three words, "nothing, 7" has two. The labels always prefer the longer
        // one.
        longer += match record["order"].as_str().unwrap() {
            ">" => 1.0,
            "=" => 0.5,
            _ => 0.0,
        };
    }
    assert!((proportion("first_preferred") - first / 60.0).abs() < 1e-6);
    assert!((proportion("longer_preferred") - longer / 30.0).abs() < 1e-6);
    assert!((proportion("longer_gap") - (longer / 30.0 - 1.0)).abs() < 1e-6);
    let finding = |probe: &str| {
        let mut all = findings.as_array().unwrap().iter();
        all.find(|finding| finding["probe"] == probe).unwrap().clone()
    };
    let words = finding("verbosity")["words"].to_string();
    assert!(words.contains("brevity bias"), "{words}");
    // No two responses are equal, so the probe does not run.
    assert_eq!(finding("self-consistency")["outcome"], "not_run");
    let audit = folder.run(&["audit", "out", "--resamples", "50", "--format", "json"]);
    let audit: Value = serde_json::from_str(&audit.stdout).unwrap();
    for finding_in_report in findings.as_array().unwrap() {
        let probes = audit["probes"].as_array().unwrap();
        assert!(probes.contains(finding_in_report), "{finding_in_report}");
    }
}

#[test]
fn single_order_has_no_position_finding() {
    let folder = Folder::with_cases(6);
    assert_eq!(folder.judge("out", &["--single-order"]).exit_code, 0);
    let text = report(&folder, &["--format", "markdown"]).stdout;
    assert!(text.contains("**position**: unclear: "), "{text}");
    assert!(text.contains("**symmetry**: not run"), "{text}");
    assert!(!text.contains("NaN"), "{text}");
}

#[test]
fn csv_and_parquet_have_one_row_per_verdict() {
    let folder = judged_folder(5);
    let csv = report(&folder, &["--format", "csv"]).stdout;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let head = reader.headers().unwrap().clone();
    let column = |name: &str| head.iter().position(|h| h == name).unwrap();
    let records = folder.records("out");
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), records.len());
    for (row, record) in rows.iter().zip(&records) {
        assert_eq!(&row[column("case")], record["case"].as_str().unwrap());
        assert_eq!(&row[column("order")], record["order"].as_str().unwrap());
        let score: f64 = row[column("final_b")].parse().unwrap();
        assert_eq!(Some(score), record["scores"][1].as_f64());
        let score: f64 = row[column("tone_and_empathy_a")].parse().unwrap();
        assert_eq!(Some(score), record["criteria"]["tone_and_empathy"][0].as_f64());
        assert_eq!(&row[column("label")], ">");
    }
    assert_eq!(report(&folder, &["--out", "t.parquet"]).exit_code, 0);
    let file = std::fs::File::open(folder.path("t.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let mut n = 0;
    for (row, record) in reader.get_row_iter(None).unwrap().zip(&records) {
        let row: BTreeMap<_, _> =
            row.unwrap().get_column_iter().map(|(k, v)| (k.clone(), v.to_string())).collect();
        assert_eq!(row["case"], format!("{:?}", record["case"].as_str().unwrap()));
        assert_eq!(row["flip"], record["flip"].to_string());
        let score: f64 = row["final_a"].parse().unwrap();
        assert_eq!(Some(score), record["scores"][0].as_f64());
        assert_eq!(row["reason"], "null");
        n += 1;
    }
    assert_eq!(n, 5);
}

#[test]
fn file_extension_selects_format() {
    let folder = judged_folder(3);
    for (name, beginning) in [
        ("r.html", "<!DOCTYPE html>"),
        ("r.md", "# Judge report\n"),
        ("r.json", "{\n  \"schema\": 1"),
        ("r.csv", "judge,judge_name,case"),
    ] {
        let output = report(&folder, &["--out", name]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(folder.read(name).starts_with(beginning), "{name}");
        assert!(output.stdout.is_empty() && output.stderr.contains(name), "{}", output.stderr);
    }
    let output = report(&folder, &["--out", "r.pdf"]);
    assert_eq!(output.exit_code, 2);
    assert!(
        output.stderr.contains("unknown report format .pdf") && output.stderr.contains("hint: "),
        "{}",
        output.stderr
    );
}

#[test]
fn audit_findings_are_included() {
    let folder = judged_folder(12);
    let output = folder.run(&["audit", "out", "--out", "audit.json", "--resamples", "50"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let audit: serde_json::Value = serde_json::from_str(&folder.read("audit.json")).unwrap();
    let page = report(&folder, &["--audit", "audit.json"]).stdout;
    assert!(page.contains("An audit of scripted"), "no audit");
    let probes = audit["probes"].as_array().unwrap();
    assert!(!probes.is_empty());
    for probe in probes {
        let heading = format!("<dt>{}</dt>", probe["probe"].as_str().unwrap());
        assert!(page.contains(&heading), "{heading}");
        let words = probe["words"].as_str().unwrap();
        // The page escapes punctuation and adds units to numbers, so compare the first plain words.
        let plain = words.split(|c: char| !c.is_alphabetic() && c != ' ').next().unwrap().trim();
        assert!(page.contains(plain), "{plain}");
    }
    folder.write("audit.json", "[]");
    let output = report(&folder, &["--audit", "audit.json"]);
    assert!(
        output.exit_code == 2 && output.stderr.contains("--audit audit.json: could not read"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("hint: "), "{}", output.stderr);
}

#[test]
fn calibration_of_another_judge_is_rejected() {
    let folder = judged_folder(20);
    let fit =
        ["calibrate", "fit", "out", "--out", "map.json", "--resamples", "50", "--method", "linear"];
    let fitted = folder.run(&fit);
    assert_eq!(fitted.exit_code, 0, "{}", fitted.stderr);
    let page = report(&folder, &["--calibration", "map.json"]).stdout;
    assert!(page.contains("mean calibrated scores (label scale)"), "no calibrated means");
    let other = ["judge", "cases", "--out", "other", "--panel", "scripted:seed=9"];
    assert_eq!(folder.run(&other).exit_code, 0);
    let output = folder.run(&["report", "other", "--calibration", "map.json"]);
    assert!(
        output.exit_code == 2 && output.stderr.contains("not applicable to these records"),
        "{}",
        output.stderr
    );
}

#[test]
fn report_without_labels_has_no_agreement() {
    let folder = Folder::with_cases(4);
    let mut cases: Vec<Value> = (0..4).map(crate::folder::valid_case).collect();
    for case in &mut cases {
        case.as_object_mut().unwrap().remove("labels");
    }
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let text = report(&folder, &["--format", "markdown"]).stdout;
    assert!(text.contains("there are no labels"), "{text}");
    assert!(text.contains("agreement with labels is unknown: there are no labels"), "{text}");
    folder.write("labels.csv", "case,model_a,model_b,rater,preference\nc0,alpha,beta,r1,a\nc0,alpha,beta,r2,b\nc1,alpha,beta,r1,a\nc1,alpha,beta,r2,a\n");
    let page = report(&folder, &["--labels", "labels.csv"]).stdout;
    assert!(page.contains("human ceiling"), "no ceiling");
}
