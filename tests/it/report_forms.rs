//! `acem3 report` in its other forms, and what it takes beside records.

use std::collections::BTreeMap;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::Value;

use crate::folder::{Folder, Said};

fn judged(n: usize) -> Folder {
    let folder = Folder::of(n);
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

fn run(folder: &Folder, more: &[&str]) -> Said {
    folder.run(&[&["report", "out", "--resamples", "50"], more].concat())
}

#[test]
fn json_has_the_figures_of_the_other_commands() {
    let folder = judged(12);
    let told: Value = serde_json::from_str(&run(&folder, &["--format", "json"]).out).unwrap();
    let of = |args: &[&str]| -> Value {
        let said = folder.run(&[args, &["--resamples", "50", "--format", "json"]].concat());
        serde_json::from_str(&said.out).unwrap()
    };
    let judge = &told["judges"][0];
    assert_eq!(judge["ranking"], of(&["rank", "out"]));
    assert_eq!(judge["agreement"], of(&["agree", "out"]));
    let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for record in folder.records("out") {
        for side in 0..2 {
            let model = record["pair"][side].as_str().unwrap().to_owned();
            let score = record["criteria"]["factual_accuracy"][side]
                .as_f64()
                .unwrap();
            sums.entry(model).or_default().push(score);
        }
    }
    for model in judge["models"].as_array().unwrap() {
        let scores = &sums[model["model"].as_str().unwrap()];
        let means = model["means"].as_array().unwrap();
        assert_eq!(means.len(), 14);
        let mean = means
            .iter()
            .find(|m| m["target"] == "factual_accuracy")
            .unwrap();
        let expected = scores.iter().sum::<f64>() / scores.len() as f64;
        assert!((mean["value"].as_f64().unwrap() - expected).abs() < 1e-9);
        let [low, high]: [f64; 2] = serde_json::from_value(mean["interval"].clone()).unwrap();
        assert!(low <= expected && expected <= high);
    }
    let counts = &judge["counts"];
    assert_eq!(
        (&counts["records"], &counts["images"]),
        (&12.into(), &6.into())
    );
}

/// Flips, the place and length, counted by hand from the records; and the same figures as an audit's.
#[test]
fn leanings_are_those_of_the_records() {
    let folder = judged(30);
    let told: Value = serde_json::from_str(&run(&folder, &["--format", "json"]).out).unwrap();
    let leanings = &told["judges"][0]["leanings"];
    let measure = |key: &str| {
        let all = leanings.as_array().unwrap().iter();
        let mut all = all.flat_map(|finding| finding["measures"].as_array().unwrap());
        all.find(|measure| measure["key"] == key).unwrap()["reading"].clone()
    };
    let share = |key: &str| measure(key)["value"].as_f64().unwrap();
    let records = folder.records("out");
    let flips = records.iter().filter(|r| r["flip"] == true).count();
    assert!((share("flip_rate") - flips as f64 / 30.0).abs() < 1e-6);
    let (mut first, mut longer) = (0.0, 0.0);
    for record in &records {
        for order in record["orders"].as_array().unwrap() {
            let [a, b]: [f64; 2] = serde_json::from_value(order["scores"].clone()).unwrap();
            let ahead = if order["swapped"] == true {
                b - a
            } else {
                a - b
            };
            first += if ahead == 0.0 {
                0.5
            } else {
                f64::from(ahead > 0.0)
            };
        }
        // "a shadow, 7" has three words, "nothing, 7" two; the labels always call the longer one better.
        longer += match record["order"].as_str().unwrap() {
            ">" => 1.0,
            "=" => 0.5,
            _ => 0.0,
        };
    }
    assert!((share("first_preferred") - first / 60.0).abs() < 1e-6);
    assert!((share("longer_preferred") - longer / 30.0).abs() < 1e-6);
    assert!((share("longer_gap") - (longer / 30.0 - 1.0)).abs() < 1e-6);
    let finding = |probe: &str| {
        let mut all = leanings.as_array().unwrap().iter();
        all.find(|finding| finding["probe"] == probe)
            .unwrap()
            .clone()
    };
    let words = finding("verbosity")["words"].to_string();
    assert!(words.contains("brevity bias"), "{words}");
    // No two answers are equal: that is unknown, and no number.
    assert_eq!(finding("self-consistency")["outcome"], "not_run");
    let audit = folder.run(&["audit", "out", "--resamples", "50", "--format", "json"]);
    let audit: Value = serde_json::from_str(&audit.out).unwrap();
    for own in leanings.as_array().unwrap() {
        let probes = audit["probes"].as_array().unwrap();
        assert!(probes.contains(own), "{own}");
    }
}

#[test]
fn one_order_alone_tells_nothing_of_places() {
    let folder = Folder::of(6);
    assert_eq!(folder.judge("out", &["--single-order"]).code, 0);
    let text = run(&folder, &["--format", "markdown"]).out;
    assert!(text.contains("**position**: unclear: "), "{text}");
    assert!(text.contains("**symmetry**: not run"), "{text}");
    assert!(!text.contains("NaN"), "{text}");
}

#[test]
fn tables_have_a_row_for_every_verdict() {
    let folder = judged(5);
    let csv = run(&folder, &["--format", "csv"]).out;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let head = reader.headers().unwrap().clone();
    let at = |name: &str| head.iter().position(|h| h == name).unwrap();
    let records = folder.records("out");
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), records.len());
    for (row, record) in rows.iter().zip(&records) {
        assert_eq!(&row[at("case")], record["case"].as_str().unwrap());
        assert_eq!(&row[at("order")], record["order"].as_str().unwrap());
        let score: f64 = row[at("final_b")].parse().unwrap();
        assert_eq!(Some(score), record["scores"][1].as_f64());
        let score: f64 = row[at("tone_and_empathy_a")].parse().unwrap();
        assert_eq!(
            Some(score),
            record["criteria"]["tone_and_empathy"][0].as_f64()
        );
        assert_eq!(&row[at("label")], ">");
    }
    assert_eq!(run(&folder, &["--out", "t.parquet"]).code, 0);
    let file = std::fs::File::open(folder.path("t.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let mut n = 0;
    for (row, record) in reader.get_row_iter(None).unwrap().zip(&records) {
        let row: BTreeMap<_, _> = row
            .unwrap()
            .get_column_iter()
            .map(|(k, v)| (k.clone(), v.to_string()))
            .collect();
        assert_eq!(
            row["case"],
            format!("{:?}", record["case"].as_str().unwrap())
        );
        assert_eq!(row["flip"], record["flip"].to_string());
        let score: f64 = row["final_a"].parse().unwrap();
        assert_eq!(Some(score), record["scores"][0].as_f64());
        assert_eq!(row["reason"], "null");
        n += 1;
    }
    assert_eq!(n, 5);
}

#[test]
fn forms_are_told_by_the_ending_of_the_file() {
    let folder = judged(3);
    for (name, beginning) in [
        ("r.html", "<!DOCTYPE html>"),
        ("r.md", "# Judge report\n"),
        ("r.json", "{\n  \"schema\": 1"),
        ("r.csv", "judge,judge_name,case"),
    ] {
        let said = run(&folder, &["--out", name]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(folder.read(name).starts_with(beginning), "{name}");
        assert!(
            said.out.is_empty() && said.err.contains(name),
            "{}",
            said.err
        );
    }
    let said = run(&folder, &["--out", "r.pdf"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("unknown report format .pdf") && said.err.contains("hint: "),
        "{}",
        said.err
    );
}

#[test]
fn an_audit_s_findings_are_told_in_its_words() {
    let folder = judged(12);
    let said = folder.run(&["audit", "out", "--out", "audit.json", "--resamples", "50"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let audit: serde_json::Value = serde_json::from_str(&folder.read("audit.json")).unwrap();
    let page = run(&folder, &["--audit", "audit.json"]).out;
    assert!(page.contains("An audit of scripted"), "no audit");
    let probes = audit["probes"].as_array().unwrap();
    assert!(!probes.is_empty());
    for probe in probes {
        let told = format!("<dt>{}</dt>", probe["probe"].as_str().unwrap());
        assert!(page.contains(&told), "{told}");
        let words = probe["words"].as_str().unwrap();
        // Signs are written otherwise on a page, and numbers keep their units.
        let plain = words
            .split(|c: char| !c.is_alphabetic() && c != ' ')
            .next()
            .unwrap()
            .trim();
        assert!(page.contains(plain), "{plain}");
    }
    folder.write("audit.json", "[]");
    let said = run(&folder, &["--audit", "audit.json"]);
    assert!(
        said.code == 2 && said.err.contains("--audit audit.json: could not read"),
        "{}",
        said.err
    );
    assert!(said.err.contains("hint: "), "{}", said.err);
}

#[test]
fn a_calibration_belongs_to_its_judge() {
    let folder = judged(20);
    let fit = [
        "calibrate",
        "fit",
        "out",
        "--out",
        "map.json",
        "--resamples",
        "50",
        "--method",
        "linear",
    ];
    let fitted = folder.run(&fit);
    assert_eq!(fitted.code, 0, "{}", fitted.err);
    let page = run(&folder, &["--calibration", "map.json"]).out;
    assert!(
        page.contains("mean calibrated scores (label scale)"),
        "no calibrated means"
    );
    let other = [
        "judge",
        "cases",
        "--out",
        "other",
        "--panel",
        "scripted:seed=9",
    ];
    assert_eq!(folder.run(&other).code, 0);
    let said = folder.run(&["report", "other", "--calibration", "map.json"]);
    assert!(
        said.code == 2 && said.err.contains("not applicable to these records"),
        "{}",
        said.err
    );
}

#[test]
fn without_labels_agreement_is_unknown_and_no_number() {
    let folder = Folder::of(4);
    let mut cases: Vec<Value> = (0..4).map(crate::folder::case).collect();
    for case in &mut cases {
        case.as_object_mut().unwrap().remove("labels");
    }
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).code, 0);
    let text = run(&folder, &["--format", "markdown"]).out;
    assert!(text.contains("there are no labels"), "{text}");
    assert!(
        text.contains("agreement with labels is unknown: there are no labels"),
        "{text}"
    );
    folder.write("labels.csv", "case,model_a,model_b,rater,preference\nc0,alpha,beta,r1,a\nc0,alpha,beta,r2,b\nc1,alpha,beta,r1,a\nc1,alpha,beta,r2,a\n");
    let page = run(&folder, &["--labels", "labels.csv"]).out;
    assert!(page.contains("human ceiling"), "no ceiling");
}
