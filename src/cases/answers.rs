//! Models' answers in LLaVA's answer-file form: one `{question_id, text, model_id}` per line.
//!
//! They are indexed in memory, because they come in any order while the cases pass by in theirs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::case::{Problem, Response};
use super::ident::{id_in_broken, id_text, kind};
use super::lines::Lines;

/// The answers of all files, by question.
#[derive(Default)]
pub(super) struct Answers {
    /// Model names in the order of their first answer.
    models: Vec<String>,
    files: Vec<Arc<Path>>,
    by_question: HashMap<String, Vec<Answer>>,
    /// Lines that could not be used.
    pub(super) problems: Vec<Problem>,
}

struct Answer {
    model: usize,
    file: usize,
    line: u64,
    text: Box<str>,
}

impl Answers {
    /// Reads files and folders of `.jsonl` files, in the order given (a folder's by name).
    ///
    /// # Errors
    /// If a path does not exist, cannot be opened, or is a folder without answers.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut answers = Self::default();
        for path in paths {
            let files = if path.is_dir() {
                folder(path)?
            } else {
                vec![path.clone()]
            };
            if files.is_empty() {
                bail!(
                    "{}: the folder holds no .jsonl file\nhint: answers are lines of \
                     {{\"question_id\": ..., \"text\": ..., \"model_id\": ...}}",
                    path.display()
                );
            }
            for file in files {
                answers.read_file(&file)?;
            }
        }
        Ok(answers)
    }

    /// The files read.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(AsRef::as_ref)
    }

    /// The number of answers.
    pub(super) fn count(&self) -> u64 {
        self.by_question.values().map(|a| a.len() as u64).sum()
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let opened = File::open(path).with_context(|| {
            format!(
                "answers file {} cannot be opened\nhint: check --answers",
                path.display()
            )
        })?;
        let file = self.files.len();
        self.files.push(path.into());
        for (line, text) in Lines::new(BufReader::new(opened)) {
            let parsed = match text {
                Ok(text) => parse(&text).map_err(|e| (id_in_broken(&text, "question_id"), e)),
                Err(fault) => Err((None, fault)),
            };
            let added = parsed.and_then(|(question, text, model)| {
                let model = model.unwrap_or_else(|| stem(path));
                self.add(
                    &question,
                    &model,
                    Answer {
                        model: 0,
                        file,
                        line,
                        text,
                    },
                )
                .map_err(|fault| (Some(question), fault))
            });
            if let Err((id, fault)) = added {
                self.problems.push(Problem::parse(path, line, id, fault));
            }
        }
        Ok(())
    }

    fn add(&mut self, question: &str, model: &str, mut answer: Answer) -> Result<(), String> {
        answer.model = self
            .models
            .iter()
            .position(|m| m == model)
            .unwrap_or_else(|| {
                self.models.push(model.to_owned());
                self.models.len() - 1
            });
        match self.by_question.entry(question.to_owned()) {
            Entry::Vacant(slot) => {
                slot.insert(vec![answer]);
            }
            Entry::Occupied(mut slot) => {
                if let Some(old) = slot.get().iter().find(|a| a.model == answer.model) {
                    let file = self.files.get(old.file).map(|f| f.display().to_string());
                    return Err(format!(
                        "model {model} answered question {question} before, in {} line {}\n\
                         hint: give each model its own model_id",
                        file.unwrap_or_default(),
                        old.line
                    ));
                }
                slot.get_mut().push(answer);
            }
        }
        Ok(())
    }

    /// Adds the answers to the question known under one of `keys`, and tells how many there are.
    /// A case that came with responses of its own needs none; another needs one of every model.
    ///
    /// # Errors
    /// If an answer is missing or empty.
    pub(super) fn attach(
        &self,
        keys: &[String],
        responses: &mut Vec<Response>,
    ) -> Result<usize, String> {
        let found = keys.iter().find_map(|key| self.by_question.get(key));
        let found = found.map(Vec::as_slice).unwrap_or_default();
        let own = !responses.is_empty();
        let mut attached = 0;
        for (index, model) in self.models.iter().enumerate() {
            if own && responses.iter().any(|r| r.model == *model) {
                continue;
            }
            match found.iter().find(|a| a.model == index) {
                Some(answer) if answer.text.trim().is_empty() => {
                    let file = self.files.get(answer.file).map(|f| f.display().to_string());
                    return Err(format!(
                        "the answer of model {model} is empty ({} line {})",
                        file.unwrap_or_default(),
                        answer.line
                    ));
                }
                Some(answer) => {
                    let text = answer.text.to_string();
                    responses.push(Response {
                        model: model.clone(),
                        text,
                    });
                    attached += 1;
                }
                None if own => {}
                None => return Err(self.missing(model, found.is_empty(), keys)),
            }
        }
        Ok(attached)
    }

    fn missing(&self, model: &str, nobody: bool, keys: &[String]) -> String {
        let key = keys.first().map_or("", String::as_str);
        if nobody {
            let n = self.models.len();
            format!("none of the {n} models has an answer to question_id {key}")
        } else {
            format!("model {model} has no answer to question_id {key}")
        }
    }
}

