//! Discussions of adviser and reviewer: knowledge, objections, resumed runs.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::mock_model::{MockModel, between, fill_form};
use super::{COMMAND, lines, training_folder};
use crate::folder::{Folder, ProgramOutput, program_output};

/// Question of the adviser.
const QUESTION: &str = "What does a lesion look like?";
/// Objection of the reviewer.
const OBJECTION: &str = "The analysis names no finding.";

/// Returns the labelled scores of the responses in a prompt of a pair, in the order in which it shows
/// them.
pub(super) fn labels_of_shown(cases: &[Value], first: &str, second: &str) -> [u8; 2] {
    for case in cases {
        let texts = [0, 1].map(|i| case["responses"][i]["text"].as_str().unwrap().trim());
        let label = |i: usize| case["labels"]["final"][i].as_f64().unwrap().round() as u8;
        match [texts[0] == first && texts[1] == second, texts[1] == first && texts[0] == second] {
            [true, _] => return [label(0), label(1)],
            [_, true] => return [label(1), label(0)],
            _ => {}
        }
    }
    panic!("no case has {first} and {second}");
}

/// Starts an adviser that knows the labels. In its first evaluation of a member it asks a question, if
/// it may and has no evidence; after an objection its analysis is another one.
pub(super) fn start_adviser(folder: &Folder) -> MockModel {
    let cases = lines(&folder.read("phantoms/cases.jsonl"));
    MockModel::start(move |prompt| {
        let first = between(prompt, "### Response 1:\n", "### Response 2:");
        let second = between(prompt, "### Response 2:\n", "###");
        let scores = labels_of_shown(&cases, first, second);
        if prompt.contains("[Question]") && !prompt.contains("[Evidence]:") {
            return fill_form(prompt, scores, &format!("Not sure. [Question]: {QUESTION}\nSo?"));
        }
        let is_revised = prompt.contains(OBJECTION);
        fill_form(prompt, scores, if is_revised { "A bright lesion." } else { "It is so." })
    })
}

/// Starts a reviewer that wants the revised analysis, and accepts nothing about the first pair that it
/// reads.
pub(super) fn start_reviewer() -> MockModel {
    let refused: Mutex<Option<BTreeSet<String>>> = Mutex::default();
    MockModel::start(move |prompt| {
        let responses = BTreeSet::from([
            between(prompt, "### Response 1:\n", "\n\n### Response 2:").to_owned(),
            between(prompt, "### Response 2:\n", "\n\n### ").to_owned(),
        ]);
        let mut refused = refused.lock().unwrap();
        let is_refused = *refused.get_or_insert_with(|| responses.clone()) == responses;
        if is_refused || !prompt.contains("A bright lesion.") {
            return format!("Reason: {OBJECTION}\nAcceptable: no");
        }
        "**Reason:** It is right.\n**Acceptable:** yes".to_owned()
    })
}

