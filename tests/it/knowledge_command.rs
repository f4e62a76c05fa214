//! `acem3 data index`, `acem3 data search`, and `acem3 judge --knowledge`.

use acem3_experts::prompt::KnowledgePrompt;
use serde_json::{Value, json};

use crate::folder::Folder;

/// Writes a corpus and builds the folder `index` from it.
fn folder_with_index() -> Folder {
    let folder = Folder::with_cases(4);
    let rows = [
        json!({"id": "stent", "title": "Stent", "text": "A tube that keeps an artery open."}),
        json!({"id": "shown", "text": "What is shown in an image is a lesion or none."}),
        json!({"id": "removed", "answer": ""}),
    ];
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    folder.write("corpus.jsonl", &(rows.join("\n") + "\nnot json\n"));
    let output = folder.run(&["data", "index", "corpus.jsonl", "--out", "index"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("corpus.jsonl:4: malformed JSON"), "{}", output.stderr);
    assert!(output.stdout.starts_with("2 passages of 2 documents in index"), "{}", output.stdout);
    assert!(output.stdout.contains("without text  1\nmalformed     1\n"), "{}", output.stdout);
    folder
}

#[test]
fn search_prints_passages_with_scores_and_ids() {
    let folder = folder_with_index();
    let output = folder.run(&["data", "search", "index", "which arteries?", "--format", "json"]);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["terms"], json!(["which", "arteri"]));
    assert_eq!(result["passages"].as_array().unwrap().len(), 1);
    assert_eq!(result["passages"][0]["id"], "stent");
    assert!(result["passages"][0]["score"].as_f64().unwrap() > 0.0);
    let text = folder.run(&["data", "search", "index", "which arteries?"]).stdout;
    assert!(text.contains("  stent  Stent\n    A tube that keeps an artery open.\n"), "{text}");
    let text = folder.run(&["data", "search", "index", "unknown"]).stdout;
    assert_eq!(text, "no passage with one of the terms unknown\n");
    let text = folder.run(&["data", "search", "index", "of the"]).stdout;
    assert_eq!(text, "no passage: the query has no word that the index knows\n");
}

#[test]
fn bad_input_gets_an_error_with_a_hint() {
    let folder = folder_with_index();
    folder.write("empty.jsonl", "");
    folder.write("image.png", "not a corpus");
    let failed = |args: &[&str], expected: &str| {
        let output = folder.run(args);
        assert_eq!(output.exit_code, 2, "{args:?} {}", output.stdout);
        assert!(output.stderr.contains(expected), "{args:?} {}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{args:?} {}", output.stderr);
    };
    let index = |corpus, out| ["data", "index", corpus, "--out", out];
    failed(&index("missing", "new"), "missing: cannot be read");
    failed(&index("empty.jsonl", "new"), "no document with text");
    failed(&index("image.png", "new"), "image.png: unknown format of a corpus");
    failed(&index("corpus.jsonl", "index"), "--out index: exists already");
    failed(
        &[&index("corpus.jsonl", "new")[..], &["--overlap-words", "900"]].concat(),
        "--overlap-words 900",
    );
    assert!(!folder.path("new").exists() && !folder.path("new.building").exists());
    failed(&["data", "search", "cases", "x"], "cases: not a knowledge index");
    let judge = ["judge", "cases", "--out", "out", "--panel", "scripted:"];
    let judge = |more: &[&'static str]| [&judge[..], more].concat();
    failed(&judge(&["--knowledge", "cases"]), "--knowledge");
    failed(&judge(&["--knowledge-rounds", "2"]), "have no effect without an index");
    failed(&judge(&["--knowledge", "index", "--scores-only"]), "there is no analysis");
}

#[test]
fn records_have_questions_and_passages_and_keys_have_the_index() {
    let folder = folder_with_index();
    let flags = ["--panel", "scripted:asks", "--knowledge", "index"];
    let judge = |out: &str, flags: &[&str]| {
        let output = folder.run(&[&["judge", "cases", "--out", out], flags].concat());
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        output.stderr
    };
    judge("plain", &["--panel", "scripted:asks"]);
    let plain = folder.records("plain");
    let analyses = &plain[0]["orders"][0]["conclusion"];
    assert!(analyses["analyses"][0].as_str().unwrap().contains("[Question]: what is shown"));
    assert!(analyses.get("lookups").is_none());
    let notes = judge("out", &flags);
    let records = folder.records("out");
    let all = format!("looked something up for {0} of {0} verdicts", records.len());
    assert!(notes.contains(&all), "{notes}");
    let conclusion = &records[0]["orders"][0]["conclusion"];
    let lookup = json!({"question": plain[0]["question"], "passages": ["shown"], "position": 0});
    assert_eq!(conclusion["lookups"], json!([[lookup], [lookup]]));
    assert!(!conclusion["analyses"][0].as_str().unwrap().contains("[Question]"));
    assert_ne!(records[0]["key"], plain[0]["key"]);
    let provenance = &folder.manifest("out")["provenance"];
    let manifest: Value = serde_json::from_str(&folder.read("index/index.json")).unwrap();
    assert_eq!(provenance["knowledge"], manifest["digest"]);
    assert_eq!(provenance["knowledge limits"], "T=3 K=3, 384 tokens");
    // The same command resumes; another limit is another judge.
    assert!(judge("out", &flags).contains("0 new verdicts"));
    let limited = ["--knowledge-passages", "1"];
    let other = folder.run(&[&["judge", "cases", "--out", "out"], &flags[..], &limited].concat());
    assert_eq!(other.exit_code, 2);
    let difference = "knowledge limits was T=3 K=3, 384 tokens, is T=3 K=1, 384 tokens";
    assert!(other.stderr.contains(difference), "{}", other.stderr);
    // A verification needs the index.
    let verify = |flags: &[&str]| folder.run(&[&["verify", "out"], flags].concat());
    let verified = verify(&flags);
    assert_eq!(verified.exit_code, 0, "{}{}", verified.stdout, verified.stderr);
    assert!(verified.stdout.contains("4 judged again"), "{}", verified.stdout);
    let without = verify(&["--panel", "scripted:asks"]);
    assert_eq!(without.exit_code, 2);
    assert!(without.stderr.contains("knowledge was"), "{}", without.stderr);
    assert!(without.stderr.contains("--knowledge index"), "{}", without.stderr);
}

/// Writes evaluations with the same question, evidence and analysis everywhere, as training data.
fn write_asking_evaluations(folder: &Folder) {
    let args = ["data", "preferences", "--out", "data", "-n", "3", "--layout", "case-first"];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let evaluations = folder.read("data/preferences.jsonl");
    let evaluations = evaluations.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let text = row["chosen"].as_str().unwrap().lines().map(|line| match line {
            line if line.starts_with("Analysis:") => {
                "Analysis: [Question]: lesion?\n[Evidence]: It is bright.\nAnalysis: Good."
            }
            line => line,
        });
        let text = text.collect::<Vec<_>>().join("\n");
        let prompt = KnowledgePrompt::add_instruction(row["prompt"].as_str().unwrap()).unwrap();
        row["prompt"] = prompt.into();
        row["completion"] = text.into();
        row.as_object_mut().unwrap().retain(|name, _| name != "chosen" && name != "rejected");
        row.to_string() + "\n"
    });
    let evaluations: String = evaluations.collect();
    folder.write("data/evaluations.jsonl", &evaluations);
}

