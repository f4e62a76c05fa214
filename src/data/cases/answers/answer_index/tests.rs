//! Files of answers become responses of cases.

use super::*;
use std::fs;

fn attach(answers: &mut AnswerIndex, key: &str) -> (Vec<Response>, Vec<String>) {
    let mut responses = Vec::new();
    let missing = answers.attach(&[key.to_owned()], &mut responses);
    (responses, missing.into_iter().map(|l| l.message).collect())
}

#[test]
fn ids_may_be_numbers_or_strings_and_the_file_name_is_the_default_model() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("b.jsonl"),
        "{\"question_id\": 1, \"text\": \"no\", \"model_id\": \"bee\"}\n\
         {\"question_id\": \"2\", \"text\": \"yes\", \"model_id\": \"bee\"}\n",
    )
    .unwrap();
    let a = "\u{feff}{\"question_id\": \"1\", \"text\": \"yes\"}\r\n\n\
             {\"question_id\": 2.0, \"text\": \" \"}\r\n{\"question_id\": 3, \"text\": \"x\"}";
    fs::write(dir.path().join("a.jsonl"), a).unwrap();
    fs::write(dir.path().join("notes.txt"), "not answers").unwrap();
    let mut answers = AnswerIndex::read(&[dir.path().to_path_buf()]).unwrap();
    assert_eq!(answers.unusable_lines().take_remaining(), []);
    assert_eq!((answers.count(), answers.files().count()), (5, 2));
    let (responses, missing) = attach(&mut answers, "1");
    let models: Vec<_> = responses.into_iter().map(|r| r.model).collect();
    assert_eq!(models, ["a", "bee"]);
    assert!(missing.is_empty());
    let (_, missing) = attach(&mut answers, "2");
    assert_eq!(missing.len(), 1);
    assert!(missing[0].contains("model a is empty") && missing[0].contains("line 3"));
    let (responses, missing) = attach(&mut answers, "3");
    assert_eq!(missing, ["model bee has no answer to question_id 3"]);
    assert_eq!((responses[0].text.as_str(), responses[1].text.as_str()), ("x", ""));
    let (_, missing) = attach(&mut answers, "4");
    assert!(missing[1].contains("none of the 2 models"), "{missing:?}");
    assert_eq!(answers.count_beyond_row(3), 1);
}

#[test]
fn answers_are_added_to_the_responses_of_the_case() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.jsonl");
    fs::write(&path, "{\"question_id\": 1, \"text\": \"no\"}\n").unwrap();
    let mut answers = AnswerIndex::read(&[path]).unwrap();
    let own_response = |model: &str| vec![Response { model: model.into(), text: "yes".into() }];
    let mut responses = own_response("a");
    assert_eq!(answers.attach(&["1".into()], &mut responses), []);
    assert_eq!(responses[1].text, "no");
    let mut responses = own_response("b");
    assert_eq!(answers.attach(&["1".into()], &mut responses), []);
    assert_eq!(responses, own_response("b"));
    let mut responses = own_response("a");
    assert_eq!(answers.attach(&["9".into()], &mut responses), []);
}

/// The name of the file is no second name of its model.
#[test]
fn line_without_model_is_malformed_if_others_name_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("answers.jsonl");
    let lines = [
        "{\"question_id\": 1, \"text\": \"a\"}",
        "{\"question_id\": 2, \"text\": \"b\", \"model_id\": \"bee\"}",
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let mut answers = AnswerIndex::read(&[path]).unwrap();
    assert_eq!(answers.models(), ["bee"]);
    let (_, missing) = attach(&mut answers, "1");
    assert!(missing[0].contains("line 1: field `model_id` is missing"), "{missing:?}");
}

#[test]
fn answer_of_a_model_with_another_response_is_a_problem() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("answers.jsonl");
    let lines = [
        "{\"question_id\": 1, \"text\": \"other\", \"model_id\": \"m\"}",
        "{\"question_id\": 2, \"text\": \"same\", \"model_id\": \"m\"}",
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let mut answers = AnswerIndex::read(&[path]).unwrap();
    for (key, left_out) in [("1", 1), ("2", 0)] {
        let keys = [key.to_owned()];
        let mut responses = vec![Response { model: "m".to_owned(), text: "same".to_owned() }];
        assert_eq!(answers.attach(&keys, &mut responses), []);
        assert_eq!(responses.len(), 1);
        let problems = answers.unusable_lines().take_duplicates(&keys);
        assert_eq!(problems.len(), left_out);
        for problem in problems {
            assert!(problem.message.contains("model m has another response"), "{problem}");
        }
    }
}

#[test]
fn malformed_and_repeated_lines_are_problems() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.jsonl");
    let lines = [
        "{\"question_id\": 1, \"text\": \"a\"}",
        "{\"question_id\": 2, \"text\": \"a",
        "[]",
        "{\"text\": \"a\"}",
        "{\"question_id\": 3}",
        "{\"question_id\": 4, \"text\": 7}",
        "{\"question_id\": 5, \"text\": \"a\", \"model_id\": 1}",
        "{\"question_id\": 1, \"text\": \"b\"}",
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let mut answers = AnswerIndex::read(&[path]).unwrap();
    let repeated = answers.unusable_lines().take_duplicates(&["1".to_owned()]);
    assert_eq!((repeated.len(), repeated[0].line), (1, 8));
    assert!(repeated[0].message.contains("line 1"), "{}", repeated[0]);
    let (_, missing) = attach(&mut answers, "2");
    assert!(missing[0].contains("line 2: malformed JSON"), "{missing:?}");
    let remaining = answers.unusable_lines().take_remaining();
    let ids: Vec<_> = remaining.iter().map(|p| (p.line, p.id.as_deref().unwrap_or("-"))).collect();
    let expected = [(3, "-"), (4, "-"), (5, "3"), (6, "4"), (7, "5")];
    assert_eq!(ids, expected);
    assert!(AnswerIndex::read(&[dir.path().join("none.jsonl")]).is_err());
}

#[test]
fn file_whose_answers_all_repeat_an_earlier_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, ids: &[u32], model: &str| {
        let line = |id: &u32| {
            format!("{{\"question_id\": {id}, \"text\": \"{name}\", \"model_id\": \"{model}\"}}\n")
        };
        let path = dir.path().join(name);
        fs::write(&path, ids.iter().map(line).collect::<String>()).unwrap();
        path
    };
    let first = write("a.jsonl", &[1, 2, 3], "base");
    let copy = write("b.jsonl", &[2, 1], "base");
    let error = AnswerIndex::read(&[first.clone(), copy]).err().unwrap().to_string();
    for part in ["b.jsonl", "a.jsonl", "model base", "hint: give each model its own model_id"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let answers = AnswerIndex::read(&[first.clone(), dir.path().join("./a.jsonl")]).unwrap();
    assert!(answers.repeated().is_none() && answers.count() == 3);
    // A file with further answers is read, and the repeated one is counted.
    let more = write("c.jsonl", &[4, 3], "base");
    let other = write("d.jsonl", &[1, 2], "tuned");
    let answers = AnswerIndex::read(&[first, more, other]).unwrap();
    let (count, problem) = answers.repeated().unwrap();
    assert_eq!((count, problem.line, answers.count()), (1, 2, 6));
    assert!(problem.file.ends_with("c.jsonl") && problem.message.contains("a.jsonl line 3"));
}
