//! `acem3 verify`: checks of records, and records that are judged again.

use std::fs;

use acem3::judging::run::record::checksum::append_checksum;
use serde_json::{Value, json};

use crate::shards::{edit_scores, folder_with_problems};

#[test]
fn verify_finds_edited_records_and_accepts_others() {
    let folder = folder_with_problems();
    for form in ["pair", "single"] {
        let flags = ["--form", form];
        assert_eq!(folder.judge(form, &flags).exit_code, 0);
        let verify = |more: &[&str]| {
            let args = ["verify", form, "--panel", "scripted:", "--format", "json"];
            let output = folder.run(&[&args[..], &flags, more].concat());
            let result = serde_json::from_str::<Value>(&output.stdout);
            (output.exit_code, result.unwrap_or_default(), output.stderr)
        };
        let (code, result, stderr) = verify(&["--sample", "1000"]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{result}");
        assert_eq!(result["sample"]["judged"], folder.manifest(form)["counts"]["judged"]);
        let drawn = |seed: &str| verify(&["--sample", "5", "--seed", seed]).1;
        assert_eq!(drawn("1")["sample"]["judged"], 5);
        // The digest in run.json finds the edit, and judging again says what it was.
        let text = folder.read(&format!("{form}/records.jsonl"));
        folder.write(&format!("{form}/records.jsonl"), &edit_scores(&text));
        let (code, result, _) = verify(&["--sample", "1000"]);
        assert_eq!(code, 1);
        let differing = result["sample"]["differing"].as_array().unwrap();
        assert_eq!(differing.len(), 1, "{result}");
        assert_eq!(differing[0]["line"], 1);
        assert_eq!(differing[0]["values"][0]["field"], "scores[0]");
        assert_eq!(differing[0]["values"][0]["recorded"], 4.75);
        assert!(
            result["run"]["problems"].to_string().contains("not the records that the run wrote")
        );
        assert_eq!(verify(&["--sample", "0"]).0, 1);
        // A changed question does not belong to the key.
        let (first, rest) = text.split_once('\n').unwrap();
        let (fields, _) = first.rsplit_once(",\"checksum\"").unwrap();
        let json = fields.replace("what is shown", "what is hidden") + "}";
        let line = append_checksum(&json);
        folder.write(&format!("{form}/records.jsonl"), &format!("{line}\n{rest}"));
        let (code, result, _) = verify(&["--sample", "0"]);
        assert_eq!((code, &result["wrong_keys"]), (1, &json!(1)));
        folder.write(&format!("{form}/records.jsonl"), &text);
    }
    let other = folder.run(&["verify", "pair", "--panel", "scripted:seed=3"]);
    assert_eq!(other.exit_code, 2);
    assert!(other.stderr.contains("(seed was 0, is 3)"), "{}", other.stderr);
    // Images that are gone or changed cannot be judged again.
    fs::copy(folder.path("cases/images/1.png"), folder.path("cases/images/0.png")).unwrap();
    let changed = folder.run(&["verify", "pair", "--panel", "scripted:", "--sample", "1000"]);
    assert_eq!(changed.exit_code, 1);
    assert!(
        changed.stdout.contains("images/0.png: not the image that was judged"),
        "{}",
        changed.stdout
    );
    fs::rename(folder.path("cases"), folder.path("moved")).unwrap();
    let moved = ["verify", "pair", "--panel", "scripted:", "--seed", "2", "--cases"];
    let moved = |path: &str| folder.run(&[&moved[..], &[path]].concat());
    let nowhere = moved("nowhere");
    assert_eq!(nowhere.exit_code, 2);
    assert!(nowhere.stderr.contains("--cases nowhere: no such file or folder\nhint: "));
    assert!(moved("moved/cases.jsonl").stdout.contains("judged again (seed 2), 0 different"));
}

#[test]
fn records_that_are_not_reproducible_may_differ_by_the_tolerance() {
    let folder = folder_with_problems();
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let text = folder.read("out/records.jsonl");
    let (first, rest) = text.split_once('\n').unwrap();
    let (fields, _) = first.rsplit_once(",\"checksum\"").unwrap();
    let (start, end) = fields.split_once("\"expected\":[").unwrap();
    let (value, end) = end.split_once(',').unwrap();
    let value = value.parse::<f64>().unwrap() + 0.03;
    let end = end.replace(" is 1\"", " is one\"");
    let json = format!("{start}\"reproducible\":false,\"expected\":[{value:.4},{end}}}");
    folder.write("out/records.jsonl", &format!("{}\n{rest}", append_checksum(&json)));
    let verify = |more: &[&str]| {
        let args =
            ["verify", "out", "--panel", "scripted:", "--sample", "1000", "--format", "json"];
        let output = folder.run(&[&args[..], more].concat());
        serde_json::from_str::<Value>(&output.stdout).unwrap()["sample"].clone()
    };
    let within = verify(&[]);
    assert_eq!((&within["differing"], &within["not_reproducible"]), (&json!([]), &json!(1)));
    assert_eq!(within["largest"], json!(0.03));
    let outside = verify(&["--tolerance", "0.02"]);
    assert_eq!(outside["differing"][0]["values"][0]["field"], "expected[0]");
}
