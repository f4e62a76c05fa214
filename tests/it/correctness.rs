//! Reports, thresholds and calibration of verdicts on the correctness of single responses.

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};
use crate::forms::folder_with_references;

/// Judges `n` cases with references; every second response of `alpha` equals its reference.
fn graded_folder(n: usize) -> Folder {
    let folder = folder_with_references(n);
    assert_eq!(folder.judge("out", &["--form", "correctness"]).exit_code, 0);
    folder
}

/// Runs a command that succeeds and returns what it prints.
fn stdout(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(args);
    assert_eq!(output.exit_code, 0, "{args:?}: {}", output.stderr);
    output.stdout
}

/// Returns the report in a format.
fn report(folder: &Folder, format: &str, more: &[&str]) -> String {
    let args = ["report", "out", "--resamples", "50", "--format", format];
    stdout(folder, &[&args[..], more].concat())
}

/// Returns the data that the script of a page reads at start.
fn page_index(page: &str) -> Value {
    let from = page.split("id=\"index\">").nth(1).unwrap();
    serde_json::from_str(from.split("</script>").next().unwrap()).unwrap()
}

fn probability(record: &Value) -> f64 {
    record["expected"][0].as_f64().unwrap()
}

/// Labels that call a response correct if the judge does, except every fifth response.
fn labels_of(records: &[Value]) -> (String, Vec<bool>) {
    let labels = records.iter().enumerate().map(|(i, r)| (probability(r) > 0.5) != (i % 5 == 0));
    let labels: Vec<bool> = labels.collect();
    let rows = records.iter().zip(&labels).map(|(record, label)| {
        let (case, model) =
            (record["case"].as_str().unwrap(), record["models"][0].as_str().unwrap());
        format!("{case},{model},dr-a,{}\n", u8::from(*label))
    });
    (format!("case,model,rater,score\n{}", rows.collect::<String>()), labels)
}

#[test]
fn report_has_accuracy_and_every_response() {
    let folder = graded_folder(12);
    let records = folder.records("out");
    let json: Value = serde_json::from_str(&report(&folder, "json", &[])).unwrap();
    assert_eq!((&json["form"], json["schema"].as_u64()), (&json!("correctness"), Some(1)));
    let judge = &json["judges"][0];
    assert_eq!(judge["counts"]["judged"], 24);
    let of_alpha = records.iter().filter(|record| record["models"] == json!(["alpha"]));
    let correct = of_alpha.filter(|record| probability(record) > 0.5).count();
    let models = judge["accuracy"]["models"].as_array().unwrap();
    let alpha = models.iter().find(|model| model["model"] == "alpha").unwrap();
    let accuracy = alpha["accuracy"]["value"].as_f64().unwrap();
    assert!((accuracy - correct as f64 / 12.0).abs() < 1e-9);
    let counts = judge["histograms"][0]["counts"].as_array().unwrap();
    assert_eq!(counts.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 12);
    let markdown = report(&folder, "markdown", &[]);
    for heading in
        ["## Summary", "## Accuracy", "## Probabilities", "## Subgroups", "## Responses to review"]
    {
        assert!(markdown.contains(heading), "{heading}: {markdown}");
    }
    assert!(markdown.contains(&format!("{:.1} %", 100.0 * accuracy)), "{markdown}");
    let page = report(&folder, "html", &["--thumbnails", "small"]);
    assert!(page.contains("href=\"#cases\">Browse 24 responses</a>"));
    let index = page_index(&page);
    assert_eq!(
        (&index["form"], index["entries"].as_array().unwrap().len()),
        (&json!("correctness"), 24)
    );
    for (entry, record) in index["entries"].as_array().unwrap().iter().zip(&records) {
        for name in ["case", "models", "question", "reference"] {
            assert_eq!(entry[name], record[name], "{name}");
        }
        assert_eq!(entry["answers"], record["responses"]);
        assert_eq!(entry["verdicts"][0]["expected"], record["expected"]);
        let is_exact = entry["answers"][0] == entry["reference"];
        assert_eq!(entry["exact"], is_exact);
        assert!(entry["picture"].is_u64(), "a thumbnail");
    }
    // The texts that the script shows are in the page.
    let analysis = records[0]["orders"][0]["conclusion"]["analyses"][0].as_str().unwrap();
    assert!(page.contains(analysis), "{analysis}");
}

