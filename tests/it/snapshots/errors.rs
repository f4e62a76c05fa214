//! Common errors of users: messages and exit codes.

use std::fs;

use super::{Snapshots, transcript};
use crate::folder::{Folder, valid_case};

/// A command that fails in a folder of three valid cases after `prepare` has changed it.
pub(super) struct Mistake {
    pub(super) name: &'static str,
    pub(super) command: &'static str,
    pub(super) prepare: fn(&Folder),
}

/// Runs each command in a new folder and compares its output.
pub(super) fn check(snapshots: &mut Snapshots, mistakes: &[Mistake]) {
    for mistake in mistakes {
        if mistake.name == DEVICE && cfg!(feature = "cuda") {
            snapshots.skip(DEVICE);
            continue;
        }
        let folder = Folder::with_cases(3);
        (mistake.prepare)(&folder);
        snapshots.check(mistake.name, &transcript(&folder, mistake.command));
    }
}

const fn mistake(name: &'static str, command: &'static str, prepare: fn(&Folder)) -> Mistake {
    Mistake { name, command, prepare }
}

/// Wrong usage of commands and flags.
const USAGE: &[Mistake] = &[
    mistake("no-command", "", no_change),
    mistake("command-unknown", "jugde cases --out out", no_change),
    mistake("command-of-data-missing", "data", no_change),
    mistake("out-missing", "judge cases", no_change),
    mistake("cases-missing", "judge --out out", no_change),
    mistake("flag-unknown", "judge cases --output out", no_change),
    mistake("flag-without-value", "judge cases --out", no_change),
    mistake("value-unknown", "rank out --format yaml", no_change),
    mistake("number-out-of-range", "judge cases --out out --batch-size 0", no_change),
    mistake("percentage-out-of-range", "judge cases --out out --max-unscored 101", no_change),
    mistake("device-unknown", "judge cases --out out --device gpu", no_change),
    mistake("aspect-unknown", "agree out --target beauty", no_change),
    mistake("probe-unknown", "audit cases --probes length", no_change),
    mistake("flags-in-conflict", "judge cases --out out --quiet --verbose", no_change),
    mistake("environment-value-unknown", "ACEM3_FORMAT=yaml judge cases --out out", no_change),
    mistake("bert-layer-without-bert", "metrics cases --bert-layer 9", no_change),
];

