//! Forms of judging and the use of the reference, with the scripted judge and with a tiny checkpoint.

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// The folder of a tiny LLaVA checkpoint with random weights.
pub(crate) fn checkpoint() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/assets/golden/checkpoints/llava").to_owned()
}

/// Cases with references, and with responses of which every second one of `alpha` equals it.
pub(crate) fn folder_with_references(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    let cases: Vec<Value> = (0..n)
        .map(|i| {
            let mut case = valid_case(i);
            case["reference"] =
                json!(if i % 2 == 0 { format!("a shadow, {i}") } else { "yes".into() });
            case
        })
        .collect();
    folder.write_cases(&cases);
    folder
}

#[test]
fn correctness_has_one_record_per_response_and_a_table_of_accuracy() {
    let folder = folder_with_references(12);
    let result = folder.judge("out", &["--form", "correctness"]);
    assert_eq!(result.exit_code, 0, "{}", result.stderr);
    assert!(result.stdout.starts_with("24 responses of 12 cases judged by"), "{}", result.stdout);
    assert!(result.stdout.contains("exact match"), "{}", result.stdout);
    assert!(!result.stdout.contains("flips"), "{}", result.stdout);
    let records = folder.records("out");
    assert_eq!(records.len(), 24);
    for record in &records {
        assert_eq!(record["form"], "correctness");
        assert_eq!(record["pair"], Value::Null);
        assert_eq!(record["models"].as_array().map(Vec::len), Some(1));
        let probability = record["expected"][0].as_f64().unwrap();
        let is_correct = if probability > 0.5 { 1.0 } else { 0.0 };
        assert_eq!(record["scores"], json!([is_correct]));
    }
    let ranking = folder.run(&["rank", "out", "--format", "json"]);
    let ranking: Value = serde_json::from_str(&ranking.stdout).unwrap();
    let alpha = records.iter().filter(|record| record["models"] == json!(["alpha"]));
    let correct = alpha.filter(|record| record["scores"] == json!([1.0])).count();
    let models = ranking["models"].as_array().unwrap();
    let alpha = models.iter().find(|model| model["model"] == "alpha").unwrap();
    assert_eq!(alpha["n"], 12);
    assert!((alpha["accuracy"]["value"].as_f64().unwrap() - correct as f64 / 12.0).abs() < 1e-9);
    assert!((alpha["exact_match"]["value"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    assert_eq!(ranking["differences"][0]["n"], 12);
}

#[test]
fn agreement_on_correctness_needs_labels_of_0_or_1() {
    let folder = folder_with_references(12);
    folder.judge("out", &["--form", "correctness"]);
    let without = folder.run(&["agree", "out"]);
    assert_eq!(without.exit_code, 2, "{}", without.stdout);
    assert!(without.stderr.contains("found 4"), "the labels of pairs: {}", without.stderr);
    // Labels that equal exact match.
    let rows = (0..12).flat_map(|i| {
        let label = u8::from(i % 2 == 0);
        [format!("c{i},alpha,dr-a,{label}\n"), format!("c{i},beta,dr-a,0\n")]
    });
    folder.write("labels.csv", &format!("case,model,rater,score\n{}", rows.collect::<String>()));
    let result = folder.run(&["agree", "out", "--labels", "labels.csv", "--format", "json"]);
    let result: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!(result["n"], 24);
    assert_eq!(result["graders"][1]["grader"], "exact match");
    assert_eq!(result["graders"][1]["agreement"]["value"], 1.0);
    assert_eq!(result["graders"][1]["kappa"]["value"], 1.0);
    folder.write("scores.csv", "case,model,score\nc0,alpha,4\n");
    let scores = folder.run(&["agree", "out", "--labels", "scores.csv"]);
    assert!(scores.stderr.contains("scores.csv line 2: expected a final label of 1"));
}

#[test]
fn responses_alone_are_compared_afterwards() {
    let folder = Folder::with_cases(10);
    let result = folder.judge("out", &["--form", "single"]);
    assert!(result.stdout.starts_with("20 responses of 10 cases judged by"), "{}", result.stdout);
    let records = folder.records("out");
    assert_eq!(records.len(), 20);
    let wins = records.chunks(2).filter(|pair| {
        let score = |record: &Value| record["scores"][0].as_f64().unwrap();
        score(&pair[0]) > score(&pair[1])
    });
    let wins = wins.count();
    let ranking = folder.run(&["rank", "out", "--format", "json"]);
    let ranking: Value = serde_json::from_str(&ranking.stdout).unwrap();
    let models = ranking["models"].as_array().unwrap();
    let alpha = models.iter().find(|model| model["model"] == "alpha").unwrap();
    assert_eq!((alpha["n"].as_u64(), alpha["wins"].as_u64()), (Some(10), Some(wins as u64)));
    for command in [vec!["report", "out", "--out", "report.html"], vec!["audit", "out"]] {
        let result = folder.run(&command);
        assert_eq!(result.exit_code, 0, "{command:?}: {}", result.stderr);
    }
    let metrics = folder.run(&["metrics", "out", "--format", "json"]);
    assert_eq!(metrics.exit_code, 0, "{}", metrics.stderr);
}

/// A file of one model has nothing to compare, but each response has its scores.
#[test]
fn one_model_alone_has_scores_and_no_ranking() {
    let folder = Folder::with_cases(4);
    let cases: Vec<Value> = (0..4)
        .map(|i| {
            let mut case = valid_case(i);
            case["responses"] = json!([case["responses"][0]]);
            case
        })
        .collect();
    folder.write_cases(&cases);
    let pairs = folder.judge("pairs", &[]);
    assert_eq!(pairs.exit_code, 2);
    assert!(pairs.stderr.contains("--form single"), "{}", pairs.stderr);
    let single = folder.judge("single", &["--form", "single"]);
    assert!(single.stdout.starts_with("4 responses of 4 cases judged by"), "{}", single.stdout);
    let ranking = folder.run(&["rank", "single"]);
    assert!(ranking.stderr.contains("no case has responses of two models"), "{}", ranking.stderr);
}

#[test]
fn shown_reference_is_part_of_the_key_and_a_missing_one_is_an_error() {
    let folder = folder_with_references(4);
    let keys = |out: &str, more: &[&str]| -> Vec<Value> {
        assert_eq!(folder.judge(out, more).exit_code, 0);
        folder.records(out).into_iter().map(|record| record["key"].clone()).collect()
    };
    let hidden = keys("hidden", &[]);
    let shown = keys("shown", &["--reference", "show"]);
    assert!(hidden.iter().zip(&shown).all(|(a, b)| a != b));
    assert_eq!(folder.manifest("shown")["provenance"]["reference"], "shown");
    let rival = folder.judge("rival", &["--reference", "rival"]);
    assert!(rival.stdout.contains("\nreference "), "{}", rival.stdout);
    let plain = Folder::with_cases(2);
    for (out, more) in [("a", ["--form", "correctness"]), ("b", ["--reference", "show"])] {
        let result = plain.judge(out, &more);
        assert_eq!(result.exit_code, 2);
        assert!(result.stderr.contains("the case has no reference answer"), "{}", result.stderr);
    }
}

#[test]
fn embedded_panel_rejects_forms_that_it_was_not_trained_for() {
    let folder = folder_with_references(2);
    for more in [["--form", "correctness"], ["--form", "single"], ["--reference", "show"]] {
        let result = folder.run(&[&["judge", "cases", "--out", "out"][..], &more].concat());
        assert_eq!(result.exit_code, 2);
        assert!(result.stderr.contains(&more.join(" ")), "{}", result.stderr);
        assert!(result.stderr.contains("was trained for the form pair"), "{}", result.stderr);
    }
}

/// A checkpoint with random weights judges pairs and single responses next to the reference. Its
/// verdicts do not depend on batches.
#[test]
fn published_checkpoint_judges_with_reference() {
    let folder = folder_with_references(2);
    for (form, n) in [("single", 4), ("pair", 2)] {
        let mut files = Vec::new();
        for (out, batch) in [("a", "1"), ("b", "4")] {
            let out = format!("{form}-{out}");
            let panel = checkpoint();
            let args = ["judge", "cases", "--out", &out, "--panel", &panel, "--form", form];
            let more = ["--scores-only", "--batch-size", batch, "--reference", "show"];
            let result = folder.run(&[&args[..], &more].concat());
            assert_eq!(result.exit_code, 0, "{form}: {}", result.stderr);
            files.push(folder.read(&format!("{out}/records.jsonl")));
            assert_eq!(folder.records(&out).len(), n);
        }
        assert_eq!(files[0], files[1]);
    }
    let panel = checkpoint();
    let args = ["judge", "cases", "--out", "c", "--panel", &panel, "--form", "correctness"];
    let result = folder.run(&args);
    assert_eq!(result.exit_code, 2);
    assert!(result.stderr.contains("the words no and yes"), "{}", result.stderr);
}

#[test]
fn prompts_show_what_each_member_reads() {
    let folder = folder_with_references(2);
    let pair = folder.run(&["panel", "prompts", "cases"]);
    for text in
        ["expression reads", "conclusion writes", "a shadow, 0", "<image>", "Score: <0 to 5>"]
    {
        assert!(pair.stdout.contains(text), "{text}: {}", pair.stdout);
    }
    let args = ["panel", "prompts", "cases", "--case", "c1", "--form", "correctness", "--panel"];
    let panel = checkpoint();
    let alone = folder.run(&[&args[..], &[&panel]].concat());
    assert!(alone.stdout.contains("### Reference Answer:\nyes\n"), "{}", alone.stdout);
    assert!(alone.stdout.contains("Correct: <yes or no>"), "{}", alone.stdout);
    assert!(!alone.stdout.contains("expression reads"), "{}", alone.stdout);
    let absent = folder.run(&["panel", "prompts", "cases", "--case", "c9"]);
    assert_eq!(absent.exit_code, 2);
    assert!(absent.stderr.contains("--case c9"), "{}", absent.stderr);
}

/// A case without a reference lowers the coverage of each of its models.
#[test]
fn missing_reference_leaves_each_response_unscored() {
    let folder = folder_with_references(4);
    let mut cases: Vec<Value> = (0..4)
        .map(|i| {
            let mut case = valid_case(i);
            case["reference"] = json!("yes");
            case
        })
        .collect();
    cases[1]["reference"] = json!("  ");
    cases[2].as_object_mut().unwrap().remove("reference");
    folder.write_cases(&cases);
    let result = folder.judge("out", &["--form", "correctness"]);
    assert!(result.stdout.contains("unscored  4 of 8 (50.0 %): parse 4"), "{}", result.stdout);
    let table = folder.run(&["rank", "out", "--format", "json"]);
    let table: Value = serde_json::from_str(&table.stdout).unwrap();
    for model in table["models"].as_array().unwrap() {
        assert_eq!((model["n"].as_u64(), model["coverage"].as_f64()), (Some(2), Some(0.5)));
    }
}

#[test]
fn runs_of_different_questions_are_not_compared() {
    let folder = folder_with_references(6);
    folder.judge("pairs", &[]);
    folder.judge("single", &["--form", "single"]);
    folder.judge("shown", &["--reference", "show"]);
    for (run, name) in
        [("single", "form was pair, and is single"), ("shown", "reference was hidden")]
    {
        let args = ["report", run, "--baseline", "pairs", "--out", "report.html"];
        let result = folder.run(&args);
        assert_eq!(result.exit_code, 2, "{}", result.stdout);
        assert!(result.stderr.contains(name), "{}", result.stderr);
    }
    folder.judge("correctness", &["--form", "correctness"]);
    let target = folder.run(&["rank", "correctness", "--target", "expression"]);
    assert!(target.stderr.contains("have no criteria"), "{}", target.stderr);
    folder.write("labels.csv", "case,model,score\nc0,alpha,1\n");
    let args = ["agree", "correctness", "--labels", "labels.csv", "--group-by", "kind"];
    assert!(folder.run(&args).stderr.contains("--group-by: not available"));
}

/// A case without a reference has as many unscored pairs as one without its image.
#[test]
fn missing_reference_leaves_each_pair_unscored() {
    let folder = Folder::with_cases(6);
    let cases: Vec<Value> = (0..6)
        .map(|i| {
            let mut case = valid_case(i);
            let response = |model: &str| json!({"model": model, "text": format!("{model}, {i}")});
            case["responses"] = json!(["a", "b", "c", "d"].map(response));
            case.as_object_mut().unwrap().remove("labels");
            if i < 2 {
                case["reference"] = json!("yes");
            }
            case
        })
        .collect();
    folder.write_cases(&cases);
    let result = folder.judge("out", &["--reference", "show"]);
    assert_eq!(result.exit_code, 3, "{}", result.stderr);
    assert!(result.stdout.contains("unscored  24 of 36 (66.7 %): parse 24"), "{}", result.stdout);
    assert!(result.stdout.contains(" 33 % "), "{}", result.stdout);
    // Their cluster is the image.
    assert!(folder.records("out").iter().all(|record| record["image"]["sha256"].is_string()));
    let with_baseline = folder.judge("baseline", &["--reference", "show", "--baseline", "b"]);
    let expected = "unscored  12 of 18 (66.7 %): parse 12";
    assert!(with_baseline.stdout.contains(expected), "{}", with_baseline.stdout);
}

#[test]
fn flags_without_effect_in_a_form_are_named() {
    let folder = folder_with_references(2);
    let warning = |flags: &str| {
        let flags: Vec<&str> = flags.split(' ').collect();
        let result = folder.judge("out", &[&flags[..], &["--limit", "1"]].concat());
        assert_eq!(result.exit_code, 0, "{}", result.stderr);
        std::fs::remove_dir_all(folder.path("out")).unwrap();
        result.stderr
    };
    for form in ["single", "list", "correctness"] {
        let stderr = warning(&format!("--form {form} --baseline w"));
        assert!(stderr.contains("--baseline w has no effect"), "{form}: {stderr}");
    }
    for form in ["single", "correctness"] {
        let stderr = warning(&format!("--form {form} --single-order"));
        assert!(stderr.contains("--single-order has no effect"), "{form}: {stderr}");
    }
    let hidden = warning("--form correctness --reference hide");
    assert!(hidden.contains("--reference hide has no effect"), "{hidden}");
    for effective in ["--form list --single-order", "--form correctness", "--reference hide"] {
        let stderr = warning(effective);
        assert!(!stderr.contains("no effect"), "{effective}: {stderr}");
    }
}
