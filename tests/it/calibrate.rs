//! `acem3 calibrate`: fits maps to labels, rejects maps of another judge, and applies maps to
//! records.

use std::fmt::Write as _;

use serde_json::Value;

use crate::folder::Folder;

/// Creates a run, and labels equal to half the judge's score plus one.
fn labelled_folder() -> Folder {
    let folder = Folder::with_cases(40);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let mut text = "case,model,score\n".to_owned();
    for record in folder.records("out") {
        for side in 0..2 {
            let score = record["expected"][side].as_f64().unwrap();
            let (case, model) = (record["case"].as_str().unwrap(), &record["pair"][side]);
            let _ = writeln!(text, "{case},{},{}", model.as_str().unwrap(), score / 2.0 + 1.0);
        }
    }
    folder.write("labels.csv", &text);
    folder
}

fn fit(folder: &Folder, method: &str) -> Value {
    let args = [
        "calibrate",
        "fit",
        "out",
        "--labels",
        "labels.csv",
        "--out",
        "map.json",
        "--resamples",
        "100",
        "--format",
        "json",
        "--method",
        method,
    ];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn linear_calibration_recovers_the_line() {
    let folder = labelled_folder();
    let calibration = fit(&folder, "linear");
    let line = &calibration["targets"]["final"]["curve"]["linear"];
    assert!((line["slope"].as_f64().unwrap() - 0.5).abs() < 1e-9, "{line}");
    assert!((line["intercept"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{line}");
    let after = &calibration["targets"]["final"]["after"];
    assert!(after["error"].as_f64().unwrap() < 1e-9, "{after}");
    let args = ["calibrate", "apply", "out", "--calibration", "map.json", "--out", "mapped.jsonl"];
    let output = folder.run(&args);
    assert!(
        output.exit_code == 0 && output.stdout.contains("calibrated"),
        "{}{}",
        output.stdout,
        output.stderr
    );
    let records = folder.records("out");
    for (line, record) in folder.read("mapped.jsonl").lines().zip(&records) {
        let mapped: Value = serde_json::from_str(line).unwrap();
        for side in 0..2 {
            let expected = record["expected"][side].as_f64().unwrap() / 2.0 + 1.0;
            let actual = mapped["calibrated"]["final"][side].as_f64().unwrap();
            assert!((actual - expected).abs() < 1e-4, "{actual}, expected {expected}");
        }
        assert_eq!(mapped["key"], record["key"]);
    }
}

#[test]
fn applied_maps_keep_unknown_fields_and_leave_out_a_torn_line() {
    let folder = labelled_folder();
    fit(&folder, "linear");
    let records = folder.unchecked_records("out");
    let start = "{\"reviewer\":[1,\"x\"],";
    let edited = records.replacen('{', start, 1);
    folder.write("edited.jsonl", &edited[..edited.len() - 40]);
    let apply = |out: &str| {
        folder.run(&[
            "calibrate",
            "apply",
            "edited.jsonl",
            "--calibration",
            "map.json",
            "--out",
            out,
        ])
    };
    let output = apply("mapped.jsonl");
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let mapped = folder.read("mapped.jsonl");
    assert_eq!(mapped.lines().count(), records.lines().count() - 1);
    assert!(mapped.starts_with(start), "{mapped}");
    for (out, message) in
        [("out", "expected a file"), ("edited.jsonl", "is an input of this command")]
    {
        let output = apply(out);
        assert_eq!(output.exit_code, 2, "{out}");
        assert!(output.stderr.contains(message), "{}", output.stderr);
    }
}

#[test]
fn curve_improves_scores_of_held_out_images() {
    let folder = labelled_folder();
    let calibration = fit(&folder, "isotonic");
    let error_of = |when: &str| calibration["targets"]["final"][when]["error"].as_f64().unwrap();
    assert!(
        error_of("after") < error_of("before") / 2.0,
        "{} {}",
        error_of("after"),
        error_of("before")
    );
    let bins = &calibration["targets"]["final"]["before"]["reliability"]["bins"];
    let n: u64 = bins.as_array().unwrap().iter().map(|bin| bin["n"].as_u64().unwrap()).sum();
    assert_eq!(n, 80);
}

#[test]
fn calibration_of_another_judge_is_rejected() {
    let folder = labelled_folder();
    fit(&folder, "linear");
    let other = ["judge", "cases", "--out", "other", "--panel", "scripted:seed=9"];
    assert_eq!(folder.run(&other).exit_code, 0);
    let output = folder.run(&["calibrate", "apply", "other", "--calibration", "map.json"]);
    assert_eq!(output.exit_code, 2);
    for part in ["map.json", "but the calibration is of", "hint: "] {
        assert!(output.stderr.contains(part), "{part} in {}", output.stderr);
    }
    folder.write("few.csv", "case,model,score\nc1,alpha,3\n");
    let few = folder.run(&["calibrate", "fit", "out", "--labels", "few.csv"]);
    assert!(few.exit_code == 2 && few.stderr.contains("at least 20"), "{}", few.stderr);
}
