//! Files as evaluation harnesses, batch interfaces and tables contain them.
//!
//! `assets/golden/make_imports.py` wrote the files, with the code of the harnesses.

use std::fs;
use std::path::{Path, PathBuf};

use acem3::data::cases::{Case, ImageSource, SourceKind, SourceOptions, open, open_imports};

use crate::folder::Folder;

const REFERENCES: [&str; 4] = ["yes", "grey", "no", "left"];
const ANSWERS_OF_A: [&str; 4] =
    ["Yes, it is bright.", "It is grey.", "No line is visible.", "The left side."];
const ANSWERS_OF_B: [&str; 4] = ["No.", "Grey", "Yes, a line.", "right"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/imports").join(name)
}

/// Reads the cases of a path and checks that there is no problem.
fn read_with(path: &Path, options: &SourceOptions) -> Vec<Case> {
    let source = open(path, options).unwrap();
    assert_eq!(source.kind, SourceKind::Import);
    let total = source.total;
    let cases: Vec<Case> = source.map(|entry| entry.unwrap()).collect();
    assert_eq!(total, Some(cases.len() as u64));
    cases
}

fn read(name: &str) -> Vec<Case> {
    read_with(&fixture(name), &SourceOptions::default())
}

fn image_bytes(case: &Case) -> Vec<u8> {
    match case.image.as_ref().unwrap() {
        ImageSource::File(path) => fs::read(path).unwrap(),
        ImageSource::Bytes { bytes, .. } => bytes.to_vec(),
    }
}

/// Checks the four questions, their images, references, and the answers of both models.
fn check_squares(cases: &[Case], models: [&str; 2], images: [usize; 4]) {
    assert_eq!(cases.len(), 4);
    for (index, case) in cases.iter().enumerate() {
        let found: Vec<_> = case.responses.iter().map(|r| (&*r.model, &*r.text)).collect();
        let expected = [(models[0], ANSWERS_OF_A[index]), (models[1], ANSWERS_OF_B[index])];
        assert_eq!(found, expected);
        assert_eq!(
            image_bytes(case),
            fs::read(fixture(&format!("images/{}.png", images[index]))).unwrap()
        );
    }
    assert!(cases[0].question.starts_with("Is the square bright?"), "{}", cases[0].question);
}

fn references(cases: &[Case]) -> Vec<&str> {
    cases.iter().map(|case| case.reference.as_deref().unwrap_or("-")).collect()
}

#[test]
fn samples_of_lm_evaluation_harness_are_read() {
    let cases = read("lm_eval");
    assert_eq!(cases.len(), 6);
    let (choices, open): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.id.starts_with("square_choice-"));
    check_squares(&open, ["org__model-a", "org__model-b"], [0, 1, 2, 3]);
    assert_eq!(references(&open), REFERENCES);
    assert_eq!(open[3].id, "square_vqa-3");
    let answers: Vec<&str> = choices[0].responses.iter().map(|r| r.text.as_str()).collect();
    assert_eq!((answers, references(&choices)), (vec!["no", "yes"], vec!["yes", "yes"]));
}

#[test]
fn samples_of_lmms_eval_are_read() {
    let cases = read("lmms_eval");
    check_squares(&cases, ["org__model-a", "org__model-b"], [0, 1, 2, 3]);
    assert_eq!(references(&cases), REFERENCES);
    // The task's instruction for the model is no part of the question.
    assert_eq!(cases[0].question, "Is the square bright?");
    let notes = open(&fixture("lmms_eval"), &SourceOptions::default()).unwrap().take_field_notes();
    let note = "cut the instruction `Answer the question using a single word or phrase.`";
    assert_eq!(notes.iter().filter(|text| text.contains(note)).count(), 2, "{notes:?}");
}

#[test]
fn predictions_of_vlm_eval_kit_are_read_with_their_images() {
    let images = Some(fixture("vlm_eval/LMUData"));
    let options = SourceOptions { images, ..SourceOptions::default() };
    let cases = read_with(&fixture("vlm_eval/xlsx"), &options);
    check_squares(&cases, ["model-a", "model-b"], [0, 1, 2, 0]);
    assert_eq!(references(&cases), REFERENCES);
    let paths = ["tsv/model-a", "json/model-b"].map(|name| (None, fixture("vlm_eval").join(name)));
    let source = open_imports(&paths, &options).unwrap();
    let cases: Vec<Case> = source.map(|entry| entry.unwrap()).collect();
    check_squares(&cases, ["model-a", "model-b"], [0, 1, 2, 0]);
    assert_eq!(cases[0].meta["category"], "open");
    // Without the data set, no case is judged without its image.
    let options = SourceOptions { images: Some(fixture("llava")), ..SourceOptions::default() };
    let problem = open(&fixture("vlm_eval/tsv"), &options).unwrap().next().unwrap().unwrap_err();
    assert!(problem.message.contains("hint: set LMUData"), "{problem}");
}