#[test]
fn report_files_have_one_row_per_response_and_are_replaced() {
    let folder = graded_folder(6);
    for (format, name) in [
        ("html", "r.html"),
        ("md", "r.md"),
        ("json", "r.json"),
        ("csv", "r.csv"),
        ("parquet", "r.parquet"),
    ] {
        for _ in 0..2 {
            let args = ["report", "out", "--resamples", "20", "--out", name];
            assert_eq!(folder.run(&args).exit_code, 0, "{format} is replaced");
        }
    }
    let table = folder.read("r.csv");
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let records = folder.records("out");
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), records.len());
    for (row, record) in rows.iter().zip(&records) {
        assert_eq!(row[column("model")], *record["models"][0].as_str().unwrap());
        let value = row[column("probability")].parse::<f64>().unwrap();
        assert!((value - probability(record)).abs() < 1e-12);
        let verdict = if probability(record) > 0.5 { "correct" } else { "wrong" };
        assert_eq!(&row[column("verdict")], verdict);
    }
}

#[test]
fn unscored_responses_are_listed_with_their_reason() {
    let folder = folder_with_references(6);
    let mut cases: Vec<Value> = (0..6)
        .map(|i| {
            let mut case = valid_case(i);
            case["reference"] = json!("yes");
            case
        })
        .collect();
    cases[1].as_object_mut().unwrap().remove("reference");
    folder.write_cases(&cases);
    folder.judge("out", &["--form", "correctness"]);
    let markdown = report(&folder, "markdown", &[]);
    assert!(markdown.contains("unscored: 2 responses"), "{markdown}");
    assert!(markdown.contains("83 %"), "the coverage: {markdown}");
    let index = page_index(&report(&folder, "html", &["--thumbnails", "none"]));
    let unscored = index["entries"].as_array().unwrap().iter().filter(|entry| {
        entry["verdicts"][0]["message"].as_str().is_some_and(|text| text.contains("reference"))
    });
    assert_eq!(unscored.count(), 2);
}

#[test]
fn report_with_labels_has_agreement_and_reliability() {
    let folder = graded_folder(20);
    let records = folder.records("out");
    let (file, labels) = labels_of(&records);
    folder.write("labels.csv", &file);
    let args = ["--labels", "labels.csv"];
    let json: Value = serde_json::from_str(&report(&folder, "json", &args)).unwrap();
    let judge = &json["judges"][0];
    let grader = &judge["agreement"]["graders"][0];
    // Every fifth label differs.
    assert!((grader["agreement"]["value"].as_f64().unwrap() - 0.8).abs() < 1e-12);
    let squares = records
        .iter()
        .zip(&labels)
        .map(|(record, label)| (probability(record) - f64::from(u8::from(*label))).powi(2));
    let brier = squares.sum::<f64>() / records.len() as f64;
    let found = judge["reliability"]["brier"]["value"].as_f64().unwrap();
    assert!((found - brier).abs() < 1e-9, "{found} {brier}");
    let agree = stdout(&folder, &["agree", "out", "--labels", "labels.csv", "--resamples", "50"]);
    assert!(agree.contains("80.0 %"), "{agree}");
    let markdown = report(&folder, "markdown", &args);
    assert!(markdown.contains("reliability of the probabilities"), "{markdown}");
    assert!(markdown.contains("judge and labels differ: 8 responses"), "{markdown}");
    let index = page_index(&report(&folder, "html", &args));
    for (entry, label) in index["entries"].as_array().unwrap().iter().zip(&labels) {
        assert_eq!(entry["labels"], json!([f64::from(u8::from(*label))]));
    }
}

#[test]
fn report_shows_changed_verdicts() {
    let folder = graded_folder(12);
    let earlier = ["judge", "cases", "--out", "earlier", "--panel", "scripted:seed=2"];
    stdout(&folder, &[&earlier[..], &["--form", "correctness"]].concat());
    let args = ["--baseline", "earlier"];
    let json: Value = serde_json::from_str(&report(&folder, "json", &args)).unwrap();
    let (new, old) = (folder.records("out"), folder.records("earlier"));
    let grades = |records: &[Value]| -> Vec<bool> {
        records.iter().map(|record| probability(record) > 0.5).collect()
    };
    let pairs = grades(&new).into_iter().zip(grades(&old));
    let turned = pairs.filter(|(a, b)| a != b).count();
    let changes = json["baseline"]["changes"].as_array().unwrap();
    assert!(turned > 0);
    assert_eq!(changes.iter().filter(|change| change["kind"] == "verdict").count(), turned);
    assert_eq!(json["baseline"]["common"], 24);
    let markdown = report(&folder, "markdown", &args);
    assert!(markdown.contains(&format!("| another verdict | {turned} |")), "{markdown}");
    assert!(report(&folder, "html", &args).contains("another verdict; before: "));
}

