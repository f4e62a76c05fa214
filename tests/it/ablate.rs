//! `acem3 train ablate` on files of evaluations and preferences, with labelled cases.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput};
use crate::recipes::{text_model, write_evaluations};

/// Writes labelled text cases. Every criterion has labels, and the final scores differ.
fn write_cases(folder: &Folder) {
    let criteria = [
        "clarity_of_response",
        "language_appropriateness",
        "tone_and_empathy",
        "expression_integrity",
        "factual_accuracy",
        "up_to_date_information",
        "handling_uncertainty",
        "context_awareness",
        "relevance_to_condition",
        "addressing_multiple_concerns",
    ];
    let lines = (0..2u8).map(|i| {
        let scores: Value =
            criteria.iter().map(|name| ((*name).to_owned(), json!([i, 5 - i]))).collect();
        json!({
            "id": i.to_string(),
            "question": format!("Is it {i}?"),
            "responses": [{"model": "a", "text": "yes"}, {"model": "b", "text": "no"}],
            "labels": {"final": [i, 4 - i], "criteria": scores},
        })
        .to_string()
    });
    folder.write("labelled.jsonl", &lines.collect::<Vec<_>>().join("\n"));
}

/// Writes a text model, its evaluations and preferences with reward tokens for each aspect, and a
/// training on them.
fn prepare(folder: &Folder, negatives: &[&str]) {
    let model = text_model(folder);
    write_evaluations(folder, None);
    write_cases(folder);
    let stages = [
        "name = \"tune\"\nkind = \"heads\"\nrewarded = true\n[stages.evaluations]\n\
         file = \"evaluations.jsonl\"",
        "name = \"prefer\"\nkind = \"adto\"\n[stages.preferences]\n\
         file = \"pairs/preferences.jsonl\"",
    ];
    let mut text = format!(
        "name = \"tiny\"\nstart = {model:?}\nseed = 1\ntrunk_layers = 1\n[reward_tokens]\n\
         expression = {{ good = \"[Good EXP]\", bad = \"[Bad EXP]\" }}\n"
    );
    for stage in stages {
        let (head, tail) = stage.split_once("\n[").unwrap();
        let _ = write!(
            text,
            "[[stages]]\n{head}\nsteps = 1\nbatch = 1\nrate = 1e-3\nwarmup = 1\nfrozen_layers = 1\n\
             [{tail}\n"
        );
    }
    folder.write("train.toml", &text);
    let args = ["data", "preferences", "evaluations.jsonl", "--out", "pairs"];
    let written =
        folder.run(&[&args[..], &["--reward-tokens-of", "train.toml"], negatives].concat());
    assert_eq!(written.exit_code, 0, "{}", written.stderr);
    assert!(written.stderr.contains("expression [Good EXP] [Bad EXP]"), "{}", written.stderr);
}

fn ablate(folder: &Folder, study: &str) -> ProgramOutput {
    let args = ["train", "ablate", "train.toml", "--out", "tables", "--seeds", "1"];
    folder.run(
        &[&args[..], &["--device", "cpu", "--cases", "labelled.jsonl", "--study", study]].concat(),
    )
}

/// The table of HDCEval: accuracy by criterion, with and without reward tokens and preference data.
#[test]
fn ablation_on_files_has_columns_by_criterion() {
    let folder = Folder::empty();
    prepare(&folder, &[]);
    let output = ablate(&folder, "ablation");
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let table: Value = serde_json::from_str(&folder.read("tables/ablation.json")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["full", "no reward token", "no preference data", "no frozen layers"]);
    for row in rows {
        let of_group = |group: &str| {
            let cells = row["cells"].as_array().unwrap().iter();
            cells.filter(|cell| cell["group"] == group).count()
        };
        // Ten criteria and their mean; three aspects, which are the means of their criteria.
        assert_eq!(of_group("cases, order right by criteria"), 11, "{row}");
        assert_eq!(of_group("cases, order right by aspects"), 3, "{row}");
        assert_eq!(of_group("phantoms"), 0);
    }
    let markdown = folder.read("tables/ablation.md");
    assert!(markdown.contains("## cases, order right by criteria"), "{markdown}");
    assert!(markdown.contains("factual accuracy"), "{markdown}");
    // The variant without tokens forces none, and the others those of each member.
    let spec = |variant: &str| -> toml::Table {
        let path = format!("tables/{variant}/seed-1/panel/panel.toml");
        toml::from_str(&folder.read(&path)).unwrap()
    };
    assert!(!spec("no-reward-token").contains_key("reward_tokens"));
    let tokens = &spec("full")["reward_tokens"];
    assert_eq!(tokens["expression"].as_str(), Some("[Good EXP]"));
    assert_eq!(tokens["conclusion"].as_str(), Some("[Good]"));
    // Labelled cases are measured by `train eval` too.
    let panel = "tables/full/seed-1/panel";
    let eval = folder.run(&["train", "eval", "--panel", panel, "--cases", "labelled.jsonl"]);
    assert_eq!(eval.exit_code, 0, "{}", eval.stderr);
    for expected in ["mean over the criteria", "order accuracy, patient relevance", "(2 pairs"] {
        assert!(eval.stdout.contains(expected), "{}", eval.stdout);
    }
    assert!(!eval.stdout.contains("phantoms"), "{}", eval.stdout);
}

