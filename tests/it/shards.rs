//! Shards of a run, and their merged records.

use std::fs;

use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput, valid_case};

/// Number of valid cases.
const CASES: usize = 23;

/// Creates a folder with cases, input problems of all kinds, and answers without a case.
pub(crate) fn folder_with_problems() -> Folder {
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
pub(crate) fn judge_shards(folder: &Folder, of: usize, more: &[&str]) -> Vec<String> {
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
pub(crate) fn merge(folder: &Folder, shards: &[String], out: &str, more: &[&str]) -> ProgramOutput {
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
            for shard in &shards {
                fs::remove_dir_all(folder.path(shard)).unwrap();
            }
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

#[test]
fn interrupted_shard_is_resumed_before_the_merge() {
    let folder = folder_with_problems();
    assert_eq!(folder.judge("all", &[]).exit_code, 0);
    assert_eq!(folder.judge("a", &["--shard", "1/2"]).exit_code, 0);
    let failing = "scripted:fail-after=4";
    let args = ["judge", "cases", "--shard", "2/2", "--out", "b", "--panel", failing];
    assert_eq!(folder.run(&[&args[..], &["--batch-size", "2"]].concat()).exit_code, 4);
    let shards = ["a", "b"].map(str::to_owned);
    let refused = merge(&folder, &shards, "merged", &[]);
    assert_eq!(refused.exit_code, 2);
    for part in
        ["shard 2 of 2 in b is unfinished", "finish shard 2 of 2 with its command: ", "--partial"]
    {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert!(!folder.path("merged").exists());
    let partial = merge(&folder, &shards, "partial", &["--partial"]);
    assert_eq!(partial.exit_code, 0, "{}", partial.stderr);
    assert!(folder.read("all/records.jsonl").starts_with(&folder.read("partial/records.jsonl")));
    let rank = folder.run(&["rank", "partial", "--resamples", "50"]);
    assert!(rank.stdout.starts_with("partial: the run is unfinished"), "{}", rank.stdout);
    // A partial run is completed by judging all cases, too.
    let rest = folder.judge("partial", &[]);
    assert_eq!(rest.exit_code, 0, "{}", rest.stderr);
    assert_eq!(folder.read("partial/records.jsonl"), folder.read("all/records.jsonl"));
    // Another shard in the same folder is an error and changes nothing.
    let before = folder.read("b/records.jsonl");
    for flags in [&["--shard", "1/2"][..], &["--shard", "2/3"], &[]] {
        let other = folder.judge("b", flags);
        assert_eq!(other.exit_code, 2);
        assert!(other.stderr.contains("judges shard 2 of 2 there"), "{}", other.stderr);
    }
    assert_eq!(folder.read("b/records.jsonl"), before);
    assert_eq!(folder.judge("b", &["--shard", "2/2"]).exit_code, 0);
    assert_eq!(merge(&folder, &shards, "merged", &[]).exit_code, 0);
    assert_eq!(folder.read("merged/records.jsonl"), folder.read("all/records.jsonl"));
    assert_eq!(
        folder.manifest("merged")["records_digest"],
        folder.manifest("all")["records_digest"]
    );
}

#[test]
fn merge_refuses_what_does_not_belong_together() {
    let folder = Folder::with_cases(9);
    let shards = judge_shards(&folder, 3, &[]);
    fs::rename(folder.path(&shards[0]), folder.path("a")).unwrap();
    fs::rename(folder.path(&shards[1]), folder.path("b")).unwrap();
    fs::rename(folder.path(&shards[2]), folder.path("c")).unwrap();
    folder.judge("all", &[]);
    folder.judge("other-judge", &["--shard", "2/3", "--single-order"]);
    folder.judge("other-baseline", &["--shard", "2/3", "--baseline", "beta"]);
    folder.judge("other-limit", &["--shard", "2/3", "--limit", "8"]);
    folder.judge("other-number", &["--shard", "2/4"]);
    folder.judge("again", &["--shard", "3/3"]);
    let case = |i: usize| json!({"question": "another?", "id": valid_case(i)["id"], "responses": valid_case(i)["responses"]});
    folder.write(
        "cases/cases.jsonl",
        &(0..9).map(|i| case(i).to_string() + "\n").collect::<String>(),
    );
    folder.judge("other-source", &["--shard", "2/3"]);
    for (shards, message) in [
        (&["a", "c"][..], "shard 2 of 3 is missing"),
        (&["a", "c"], " --shard 2/3 --out DIR"),
        (&["a", "b", "c", "again"], "both are shard 3 of 3"),
        (&["a", "b", "b"], "both are shard 2 of 3"),
        (&["a", "other-judge", "c"], "verdicts of two judges (orders was both, is single)"),
        (&["a", "other-baseline", "c"], "the --baseline differs: none and beta"),
        (&["a", "other-limit", "c"], "the number of cases differs: 9 and 8"),
        (&["a", "other-number", "c"], "the number of shards differs: 3 and 4"),
        (&["a", "other-source", "c"], "the digest of the cases differs"),
        (&["a", "all", "c"], "a run over all cases, expected a shard"),
        (&["a", "cases", "c"], "no run.json"),
    ] {
        let shards: Vec<String> = shards.iter().map(|name| (*name).to_owned()).collect();
        let refused = merge(&folder, &shards, "merged", &[]);
        assert_eq!(refused.exit_code, 2, "{shards:?}");
        assert!(refused.stderr.contains(message), "{shards:?}: {}", refused.stderr);
        assert!(!folder.path("merged").exists(), "{shards:?}");
    }
    let shards = ["a", "b", "c"].map(str::to_owned);
    for (out, reason) in [("all", "already contains a run"), ("a", "it is one of the shards")] {
        let refused = merge(&folder, &shards, out, &[]);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    // A record that was edited with its checksum, and one that was removed.
    let text = folder.read("b/records.jsonl");
    for edited in [edit_scores(&text), text.split_inclusive('\n').skip(1).collect()] {
        folder.write("b/records.jsonl", &edited);
        let refused = merge(&folder, &shards, "merged", &[]);
        assert_eq!(refused.exit_code, 2);
        assert!(refused.stderr.contains("not the records that the run"), "{}", refused.stderr);
        assert!(!folder.path("merged/records.jsonl").exists());
    }
    // An interrupted merge can be repeated, and so can a partial and a complete one.
    folder.write("b/records.jsonl", &text);
    assert_eq!(merge(&folder, &shards[..2], "merged", &["--partial"]).exit_code, 0);
    for prefix in ["", "./"] {
        let shards: Vec<String> = shards.iter().map(|name| format!("{prefix}{name}")).collect();
        assert_eq!(merge(&folder, &shards, "merged", &[]).exit_code, 0);
        assert_eq!(folder.read("merged/records.jsonl"), folder.read("all/records.jsonl"));
    }
    // Fewer shards would lose records.
    let refused = merge(&folder, &shards[..2], "merged", &["--partial"]);
    assert!(refused.stderr.contains("shards that are not all among these"), "{}", refused.stderr);
    // Edited records stay.
    folder.write("merged/records.jsonl", &edit_scores(&text));
    let refused = merge(&folder, &shards, "merged", &[]);
    assert!(refused.stderr.contains("edited since"), "{}", refused.stderr);
}

/// A later merge would lose the verdicts that `acem3 judge` added.
#[test]
fn judging_resumes_a_partial_merge() {
    let folder = Folder::with_cases(6);
    let shards = judge_shards(&folder, 3, &[]);
    folder.judge("all", &[]);
    assert_eq!(merge(&folder, &shards[..2], "resumed", &["--partial"]).exit_code, 0);
    let resumed = folder.judge("resumed", &[]);
    assert!(resumed.stderr.contains("2 new verdicts"), "{}", resumed.stderr);
    assert!(!resumed.stderr.contains("other input"), "{}", resumed.stderr);
    assert_eq!(folder.read("resumed/records.jsonl"), folder.read("all/records.jsonl"));
    let parts = |out: &str| folder.manifest(out)["merged"].as_array().map(Vec::len);
    assert_eq!(parts("resumed"), Some(2));
    let refused = merge(&folder, &shards, "resumed", &[]);
    assert!(refused.stderr.contains("`acem3 judge` ran since"), "{}", refused.stderr);
    // With other cases, the records are no longer those of the shards.
    let first = folder.read("cases/cases.jsonl").lines().next().unwrap().to_owned();
    folder.write("cases/cases.jsonl", &(first + "\n"));
    assert_eq!(folder.judge("resumed", &[]).exit_code, 0);
    assert_eq!(parts("resumed"), None);
}

/// Changes the scores of the first judged record, and its checksum.
pub(crate) fn edit_scores(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap();
    let (fields, _) = first.rsplit_once(",\"checksum\"").unwrap();
    let start = fields.find("\"scores\":[").unwrap() + 10;
    let end = start + fields[start..].find([',', ']']).unwrap();
    assert_ne!(&fields[start..end], "4.75");
    let json = format!("{}4.75{}}}", &fields[..start], &fields[end..]);
    format!("{}\n{rest}", acem3::judging::run::record::checksum::append_checksum(&json))
}

#[test]
fn commands_read_all_shards_as_one_run_and_name_missing_ones() {
    let folder = folder_with_problems();
    // Without the second case c3, whose two records no command can tell apart.
    let text = folder.read("cases/cases.jsonl");
    let (first, second) = text.split_at(text.rfind("\"c3\"").unwrap());
    let (start, end) = (first.rfind('\n').unwrap(), second.find('\n').unwrap());
    folder.write("cases/cases.jsonl", &format!("{}{}", &first[..start], &second[end..]));
    let shards = judge_shards(&folder, 2, &[]);
    folder.judge("all", &[]);
    let [one, two] = [shards[0].as_str(), shards[1].as_str()];
    for command in ["agree", "rank", "report"] {
        let run = |records: &[&str], more: &[&str]| {
            folder.run(
                &[&[command], records, &["--resamples", "50", "--format", "json"], more].concat(),
            )
        };
        let alone = run(&[two], &[]);
        let notice = "only shard 2 of 2; pass the folders of all shards, and judge those that are missing: \
                      `acem3 judge` with --shard 1/2";
        assert!(alone.stderr.contains(notice), "{command}: {}", alone.stderr);
        let strict = run(&[two], &["--complete"]);
        assert_eq!(strict.exit_code, 2, "{command}");
        assert!(strict.stderr.contains("only shard 2 of 2"), "{command}: {}", strict.stderr);
        let both = run(&[two, one], &["--complete"]);
        assert_eq!((both.exit_code, both.stderr.as_str()), (0, ""), "{command}");
        let (mut both, mut all): (Value, Value) = (
            serde_json::from_str(&both.stdout).unwrap(),
            serde_json::from_str(&run(&["all"], &[]).stdout).unwrap(),
        );
        remove_paths(&mut both);
        remove_paths(&mut all);
        assert_eq!(both, all, "{command}");
    }
}

/// Removes what names the folder of a run from a result.
fn remove_paths(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in ["records", "source", "shards", "run", "runs"] {
                if fields.get(name).is_some_and(|value| !value.is_number()) {
                    fields.remove(name);
                }
            }
            fields.values_mut().for_each(remove_paths);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_paths),
        _ => {}
    }
}
