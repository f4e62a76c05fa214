//! Shards of a run, and their merged records.

use std::fs;

use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput, valid_case};

/// Number of valid cases.
const CASES: usize = 23;

/// Creates a folder with cases, input problems of all kinds, and answers without a case.
fn folder_with_problems() -> Folder {
    let folder = Folder::with_cases(CASES);
    let mut lines: Vec<String> = (0..CASES).map(|i| valid_case(i).to_string()).collect();
    let mut gone = valid_case(CASES);
    gone["image"] = json!("images/gone.png");
    let mut bad_labels = valid_case(CASES + 1);
    bad_labels["labels"] = json!({"final": [9]});
    let mut alone = valid_case(CASES + 2);
    alone["responses"] = json!([{"model": "alpha", "text": "yes"}]);
    let mut empty = valid_case(CASES + 3);
    empty["responses"][1]["text"] = json!(" ");
    empty["responses"].as_array_mut().unwrap().push(json!({"model": "gamma", "text": "no"}));
    let problems = [
        "{\"id\": \"broken\"".to_owned(),
        gone.to_string(),
        bad_labels.to_string(),
        alone.to_string(),
        empty.to_string(),
        valid_case(3).to_string(),
        String::new(),
    ];
    for (i, problem) in problems.into_iter().enumerate() {
        lines.insert(2 + 4 * i, problem);
    }
    folder.write("cases/cases.jsonl", &(lines.join("\n") + "\n"));
    let answer =
        |id: &str| json!({"question_id": id, "text": format!("delta on {id}")}).to_string();
    let answers = ["c1", "c22", "nowhere"].map(answer).join("\n");
    folder.write(
        "cases/answers/delta.jsonl",
        &format!("{answers}\n{{\"question_id\": \"c9\"}}\nx\n"),
    );
    folder
}

/// Judges all shards. Returns their folders.
fn judge_shards(folder: &Folder, of: usize, more: &[&str]) -> Vec<String> {
    let outs: Vec<String> = (1..=of).map(|i| format!("part{i}of{of}")).collect();
    for (i, out) in (1..).zip(&outs) {
        let shard = format!("{i}/{of}");
        let output = folder.judge(out, &[&["--shard", &shard], more].concat());
        assert_eq!(output.exit_code, 0, "{shard}: {}", output.stderr);
        assert!(output.stderr.contains(&format!("shard {i} of {of}: ")), "{}", output.stderr);
    }
    outs
}

/// Merges folders into another one.
fn merge(folder: &Folder, shards: &[String], out: &str, more: &[&str]) -> ProgramOutput {
    let shards: Vec<&str> = shards.iter().map(String::as_str).collect();
    folder.run(&[&["merge"], &shards[..], &["--out", out], more].concat())
}

/// Returns a manifest without times, command line and the parts of the merged run.
fn comparable(folder: &Folder, out: &str) -> Value {
    let mut manifest = folder.manifest(out);
    let fields = manifest.as_object_mut().unwrap();
    for name in
        ["argv", "checksum", "finished", "merged", "seconds", "started", "verdicts_per_second"]
    {
        fields.remove(name);
    }
    manifest
}

/// Returns the summary without the path of the records.
fn summary(output: &ProgramOutput) -> String {
    let lines = output.stdout.lines().filter(|line| !line.starts_with("records "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn merged_shards_equal_the_run_over_all_cases() {
    let folder = folder_with_problems();
    for form in ["pair", "single"] {
        let flags = ["--form", form];
        let all = format!("all-{form}");
        let whole = folder.judge(&all, &flags);
        assert_eq!(whole.exit_code, 0, "{}", whole.stderr);
        for of in [1, 2, 7] {
            let shards = judge_shards(&folder, of, &flags);
            let out = format!("merged-{form}-{of}");
            // The order of the arguments does not matter.
            let reversed: Vec<String> = shards.iter().rev().cloned().collect();
            let merged = merge(&folder, &reversed, &out, &[]);
            assert_eq!(merged.exit_code, 0, "{}", merged.stderr);
            assert_eq!(
                folder.read(&format!("{out}/records.jsonl")),
                folder.read(&format!("{all}/records.jsonl")),
                "{form}, {of} shards"
            );
            assert_eq!(comparable(&folder, &out), comparable(&folder, &all), "{form}, {of} shards");
            assert_eq!(summary(&merged), summary(&whole));
            assert_eq!(folder.manifest(&out)["merged"].as_array().unwrap().len(), of);
            shards.iter().for_each(|shard| fs::remove_dir_all(folder.path(shard)).unwrap());
        }
    }
}

#[test]
fn limit_and_more_shards_than_cases() {
    let folder = folder_with_problems();
    let flags = ["--limit", "5", "--baseline", "beta"];
    assert_eq!(folder.judge("all", &flags).exit_code, 0);
    let shards = judge_shards(&folder, 9, &flags);
    assert_eq!(merge(&folder, &shards, "merged", &[]).exit_code, 0);
    assert_eq!(folder.read("merged/records.jsonl"), folder.read("all/records.jsonl"));
    assert_eq!(comparable(&folder, "merged"), comparable(&folder, "all"));
    // The merged folder is a run: judging again changes nothing.
    let again = folder.judge("merged", &flags);
    assert!(again.stderr.contains("0 new verdicts"), "{}", again.stderr);
}
