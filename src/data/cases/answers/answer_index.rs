//! Index of answers files in LLaVA's format: one `{question_id, text, model_id}` per line.
//!
//! The index is in memory, because answers and cases come in different orders.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use crate::data::cases::answers::answer_line;
use crate::data::cases::answers::answer_line::MalformedAnswer;
use crate::data::cases::answers::answer_problems::{
    check_readable, file_name, line_problem, unusable_message,
};
use crate::data::cases::answers::unusable_lines::UnusableLines;
use crate::data::cases::case::Response;
use crate::data::cases::case::text_limits::MAX_RESPONSES;
use crate::data::cases::formats::lines::Lines;
use crate::data::cases::layout::{file_stem, files_with_extension};
use crate::support::files::regular_file;

/// Answers of all files, by question.
#[derive(Default)]
pub(crate) struct AnswerIndex {
    /// Model names, in the order of their first answer.
    models: Vec<String>,
    files: Vec<Arc<Path>>,
    by_question: HashMap<String, Vec<IndexedAnswer>>,
    unusable: UnusableLines,
}

struct IndexedAnswer {
    /// Index of the model.
    model: usize,
    /// Index of the file.
    file: usize,
    line: u64,
    text: Box<str>,
}

/// A missing response of a case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MissingResponse {
    /// Name of the model.
    pub(crate) model: String,
    /// Reason for the missing response.
    pub(crate) message: String,
}

