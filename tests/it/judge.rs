//! `acem3 judge` with the scripted judge: records, manifest, summary, messages and exit codes.

use std::io::Read;
use std::process::Stdio;

use serde_json::json;

use crate::folder::{Folder, valid_case};

#[test]
fn run_writes_records_manifest_and_summary() {
    let folder = Folder::with_cases(5);
    let output = folder.judge("out", &[]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(
        output.stdout.starts_with("5 pairs of 5 cases judged by scripted"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("alpha") && output.stdout.contains("100 %"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("records   out/records.jsonl"), "{}", output.stdout);
    assert!(output.stderr.contains("5 new verdicts in"), "{}", output.stderr);

    let records = folder.records("out");
    assert_eq!(records.len(), 5);
    let first = &records[0];
    assert_eq!(first["schema"], 1);
    assert_eq!(first["case"], "c0");
    assert_eq!(first["pair"], json!(["alpha", "beta"]));
    assert_eq!(first["status"], "judged");
    assert_eq!(first["image"]["name"], "images/0.png");
    assert_eq!(first["image"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(first["labels"], json!({"final": [4.0, 1.5]}));
    assert_eq!(first["meta"], json!({"modality": "ct"}));
    assert_eq!(first["extra"], json!({"note": 0}));
    assert_eq!(first["criteria"].as_object().unwrap().len(), 10);
    assert_eq!(first["orders"].as_array().unwrap().len(), 2);
    let order = &first["orders"][1];
    assert_eq!(order["swapped"], true);
    let clarity = &order["aspects"]["expression"]["clarity_of_response"];
    assert_eq!(clarity["probabilities"][1].as_array().unwrap().len(), 6);
    assert!(clarity["analyses"][0].as_str().unwrap().starts_with("clarity_of_response is"));
    assert_ne!(records[0]["key"], records[1]["key"]);

    let manifest = folder.manifest("out");
    assert_eq!(manifest["status"], "done");
    let cases = folder.path("cases");
    let source = json!({"path": "cases", "kind": "cases", "absolute": cases, "images": cases});
    let mut found = manifest["source"].clone();
    let digest = found.as_object_mut().unwrap().remove("digest").unwrap();
    assert_eq!(digest.as_str().map(str::len), Some(64));
    assert_eq!(found, source);
    assert_eq!(manifest["counts"]["judged"], 5);
    assert_eq!(manifest["provenance"]["orders"], "both");
    assert!(manifest["started"].as_str().unwrap().ends_with('Z'));
    assert!(manifest["finished"].is_string());
}

#[test]
fn summary_matches_records() {
    let folder = Folder::with_cases(8);
    let output = folder.judge("out", &["--format", "json", "-q"]);
    assert_eq!((output.exit_code, output.stderr.as_str()), (0, ""));
    let summary: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let records = folder.records("out");
    let model = |name: &str| {
        let models = summary["models"].as_array().unwrap();
        models.iter().find(|m| m["model"] == name).unwrap().clone()
    };
    for (r, name) in ["alpha", "beta"].iter().enumerate() {
        let scores = records.iter().map(|record| record["scores"][r].as_f64().unwrap());
        let mean = scores.sum::<f64>() / 8.0;
        assert!((model(name)["score"].as_f64().unwrap() - mean).abs() < 1e-4);
        let better = [">", "<"][r];
        let wins = records.iter().filter(|record| record["order"] == better).count();
        assert_eq!(model(name)["wins"], wins);
    }
    let flips = records.iter().filter(|record| record["flip"] == true).count();
    assert_eq!(summary["flips"], json!({"n": 8, "flipped": flips}));
}

#[test]
fn single_order_and_scores_only_are_recorded() {
    let folder = Folder::with_cases(2);
    let output = folder.judge("out", &["--single-order", "--scores-only"]);
    assert!(output.stdout.contains("not measured"), "{}", output.stdout);
    let record = &folder.records("out")[0];
    assert_eq!(record["flip"], json!(null));
    assert_eq!(record["orders"].as_array().unwrap().len(), 1);
    assert!(record["orders"][0]["conclusion"].get("analyses").is_none());
}

#[test]
fn records_do_not_depend_on_batch_size() {
    let folder = Folder::with_cases(13);
    for (out, size) in [("a", "1"), ("b", "4"), ("c", "64")] {
        assert_eq!(folder.judge(out, &["--batch-size", size]).exit_code, 0);
    }
    assert_eq!(folder.read("a/records.jsonl"), folder.read("b/records.jsonl"));
    assert_eq!(folder.read("a/records.jsonl"), folder.read("c/records.jsonl"));
}

#[test]
fn invalid_cases_become_unscored_records() {
    let folder = Folder::with_cases(6);
    let mut lines: Vec<String> = (0..6).map(|i| valid_case(i).to_string()).collect();
    lines[1] = "{broken".to_owned();
    lines[2] = lines[2].replace("images/1.png", "images/none.png");
    lines[3] = lines[3].replace("images/1.png", "images/text.png");
    lines[4] = lines[4].replace("nothing, 4", "");
    lines[5] = lines[5].replace("nothing, 5", "[[too long]]");
    folder.write("cases/cases.jsonl", &(lines.join("\n") + "\n"));
    folder.write("cases/images/text.png", "this is no image");
    let output = folder.judge("out", &["-v", "--max-unscored", "90"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("5 of 6 (83.3 %)"), "{}", output.stdout);
    assert!(
        output.stdout.contains("parse 2") && output.stdout.contains("image 2"),
        "{}",
        output.stdout
    );
    assert!(output.stderr.contains("images/none.png: no such file"), "{}", output.stderr);
    let records = folder.records("out");
    let reasons: Vec<_> = records.iter().map(|record| record["reason"].clone()).collect();
    let expected = json!([null, "parse", "image", "image", "parse", "truncated"]);
    assert_eq!(json!(reasons), expected);
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record["line"], i + 1);
        assert!(i == 0 || !record["message"].as_str().unwrap().is_empty());
    }
    // A second run judges the unscored pairs again and reuses the verdicts.
    folder.write_cases(&(0..6).map(valid_case).collect::<Vec<_>>());
    let output = folder.judge("out", &[]);
    assert!(output.stdout.contains("unscored  none"), "{}", output.stdout);
    assert!(output.stdout.contains("reused    1 of 6"), "{}", output.stdout);
    folder.judge("new", &[]);
    assert_eq!(folder.read("out/records.jsonl"), folder.read("new/records.jsonl"));
}

#[test]
fn too_many_unscored_records_exit_3() {
    let folder = Folder::with_cases(4);
    let mut cases: Vec<_> = (0..4).map(valid_case).collect();
    cases[0]["image"] = json!("images/none.png");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &["--max-unscored", "25"]).exit_code, 0);
    let output = folder.judge("out", &["--max-unscored", "24.9%"]);
    assert_eq!(output.exit_code, 3);
    assert!(output.stderr.contains("25.0 % of the records are unscored"), "{}", output.stderr);
}

#[test]
fn unreadable_input_exits_2_with_hint() {
    let folder = Folder::empty();
    folder.write("cases/cases.jsonl", "{broken\n{\n");
    let output = folder.judge("out", &[]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.contains("none of 2 records could be judged"), "{}", output.stderr);
    assert!(output.stderr.contains("`acem3 data check cases`"), "{}", output.stderr);
    folder.write("cases/cases.jsonl", "");
    let output = folder.judge("out2", &[]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    let output = folder.run(&["judge", "nowhere", "--out", "out3", "--panel", "scripted:"]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.starts_with("error: nowhere does not exist\nhint:"), "{}", output.stderr);
    assert!(!folder.path("out3").exists());
}

#[test]
fn baseline_selects_pairs_with_one_model() {
    let folder = Folder::with_cases(2);
    let mut cases: Vec<_> = (0..2).map(valid_case).collect();
    for case in &mut cases {
        let responses = case["responses"].as_array_mut().unwrap();
        responses.push(json!({"model": "gamma", "text": "a mass"}));
        case["labels"] = json!({"final": [1, 2, 3]});
    }
    folder.write_cases(&cases);
    folder.judge("all", &[]);
    let pairs: Vec<_> = folder.records("all").iter().map(|r| r["pair"].clone()).collect();
    let three = [["alpha", "beta"], ["alpha", "gamma"], ["beta", "gamma"]];
    assert_eq!(json!(pairs), json!([three, three].concat()));
    assert_eq!(folder.records("all")[1]["labels"], json!({"final": [1.0, 3.0]}));
    folder.judge("base", &["--baseline", "alpha"]);
    let pairs: Vec<_> = folder.records("base").iter().map(|r| r["pair"].clone()).collect();
    let two = [["beta", "alpha"], ["gamma", "alpha"]];
    assert_eq!(json!(pairs), json!([two, two].concat()));
    let output = folder.judge("no", &["--baseline", "delta"]);
    assert_eq!(output.exit_code, 2);
}

#[test]
fn limit_judges_only_the_first_cases() {
    let folder = Folder::with_cases(6);
    let output = folder.judge("out", &["--limit", "4"]);
    assert!(output.stdout.starts_with("4 pairs of 4 cases"), "{}", output.stdout);
    let output = folder.judge("out", &[]);
    assert!(output.stdout.contains("reused    4 of 6"), "{}", output.stdout);
}

#[test]
fn case_without_image_is_judged() {
    let folder = Folder::with_cases(2);
    let mut cases: Vec<_> = (0..2).map(valid_case).collect();
    cases[1].as_object_mut().unwrap().remove("image");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let record = &folder.records("out")[1];
    assert_eq!((&record["status"], &record["image"]), (&json!("judged"), &json!(null)));
}

#[test]
fn environment_variables_set_flags() {
    let folder = Folder::with_cases(2);
    let mut command = folder.command(&["judge", "cases"]);
    command.env("ACEM3_OUT", "env").env("ACEM3_PANEL", "scripted:").env("ACEM3_SINGLE_ORDER", "1");
    assert!(command.output().unwrap().status.success());
    assert_eq!(folder.manifest("env")["provenance"]["orders"], "single");
}

#[test]
fn invalid_usage_exits_2() {
    let folder = Folder::with_cases(2);
    for more in [["--batch-size", "0"], ["--device", "gpu"], ["--max-unscored", "x"]] {
        assert_eq!(folder.judge("out", &more).exit_code, 2, "{more:?}");
    }
    let output = folder.run(&["judge", "cases", "--out", "out", "--panel", "scripted:loud"]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("unknown option `loud`"), "{}", output.stderr);
}

#[test]
fn closed_stdout_is_success() {
    let folder = Folder::with_cases(2);
    let args = ["judge", "cases", "--out", "out", "--panel", "scripted:slow=200"];
    let mut child = folder.command(&args);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{err}");
    assert!(!err.contains("error"), "{err}");
}

#[test]
fn help_has_examples() {
    let folder = Folder::empty();
    let output = folder.run(&["judge", "--help"]);
    assert_eq!(output.exit_code, 0);
    for word in ["Examples:", "ACEM3_PANEL", "--max-unscored", "resume", "records.jsonl"] {
        assert!(output.stdout.contains(word), "{word} is missing");
    }
    assert!(!output.stdout.contains("scripted"));
    assert_eq!(folder.run(&["--version"]).exit_code, 0);
}

#[test]
fn zero_limit_is_a_usage_error() {
    let output = Folder::with_cases(2).judge("out", &["--limit", "0"]);
    assert_eq!(output.exit_code, 2);
    let expected = "'--limit <N>': expected a whole number of at least 1";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn panel_errors_state_what_is_expected() {
    let folder = Folder::with_cases(1);
    folder.write("notes.md", "not a panel");
    for (panel, expected) in [
        ("notes.md", "notes.md: is a file, expected .toml, .gguf or a folder"),
        ("none.toml", "none.toml: no such file"),
        ("none", "none: no such folder"),
        ("scripted:loud", "hint: pass for example --panel scripted:seed=2,slow=40"),
    ] {
        let output = folder.run(&["judge", "cases", "--out", "out", "--panel", panel]);
        assert_eq!(output.exit_code, 2, "{panel}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{panel}: {}", output.stderr);
    }
}