#[test]
fn results_of_med_eval_kit_are_joined_by_position() {
    let cases = read("med_eval");
    assert_eq!(references(&cases), REFERENCES);
    let models: Vec<&str> = cases[0].responses.iter().map(|r| r.model.as_str()).collect();
    assert_eq!(models, ["model-a", "model-b"]);
    assert_eq!((cases[2].id.as_str(), cases[2].image.as_ref()), ("2", None));
}

#[test]
fn scenario_states_of_helm_are_read() {
    let cases = read("helm");
    check_squares(&cases, ["org/model-a", "org/model-b"], [0, 1, 2, 3]);
    assert_eq!(references(&cases), REFERENCES);
}

#[test]
fn batch_output_is_joined_with_its_input() {
    check_squares(&read("batch"), ["org/model-a", "org/model-b"], [0, 1, 2, 3]);
    let output = open(&fixture("batch/output_model-a.jsonl"), &SourceOptions::default());
    let error = format!("{:#}", output.err().unwrap());
    assert!(error.contains("answers without questions (4 ids)"), "{error}");
}

#[test]
fn questions_and_answers_of_llava_are_read() {
    check_squares(&read("llava"), ["org/model-a", "org/model-b"], [0, 1, 2, 3]);
}

#[test]
fn tables_are_read_with_guessed_and_with_named_columns() {
    for name in ["tables/wide.csv", "tables/wide.xlsx", "tables/wide.parquet"] {
        let cases = read(name);
        check_squares(&cases, ["a", "b"], [0, 1, 2, 3]);
        assert_eq!(
            (references(&cases), &cases[0].meta["organ"]),
            (REFERENCES.to_vec(), &"none".into())
        );
    }
    check_squares(&read("tables/long.json"), ["org/model-a", "org/model-b"], [0, 1, 2, 3]);
    let folder = Folder::empty();
    let wide = fs::read_to_string(fixture("tables/wide.csv")).unwrap();
    folder.write("t.csv", &wide.replace("response_", "x").replace("../images", "images"));
    let images = fixture("images");
    let output = folder.run(&[
        "data",
        "import",
        "t.csv",
        "--out",
        "cases.jsonl",
        "--images",
        images.parent().unwrap().to_str().unwrap(),
        "--columns",
        "id=qid,image=img_path,question=question,answer:A 1=xa,answer:b=xb",
    ]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let expected =
        "4 cases with 8 responses in cases.jsonl\nimages      4 of 4\nreferences  0 of 4\n";
    assert_eq!(output.stdout, expected);
    let cases = open(&folder.path("cases.jsonl"), &SourceOptions::default()).unwrap();
    let cases: Vec<Case> = cases.map(|entry| entry.unwrap()).collect();
    check_squares(&cases, ["A 1", "b"], [0, 1, 2, 3]);
}

#[test]
fn imported_cases_are_judged_like_the_files() {
    let folder = Folder::empty();
    let helm = fixture("lmms_eval");
    let output =
        folder.run(&["data", "import", helm.to_str().unwrap(), "--out", "cases/cases.jsonl"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("images      4 of 4, 4 files written"), "{}", output.stdout);
    assert!(
        output.stderr.contains("lmms-eval samples (2 files): 4 questions"),
        "{}",
        output.stderr
    );
    let imported = folder.judge("imported", &[]);
    assert_eq!(imported.exit_code, 0, "{}", imported.stderr);
    let direct = ["judge", helm.to_str().unwrap(), "--out", "direct", "--panel", "scripted:"];
    let direct = folder.run(&direct);
    assert_eq!(direct.exit_code, 0, "{}", direct.stderr);
    assert!(
        direct.stderr.contains("models: org__model-a (4 answers), org__model-b"),
        "{}",
        direct.stderr
    );
    let keys = |out: &str| folder.records(out).iter().map(|r| r["key"].clone()).collect::<Vec<_>>();
    assert_eq!(keys("imported"), keys("direct"));
    let check = folder.run(&["data", "check", helm.to_str().unwrap()]);
    assert_eq!(check.exit_code, 0, "{}", check.stdout);
}

#[test]
fn one_model_is_imported_and_has_no_pair() {
    let folder = Folder::empty();
    let path = fixture("helm/model-a");
    let output = folder.run(&["data", "import", path.to_str().unwrap(), "--out", "one.jsonl"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("no pair to judge"), "{}", output.stdout);
    let output = folder.run(&["judge", "one.jsonl", "--out", "out", "--panel", "scripted:"]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("one response (model org/model-a), two or more"),
        "{}",
        output.stderr
    );
}

#[test]
fn files_with_other_questions_are_refused_with_counts() {
    let folder = Folder::empty();
    let a = fs::read_to_string(fixture("med_eval/model-a/SQUARE/results.json")).unwrap();
    folder.write("r/a/results.json", &a);
    folder.write("r/b/results.json", &a.replace("Is there a line?", "Is there a dot?"));
    let output = folder.run(&["data", "import", "r", "--out", "c.jsonl"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    let expected = "1 of 4 common questions differ; id 2: `is there a line?` in r/a/results.json";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    // Named models of one folder.
    let output = folder.run(&[
        "data",
        "import",
        "x=r/a/results.json",
        "y=r/a/results.json",
        "--out",
        "c.jsonl",
    ]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("models: x (4 answers), y (4 answers)"), "{}", output.stderr);
}

#[test]
fn unknown_layout_names_columns_and_a_command() {
    let folder = Folder::empty();
    folder.write("t.csv", "number,frage,antwort\n1,what?,yes\n");
    let output = folder.run(&["judge", "t.csv", "--out", "out"]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    let parts = [
        "unknown layout, found the columns number, frage, antwort",
        "; the first line is `number,frage,antwort`",
        "hint: name the columns, for example `acem3 data import t.csv --columns \
         'id=number,question=COLUMN,answer:MODEL=COLUMN' --out cases.jsonl`",
    ];
    for part in parts {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    folder.write("t.jsonl", &format!("{{\"key\": \"{}\"}}\n", "x".repeat(5000)));
    let output = folder.run(&["judge", "t.jsonl", "--out", "out"]);
    assert!(
        output.stderr.contains("found the columns key") && output.stderr.len() < 800,
        "{}",
        output.stderr
    );
    let wrong = ["judge", "t.csv", "--out", "out", "--columns", "question=q"];
    let output = folder.run(&wrong);
    assert!(
        output.stderr.contains("--columns names q, which the file does not have"),
        "{}",
        output.stderr
    );
}

#[test]
fn named_columns_of_a_table_without_readable_rows_are_not_blamed() {
    let folder = Folder::empty();
    let tables: [(&[u8], &str); 2] =
        [(b"nr,q,a\n1,what\xe9?,yes\n", "is not UTF-8"), (b"nr,q,a\n1,\"what?,yes\n", "quote")];
    for (table, reason) in tables {
        folder.write_bytes("t.csv", table);
        let roles = "id=nr,question=q,answer:m=a";
        let output = folder.run(&["data", "import", "t.csv", "--out", "o", "--columns", roles]);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains("none of the first rows can be read"), "{}", output.stderr);
        assert!(
            output.stderr.contains("line 2") && output.stderr.contains(reason),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn failed_request_and_missing_answer_leave_the_pairs_of_their_model() {
    let folder = Folder::empty();
    fs::copy(fixture("batch/input.jsonl"), folder.path("cases/input.jsonl")).unwrap();
    for model in ["a", "b"] {
        let name = format!("output_model-{model}.jsonl");
        let text = fs::read_to_string(fixture("batch").join(&name)).unwrap();
        let failed = r#"{"id": "b", "custom_id": "q3", "response": {"status_code": 500, "body": {}}, "error": {"message": "no memory"}}"#;
        let rest: Vec<&str> = text.lines().skip(1).collect();
        let lines = if model == "a" { [vec![failed], rest].concat() } else { rest };
        folder.write(&format!("cases/{name}"), &(lines.join("\n") + "\n"));
    }
    let output = folder.judge("out", &[]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let models = "models: org/model-a (4 answers), org/model-b (3 answers)";
    assert!(output.stderr.contains(models), "{}", output.stderr);
    let failed =
        "output_model-a.jsonl: 1 request failed, the first in line 1: status 500: no memory\n";
    assert!(output.stderr.contains(failed), "{}", output.stderr);
    assert!(output.stdout.contains("3 pairs of 3 cases judged"), "{}", output.stdout);
    assert!(output.stdout.contains("unscored  1 of 4 (25.0 %): parse 1"), "{}", output.stdout);
}

#[test]
fn data_set_gives_the_images_of_results_without_ids() {
    let folder = Folder::empty();
    let [results, questions] = ["med_eval", "llava"].map(fixture);
    let [results, questions] = [&results, &questions].map(|path| path.to_str().unwrap());
    let args = ["data", "import", results, "--questions", questions, "--out", "c.jsonl"];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let cases = open(&folder.path("c.jsonl"), &SourceOptions::default()).unwrap();
    let cases: Vec<Case> = cases.map(|entry| entry.unwrap()).collect();
    check_squares(&cases, ["model-a", "model-b"], [0, 1, 2, 3]);
    let text = fs::read_to_string(fixture("llava/questions.jsonl")).unwrap();
    let reversed: Vec<&str> = text.lines().rev().collect();
    folder.write("other/q.jsonl", &reversed.join("\n"));
    let args = ["data", "import", results, "--questions", "other/q.jsonl", "--out", "c.jsonl"];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    let error = "question 1 is `Which side is dark?`, the imported one is `Is the square bright?`";
    assert!(output.stderr.contains(error), "{}", output.stderr);
}

#[test]
fn unusable_images_and_workbooks_are_reported() {
    let folder = Folder::empty();
    folder.write(
        "t.jsonl",
        "{\"id\": 1, \"image\": [\"a.png\", \"b.png\"], \"question\": \"q\", \"answer_a\": \"x\", \"answer_b\": \"y\"}\n\
         {\"id\": 2, \"image\": \"https://example.org/a.png\", \"question\": \"q\", \"answer_a\": \"x\", \"answer_b\": \"y\"}\n",
    );
    let output = folder.run(&["data", "check", "t.jsonl"]);
    assert_eq!(output.exit_code, 1, "{}", output.stdout);
    for part in ["case 1: image: the row has 2 images", "case 2: image: the image is an address"] {
        assert!(output.stdout.contains(part), "{}", output.stdout);
    }
    folder.write("t.xlsx", "no workbook");
    let output = folder.run(&["data", "import", "t.xlsx", "--out", "c.jsonl"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    assert!(output.stderr.contains("not a readable .xlsx workbook"), "{}", output.stderr);
}

#[test]
fn copies_and_earlier_runs_are_read_once() {
    let folder = Folder::empty();
    let table = fs::read_to_string(fixture("vlm_eval/tsv/model-a/model-a_SquareVQA.tsv")).unwrap();
    folder
        .write("w/model-a/T20261124-010101/model-a_SquareVQA.tsv", &table.replace("It is", "Was"));
    folder.write("w/model-a/T20261124-020202/model-a_SquareVQA.tsv", &table);
    folder.write(
        "w/model-a/model-a_SquareVQA_judge.tsv",
        "index\tquestion\tprediction\thit\tlog\n0\tq\tp\t1\t-\n",
    );
    let images = Some(fixture("vlm_eval/LMUData"));
    let options = SourceOptions { images, min_responses: 0, ..SourceOptions::default() };
    let cases = read_with(&folder.path("w"), &options);
    assert_eq!(cases[1].responses.len(), 1);
    assert_eq!(
        (&*cases[1].responses[0].model, &*cases[1].responses[0].text),
        ("model-a", "It is grey.")
    );
}

#[test]
fn image_columns_are_found_by_their_values_and_forgotten_ones_noted() {
    let folder = Folder::empty();
    fs::copy(fixture("images/0.png"), folder.path("0.png")).unwrap();
    folder.write("t.csv", "id,scan,question,answer_a,answer_b\n1,0.png,q,x,y\n");
    let output = folder.run(&["data", "check", "t.csv"]);
    assert!(
        output.stderr.contains("columns id=id,image=scan,question=question"),
        "{}",
        output.stderr
    );
    assert!(output.stdout.contains("1 readable case with 1 image"), "{}", output.stdout);
    let columns = "id=id,question=question,answer:a=answer_a,answer:b=answer_b";
    let output = folder.run(&["data", "check", "t.csv", "--columns", columns]);
    assert_eq!(output.exit_code, 1, "{}", output.stdout);
    assert!(output.stdout.contains("hint: add image=scan to --columns"), "{}", output.stdout);
    let path = "lmms_eval/org__model-a/20261124_020000_samples_square_vqa.jsonl";
    let samples = fs::read_to_string(fixture(path)).unwrap();
    folder.write("x_samples_t.jsonl", &samples.replace("input_media", "media"));
    let output = folder.run(&["data", "check", "x_samples_t.jsonl", "--min-responses", "1"]);
    assert_eq!(output.exit_code, 1, "{}", output.stdout);
    assert_eq!(
        output.stdout.matches("the row has no `input_media`").count(),
        4,
        "{}",
        output.stdout
    );
}