/// Builds the index `name` of one passage.
pub(super) fn build_index(folder: &Folder, name: &str) {
    let row = json!({"id": name, "title": "Lesion", "text": "A lesion is a bright spot."});
    folder.write(&format!("{name}.jsonl"), &(row.to_string() + "\n"));
    let output = folder.run(&["data", "index", &format!("{name}.jsonl"), "--out", name]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
}

/// Runs the command until people must decide, and returns the pairs that they decide about.
pub(super) fn discuss_until_people(folder: &Folder, models: [&MockModel; 2]) -> Vec<Value> {
    let output = discuss(folder, models, &["--wait-for-people"]);
    assert_eq!(output.exit_code, 1, "{}", output.stderr);
    lines(&folder.read("rounds/round-0/unresolved.jsonl"))
}

/// Runs the command with adviser and reviewer, which have own keys.
pub(super) fn discuss(
    folder: &Folder,
    [adviser, reviewer]: [&MockModel; 2],
    more: &[&str],
) -> ProgramOutput {
    let models = ["--adviser", &adviser.url, "--model", "a", "--reviewer", &reviewer.url];
    let options = ["--reviewer-model", "r", "--rounds", "1", "--out", "rounds"];
    let mut command = folder.command(&[&COMMAND[..], &models, &options, more].concat());
    let command = command.env("OPENAI_API_KEY", "key-of-adviser").env("R_KEY", "key-of-reviewer");
    program_output(&command.output().unwrap())
}

fn suggestions(folder: &Folder) -> Vec<Value> {
    lines(&folder.read("rounds/round-0/suggestions.jsonl"))
}

#[test]
fn adviser_looks_up_and_revises_and_no_answer_is_paid_twice() {
    let folder = training_folder();
    for name in ["index", "other"] {
        build_index(&folder, name);
    }
    let (adviser, reviewer) = (start_adviser(&folder), start_reviewer());
    let flags = ["--knowledge", "index", "--wait-for-people", "--reviewer-key-env", "R_KEY"];
    let models = [&adviser, &reviewer];

    // The credit of the adviser ends in the first discussion, and that of the reviewer in the second.
    adviser.left.store(5, Ordering::SeqCst);
    let output = discuss(&folder, models, &flags);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("status 401: "), "{}", output.stderr);
    assert_eq!(lines(&folder.read("rounds/requests.jsonl")).len(), 5);
    adviser.left.store(usize::MAX, Ordering::SeqCst);
    reviewer.left.store(4, Ordering::SeqCst);
    let output = discuss(&folder, models, &flags);
    assert!(output.stderr.contains("--reviewer-model"), "{}", output.stderr);
    assert!(output.stderr.contains("R_KEY"), "{}", output.stderr);
    // A torn line, as after a kill.
    let journal = folder.read("rounds/requests.jsonl");
    folder.write("rounds/requests.jsonl", &(journal + "{\"key\":"));
    reviewer.left.store(usize::MAX, Ordering::SeqCst);
    let output = discuss(&folder, models, &flags);
    assert_eq!(output.exit_code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("people have to decide"), "{}", output.stderr);
    assert!(!folder.path("rounds/rounds.json").exists());

    // No request was answered twice: each has its line, and no two are equal.
    let prompts: Vec<_> = [&adviser, &reviewer].map(MockModel::prompts).concat();
    assert_eq!(lines(&folder.read("rounds/requests.jsonl")).len(), prompts.len());
    let keys = |model: &MockModel| -> BTreeSet<Option<String>> {
        model.answered.lock().unwrap().iter().map(|request| request.key.clone()).collect()
    };
    assert_eq!(keys(&adviser), BTreeSet::from([Some("Bearer key-of-adviser".to_owned())]));
    assert_eq!(keys(&reviewer), BTreeSet::from([Some("Bearer key-of-reviewer".to_owned())]));

    // The first pair has three rejected suggestions; the others have a rejected and an accepted one.
    let advice = suggestions(&folder);
    assert!(advice.len() > 1, "{advice:?}");
    for (i, line) in advice.iter().enumerate() {
        let rounds = line["discussion"].as_array().unwrap();
        assert_eq!(rounds.len(), if i == 0 { 3 } else { 2 }, "{line}");
        assert_eq!(line["accepted"].is_null(), i == 0, "{line}");
        assert_eq!(rounds[0]["review"], json!({"accepts": false, "reason": OBJECTION}));
        let manifest: Value = serde_json::from_str(&folder.read("index/index.json")).unwrap();
        let digest = manifest["digest"].as_str().unwrap();
        assert!(line["by"].as_str().unwrap().contains(digest), "{line}");
        assert_eq!(line["reviewer"], format!("r at {}/chat/completions", reviewer.url));
        // Every member asked once, and the passage is recorded with the first response.
        let conclusion = &rounds[0]["suggestion"]["orders"][0]["conclusion"];
        let lookup = json!({"question": QUESTION, "passages": ["index"], "position": 0});
        assert_eq!(conclusion["lookups"], json!([[lookup], []]), "{conclusion}");
        assert_eq!(conclusion["analyses"][0], "It is so.");
    }
    // The labels are hidden while the suggestions agree with them, and always from the reviewer.
    assert!(prompts.iter().all(|prompt| !prompt.contains("a final score of")));
    let evidence =
        "[Question]: What does a lesion look like?\n[Evidence]: Lesion: A lesion is a bright spot.";
    let revised: Vec<_> = prompts.iter().filter(|prompt| prompt.contains("objects: ")).collect();
    assert!(
        !revised.is_empty()
            && revised
                .iter()
                .all(|prompt| prompt.contains("It is so.") || prompt.contains("A bright lesion."))
    );
    assert!(prompts.iter().any(|prompt| prompt.contains(evidence)), "{}", prompts[1]);

    // Another index, or no reviewer, is another discussion.
    let other = ["--knowledge", "other", "--reviewer-key-env", "R_KEY"];
    let output = discuss(&folder, models, &other);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("other settings: the adviser was a at"), "{}", output.stderr);
    let alone = ["--rounds", "1", "--out", "rounds", "--model", "a", "--adviser", &adviser.url];
    let alone = [&COMMAND[..], &alone, &["--knowledge", "index"]].concat();
    let output = folder.run(&alone);
    assert!(output.stderr.contains("the reviewer was r at"), "{}", output.stderr);
    assert!(output.stderr.contains("is none"), "{}", output.stderr);
    assert_eq!(suggestions(&folder), advice);
}

