//! Index of answers files in LLaVA's format: one `{question_id, text, model_id}` per line.
//!
//! The index is in memory, because answers and cases come in different orders.

#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use crate::data::cases::answers::answer_line;
use crate::data::cases::answers::answer_line::{AnswerLine, MalformedAnswer};
use crate::data::cases::answers::answer_problems::{
    check_readable, file_name, line_problem, unusable_message,
};
use crate::data::cases::answers::unusable_lines::UnusableLines;
use crate::data::cases::case::text_limits::MAX_RESPONSES;
use crate::data::cases::case::{InputProblem, Response};
use crate::data::cases::formats::lines::Lines;
use crate::data::cases::layout::{file_stem, files_with_extension};
use crate::support::files::regular_file;
use crate::support::text::is_blank;

/// Answers of all files, by question.
#[derive(Default)]
pub(crate) struct AnswerIndex {
    /// Model names, in the order of their first answer.
    models: Vec<String>,
    files: Vec<Arc<Path>>,
    by_question: HashMap<String, Vec<IndexedAnswer>>,
    unusable: UnusableLines,
}

/// A file in reading.
struct AnswersFile<'a> {
    path: &'a Path,
    /// Index of the file.
    index: usize,
    /// Indices of the models with answers in it.
    models: Vec<usize>,
    /// Number of answers that were added.
    added: u64,
    /// The first answer that repeats one of an earlier file.
    first_repeat: Option<RepeatedAnswer>,
}

/// An answer of a model that answered the question before.
struct RepeatedAnswer {
    /// Index of the model.
    model: usize,
    /// Index of the file that contains the first answer.
    file: usize,
    message: String,
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
    /// Reads files and folders of `.jsonl` files, in the given order (within a folder by name). Reads each file
    /// once, even if it is given several times.
    ///
    /// # Errors
    /// A path does not exist, cannot be opened, or is a folder without answers.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut answers = Self::default();
        let mut known = HashSet::new();
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
                if known.insert(fs::canonicalize(&file).unwrap_or_else(|_| file.clone())) {
                    answers.read_file(&file)?;
                }
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

    /// Returns the answers that repeat an earlier one of their model: their number and the first of them.
    pub(crate) fn repeated(&self) -> Option<(u64, &InputProblem)> {
        self.unusable.repeated()
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
        let mut file = AnswersFile {
            path,
            index: self.files.len(),
            models: Vec::new(),
            added: 0,
            first_repeat: None,
        };
        self.files.push(path.into());
        let mut malformed: Vec<(u64, MalformedAnswer)> = Vec::new();
        let mut unnamed: Vec<(u64, AnswerLine)> = Vec::new();
        for (line, text) in Lines::new(BufReader::new(opened)) {
            let parsed = match text {
                Ok(text) => answer_line::parse_line(&text),
                Err(message) => Err(MalformedAnswer { question_id: None, model: None, message }),
            };
            match parsed {
                Ok(parsed) => match parsed.model.clone() {
                    Some(model) => self.add_line(&mut file, line, &model, parsed)?,
                    None => unnamed.push((line, parsed)),
                },
                Err(error) => malformed.push((line, error)),
            }
        }
        // The name of the file is that of the model only if no line names one.
        let names_models = !file.models.is_empty();
        for (line, parsed) in unnamed {
            if names_models {
                let message = "field `model_id` is missing, which other lines of the file have";
                let (question_id, message) = (Some(parsed.question_id), message.to_owned());
                malformed.push((line, MalformedAnswer { question_id, model: None, message }));
            } else {
                self.add_line(&mut file, line, &file_stem(path), parsed)?;
            }
        }
        malformed.sort_by_key(|(line, _)| *line);
        check_readable(path, &file.models, &malformed)?;
        self.check_added(&file)?;
        for (line, answer) in malformed {
            // A torn line has lost its last field, the model. Use the model of the other lines.
            let model = match (&answer.model, file.models.as_slice()) {
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

    /// Adds the answer of a model in a line of a file. A second answer to the same question is unusable.
    fn add_line(
        &mut self,
        file: &mut AnswersFile,
        line: u64,
        model: &str,
        parsed: AnswerLine,
    ) -> Result<()> {
        let model = self.model_index(model);
        if model >= MAX_RESPONSES {
            bail!(
                "{} line {line}: more than {MAX_RESPONSES} models\n\
                 hint: `model_id` is the name of the model, not an id of the line",
                file.path.display()
            );
        }
        if !file.models.contains(&model) {
            file.models.push(model);
        }
        let answer = IndexedAnswer { model, file: file.index, line, text: parsed.text };
        match self.add(&parsed.question_id, answer) {
            Ok(()) => file.added += 1,
            Err(repeated) => {
                let (id, message) = (parsed.question_id, repeated.message.clone());
                let problem = line_problem(file.path, line, Some(id.clone()), message);
                self.unusable.add_duplicate(id, problem);
                if repeated.file != file.index {
                    file.first_repeat.get_or_insert(repeated);
                }
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

    /// Checks that a file adds an answer. Otherwise its model would be missing from the results.
    fn check_added(&self, file: &AnswersFile) -> Result<()> {
        let Some(repeated) = file.first_repeat.as_ref().filter(|_| file.added == 0) else {
            return Ok(());
        };
        let earlier = self.files.get(repeated.file).map(|path| path.display().to_string());
        let model = self.models.get(repeated.model).map_or("", String::as_str);
        bail!(
            "answers file {}: all its answers repeat earlier ones, the first that of model {model} in {}\n\
             hint: give each model its own model_id, or leave one of the files out",
            file.path.display(),
            earlier.unwrap_or_default()
        )
    }

    fn add(&mut self, question: &str, answer: IndexedAnswer) -> Result<(), RepeatedAnswer> {
        match self.by_question.entry(question.to_owned()) {
            Entry::Vacant(slot) => {
                slot.insert(vec![answer]);
            }
            Entry::Occupied(mut slot) => {
                if let Some(old) = slot.get().iter().find(|a| a.model == answer.model) {
                    let file = self.files.get(old.file).map(|f| file_name(f));
                    let model = self.models.get(old.model).map_or("", String::as_str);
                    let message = format!(
                        "model {model} answered question {question} before, in {} line {}\n\
                         hint: give each model its own model_id",
                        file.unwrap_or_default(),
                        old.line
                    );
                    let (model, file) = (old.model, old.file);
                    return Err(RepeatedAnswer { model, file, message });
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
                self.report_unused(keys, index, responses);
                continue;
            }
            let found = self.answers_to(keys);
            let answer = found.iter().find(|a| a.model == index);
            let is_unanswered = found.is_empty();
            let text = match answer {
                Some(answer) if !is_blank(&answer.text) => answer.text.to_string(),
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

    /// Reports the answer of a model that has another response in the case.
    fn report_unused(&mut self, keys: &[String], model: usize, responses: &[Response]) {
        let answers = self.answers_to(keys);
        let answer = answers.iter().find(|answer| answer.model == model);
        let (Some(key), Some(answer), Some(name)) =
            (self.answered_key(keys), answer, self.models.get(model))
        else {
            return;
        };
        let is_response = |r: &Response| r.model == *name && *r.text == *answer.text;
        if responses.iter().any(is_response) {
            return;
        }
        let message = format!(
            "model {name} has another response in the case, so this answer is left out\n\
             hint: give each model its own model_id"
        );
        let file = self.files.get(answer.file).map_or(Path::new(""), |file| file);
        let problem = line_problem(file, answer.line, Some(key.clone()), message);
        self.unusable.add_duplicate(key.clone(), problem);
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