#[test]
fn agreement_bounds_apply_to_correctness() {
    let folder = graded_folder(20);
    let (file, labels) = labels_of(&folder.records("out"));
    folder.write("labels.csv", &file);
    let agree = |more: &[&str]| {
        let args = ["agree", "out", "--labels", "labels.csv", "--resamples", "20"];
        folder.run(&[&args[..], more].concat())
    };
    let passed =
        agree(&["--min", "agreement=80,kappa=0.5", "--max", "accuracy=80", "--junit", "a.xml"]);
    assert_eq!(passed.exit_code, 0, "{}", passed.stderr);
    assert!(folder.read("a.xml").contains("tests=\"3\" failures=\"0\" errors=\"0\""));
    let failed = agree(&["--min", "sensitivity=99", "--junit", "a.xml", "--format", "json"]);
    assert_eq!(failed.exit_code, 1, "{}", failed.stderr);
    assert!(failed.stderr.contains("--min sensitivity=99 failed: "), "{}", failed.stderr);
    assert!(folder.read("a.xml").contains("tests=\"1\" failures=\"1\""));
    let json: Value = serde_json::from_str(&failed.stdout).unwrap();
    let records = folder.records("out");
    let called = records.iter().zip(&labels).filter(|(_, label)| **label);
    let called: Vec<bool> = called.map(|(record, _)| probability(record) > 0.5).collect();
    let sensitivity =
        called.iter().filter(|is_found| **is_found).count() as f64 / called.len() as f64;
    let value = json["limits"][0]["value"].as_f64().unwrap();
    assert!((value - 100.0 * sensitivity).abs() < 1e-9, "{value} {sensitivity}");
    let unknown = agree(&["--min", "icc_3_k=0.5"]);
    assert_eq!(unknown.exit_code, 2, "{}", unknown.stdout);
    assert!(unknown.stderr.contains("a statistic of pairs"), "{}", unknown.stderr);
    folder.judge("pairs", &[]);
    let pairs = folder.run(&["agree", "pairs", "--min", "sensitivity=50", "--resamples", "20"]);
    assert_eq!(pairs.exit_code, 2, "{}", pairs.stdout);
    assert!(pairs.stderr.contains("statistics of the form correctness"), "{}", pairs.stderr);
}

#[test]
fn calibration_maps_probabilities_to_labels() {
    let folder = graded_folder(30);
    let (file, _) = labels_of(&folder.records("out"));
    folder.write("labels.csv", &file);
    let args = ["calibrate", "fit", "out", "--labels", "labels.csv", "--out", "map.json"];
    let more = ["--resamples", "20", "--format", "json"];
    let json: Value = serde_json::from_str(&stdout(&folder, &[&args[..], &more].concat())).unwrap();
    assert_eq!((&json["form"], json["n"].as_u64()), (&json!("correctness"), Some(60)));
    let before = json["before"]["brier"]["value"].as_f64().unwrap();
    let reported: Value =
        serde_json::from_str(&report(&folder, "json", &["--labels", "labels.csv"])).unwrap();
    let brier = reported["judges"][0]["reliability"]["brier"]["value"].as_f64().unwrap();
    assert!((before - brier).abs() < 1e-12);
    assert!(json["after"]["brier"]["value"].as_f64().unwrap() < 0.25);
    let text = stdout(&folder, &args);
    assert!(text.contains("Brier score") && text.contains("reliability before"), "{text}");
    let apply = folder.run(&["calibrate", "apply", "out", "--calibration", "map.json"]);
    assert_eq!(apply.exit_code, 2, "{}", apply.stdout);
    assert!(apply.stderr.contains("cannot be calibrated with a file yet"), "{}", apply.stderr);
}

