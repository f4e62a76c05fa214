//! Reading cases from generated folders, and from the public data sets if available.

use std::fs;
use std::path::{Path, PathBuf};

use acem3::data::cases::{Case, ImageSource, InputProblem, Lang, SourceKind, SourceOptions, open};
use serde_json::json;

use crate::folder::{Folder, valid_case};

/// Returns the path of a public data set, if available.
#[expect(clippy::print_stderr, reason = "prints the reason for skipped tests")]
pub(crate) fn public_data(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} does not exist", path.display());
    None
}

/// Writes files to a new temporary folder.
fn write_tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// Reads all cases and problems of a source, and checks its total.
fn read_all(path: &Path, options: &SourceOptions) -> (Vec<Case>, Vec<InputProblem>) {
    let source = open(path, options).unwrap();
    let total = source.total;
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for entry in source {
        match entry {
            Ok(case) => cases.push(case),
            Err(problem) => problems.push(problem),
        }
    }
    let unreadable = problems.iter().filter(|p| p.affects_whole_case()).count();
    let expected = (cases.len() + unreadable) as u64;
    assert_eq!(total, Some(expected));
    (cases, problems)
}

fn model_names(case: &Case) -> Vec<&str> {
    case.responses.iter().map(|r| r.model.as_str()).collect()
}

#[test]
fn case_folder_continues_after_every_problem() {
    let lines = [
        r#"{"id": "a", "image": "images/a.png", "question": "Is it?", "more": 1,
            "responses": [{"model": "x", "text": "yes"}, {"model": "y", "text": "no"}]}"#
            .replace('\n', " "),
        r#"{"id": "b", "question": "Is it?", "responses": [{"model": "x", "text": "yes"}"#.into(),
        String::new(),
        r#"{"id": "c", "question": " ", "responses": []}"#.into(),
        r#"{"id": "a", "question": "Again?", "responses": []}"#.into(),
        r#"{"id": 4, "question": "Text?", "labels": {"final": [5, 1]},
            "responses": [{"model": "x", "text": "yes"}, {"model": "y", "text": "no"}]}"#
            .replace('\n', " "),
        r#"{"id": 5, "question": "Text?", "labels": {"final": [5]},
            "responses": [{"model": "x", "text": "yes"}, {"model": "y", "text": "no"}]}"#
            .replace('\n', " "),
        r#"{"id": 6, "question": "From files?"}"#.into(),
        r#"{"id": 7, "question": "From files?"}"#.into(),
    ];
    let text = format!("\u{feff}{}\r\n", lines.join("\r\n"));
    let dir = write_tree(&[
        ("cases.jsonl", &text),
        ("answers/p.jsonl", "{\"question_id\": 6, \"text\": \"yes\"}\nbroken\n"),
        ("answers/q.jsonl", "{\"question_id\": \"6\", \"text\": \"no\"}\n"),
    ]);
    let (cases, problems) = read_all(dir.path(), &SourceOptions::default());
    let ids: Vec<_> = cases.iter().map(|c| (c.id.as_str(), c.line)).collect();
    assert_eq!(ids, [("a", 1), ("4", 6), ("5", 7), ("6", 8)]);
    // Invalid labels do not affect verdicts.
    assert_eq!(cases[2].labels, None);
    assert_eq!(cases[0].image, Some(ImageSource::File(dir.path().join("images/a.png"))));
    assert_eq!(cases[0].extra["more"], 1);
    assert_eq!(model_names(&cases[3]), ["p", "q"]);
    let found: Vec<_> = problems.iter().map(|p| (p.line, p.id.as_deref().unwrap_or("-"))).collect();
    assert_eq!(found, [(2, "b"), (4, "c"), (5, "a (cases.jsonl:5)"), (7, "5"), (9, "7"), (2, "-")]);
    assert!(problems[5].file.ends_with("answers/p.jsonl"));
    assert!(problems[2].message.contains("line 1 and on line 5"), "{}", problems[2]);
    assert!(problems[4].message.contains("none of the 2 models"), "{}", problems[4]);
}

#[test]
fn question_table_reads_answers_inside_and_outside_its_folder() {
    let dir = write_tree(&[
        ("questions.csv", "id,image,question,organ\n1,a.png,\"Is it,\nreally?\",lung\n2,,Why?,\n"),
        ("answers/p.jsonl", "{\"question_id\": 1, \"text\": \"yes\"}\n"),
        ("more.jsonl", "{\"question_id\": 1, \"text\": \"no\", \"model_id\": \"m\"}\n"),
    ]);
    let options =
        SourceOptions { answers: vec![dir.path().join("more.jsonl")], ..SourceOptions::default() };
    let (cases, problems) = read_all(dir.path(), &options);
    assert_eq!((cases.len(), problems.len()), (1, 1));
    assert_eq!(model_names(&cases[0]), ["m", "p"]);
    assert_eq!(cases[0].meta["organ"], "lung");
    let mut source = open(&dir.path().join("questions.csv"), &options).unwrap();
    assert_eq!((source.kind, source.files.len()), (SourceKind::Questions, 3));
    assert_eq!((source.by_ref().count(), source.unmatched_answers()), (2, 0));
}

#[test]
fn unreadable_input_is_an_error_with_hint() {
    let dir = write_tree(&[("notes.txt", "nothing"), ("table/questions.csv", "id,question\n")]);
    for path in ["", "none", "notes.txt", "table"] {
        let error = open(&dir.path().join(path), &SourceOptions::default()).err().unwrap();
        assert!(format!("{error:#}").contains("\nhint: "), "{path}: {error:#}");
    }
    let options =
        SourceOptions { answers: vec![dir.path().join("gone.jsonl")], ..SourceOptions::default() };
    let cases = write_tree(&[("cases.jsonl", "{}\n")]);
    let error = open(cases.path(), &options).err().unwrap();
    assert!(format!("{error:#}").contains("gone.jsonl"));
}

