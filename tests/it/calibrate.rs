//! `acem3 calibrate`: fitted on labels, refused for another judge, applied to records.

use std::fmt::Write as _;

use serde_json::Value;

use crate::folder::Folder;

/// Records, and labels that are half of the judge's score and one more.
fn labelled() -> Folder {
    let folder = Folder::of(40);
    assert_eq!(folder.judge("out", &[]).code, 0);
    let mut text = "case,model,score\n".to_owned();
    for record in folder.records("out") {
        for side in 0..2 {
            let score = record["expected"][side].as_f64().unwrap();
            let (case, model) = (record["case"].as_str().unwrap(), &record["pair"][side]);
            let _ = writeln!(
                text,
                "{case},{},{}",
                model.as_str().unwrap(),
                score / 2.0 + 1.0
            );
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
    let said = folder.run(&args);
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn a_line_is_found_again() {
    let folder = labelled();
    let found = fit(&folder, "linear");
    let line = &found["targets"]["final"]["curve"]["linear"];
    assert!(
        (line["slope"].as_f64().unwrap() - 0.5).abs() < 1e-9,
        "{line}"
    );
    assert!(
        (line["intercept"].as_f64().unwrap() - 1.0).abs() < 1e-9,
        "{line}"
    );
    let after = &found["targets"]["final"]["after"];
    assert!(after["error"].as_f64().unwrap() < 1e-9, "{after}");
    let args = [
        "calibrate",
        "apply",
        "out",
        "--calibration",
        "map.json",
        "--out",
        "mapped.jsonl",
    ];
    let said = folder.run(&args);
    assert!(
        said.code == 0 && said.out.contains("calibrated"),
        "{}{}",
        said.out,
        said.err
    );
    let records = folder.records("out");
    for (line, record) in folder.read("mapped.jsonl").lines().zip(&records) {
        let mapped: Value = serde_json::from_str(line).unwrap();
        for side in 0..2 {
            let want = record["expected"][side].as_f64().unwrap() / 2.0 + 1.0;
            let got = mapped["calibrated"]["final"][side].as_f64().unwrap();
            assert!((got - want).abs() < 1e-4, "{got}, expected {want}");
        }
        assert_eq!(mapped["key"], record["key"]);
    }
}

#[test]
fn a_curve_is_better_on_images_it_has_not_seen() {
    let folder = labelled();
    let found = fit(&folder, "isotonic");
    let of = |when: &str| found["targets"]["final"][when]["error"].as_f64().unwrap();
    assert!(
        of("after") < of("before") / 2.0,
        "{} {}",
        of("after"),
        of("before")
    );
    let bins = &found["targets"]["final"]["before"]["reliability"]["bins"];
    let n: u64 = bins
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin["n"].as_u64().unwrap())
        .sum();
    assert_eq!(n, 80);
}

#[test]
fn another_judge_is_refused() {
    let folder = labelled();
    fit(&folder, "linear");
    let other = [
        "judge",
        "cases",
        "--out",
        "other",
        "--panel",
        "scripted:seed=9",
    ];
    assert_eq!(folder.run(&other).code, 0);
    let said = folder.run(&["calibrate", "apply", "other", "--calibration", "map.json"]);
    assert_eq!(said.code, 2);
    for part in ["map.json", "but the calibration is of", "hint: "] {
        assert!(said.err.contains(part), "{part} in {}", said.err);
    }
    folder.write("few.csv", "case,model,score\nc1,alpha,3\n");
    let few = folder.run(&["calibrate", "fit", "out", "--labels", "few.csv"]);
    assert!(
        few.code == 2 && few.err.contains("at least 20"),
        "{}",
        few.err
    );
}