#[test]
fn audit_and_flags_on_scores_say_what_to_use_instead() {
    let folder = graded_folder(3);
    let audit = folder.run(&["audit", "out"]);
    assert_eq!(audit.exit_code, 2);
    assert!(audit.stderr.contains("whether single responses are correct"), "{}", audit.stderr);
    assert!(audit.stderr.contains("hint: `acem3 agree`"), "{}", audit.stderr);
    for flag in [["--target", "expression"], ["--audit", "a.json"], ["--calibration", "m.json"]] {
        let args = ["report", "out", "--out", "r.html"];
        let output = folder.run(&[&args[..], &flag].concat());
        assert_eq!(output.exit_code, 2);
        assert!(output.stderr.contains("not available for verdicts of the form"), "{flag:?}");
    }
    let grouped = folder.run(&["report", "out", "--group-by", "nothing", "--out", "r.html"]);
    assert!(grouped.stderr.contains("no case has this field"), "{}", grouped.stderr);
}

#[test]
fn report_compares_several_judges() {
    let folder = graded_folder(12);
    let other = ["judge", "cases", "--out", "other", "--panel", "scripted:seed=2"];
    stdout(&folder, &[&other[..], &["--form", "correctness"]].concat());
    let (a, b) = (folder.records("out"), folder.records("other"));
    let pairs = a.iter().zip(&b).filter(|(a, b)| (probability(a) > 0.5) != (probability(b) > 0.5));
    let differing = pairs.count();
    let markdown = report(&folder, "markdown", &["other"]);
    assert!(markdown.contains("### A: scripted") && markdown.contains("### B: scripted"));
    assert!(markdown.contains(&format!("(seed 2): {differing} responses")), "{markdown}");
    let index = page_index(&report(&folder, "html", &["other"]));
    let entries = index["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 24);
    for (i, entry) in entries.iter().enumerate() {
        assert_eq!(entry["verdicts"][0]["expected"], a[i]["expected"]);
        assert_eq!(entry["verdicts"][1]["expected"], b[i]["expected"]);
    }
    folder.judge("copy", &["--form", "correctness"]);
    let same = folder.run(&["report", "out", "copy", "--out", "r.html"]);
    assert!(same.stderr.contains("verdicts of the same judge"), "{}", same.stderr);
}

/// Published tables count an empty answer as wrong.
#[test]
fn empty_answer_is_wrong_for_text_metrics_and_lowers_the_coverage_of_the_judge() {
    let folder = Folder::with_cases(8);
    let cases: Vec<Value> = (0..8)
        .map(|i| {
            let mut case = valid_case(i);
            case["reference"] = json!(format!("a shadow, {i}"));
            case["responses"][1]["text"] = json!("");
            if i < 2 {
                case["responses"][0]["text"] = json!("");
            }
            case.as_object_mut().unwrap().remove("labels");
            case
        })
        .collect();
    folder.write_cases(&cases);
    folder.judge("out", &["--form", "correctness", "--max-unscored", "100"]);
    let table: Value = serde_json::from_str(&stdout(
        &folder,
        &["rank", "out", "--resamples", "50", "--format", "json"],
    ))
    .unwrap();
    // The first image has no verdict. Its two cases are unreadable and do not name it.
    assert_eq!(table["images"], 3);
    let models = table["models"].as_array().unwrap();
    let of = |name: &str| models.iter().find(|model| model["model"] == name).unwrap();
    let (alpha, beta) = (of("alpha"), of("beta"));
    assert_eq!((&alpha["n"], &alpha["coverage"]), (&json!(6), &json!(0.75)));
    for metric in ["exact_match", "token_recall"] {
        assert_eq!((&alpha[metric]["value"], &alpha[metric]["n"]), (&json!(0.75), &json!(8)));
        assert_eq!((&beta[metric]["value"], &beta[metric]["n"]), (&json!(0.0), &json!(8)));
    }
    let text = stdout(&folder, &["rank", "out", "--resamples", "50"]);
    assert!(text.contains("3 images"), "{text}");
    assert!(text.contains("an empty or missing one as wrong"), "{text}");
}

#[test]
fn labels_that_match_nothing_are_shown_beside_a_record() {
    let folder = graded_folder(2);
    folder.write("labels.csv", "case,model,score\nx9,alpha,1\nx8,alpha,0\n");
    let output = folder.run(&["agree", "out", "--labels", "labels.csv"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    let expected = "none of the 2 labels matches these records (label: line 2: case x9, model alpha; \
                    record: case c0 of alpha)";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}
