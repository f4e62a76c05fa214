//! Panels that are trained for other rubrics and forms of judging than pairs of ACE-M³: from the evaluations
//! of a teacher to verdicts.

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};
use crate::recipes::text_model;

/// What a panel is trained for.
struct Task {
    rubric: &'static str,
    form: &'static str,
    shows_reference: bool,
}

/// Returns the training configuration of a task.
fn config(base: &str, task: &Task) -> String {
    let Task { rubric, form, shows_reference } = task;
    // One expert judges in this form.
    let members = if *form == "correctness" { "members = [\"medical_knowledge\"]\n" } else { "" };
    format!(
        "name = \"student\"\nstart = {base:?}\nseed = 1\ntrunk_layers = 1\n\
         [judging]\nrubric = \"{rubric}\"\nforms = [\"{form}\"]\nreference = {shows_reference}\n\
         [[stages]]\nname = \"tune\"\nkind = \"heads\"\nsteps = 2\nbatch = 2\nrate = 1e-4\n\
         frozen_layers = 1\n{members}[stages.evaluations]\nfile = \"data/evaluations.jsonl\"\n"
    )
}

/// Runs a command and checks that it succeeds. Returns what it prints.
fn run(folder: &Folder, args: &[&str]) -> String {
    let result = folder.run(args);
    assert_eq!(result.exit_code, 0, "{args:?}: {}", result.stderr);
    result.stdout + &result.stderr
}

#[test]
fn panels_judge_in_the_forms_that_they_were_trained_for() {
    for task in [
        Task { rubric: "hdceval", form: "single", shows_reference: false },
        Task { rubric: "hdceval", form: "pair", shows_reference: true },
        Task { rubric: "automedeval", form: "list", shows_reference: false },
        Task { rubric: "ace_m3", form: "correctness", shows_reference: true },
    ] {
        let Task { rubric, form, shows_reference } = task;
        let folder = Folder::with_cases(3);
        let cases = (0..3).map(|i| {
            let mut case = valid_case(i);
            case["reference"] = json!("a shadow");
            case
        });
        folder.write_cases(&cases.collect::<Vec<_>>());
        // The words yes and no are single tokens of the embedded panel.
        let base = if form == "correctness" { "embedded".to_owned() } else { text_model(&folder) };
        folder.write("student.toml", &config(&base, &task));
        let (mut evaluate, mut judge) = (
            vec!["data", "evaluations", "cases", "--out", "data", "--panel", "scripted:"],
            vec!["judge", "cases", "--panel", "run/panel", "--out", "out", "--form", form],
        );
        evaluate.extend(["--check", "none", "--config", "student.toml", "--form", form]);
        if form != "correctness" {
            evaluate.extend(["--rubric", rubric]);
        }
        if shows_reference && form != "correctness" {
            evaluate.push("--student-reference");
            judge.extend(["--reference", "show"]);
        }
        run(&folder, &evaluate);
        let train = run(&folder, &["train", "run", "student.toml", "--out", "run"]);
        assert!(!train.contains("the prompts of its file"), "{rubric}, {form}: {train}");
        run(&folder, &judge);
        let records = folder.records("out");
        assert!(!records.is_empty() && records.iter().all(|r| r["status"] == "judged"), "{form}");
        assert_eq!(records[0]["form"].as_str().unwrap_or("pair"), form);
        let inspection = run(&folder, &["panel", "inspect", "run/panel", "--format", "json"]);
        let inspection: Value = serde_json::from_str(inspection.trim()).unwrap();
        assert!(inspection["rubrics"][rubric].is_string(), "{inspection}");
        let other = if form == "single" { "list" } else { "single" };
        let args = ["judge", "cases", "--panel", "run/panel", "--out", "no", "--form", other];
        let refused = folder.run(&args);
        assert_eq!(refused.exit_code, 2, "{}", refused.stdout);
        assert!(refused.stderr.contains("was trained for the form"), "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("--form {form}")), "{}", refused.stderr);
    }
}

#[test]
fn evaluations_of_another_rubric_are_refused_with_the_line() {
    let folder = Folder::with_cases(3);
    let task = Task { rubric: "hdceval", form: "pair", shows_reference: false };
    let base = text_model(&folder);
    folder.write("student.toml", &config(&base, &task));
    let flags = ["--panel", "scripted:", "--check", "none", "--config", "student.toml"];
    run(&folder, &[&["data", "evaluations", "cases", "--out", "data"], &flags[..]].concat());
    let train = folder.run(&["train", "run", "student.toml", "--out", "run"]);
    assert_eq!(train.exit_code, 2, "{}", train.stdout);
    let names = "expected one of relevance, correctness, expression, conclusion";
    for part in ["evaluations.jsonl, line 2", "unknown member \"medical_knowledge\"", names] {
        assert!(train.stderr.contains(part), "{part}: {}", train.stderr);
    }
    assert!(train.stderr.contains("hint: set `rubric` in the table [judging]"), "{}", train.stderr);
    for (from, to, problem) in [
        ("forms = [\"pair\"]", "forms = []", "forms is empty"),
        ("forms = [\"pair\"]", "analysis_tokens = 0", "analysis_tokens is 0, expected 1 to 8192"),
        ("\"hdceval\"", "\"none.toml\"", "no such file and no built-in rubric"),
        ("file = \"data/evaluations.jsonl\"", "file = \"none\"", "hint: "),
        (
            "[stages.evaluations]\nfile = \"data/evaluations.jsonl\"",
            "",
            "has another rubric or form",
        ),
    ] {
        let text = config(&base, &task).replace(from, to);
        folder.write("bad.toml", &text);
        let result = folder.run(&["train", "run", "bad.toml", "--out", "bad"]);
        assert_eq!(result.exit_code, 2, "{problem}: {}", result.stderr);
        assert!(result.stderr.contains(problem), "{problem}: {}", result.stderr);
    }
}