/// From training to verdicts: a panel that learned to ask gets passages and continues.
#[test]
fn panel_that_was_trained_to_ask_reads_evidence_and_continues() {
    let folder = folder_with_index();
    write_asking_evaluations(&folder);
    let stage = "\n[[stages]]\nname = \"sft\"\nkind = \"sft\"\nsteps = 110\nbatch = 4\nrate = 2e-2\n\
                 [stages.evaluations]\nfile = \"data/evaluations.jsonl\"\n";
    let tiny = include_str!("../tiny.toml").replace("embeddings = 1024", "embeddings = 4096");
    folder.write("train.toml", &(tiny + stage));
    let output = folder.run(&["train", "run", "train.toml", "--out", "run"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let output = folder.run(&["data", "phantoms", "--out", "phantoms", "-n", "2"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let judge = |out: &str, more: &[&str]| {
        let args = ["judge", "phantoms", "--out", out, "--panel", "run/panel"];
        let output = folder.run(&[&args[..], more].concat());
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        folder.unchecked_records(out)
    };
    let count = |text: &str, part: &str| text.matches(part).count();
    let knowledge = ["--knowledge", "index"];
    let text = judge("out", &knowledge);
    let lookup = "{\"question\":\"lesion?\",\"passages\":[\"shown\"],\"position\":0}";
    // At most three questions in each of the four evaluations of a pair in two orders.
    let lookups = count(&text, lookup);
    let pairs = folder.records("out").len();
    assert!((pairs..=pairs * 2 * 4 * 3).contains(&lookups), "{lookups} of {pairs} pairs: {text}");
    // It continues after the evidence as it learned. The tokenizer of a tiny panel has lower case
    // only.
    assert!(count(&text, "\"good.\"") > 0, "{text}");
    // Batches do not change a record.
    let alone = judge("alone", &[&knowledge[..], &["--batch-size", "1"]].concat());
    assert_eq!(alone, text);
    let output = folder.run(&["verify", "out", "--panel", "run/panel", "--knowledge", "index"]);
    assert_eq!(output.exit_code, 0, "{}{}", output.stdout, output.stderr);
}