#[test]
fn negatives_of_a_file_are_selected_by_name() {
    let folder = Folder::empty();
    prepare(&folder, &["--every"]);
    let output = ablate(&folder, "negatives");
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let table: Value = serde_json::from_str(&folder.read("tables/negatives.json")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    // All analyses are equal, and none states a reference.
    assert_eq!(names, ["all ways", "score swap", "score addition"], "{}", output.stderr);
    let note = "no variant \"reference removal\": ";
    assert!(output.stderr.contains(note), "{}", output.stderr);
    let pairs = folder.read("pairs/preferences.jsonl").replace("\"negatives\"", "\"origin\"");
    folder.write("pairs/preferences.jsonl", &pairs);
    let unnamed = ablate(&folder, "negatives");
    assert_eq!(unnamed.exit_code, 2);
    assert!(unnamed.stderr.contains("line 1 has no `negatives`"), "{}", unnamed.stderr);
}

#[test]
fn cases_without_labels_are_refused_before_training() {
    let folder = Folder::empty();
    prepare(&folder, &[]);
    let text = folder.read("labelled.jsonl").replace("\"labels\"", "\"scores\"");
    folder.write("labelled.jsonl", &text);
    let output = ablate(&folder, "bias");
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("no pair has labels"), "{}", output.stderr);
    assert!(!folder.path("tables/with-preference-data").exists());
}

/// Writes a training with a curriculum on evaluations that ask questions, the folder of a run of
/// introspection, and an index.
fn prepare_automedeval(folder: &Folder) {
    let model = text_model(folder);
    write_evaluations(folder, None);
    write_cases(folder);
    let evaluations = folder.read("evaluations.jsonl");
    let asking = "Analysis: [Question]: what is it?\\n[Evidence]: a cyst\\nAnalysis: It is fine.";
    let asking = evaluations.replace("Analysis: It is fine.", asking);
    folder.write("evaluations.jsonl", &evaluations);
    folder.write("run/data/round-0.jsonl", &asking);
    folder.write("run/data/round-1.jsonl", &asking.replace("It is fine", "It is right"));
    folder.write("run/rounds.json", r#"{"rounds": [{"round": 0}, {"round": 1}]}"#);
    folder.write("run/introspection.json", r#"{"adviser": "a", "continue": true}"#);
    folder.write("corpus.jsonl", r#"{"id": "cyst", "text": "A cyst is a sac."}"#);
    let index = folder.run(&["data", "index", "corpus.jsonl", "--out", "index"]);
    assert_eq!(index.exit_code, 0, "{}", index.stderr);
    folder.write(
        "train.toml",
        &format!(
            "name = \"tiny\"\nstart = {model:?}\nseed = 1\ntrunk_layers = 1\n[[stages]]\n\
             name = \"curriculum\"\nkind = \"sft\"\nsteps = 2\nbatch = 2\nrate = 1e-3\nwarmup = 1\n\
             [stages.evaluations]\nfile = \"evaluations.jsonl\"\ncurriculum = \"disjoint\"\n"
        ),
    );
}

/// The rows of AutoMedEval, each with one part of the training left out.
#[test]
fn rows_of_automedeval_leave_out_one_part_each() {
    let folder = Folder::empty();
    prepare_automedeval(&folder);
    let args = ["train", "ablate", "train.toml", "--out", "tables", "--seeds", "1"];
    let args = [&args[..], &["--study", "automedeval", "--cases", "labelled.jsonl"]].concat();
    let more = ["--introspection", "run", "--knowledge", "index", "--device", "cpu"];
    let output = folder.run(&[&args[..], &more].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("trained anew"), "{}", output.stderr);
    let table: Value = serde_json::from_str(&folder.read("tables/automedeval.json")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["full", "no knowledge completion", "no curriculum", "no introspection"]);
    let config = |variant: &str| -> toml::Table {
        let path = format!("tables/automedeval-{variant}/seed-1/train.toml");
        let config: toml::Table = toml::from_str(&folder.read(&path)).unwrap();
        config["stages"][0]["evaluations"].as_table().unwrap().clone()
    };
    let is_last = |config: &toml::Table| config["file"].as_str().unwrap().ends_with("1.jsonl");
    let (full, no_knowledge) = (config("full"), config("no-knowledge-completion"));
    assert!(is_last(&full) && full.contains_key("curriculum"), "{full:?}");
    assert_eq!(no_knowledge["strip_questions"].as_bool(), Some(true));
    assert!(!config("no-curriculum").contains_key("curriculum"));
    assert!(!is_last(&config("no-introspection")));
    // Without the inputs, the table has notes about the missing rows.
    let args: Vec<&str> =
        args.into_iter().map(|arg| if arg == "tables" { "plain" } else { arg }).collect();
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    for note in ["\"no knowledge completion\": pass --knowledge", "\"no introspection\": pass"] {
        assert!(output.stderr.contains(note), "{}", output.stderr);
    }
    let other =
        folder.run(&["train", "ablate", "train.toml", "--out", "other", "--introspection", "run"]);
    assert_eq!(other.exit_code, 2);
    assert!(other.stderr.contains("only with --study automedeval"), "{}", other.stderr);
}