/// Writes the answers of two models to all questions with ids below `n`.
fn write_answers(dir: &Path, n: u64) -> Vec<PathBuf> {
    let file = |model: &str| {
        let path = dir.join(format!("{model}.jsonl"));
        let line = |id| format!("{{\"question_id\": {id}, \"text\": \"{model} says {id}\"}}\n");
        fs::write(&path, (0..n).map(line).collect::<String>()).unwrap();
        path
    };
    vec![file("one"), file("two")]
}

#[test]
fn vqa_rad_release_is_read() {
    let Some(path) = public_data("vqa_rad") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let options =
        SourceOptions { answers: write_answers(dir.path(), 2300), ..SourceOptions::default() };
    let (cases, problems) = read_all(&path, &options);
    assert_eq!((cases.len(), problems.len()), (1796, 0));
    let first = &cases[0];
    assert_eq!((first.id.as_str(), first.responses[1].text.as_str()), ("vqa_rad-0", "two says 0"));
    assert_eq!(first.meta["organ"], "HEAD");
    for case in &cases {
        assert!(matches!(&case.image, Some(ImageSource::File(file)) if file.is_file()));
        assert!(["OPEN", "CLOSED"].contains(&case.meta["answer_type"].as_str().unwrap()));
    }
    let without = open(&path, &SourceOptions::default()).err().unwrap().to_string();
    assert!(without.contains("--answers"), "{without}");
    let one = SourceOptions { answers: options.answers[..1].to_vec(), ..SourceOptions::default() };
    let (cases, problems) = read_all(&path, &one);
    assert_eq!((cases.len(), problems.len()), (0, 1796));
    assert!(problems[0].message.contains("two or more"), "{}", problems[0]);
    let (cases, _) = read_all(&path, &SourceOptions { with_reference: true, ..one });
    assert_eq!(model_names(&cases[0]), ["one", "reference"]);
}

#[test]
fn slake_release_is_read() {
    let Some(path) = public_data("slake") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let options = |lang| SourceOptions {
        answers: write_answers(dir.path(), 15_000),
        lang,
        ..SourceOptions::default()
    };
    let error = open(&path, &options(Lang::En)).err().unwrap().to_string();
    assert!(error.contains("train, validate"), "{error}");
    let validate = path.join("validate.json");
    for (lang, n) in [(Lang::En, 1043), (Lang::Zh, 1040), (Lang::All, 2083)] {
        let (cases, problems) = read_all(&validate, &options(lang));
        assert_eq!((cases.len(), problems.len()), (n, 0));
        assert!(matches!(&cases[0].image, Some(ImageSource::File(file)) if file.is_file()));
        assert!(cases[0].id.starts_with("slake-"));
    }
}

#[test]
fn path_vqa_parquet_is_read() {
    let (Some(path), Some(published_answers)) =
        (public_data("path_vqa"), public_data("answers/path_vqa_validation"))
    else {
        return;
    };
    let options = SourceOptions { answers: vec![published_answers], ..SourceOptions::default() };
    let error = open(&path, &options).err().unwrap().to_string();
    assert!(error.contains("train, validation"), "{error}");
    let options = SourceOptions { split: Some("validation".into()), ..options };
    let (cases, problems) = read_all(&path, &options);
    assert_eq!((cases.len(), problems.len()), (1500, 0));
    let last = &cases[1499];
    assert_eq!(last.id, "validation-00000-of-00001-1499");
    assert_eq!((last.responses.len(), last.line), (4, 1500));
    assert_eq!(last.responses[3].text, "ivory");
    assert_eq!(last.meta["dataset"], "path_vqa");
    for case in &cases {
        let Some(ImageSource::Bytes { bytes, .. }) = &case.image else {
            panic!("expected an embedded image")
        };
        assert!(bytes.starts_with(b"\xFF\xD8"), "{} is not a JPEG", case.id);
    }
    let closed = cases.iter().filter(|c| c.meta["answer_type"] == "closed").count();
    let words = ["yes", "no"];
    let by_word = cases.iter().filter(|c| words.contains(&c.reference.as_deref().unwrap())).count();
    assert_eq!(closed, by_word);
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_rejected() {
    let folder = Folder::with_cases(2);
    let pipe = |name: &str| {
        let status = std::process::Command::new("mkfifo").arg(folder.path(name)).status();
        assert!(status.unwrap().success());
    };
    for path in ["pipe.jsonl", "pipe", "piped/cases.jsonl"] {
        fs::create_dir_all(folder.path("piped")).unwrap();
        pipe(path);
        let path = path.trim_end_matches("/cases.jsonl");
        let output = folder.run(&["judge", path, "--out", "no", "--panel", "scripted:"]);
        assert_eq!(output.exit_code, 2);
        assert!(output.stderr.contains("not a file\nhint: "), "{}", output.stderr);
    }
    let output = folder.judge("no", &["--answers", "pipe.jsonl"]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("not a file\nhint: "), "{}", output.stderr);
    pipe("cases/images/pipe.png");
    let mut cases: Vec<_> = (0..2).map(valid_case).collect();
    cases[1]["image"] = json!("images/pipe.png");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let record = &folder.records("out")[1];
    assert_eq!(record["reason"], "image");
    assert!(record["message"].as_str().unwrap().contains("pipe.png: not a file"));
}