/// Judges agree if their verdicts have the same order. A round trains on from the panel of the round
/// before.
#[test]
fn judges_as_adviser_and_reviewer_agree_by_their_verdicts() {
    let folder = training_folder();
    build_index(&folder, "index");
    let options = ["--rounds", "1", "--out", "rounds", "--knowledge", "index"];
    let judges = ["--adviser", "scripted:asks,seed=7", "--reviewer", "scripted:seed=6"];
    let output = folder.run(&[&COMMAND[..], &options, &judges].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    for line in suggestions(&folder) {
        assert!(line["by"].as_str().unwrap().contains("T=3 K=3, 384 tokens"), "{line}");
        let rounds = line["discussion"].as_array().unwrap();
        assert_eq!(rounds.len(), 1, "{line}");
        let review = &rounds[0]["review"];
        assert_eq!(review.is_null(), rounds[0]["problem"].is_string(), "{line}");
        assert_eq!(review["accepts"] == true, line["accepted"].is_object(), "{line}");
        if review["accepts"] == false {
            let reason = line["refused"].as_str().unwrap();
            assert!(reason.contains("its own verdict: "), "{reason}");
        }
    }
    let rounds: Value = serde_json::from_str(&folder.read("rounds/rounds.json")).unwrap();
    // The reviewer agrees with two suggestions, and contradicts another.
    assert_eq!(
        [2, 1],
        ["by_adviser", "left"].map(|name| rounds["rounds"][0][name].as_u64().unwrap())
    );
    assert_eq!(rounds["rounds"].as_array().unwrap().len(), 2);
    let config = folder.read("rounds/round-1/training/train.toml");
    assert!(config.contains("start = \"round-0/training/panel\""), "{config}");
    assert!(!folder.read("rounds/round-0/training/train.toml").contains("start ="));
    let output = folder.run(&[&COMMAND[..], &options, &judges, &["--restart"]].concat());
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("--restart was false, is true"), "{}", output.stderr);
}

#[test]
fn flags_without_effect_are_rejected() {
    let folder = training_folder();
    build_index(&folder, "index");
    let output = folder.run(&["judge", "phantoms", "--out", "verdicts", "--panel", "scripted:"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let error_of = |more: &[&str]| {
        let output = folder.run(&[&COMMAND[..], &["--out", "rounds"], more].concat());
        assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""), "{}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{}", output.stderr);
        assert!(!folder.path("rounds").exists(), "{}", output.stderr);
        output.stderr
    };
    let records = ["--adviser", "verdicts"];
    let with = |more: &[&'static str]| error_of(&[&records[..], more].concat());
    assert!(with(&["--knowledge", "index"]).contains("--knowledge: has no effect"));
    assert!(with(&["--knowledge-rounds", "2"]).contains("have no effect without an index"));
    assert!(with(&["--model", "m"]).contains("--model: has no effect"));
    assert!(with(&["--reviewer-model", "m"]).contains("--reviewer-model: has no effect"));
    let reviewer = ["--reviewer", "http://127.0.0.1:9/v1"];
    assert!(with(&reviewer).contains("with --reviewer-model"));
    let named = [&records[..], &reviewer, &["--reviewer-model", "m", "--out", "rounds"]].concat();
    let unreachable = folder.run(&[&COMMAND[..], &named].concat());
    assert_eq!(unreachable.exit_code, 4, "{}", unreachable.stderr);
    assert!(unreachable.stderr.contains("--reviewer"), "{}", unreachable.stderr);
    assert!(!folder.path("rounds").exists(), "{}", unreachable.stderr);
    let heads = "\n[[stages]]\nname = \"h\"\nkind = \"heads\"\nsteps = 1\nbatch = 2\nrate = 1e-3\n";
    let config = folder.read("train.toml");
    folder.write("train.toml", &format!("{config}{heads}"));
    assert!(with(&[]).contains("pass --restart"));
    folder.write("train.toml", &config);
    assert!(with(&["--decisions", "nobody.jsonl"]).contains("--decisions nobody.jsonl"));
}
