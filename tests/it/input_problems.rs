//! Input problems: each affects as few verdicts as possible and is reported once.

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// Creates a folder with a table of `n` questions without images, and one answers file per model.
fn table_folder(n: usize, models: &[&str]) -> Folder {
    let folder = Folder::empty();
    let mut rows = vec!["id,image,question".to_owned()];
    rows.extend((0..n).map(|i| format!("{i},,what is {i}?")));
    folder.write("cases/questions.csv", &rows.join("\n"));
    for model in models {
        let line = |i| answer_line(i, &format!("{model} says {i}"));
        let lines: String = (0..n).map(line).collect();
        folder.write(&format!("cases/answers/{model}.jsonl"), &lines);
    }
    folder
}

/// Returns one line of an answers file.
fn answer_line(question: usize, text: &str) -> String {
    json!({"question_id": question, "text": text}).to_string() + "\n"
}

/// Replaces text in an answers file.
fn edit_answers(folder: &Folder, model: &str, from: &str, to: &str) {
    let name = &format!("cases/answers/{model}.jsonl");
    let text = folder.read(name);
    assert!(text.contains(from), "{from}");
    folder.write(name, &text.replace(from, to));
}

/// Judges the cases and returns the summary.
fn judge_summary(folder: &Folder, out: &str, more: &[&str]) -> Value {
    let output = folder.judge(out, &[&["--format", "json"], more].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn coverage(summary: &Value, model: &str) -> f64 {
    let models = summary["models"].as_array().unwrap();
    let found = models.iter().find(|m| m["model"] == model).unwrap();
    found["coverage"].as_f64().unwrap()
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

#[test]
fn empty_answer_affects_only_its_pairs() {
    let folder = table_folder(2, &["a", "b", "c"]);
    edit_answers(&folder, "b", "b says 1", " ");
    let summary = judge_summary(&folder, "out", &[]);
    assert_eq!(summary["counts"]["judged"], 4);
    assert_eq!(summary["counts"]["unscored"], json!({"parse": 2}));
    assert_eq!(
        (&summary["counts"]["cases"], &summary["counts"]["left_out"]),
        (&json!(2), &json!(1))
    );
    assert_near(coverage(&summary, "a"), 0.75);
    assert_near(coverage(&summary, "b"), 0.5);
    assert_near(coverage(&summary, "c"), 0.75);
    let records = folder.records("out");
    let unscored: Vec<_> = records.iter().filter(|r| r["status"] == "unscored").collect();
    assert_eq!(
        (&unscored[0]["pair"], &unscored[1]["pair"]),
        (&json!(["a", "b"]), &json!(["b", "c"]))
    );
    assert!(unscored.iter().all(|r| r["case"] == "1" && r["reason"] == "parse"));
    let message = unscored[0]["message"].as_str().unwrap();
    assert!(
        message.contains("model b is empty") && message.contains("b.jsonl line 2"),
        "{message}"
    );
    let judged = records
        .iter()
        .any(|r| r["case"] == "1" && r["pair"] == json!(["a", "c"]) && r["status"] == "judged");
    assert!(judged);
}

#[test]
fn response_without_text_affects_only_its_pairs() {
    for empty in [
        json!({"model": "gamma"}),
        json!({"model": "gamma", "text": null}),
        json!({"model": "gamma", "text": ""}),
    ] {
        let folder = Folder::with_cases(2);
        let mut cases: Vec<_> = (0..2).map(valid_case).collect();
        cases[1]["responses"].as_array_mut().unwrap().insert(0, empty);
        cases[1]["labels"] = json!({"final": [1, 2, 3]});
        folder.write_cases(&cases);
        let summary = judge_summary(&folder, "out", &[]);
        assert_eq!(summary["counts"]["judged"], 2);
        assert_near(coverage(&summary, "gamma"), 0.0);
        assert_near(coverage(&summary, "alpha"), 2.0 / 3.0);
        let judged = folder.records("out").pop().unwrap();
        assert_eq!(judged["labels"], json!({"final": [2.0, 3.0]}));
    }
}

#[test]
fn unreadable_case_lowers_coverage_of_its_models() {
    let folder = table_folder(4, &["a", "b"]);
    folder.write("cases/questions.csv", "id,image,question\n0,,q?\n1,,\n2,,q?,too many\n3,,q?\n");
    let summary = judge_summary(&folder, "out", &[]);
    assert_eq!(
        (&summary["counts"]["judged"], &summary["counts"]["unreadable"]),
        (&json!(2), &json!(2))
    );
    assert_near(coverage(&summary, "a"), 0.5);
    assert_near(coverage(&summary, "b"), 0.5);
}

#[test]
fn problem_is_reported_once_and_not_counted_as_case() {
    let folder = table_folder(3, &["a", "b", "c"]);
    // One line is cut off after its id and one before it, so two answers of b are missing.
    edit_answers(&folder, "b", "\"text\":\"b says 0\"}", "\"te");
    edit_answers(&folder, "b", "{\"question_id\":2,\"text\":\"b says 2\"}", "{\"quest");
    let two = judge_summary(&folder, "two", &["--limit", "2"]);
    assert_eq!((&two["counts"]["cases"], &two["counts"]["judged"]), (&json!(2), &json!(4)));
    let all = judge_summary(&folder, "all", &[]);
    assert_eq!((&all["counts"]["records"], &all["counts"]["judged"]), (&json!(9), &json!(5)));
    assert_eq!(all["counts"]["left_out"], 2);
    let output = folder.run(&["data", "check", "cases"]);
    assert!(output.stdout.ends_with("; 2 problems\n"), "{}", output.stdout);
    assert!(
        output.stdout.contains("perhaps because of") && output.stdout.contains("b.jsonl line 3"),
        "{}",
        output.stdout
    );
}

#[test]
fn limit_applies_to_answer_errors() {
    let folder = table_folder(3, &["a", "b"]);
    let mut lines = folder.read("cases/answers/b.jsonl");
    // A second answer to a judged question, a second answer to a later question, and a line without
    // a model.
    lines += &answer_line(0, "again");
    lines += &answer_line(2, "again");
    lines += "{\"question_id\": 2, \"text\": \"x\", \"model_id\": 1}\n";
    folder.write("cases/answers/b.jsonl", &lines);
    let one = judge_summary(&folder, "one", &["--limit", "1"]);
    assert_eq!((&one["counts"]["records"], &one["counts"]["left_out"]), (&json!(2), &json!(1)));
    let records = folder.records("one");
    assert_eq!((&records[0]["file"], &records[0]["line"]), (&json!("answers/b.jsonl"), &json!(4)));
    let all = judge_summary(&folder, "all", &[]);
    assert_eq!(all["counts"]["left_out"], 3);
}

#[test]
fn answers_to_malformed_rows_match_a_case() {
    let folder = table_folder(4, &["a", "b"]);
    // A row with too many columns, one without a question, and one without an id, which may be the
    // case of the answer to question 3.
    folder.write("cases/questions.csv", "id,image,question\n0,,q?\n1,,q?,more\n2,,\n,,q?\n");
    let output = folder.judge("out", &[]);
    assert!(!output.stderr.contains("without a case"), "{}", output.stderr);
    let lines = folder.read("cases/answers/a.jsonl") + &answer_line(9, "x");
    folder.write("cases/answers/a.jsonl", &lines);
    let output = folder.judge("more", &[]);
    let expected = "1 answer without a case; first: question_id 3, cases/answers/a.jsonl line 4";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn import_keeps_empty_answers() {
    let folder = Folder::empty();
    folder.write(
        "t.csv",
        "id,question,answer_a,answer_b,answer_c\n1,what?,yes,no,\n2,where?,x,y,z\n",
    );
    let output = folder.run(&["data", "import", "t.csv", "--out", "c.jsonl"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("2 cases with 5 responses"), "{}", output.stdout);
    assert!(
        folder.read("c.jsonl").contains(r#"{"model":"c","text":""}"#),
        "{}",
        folder.read("c.jsonl")
    );
    let coverage = |path: &str| {
        let out = format!("{path}.out");
        let output = folder.run(&["judge", path, "--panel", "scripted:", "--out", &out]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let run: Value = serde_json::from_str(&folder.read(&format!("{out}/run.json"))).unwrap();
        run["counts"]["unscored"].clone()
    };
    assert_eq!(coverage("c.jsonl"), coverage("t.csv"));
}

#[test]
fn empty_answers_file_is_rejected() {
    let folder = table_folder(2, &["a", "b"]);
    folder.write("cases/answers/c.jsonl", "\n");
    let output = folder.judge("out", &[]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("cases/answers/c.jsonl: is empty"), "{}", output.stderr);
}

#[test]
fn run_without_verdicts_reports_most_frequent_reason() {
    let folder = table_folder(3, &["a", "b"]);
    for model in ["a", "b"] {
        let lines: String = (7..9).map(|i| answer_line(i, "x")).collect();
        folder.write(&format!("mine/{model}.jsonl"), &lines);
        std::fs::remove_file(folder.path(&format!("cases/answers/{model}.jsonl"))).unwrap();
    }
    // The first problem differs from all others.
    folder.write("cases/questions.csv", "id,image,question\n0,,q?,more\n1,,q?\n2,,q?\n");
    let output = folder.judge("out", &["--answers", "mine"]);
    assert_eq!(output.exit_code, 2);
    let reason = "because: for 2 of them: none of the 2 models has an answer to question_id 1\n";
    assert!(output.stderr.contains(reason), "{}", output.stderr);
    let check = "hint: run `acem3 data check cases --answers mine` to list all problems\n";
    assert!(output.stderr.contains(check), "{}", output.stderr);
}

#[test]
fn run_without_verdicts_reports_first_reason() {
    let folder = Folder::with_cases(2);
    std::fs::remove_file(folder.path("cases/images/0.png")).unwrap();
    let output = folder.judge("out", &[]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""));
    let reason = "because: images/0.png: no such file\n";
    assert!(output.stderr.contains(reason), "{}", output.stderr);
    let manifest = folder.manifest("out");
    assert_eq!(manifest["status"], "failed");
    assert!(manifest["error"].as_str().unwrap().contains("none of 2 records"));
}

#[test]
fn model_names_are_required_and_escaped() {
    let folder = Folder::with_cases(3);
    let mut cases: Vec<_> = (0..3).map(valid_case).collect();
    cases[0]["responses"][1]["model"] = json!("");
    cases[0]["id"] = json!("\u{202e}turned");
    cases[1]["responses"][1]["model"] = json!("x\u{1b}[2J");
    cases[2]["id"] = json!("z\u{7}");
    cases[2]["question"] = json!("");
    folder.write_cases(&cases);
    let output = folder.judge("out", &["-v"]);
    assert!(output.stderr.contains("response 2 has an empty `model`"), "{}", output.stderr);
    assert!(output.stdout.contains("x\\u{1b}[2J"), "{}", output.stdout);
    let check = folder.run(&["data", "check", "cases"]);
    for text in [&output.stdout, &output.stderr, &check.stdout] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
    }
    let folder = table_folder(2, &["a", "b"]);
    edit_answers(&folder, "b", "{\"question_id\":1,", "{\"model_id\":\" \",\"question_id\":1,");
    let output = folder.run(&["data", "check", "cases"]);
    assert!(output.stdout.contains("`model_id` is empty"), "{}", output.stdout);
}

#[test]
fn answers_in_other_languages_are_ignored() {
    let folder = Folder::empty();
    let row = |qid: u32, lang: &str| json!({"qid": qid, "img_name": "a.png", "question": "q?", "answer": "x", "q_lang": lang});
    folder.write("slake/test.json", &json!([row(1, "en"), row(2, "zh")]).to_string());
    image::GrayImage::new(2, 2).save(folder.path("a.png")).unwrap();
    std::fs::create_dir(folder.path("slake/imgs")).unwrap();
    std::fs::rename(folder.path("a.png"), folder.path("slake/imgs/a.png")).unwrap();
    let judge = |out: &str, extra_answers: usize| {
        for model in ["a", "b"] {
            let lines: String = (1..=2 + extra_answers).map(|i| answer_line(i, "x")).collect();
            folder.write(&format!("{model}.jsonl"), &lines);
        }
        folder.run(&[
            "judge",
            "slake",
            "--out",
            out,
            "--panel",
            "scripted:",
            "--answers",
            "a.jsonl",
            "--answers",
            "b.jsonl",
        ])
    };
    let output = judge("out", 0);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(!output.stderr.contains("without a case"), "{}", output.stderr);
    let output = judge("more", 1);
    assert!(
        output.stderr.contains("2 answers without a case") && output.stderr.contains("--lang"),
        "{}",
        output.stderr
    );
}

#[test]
fn flags_without_effect_are_reported() {
    let folder = Folder::with_cases(2);
    let output = folder.judge("out", &["--split", "train", "--lang", "zh"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("--split train has no effect"), "{}", output.stderr);
    assert!(output.stderr.contains("--lang has no effect"), "{}", output.stderr);
    let output = folder.judge("out", &[]);
    assert!(!output.stderr.contains("has no effect"), "{}", output.stderr);
}

#[test]
fn extra_answers_may_belong_to_another_split() {
    let Some(path) = crate::cases::public_data("path_vqa") else {
        return;
    };
    let folder = Folder::empty();
    let lines: Vec<String> = [0, 1, 900_000].map(|i| answer_line(i, "yes")).into();
    folder.write("a.jsonl", &lines.concat());
    let path = path.canonicalize().unwrap();
    let args = ["--split", "validation", "--answers", "a.jsonl"];
    let judge = ["--with-reference", "--limit", "1", "--out", "out", "--panel", "scripted:"];
    let path = [path.to_str().unwrap()];
    let output = folder.run(&[&["judge"][..], &path, &args, &judge].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let note = "1 answer beyond the 1500 rows";
    assert!(output.stderr.contains(note), "{}", output.stderr);
}

/// A line with one word of 120,000 characters in each place that a message can quote.
#[test]
fn messages_about_long_input_are_short() {
    let folder = Folder::with_cases(8);
    let long = "x".repeat(120_000);
    let mut lines: Vec<String> = Vec::new();
    let edit = |i: usize, field: &str, value: Value| {
        let mut case = valid_case(i);
        case[field] = value;
        case.to_string()
    };
    let response = json!({"model": long, "text": "yes"});
    lines.push(valid_case(0).to_string());
    lines.push(format!("{{\"id\": \"c1\", {long}}}"));
    lines.push(edit(2, "id", json!(long)));
    lines.push(edit(3, "image", json!(long)));
    lines.push(edit(4, "responses", json!([response, response])));
    lines.push(edit(5, "labels", json!({long.clone(): [1, 2]})));
    lines.push(edit(6, &long, json!(1)));
    lines.push(edit(7, "id", json!(long)));
    folder.write("cases/cases.jsonl", &(lines.join("\n") + "\n"));
    let check = folder.run(&["data", "check", "cases"]);
    let judge = folder.judge("out", &["--verbose", "--max-unscored", "100"]);
    assert_eq!((check.exit_code, judge.exit_code), (1, 0), "{}", judge.stderr);
    let json = folder.run(&["data", "check", "cases", "--format", "json"]);
    for text in [check.stdout, check.stderr, judge.stdout, judge.stderr, json.stdout] {
        assert!(text.lines().all(|line| line.len() < 1000), "{}", text.len());
    }
    for record in folder.records("out") {
        assert!(record["message"].as_str().is_none_or(|text| text.len() < 1000));
    }
    let last = format!("last {long}");
    let output = folder.run(&["rank", &last]);
    assert!(output.exit_code == 2 && output.stderr.len() < 1000, "{}", output.stderr.len());
    folder.write("labels.csv", &format!("case,preference\nc0,{long}\n"));
    let output = folder.run(&["agree", "out", "--labels", "labels.csv"]);
    assert!(output.exit_code == 2 && output.stderr.len() < 2000, "{}", output.stderr.len());
}

/// Commands that read records accept a run in which an id is used twice.
#[test]
fn records_of_a_repeated_id_differ() {
    let folder = Folder::empty();
    let case = json!({"id": "c", "image": null, "question": "Which side?", "responses":
        [{"model": "a", "text": "left"}, {"model": "b", "text": "right"}]});
    let other = json!({"id": "d", "image": null, "question": "Which side?", "responses":
        [{"model": "a", "text": "right"}, {"model": "b", "text": "left"}]});
    folder.write("cases/cases.jsonl", &format!("{case}\n{case}\n{other}\n{case}\n"));
    for form in ["pair", "single"] {
        let output = folder.judge(form, &["--form", form]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let mut ids: Vec<String> = (folder.records(form).iter())
            .map(|record| record["case"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids, ["c", "c (cases.jsonl:2)", "c (cases.jsonl:4)", "d"]);
        for command in ["rank", "report"] {
            let more: &[&str] = if command == "report" { &["--out", "report.md"] } else { &[] };
            let output = folder.run(&[&[command, form], more].concat());
            assert_eq!(output.exit_code, 0, "{command}: {}", output.stderr);
        }
    }
}
