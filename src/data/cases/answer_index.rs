//! Index of answers files in LLaVA's format: one `{question_id, text, model_id}` per line.
//!
//! The index is in memory, because answers and cases come in different orders.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use super::case::{InputProblem, ProblemScope, Response};
use super::layout::{files, stem};
use super::lines::Lines;
use crate::data::cases::answer_line;
use crate::data::cases::answer_line::MalformedAnswer;
use crate::data::cases::unusable_lines::UnusableLines;
use crate::support::files::regular_file;

/// Answers of all files, by question.
#[derive(Default)]
pub(super) struct AnswerIndex {
    /// Model names in the order of their first answer.
    models: Vec<String>,
    files: Vec<Arc<Path>>,
    by_question: HashMap<String, Vec<IndexedAnswer>>,
    unusable: UnusableLines,
}

struct IndexedAnswer {
    model: usize,
    file: usize,
    line: u64,
    text: Box<str>,
}

/// A response that a case lacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingResponse {
    /// The model.
    pub(super) model: String,
    /// The reason.
    pub(super) message: String,
}

impl AnswerIndex {
    /// Reads files and folders of `.jsonl` files, in the given order (within a folder by name).
    ///
    /// # Errors
    /// A path does not exist, cannot be opened, or is a folder without answers.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut answers = Self::default();
        for path in paths {
            let files = if path.is_dir() {
                files(path, "jsonl")?
            } else {
                vec![path.clone()]
            };
            if files.is_empty() {
                bail!(
                    "{}: the folder contains no .jsonl file\nhint: add answers files with lines of \
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

    /// The models with answers.
    pub(super) fn models(&self) -> &[String] {
        &self.models
    }

    /// Number of answers.
    pub(super) fn count(&self) -> u64 {
        self.by_question.values().map(|a| a.len() as u64).sum()
    }

    /// Number of answers to the question with one of these ids.
    pub(super) fn count_of(&self, keys: &[String]) -> u64 {
        self.found(keys).len() as u64
    }

    /// Number of answers whose question id is a row number of at least `rows`.
    pub(super) fn beyond(&self, rows: u64) -> u64 {
        let beyond = |id: &str| id.parse::<u64>().is_ok_and(|row| row >= rows);
        let all = self.by_question.iter().filter(|(id, _)| beyond(id));
        all.map(|(_, answers)| answers.len() as u64).sum()
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let opened = regular_file::open(path).with_context(|| {
            format!(
                "answers file {} cannot be opened\nhint: check --answers",
                path.display()
            )
        })?;
        let file = self.files.len();
        self.files.push(path.into());
        let mut seen: Vec<usize> = Vec::new();
        let mut broken: Vec<(u64, MalformedAnswer)> = Vec::new();
        for (line, text) in Lines::new(BufReader::new(opened)) {
            let read = match text {
                Ok(text) => answer_line::read(&text),
                Err(fault) => Err(MalformedAnswer {
                    question: None,
                    model: None,
                    fault,
                }),
            };
            match read {
                Ok(read) => {
                    let model = self.model(&read.model.unwrap_or_else(|| stem(path)));
                    if !seen.contains(&model) {
                        seen.push(model);
                    }
                    let text = read.text;
                    let answer = IndexedAnswer {
                        model,
                        file,
                        line,
                        text,
                    };
                    if let Err(fault) = self.add(&read.question, answer) {
                        let problem = of_line(path, line, Some(read.question.clone()), fault);
                        self.unusable.repeats(read.question, problem);
                    }
                }
                Err(fault) => broken.push((line, fault)),
            }
        }
        for (line, broken) in broken {
            // A torn line has lost its model, which is the last field. Use the model of the other lines.
            let model = match (&broken.model, seen.as_slice()) {
                (Some(name), _) => self.models.iter().position(|m| m == name),
                (None, [only]) => Some(*only),
                (None, []) => Some(self.model(&stem(path))),
                (None, _) => None,
            };
            let problem = of_line(path, line, broken.question.clone(), broken.fault);
            match model {
                Some(model) => self.unusable.explains(broken.question, model, problem),
                None => self.unusable.of_nobody(problem),
            }
        }
        Ok(())
    }

    /// The index of a model.
    fn model(&mut self, name: &str) -> usize {
        let known = self.models.iter().position(|m| m == name);
        known.unwrap_or_else(|| {
            self.models.push(name.to_owned());
            self.models.len() - 1
        })
    }

    fn add(&mut self, question: &str, answer: IndexedAnswer) -> Result<(), String> {
        match self.by_question.entry(question.to_owned()) {
            Entry::Vacant(slot) => {
                slot.insert(vec![answer]);
            }
            Entry::Occupied(mut slot) => {
                if let Some(old) = slot.get().iter().find(|a| a.model == answer.model) {
                    let file = self.files.get(old.file).map(|f| name(f));
                    let model = self.models.get(old.model).map_or("", String::as_str);
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

    fn found(&self, keys: &[String]) -> &[IndexedAnswer] {
        let found = keys.iter().find_map(|key| self.by_question.get(key));
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// Adds the answers to the question with one of these ids, and returns the missing ones, which become responses
    /// with empty text. A case with its own responses needs no answers; other cases need one of every model.
    pub(super) fn attach(
        &mut self,
        keys: &[String],
        responses: &mut Vec<Response>,
    ) -> Vec<MissingResponse> {
        let own: Vec<String> = responses.iter().map(|r| r.model.clone()).collect();
        let mut lost = Vec::new();
        for (index, model) in self.models.clone().into_iter().enumerate() {
            if own.contains(&model) {
                continue;
            }
            let found = self.found(keys);
            let answer = found.iter().find(|a| a.model == index);
            let nobody = found.is_empty();
            let text = match answer {
                Some(answer) if !answer.text.trim().is_empty() => answer.text.to_string(),
                answer => {
                    let message = match answer {
                        Some(answer) => self.empty(&model, answer),
                        None => {
                            match self
                                .unusable
                                .explanation(keys, index, own.is_empty() && !nobody)
                            {
                                Some(problem) => fault_of(&model, &problem),
                                None if !own.is_empty() => continue,
                                None => self.missing(&model, nobody, keys),
                            }
                        }
                    };
                    let model = model.clone();
                    lost.push(MissingResponse { model, message });
                    String::new()
                }
            };
            responses.push(Response { model, text });
        }
        lost
    }

    /// The unusable lines.
    pub(super) fn unusable(&mut self) -> &mut UnusableLines {
        &mut self.unusable
    }

    fn empty(&self, model: &str, answer: &IndexedAnswer) -> String {
        let file = self.files.get(answer.file).map(|f| name(f));
        format!(
            "the answer of model {model} is empty ({} line {})",
            file.unwrap_or_default(),
            answer.line
        )
    }

    fn missing(&self, model: &str, nobody: bool, keys: &[String]) -> String {
        let key = keys.first().map_or("", String::as_str);
        let n = self.models.len();
        if nobody && n > 1 {
            format!(
                "none of the {n} models has an answer to question_id {key}\n\
                 hint: use the id of a case as question_id"
            )
        } else {
            format!("model {model} has no answer to question_id {key}")
        }
    }
}

/// The problem of an unusable line of an answers file.
fn of_line(path: &Path, line: u64, question: Option<String>, fault: String) -> InputProblem {
    InputProblem {
        loss: ProblemScope::Response {
            model: None,
            pairs: Box::default(),
        },
        ..InputProblem::parse(path, line, question, fault)
    }
}

/// Name of a file in records, independent of the path on the command line.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn fault_of(model: &str, problem: &InputProblem) -> String {
    let (file, line) = (name(&problem.file), problem.line);
    let perhaps = if problem.id.is_none() { "perhaps " } else { "" };
    let fault = &problem.message;
    format!("the answer of model {model} is missing, {perhaps}for {file} line {line}: {fault}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn attach(answers: &mut AnswerIndex, key: &str) -> (Vec<Response>, Vec<String>) {
        let mut responses = Vec::new();
        let lost = answers.attach(&[key.to_owned()], &mut responses);
        (responses, lost.into_iter().map(|l| l.message).collect())
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
        assert_eq!(answers.unusable().leftover(), []);
        assert_eq!((answers.count(), answers.files().count()), (5, 2));
        let (responses, lost) = attach(&mut answers, "1");
        let models: Vec<_> = responses.into_iter().map(|r| r.model).collect();
        assert_eq!(models, ["a", "bee"]);
        assert!(lost.is_empty());
        let (_, lost) = attach(&mut answers, "2");
        assert_eq!(lost.len(), 1);
        assert!(lost[0].contains("model a is empty") && lost[0].contains("line 3"));
        let (responses, lost) = attach(&mut answers, "3");
        assert_eq!(lost, ["model bee has no answer to question_id 3"]);
        assert_eq!(
            (responses[0].text.as_str(), responses[1].text.as_str()),
            ("x", "")
        );
        let (_, lost) = attach(&mut answers, "4");
        assert!(lost[1].contains("none of the 2 models"), "{lost:?}");
        assert_eq!(answers.beyond(3), 1);
    }

    #[test]
    fn answers_are_added_to_the_responses_of_the_case() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.jsonl");
        fs::write(&path, "{\"question_id\": 1, \"text\": \"no\"}\n").unwrap();
        let mut answers = AnswerIndex::read(&[path]).unwrap();
        let own = |model: &str| {
            vec![Response {
                model: model.into(),
                text: "yes".into(),
            }]
        };
        let mut responses = own("a");
        assert_eq!(answers.attach(&["1".into()], &mut responses), []);
        assert_eq!(responses[1].text, "no");
        let mut responses = own("b");
        assert_eq!(answers.attach(&["1".into()], &mut responses), []);
        assert_eq!(responses, own("b"));
        let mut responses = own("a");
        assert_eq!(answers.attach(&["9".into()], &mut responses), []);
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
        let repeated = answers.unusable().repetitions(&["1".to_owned()]);
        assert_eq!((repeated.len(), repeated[0].line), (1, 8));
        assert!(repeated[0].message.contains("line 1"), "{}", repeated[0]);
        let (_, lost) = attach(&mut answers, "2");
        assert!(lost[0].contains("line 2: broken JSON"), "{lost:?}");
        let left = answers.unusable().leftover();
        let seen: Vec<_> = left
            .iter()
            .map(|p| (p.line, p.id.as_deref().unwrap_or("-")))
            .collect();
        let expected = [(3, "-"), (4, "-"), (5, "3"), (6, "4"), (7, "5")];
        assert_eq!(seen, expected);
        assert!(AnswerIndex::read(&[dir.path().join("none.jsonl")]).is_err());
    }
}