/// The `.jsonl` files of a folder, by name.
pub(super) fn folder(path: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("folder {} cannot be read", path.display());
    let mut files = Vec::new();
    for entry in path.read_dir().with_context(unreadable)? {
        let file = entry.with_context(unreadable)?.path();
        let jsonl = file
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("jsonl"));
        if jsonl && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

type Parsed = (String, Box<str>, Option<String>);

fn parse(line: &str) -> Result<Parsed, String> {
    let value: Value = serde_json::from_str(line).map_err(|e| format!("broken JSON: {e}"))?;
    let Value::Object(mut fields) = value else {
        return Err(format!("the line is {}, expected an object", kind(&value)));
    };
    let question = fields
        .get("question_id")
        .ok_or("field `question_id` is missing")?;
    let question = id_text(question).ok_or_else(|| {
        format!(
            "field `question_id` is {}, expected a number or a string",
            kind(question)
        )
    })?;
    let text = match fields.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => text.into_boxed_str(),
        Some(other) => {
            return Err(format!(
                "field `text` is {}, expected a string",
                kind(&other)
            ));
        }
        None => return Err("field `text` is missing".into()),
    };
    let model = match fields.get_mut("model_id").map(Value::take) {
        Some(Value::String(model)) => Some(model.trim().to_owned()).filter(|m| !m.is_empty()),
        None | Some(Value::Null) => None,
        Some(other) => {
            return Err(format!(
                "field `model_id` is {}, expected a string",
                kind(&other)
            ));
        }
    };
    Ok((question, text, model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn attach(answers: &Answers, key: &str) -> Result<Vec<Response>, String> {
        let mut responses = Vec::new();
        answers
            .attach(&[key.to_owned()], &mut responses)
            .map(|_| responses)
    }

    #[test]
    fn indexes_numbers_and_texts_and_falls_back_on_the_file_name() {
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
        let answers = Answers::read(&[dir.path().to_path_buf()]).unwrap();
        assert!(answers.problems.is_empty(), "{:?}", answers.problems);
        assert_eq!((answers.count(), answers.files().count()), (5, 2));
        let models: Vec<_> = attach(&answers, "1")
            .unwrap()
            .into_iter()
            .map(|r| r.model)
            .collect();
        assert_eq!(models, ["a", "bee"]);
        let empty = attach(&answers, "2").unwrap_err();
        assert!(
            empty.contains("model a") && empty.contains("line 3"),
            "{empty}"
        );
        assert!(
            attach(&answers, "3")
                .unwrap_err()
                .contains("model bee has no answer")
        );
        assert!(
            attach(&answers, "4")
                .unwrap_err()
                .contains("none of the 2 models")
        );
    }

    #[test]
    fn own_responses_stay_and_others_join() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.jsonl");
        fs::write(&path, "{\"question_id\": 1, \"text\": \"no\"}\n").unwrap();
        let answers = Answers::read(&[path]).unwrap();
        let own = |model: &str| {
            vec![Response {
                model: model.into(),
                text: "yes".into(),
            }]
        };
        let mut responses = own("a");
        assert_eq!(answers.attach(&["1".into()], &mut responses), Ok(1));
        assert_eq!(responses[1].text, "no");
        let mut responses = own("b");
        assert_eq!(answers.attach(&["1".into()], &mut responses), Ok(0));
        assert_eq!(responses, own("b"));
        let mut responses = own("a");
        assert_eq!(answers.attach(&["9".into()], &mut responses), Ok(0));
    }

    #[test]
    fn reports_broken_and_repeated_lines() {
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
        let answers = Answers::read(&[path]).unwrap();
        let seen: Vec<_> = answers
            .problems
            .iter()
            .map(|p| (p.line, p.id.as_deref().unwrap_or("-")))
            .collect();
        let expected = [
            (2, "2"),
            (3, "-"),
            (4, "-"),
            (5, "3"),
            (6, "4"),
            (7, "5"),
            (8, "1"),
        ];
        assert_eq!(seen, expected);
        assert!(
            answers.problems[6].message.contains("line 1"),
            "{}",
            answers.problems[6]
        );
        assert!(Answers::read(&[dir.path().join("none.jsonl")]).is_err());
    }
}