/// Invalid cases, images and answers.
const INPUT: &[Mistake] = &[
    mistake("cases-path-missing", "judge nowhere --out out", no_change),
    mistake("cases-without-fault", "data check cases", no_change),
    mistake("cases-folder-empty", "judge empty --out out", empty_folder),
    mistake("cases-file-empty", "judge cases --out out", |folder| {
        folder.write(CASES, "");
    }),
    mistake("cases-file-of-another-kind", "judge notes.txt --out out", notes),
    mistake("cases-lines-malformed", "judge cases --out out --panel scripted:", malformed_all),
    mistake("case-malformed", "judge cases --out out --panel scripted: -v", malformed),
    mistake("case-malformed-check", "data check cases", malformed),
    mistake("case-malformed-check-json", "data check cases --format json", malformed),
    mistake("case-with-one-response", "data check cases", |folder| {
        edit(folder, r#",{"model":"beta","text":"nothing, 1"}"#, "");
    }),
    mistake("case-with-a-model-twice", "data check cases", |folder| {
        edit(folder, r#""beta","text":"nothing, 1""#, r#""alpha","text":"nothing, 1""#);
    }),
    mistake("case-ids-twice", "data check cases", |folder| {
        edit(folder, "\"c1\"", "\"c0\"");
    }),
    mistake("case-label-out-of-range", "data check cases", |folder| {
        edit(folder, "[4,1.5]", "[9,1.5]");
    }),
    mistake("case-field-misspelt", "data check cases", |folder| {
        edit(folder, "\"question\"", "\"qestion\"");
    }),
    mistake("image-missing", "judge cases --out out --panel scripted: -v", image_missing),
    mistake("image-missing-check", "data check cases", image_missing),
    mistake("image-damaged", "judge cases --out out --panel scripted: -v", image_damaged),
    mistake("image-damaged-check", "data check cases", image_damaged),
    mistake("image-outside-the-folder", "data check cases", |folder| {
        edit(folder, "images/0.png", "../../images/0.png");
    }),
    mistake(
        "too-many-unscored",
        "judge cases --out out --panel scripted: --max-unscored 10",
        image_missing,
    ),
    mistake("answers-missing", "judge cases --out out", questions),
    mistake(
        "answers-match-no-question",
        "judge cases --answers a.jsonl --answers b.jsonl --out out --panel scripted:",
        answers_to_others,
    ),
];

/// Problems with output folders, panels, the hub, devices and configurations.
const SETUP: &[Mistake] = &[
    mistake("out-is-a-file", "judge cases --out notes.txt", notes),
    mistake("out-below-a-file", "judge cases --out notes.txt/out", notes),
    mistake("out-of-another-program", "judge cases --out other", |folder| {
        folder.write("other/run.json", "{\"name\": \"mine\"}");
    }),
    mistake("out-of-another-judge", "judge cases --out out --panel scripted:seed=9", judged),
    mistake("out-not-fresh", "judge cases --out out --panel scripted: --no-resume", judged),
    mistake(
        "baseline-unknown",
        "judge cases --out out --panel scripted: --baseline gamma",
        no_change,
    ),
    mistake(
        "judge-fails",
        "judge cases --out out --panel scripted:fail-after=2 --batch-size 1",
        no_change,
    ),
    mistake("panel-missing", "judge cases --out out --panel ./my-panel", no_change),
    mistake("panel-is-not-one", "judge cases --out out --panel ./cases", no_change),
    mistake("panel-damaged", "panel inspect panel", |folder| {
        folder.write("panel/panel.toml", "schema = 1\nname = my panel\n");
    }),
    mistake("hub-offline", "judge cases --out out --panel owner/name --offline", no_change),
    mistake("hub-id-malformed", "judge cases --out out --panel owner/name/part", no_change),
    mistake(
        "hub-unreachable",
        "HF_ENDPOINT=http://127.0.0.1:1 judge cases --out out --panel owner/name",
        no_change,
    ),
    mistake(DEVICE, "judge cases --out out --device cuda", no_change),
    mistake("config-missing", "train run train.toml --out out", no_change),
    mistake("config-key-unknown", "train run train.toml --out out", |folder| {
        config(folder, "seed = 3", "seed = 3\nlearning_rate = 0.1");
    }),
    mistake("config-key-missing", "train run train.toml --out out", |folder| {
        config(folder, "seed = 3\n", "");
    }),
    mistake("config-malformed", "train run train.toml --out out", |folder| {
        config(folder, "seed = 3", "seed =");
    }),
    mistake("config-without-stages", "train run train.toml --out out", |folder| {
        config(folder, "", "");
    }),
    mistake("measure-nothing", "train eval --phantoms 0", no_change),
];

const CASES: &str = "cases/cases.jsonl";
/// Name of the snapshot that a build with CUDA cannot produce.
const DEVICE: &str = "device-missing";

fn no_change(_: &Folder) {}

/// Replaces text in the second case.
fn edit(folder: &Folder, from: &str, to: &str) {
    let mut lines: Vec<String> = (0..3).map(|i| valid_case(i).to_string()).collect();
    assert!(lines[1].contains(from), "{from} is not in {}", lines[1]);
    lines[1] = lines[1].replace(from, to);
    folder.write(CASES, &(lines.join("\n") + "\n"));
}

fn empty_folder(folder: &Folder) {
    fs::create_dir(folder.path("empty")).unwrap();
}

fn notes(folder: &Folder) {
    folder.write("notes.txt", "These are my notes.\n");
}

fn malformed(folder: &Folder) {
    edit(folder, r#""question":"#, r#""question""#);
}

fn malformed_all(folder: &Folder) {
    folder.write(CASES, "{broken\n{\n");
}

fn image_missing(folder: &Folder) {
    edit(folder, "images/0.png", "images/none.png");
}

fn image_damaged(folder: &Folder) {
    let bytes = fs::read(folder.path("cases/images/0.png")).unwrap();
    fs::write(folder.path("cases/images/torn.png"), &bytes[..bytes.len() / 2]).unwrap();
    edit(folder, "images/0.png", "images/torn.png");
}

fn questions(folder: &Folder) {
    fs::remove_file(folder.path(CASES)).unwrap();
    let table = "id,image,question\n1,images/0.png,what is it?\n2,images/1.png,where is it?\n";
    folder.write("cases/questions.csv", table);
}

fn answers_to_others(folder: &Folder) {
    questions(folder);
    for model in ["a", "b"] {
        let line = |i: u32| format!("{{\"question_id\": {i}, \"text\": \"{model} says {i}\"}}\n");
        folder.write(&format!("{model}.jsonl"), &(line(101) + &line(102)));
    }
}

pub(super) fn judged(folder: &Folder) {
    let output = folder.judge("out", &[]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
}

/// Writes a training configuration with replaced text.
fn config(folder: &Folder, from: &str, to: &str) {
    let text = include_str!("../../tiny.toml");
    assert!(text.contains(from), "{from} is not in tiny.toml");
    folder.write("train.toml", &text.replacen(from, to, 1));
}

#[test]
fn usage_errors_match_snapshots() {
    let mut snapshots = Snapshots::open("usage");
    check(&mut snapshots, USAGE);
    snapshots.finish();
}

#[test]
fn input_errors_match_snapshots() {
    let mut snapshots = Snapshots::open("input");
    check(&mut snapshots, INPUT);
    snapshots.finish();
}

#[test]
fn setup_errors_match_snapshots() {
    let mut snapshots = Snapshots::open("setup");
    check(&mut snapshots, SETUP);
    snapshots.finish();
}
