//! `acem3 judge` with a scripted judge: what it reads, writes, says and returns.

use std::io::Read;
use std::process::Stdio;

use serde_json::json;

use crate::folder::{Folder, case};

#[test]
fn a_folder_becomes_records_a_manifest_and_a_table() {
    let folder = Folder::of(5);
    let said = folder.judge("out", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out
            .starts_with("5 pairs of 5 cases judged by scripted"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("alpha") && said.out.contains("100 %"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("records   out/records.jsonl"),
        "{}",
        said.out
    );
    assert!(said.err.contains("5 new verdicts in"), "{}", said.err);

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
    assert!(
        clarity["analyses"][0]
            .as_str()
            .unwrap()
            .starts_with("clarity_of_response is")
    );
    assert_ne!(records[0]["key"], records[1]["key"]);

    let manifest = folder.manifest("out");
    assert_eq!(manifest["status"], "done");
    assert_eq!(
        manifest["source"],
        json!({"path": "cases", "kind": "cases"})
    );
    assert_eq!(manifest["counts"]["judged"], 5);
    assert_eq!(manifest["provenance"]["orders"], "both");
    assert!(manifest["started"].as_str().unwrap().ends_with('Z'));
    assert!(manifest["finished"].is_string());
}

#[test]
fn the_table_adds_up_to_the_records() {
    let folder = Folder::of(8);
    let said = folder.judge("out", &["--format", "json", "-q"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let summary: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let records = folder.records("out");
    let model = |name: &str| {
        let models = summary["models"].as_array().unwrap();
        models.iter().find(|m| m["model"] == name).unwrap().clone()
    };
    for (r, name) in ["alpha", "beta"].iter().enumerate() {
        let scores = records
            .iter()
            .map(|record| record["scores"][r].as_f64().unwrap());
        let mean = scores.sum::<f64>() / 8.0;
        assert!((model(name)["score"].as_f64().unwrap() - mean).abs() < 1e-4);
        let better = [">", "<"][r];
        let wins = records
            .iter()
            .filter(|record| record["order"] == better)
            .count();
        assert_eq!(model(name)["wins"], wins);
    }
    let flips = records
        .iter()
        .filter(|record| record["flip"] == true)
        .count();
    assert_eq!(summary["flips"], json!({"n": 8, "flipped": flips}));
}

#[test]
fn one_order_and_scores_only_are_marked_as_such() {
    let folder = Folder::of(2);
    let said = folder.judge("out", &["--single-order", "--scores-only"]);
    assert!(said.out.contains("not measured"), "{}", said.out);
    let record = &folder.records("out")[0];
    assert_eq!(record["flip"], json!(null));
    assert_eq!(record["orders"].as_array().unwrap().len(), 1);
    assert!(record["orders"][0]["conclusion"].get("analyses").is_none());
}

#[test]
fn batch_size_moves_no_byte() {
    let folder = Folder::of(13);
    for (out, size) in [("a", "1"), ("b", "4"), ("c", "64")] {
        assert_eq!(folder.judge(out, &["--batch-size", size]).code, 0);
    }
    assert_eq!(
        folder.read("a/records.jsonl"),
        folder.read("b/records.jsonl")
    );
    assert_eq!(
        folder.read("a/records.jsonl"),
        folder.read("c/records.jsonl")
    );
}

#[test]
fn bad_cases_are_recorded_in_their_place_and_stop_nothing() {
    let folder = Folder::of(6);
    let mut lines: Vec<String> = (0..6).map(|i| case(i).to_string()).collect();
    lines[1] = "{broken".to_owned();
    lines[2] = lines[2].replace("images/1.png", "images/none.png");
    lines[3] = lines[3].replace("images/1.png", "images/text.png");
    lines[4] = lines[4].replace("nothing, 4", "");
    lines[5] = lines[5].replace("nothing, 5", "[[too long]]");
    folder.write("cases/cases.jsonl", &(lines.join("\n") + "\n"));
    folder.write("cases/images/text.png", "this is no image");
    let said = folder.judge("out", &["-v"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("5 of 6 (83.3 %)"), "{}", said.out);
    assert!(
        said.out.contains("parse 2") && said.out.contains("image 2"),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("images/none.png: no such file"),
        "{}",
        said.err
    );
    let records = folder.records("out");
    let reasons: Vec<_> = records
        .iter()
        .map(|record| record["reason"].clone())
        .collect();
    let expected = json!([null, "parse", "image", "image", "parse", "truncated"]);
    assert_eq!(json!(reasons), expected);
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record["line"], i + 1);
        assert!(i == 0 || !record["message"].as_str().unwrap().is_empty());
    }
    // What could not be judged the first time is looked at again, what could is not judged again.
    folder.write_cases(&(0..6).map(case).collect::<Vec<_>>());
    let said = folder.judge("out", &[]);
    assert!(said.out.contains("unscored  none"), "{}", said.out);
    assert!(said.out.contains("reused    1 of 6"), "{}", said.out);
    folder.judge("new", &[]);
    assert_eq!(
        folder.read("out/records.jsonl"),
        folder.read("new/records.jsonl")
    );
}

#[test]
fn too_many_unscored_is_exit_code_3() {
    let folder = Folder::of(4);
    let mut cases: Vec<_> = (0..4).map(case).collect();
    cases[0]["image"] = json!("images/none.png");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &["--max-unscored", "25"]).code, 0);
    let said = folder.judge("out", &["--max-unscored", "24.9%"]);
    assert_eq!(said.code, 3);
    assert!(
        said.err.contains("25.0 % of the records are unscored"),
        "{}",
        said.err
    );
}

#[test]
fn nothing_readable_is_exit_code_2_with_a_hint() {
    let folder = Folder::empty();
    folder.write("cases/cases.jsonl", "{broken\n{\n");
    let said = folder.judge("out", &[]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(
        said.err.contains("none of 2 records could be judged"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("`acem3 data check cases`"),
        "{}",
        said.err
    );
    folder.write("cases/cases.jsonl", "");
    let said = folder.judge("out2", &[]);
    assert_eq!(said.code, 2, "{}", said.err);
    let said = folder.run(&["judge", "nowhere", "--out", "out3", "--panel", "scripted:"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.starts_with("error: nowhere does not exist\nhint:"),
        "{}",
        said.err
    );
    assert!(!folder.path("out3").exists());
}

#[test]
fn three_models_give_three_pairs_or_two_against_a_baseline() {
    let folder = Folder::of(2);
    let mut cases: Vec<_> = (0..2).map(case).collect();
    for case in &mut cases {
        let responses = case["responses"].as_array_mut().unwrap();
        responses.push(json!({"model": "gamma", "text": "a mass"}));
        case["labels"] = json!({"final": [1, 2, 3]});
    }
    folder.write_cases(&cases);
    folder.judge("all", &[]);
    let pairs: Vec<_> = folder
        .records("all")
        .iter()
        .map(|r| r["pair"].clone())
        .collect();
    let three = [["alpha", "beta"], ["alpha", "gamma"], ["beta", "gamma"]];
    assert_eq!(json!(pairs), json!([three, three].concat()));
    assert_eq!(
        folder.records("all")[1]["labels"],
        json!({"final": [1.0, 3.0]})
    );
    folder.judge("base", &["--baseline", "alpha"]);
    let pairs: Vec<_> = folder
        .records("base")
        .iter()
        .map(|r| r["pair"].clone())
        .collect();
    let two = [["beta", "alpha"], ["gamma", "alpha"]];
    assert_eq!(json!(pairs), json!([two, two].concat()));
    let said = folder.judge("no", &["--baseline", "delta"]);
    assert_eq!(said.code, 2);
}

#[test]
fn limit_stops_after_so_many_cases() {
    let folder = Folder::of(6);
    let said = folder.judge("out", &["--limit", "4"]);
    assert!(said.out.starts_with("4 pairs of 4 cases"), "{}", said.out);
    let said = folder.judge("out", &[]);
    assert!(said.out.contains("reused    4 of 6"), "{}", said.out);
}

#[test]
fn a_case_without_image_is_judged_as_text() {
    let folder = Folder::of(2);
    let mut cases: Vec<_> = (0..2).map(case).collect();
    cases[1].as_object_mut().unwrap().remove("image");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).code, 0);
    let record = &folder.records("out")[1];
    assert_eq!(
        (&record["status"], &record["image"]),
        (&json!("judged"), &json!(null))
    );
}

#[test]
fn an_engine_that_fails_is_exit_code_4_and_the_journal_is_intact() {
    let folder = Folder::of(6);
    let args = [
        "judge",
        "cases",
        "--out",
        "out",
        "--batch-size",
        "2",
        "--panel",
    ];
    let said = folder.run(&[&args[..], &["scripted:fail-after=3"]].concat());
    assert_eq!((said.code, said.out.as_str()), (4, ""));
    assert!(
        said.err.contains("the judge failed at case `c3`"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("because: scripted to fail here"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("hint: finished verdicts are safe"),
        "{}",
        said.err
    );
    assert_eq!(folder.manifest("out")["status"], "failed");
    assert_eq!(folder.records("out").len(), 3);
    let said = folder.run(&[&args[..], &["scripted:"]].concat());
    assert!(said.out.contains("reused    3 of 6"), "{}", said.out);
}

#[test]
fn flags_are_environment_variables_too() {
    let folder = Folder::of(2);
    let mut command = folder.command(&["judge", "cases"]);
    command
        .env("ACEM3_OUT", "env")
        .env("ACEM3_PANEL", "scripted:")
        .env("ACEM3_SINGLE_ORDER", "1");
    assert!(command.output().unwrap().status.success());
    assert_eq!(folder.manifest("env")["provenance"]["orders"], "single");
}

#[test]
fn bad_usage_is_exit_code_2() {
    let folder = Folder::of(2);
    for more in [
        ["--batch-size", "0"],
        ["--device", "gpu"],
        ["--max-unscored", "x"],
    ] {
        assert_eq!(folder.judge("out", &more).code, 2, "{more:?}");
    }
    let said = folder.run(&["judge", "cases", "--out", "out", "--panel", "scripted:loud"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("unknown part `loud`"), "{}", said.err);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = Folder::of(2);
    let args = [
        "judge",
        "cases",
        "--out",
        "out",
        "--panel",
        "scripted:slow=200",
    ];
    let mut child = folder.command(&args);
    let mut child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{err}");
    assert!(!err.contains("error"), "{err}");
}

#[test]
fn help_teaches_with_examples() {
    let folder = Folder::empty();
    let said = folder.run(&["judge", "--help"]);
    assert_eq!(said.code, 0);
    for word in [
        "Examples:",
        "ACEM3_PANEL",
        "--max-unscored",
        "resume",
        "records.jsonl",
    ] {
        assert!(said.out.contains(word), "{word} is missing");
    }
    assert!(!said.out.contains("scripted"));
    assert_eq!(folder.run(&["--version"]).code, 0);
}