impl AnswerIndex {
    /// Reads files and folders of `.jsonl` files, in the given order (within a folder by name).
    ///
    /// # Errors
    /// A path does not exist, cannot be opened, or is a folder without answers.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut answers = Self::default();
        for path in paths {
            let files = if path.is_dir() {
                files_with_extension(path, "jsonl")?
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

    /// Returns the files, in reading order.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(AsRef::as_ref)
    }

    /// Returns the models with answers.
    pub(crate) fn models(&self) -> &[String] {
        &self.models
    }

    /// Returns the number of answers.
    pub(crate) fn count(&self) -> u64 {
        self.by_question.values().map(|a| a.len() as u64).sum()
    }

    /// Returns the number of answers to the question with one of these ids.
    pub(crate) fn count_for(&self, keys: &[String]) -> u64 {
        self.answers_to(keys).len() as u64
    }

    /// Returns the number of answers whose question id is a row number of at least `rows`.
    pub(crate) fn count_beyond_row(&self, rows: u64) -> u64 {
        let is_beyond = |id: &str| id.parse::<u64>().is_ok_and(|row| row >= rows);
        let all = self.by_question.iter().filter(|(id, _)| is_beyond(id));
        all.map(|(_, answers)| answers.len() as u64).sum()
    }

    /// Returns the first answer to a question that is not among these, in reading order: its question id, file
    /// and line.
    pub(crate) fn first_without(&self, questions: &HashSet<String>) -> Option<(&str, &Path, u64)> {
        let others = self.by_question.iter().filter(|(id, _)| !questions.contains(*id));
        let answers = others.flat_map(|(id, answers)| answers.iter().map(move |a| (id, a)));
        let (id, first) = answers.min_by_key(|(_, answer)| (answer.file, answer.line))?;
        Some((id, self.files.get(first.file)?, first.line))
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let opened = regular_file::open(path).with_context(|| {
            format!("answers file {} cannot be opened\nhint: check --answers", path.display())
        })?;
        let file = self.files.len();
        self.files.push(path.into());
        let mut models: Vec<usize> = Vec::new();
        let mut malformed: Vec<(u64, MalformedAnswer)> = Vec::new();
        for (line, text) in Lines::new(BufReader::new(opened)) {
            let parsed = match text {
                Ok(text) => answer_line::parse_line(&text),
                Err(message) => Err(MalformedAnswer { question_id: None, model: None, message }),
            };
            match parsed {
                Ok(parsed) => {
                    let model = self.model_index(&parsed.model.unwrap_or_else(|| file_stem(path)));
                    if model >= MAX_RESPONSES {
                        bail!(
                            "{} line {line}: more than {MAX_RESPONSES} models\n\
                             hint: `model_id` is the name of the model, not an id of the line",
                            path.display()
                        );
                    }
                    if !models.contains(&model) {
                        models.push(model);
                    }
                    let text = parsed.text;
                    let answer = IndexedAnswer { model, file, line, text };
                    if let Err(message) = self.add(&parsed.question_id, answer) {
                        let problem =
                            line_problem(path, line, Some(parsed.question_id.clone()), message);
                        self.unusable.add_duplicate(parsed.question_id, problem);
                    }
                }
                Err(error) => malformed.push((line, error)),
            }
        }
        check_readable(path, &models, &malformed)?;
        for (line, answer) in malformed {
            // A torn line has lost its last field, the model. Use the model of the other lines.
            let model = match (&answer.model, models.as_slice()) {
                (Some(name), _) => self.models.iter().position(|m| m == name),
                (None, [only]) => Some(*only),
                (None, []) => Some(self.model_index(&file_stem(path))),
                (None, _) => None,
            };
            let problem = line_problem(path, line, answer.question_id.clone(), answer.message);
            match model {
                Some(model) => self.unusable.add_explanation(answer.question_id, model, problem),
                None => self.unusable.add_unattributed(problem),
            }
        }
        Ok(())
    }

    /// Returns the index of a model. Adds the model if it is new.
    fn model_index(&mut self, name: &str) -> usize {
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
                    let file = self.files.get(old.file).map(|f| file_name(f));
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

    fn answers_to(&self, keys: &[String]) -> &[IndexedAnswer] {
        let found = self.answered_key(keys).and_then(|key| self.by_question.get(key));
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the first of these ids of a question that has an answer.
    pub(crate) fn answered_key<'k>(&self, keys: &'k [String]) -> Option<&'k String> {
        keys.iter().find(|key| self.by_question.contains_key(*key))
    }

    /// Adds the answers to the question with one of these ids to the responses, and returns the
    /// missing answers. A missing answer becomes a response with empty text. A case with its own
    /// responses needs no answers; other cases need one from every model.
    pub(crate) fn attach(
        &mut self,
        keys: &[String],
        responses: &mut Vec<Response>,
    ) -> Vec<MissingResponse> {
        let own_models: Vec<String> = responses.iter().map(|r| r.model.clone()).collect();
        let mut missing = Vec::new();
        for (index, model) in self.models.clone().into_iter().enumerate() {
            if own_models.contains(&model) {
                continue;
            }
            let found = self.answers_to(keys);
            let answer = found.iter().find(|a| a.model == index);
            let is_unanswered = found.is_empty();
            let text = match answer {
                Some(answer) if !answer.text.trim().is_empty() => answer.text.to_string(),
                answer => {
                    let message = match answer {
                        Some(answer) => self.empty_message(&model, answer),
                        None => {
                            match self.unusable.take_explanation(
                                keys,
                                index,
                                own_models.is_empty() && !is_unanswered,
                            ) {
                                Some(problem) => unusable_message(&model, &problem),
                                None if !own_models.is_empty() => continue,
                                None => self.missing_message(&model, is_unanswered, keys),
                            }
                        }
                    };
                    let model = model.clone();
                    missing.push(MissingResponse { model, message });
                    String::new()
                }
            };
            responses.push(Response { model, text });
        }
        missing
    }

    /// Returns the unusable lines.
    pub(crate) fn unusable_lines(&mut self) -> &mut UnusableLines {
        &mut self.unusable
    }

    fn empty_message(&self, model: &str, answer: &IndexedAnswer) -> String {
        let file = self.files.get(answer.file).map(|f| file_name(f));
        format!(
            "the answer of model {model} is empty ({} line {})",
            file.unwrap_or_default(),
            answer.line
        )
    }

    fn missing_message(&self, model: &str, is_unanswered: bool, keys: &[String]) -> String {
        let key = keys.first().map_or("", String::as_str);
        let n = self.models.len();
        if is_unanswered && n > 1 {
            format!(
                "none of the {n} models has an answer to question_id {key}\n\
                 hint: use the id of a case as question_id"
            )
        } else {
            format!("model {model} has no answer to question_id {key}")
        }
    }
}

#[cfg(test)]
mod tests {
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
        let ids: Vec<_> =
            remaining.iter().map(|p| (p.line, p.id.as_deref().unwrap_or("-"))).collect();
        let expected = [(3, "-"), (4, "-"), (5, "3"), (6, "4"), (7, "5")];
        assert_eq!(ids, expected);
        assert!(AnswerIndex::read(&[dir.path().join("none.jsonl")]).is_err());
    }
}
