//! Unusable lines of answers files, stored until their case is read.
//!
//! Each line is reported once: with its case, or after the last case. With `--limit`, lines of
//! later cases are not reported.

use std::collections::{HashMap, VecDeque};

use crate::data::cases::case::InputProblem;

/// Unusable lines by their effect.
#[derive(Default)]
pub(crate) struct UnusableLines {
    /// Lines that each explain a missing answer, by question id (if readable) and model.
    explanations: HashMap<(Option<String>, usize), VecDeque<InputProblem>>,
    /// Answers of models that have another response to the same question, by question.
    duplicates: HashMap<String, Vec<InputProblem>>,
    /// Lines without a readable model.
    unattributed: Vec<InputProblem>,
}

impl UnusableLines {
    /// Adds a line that explains a missing answer.
    pub(crate) fn add_explanation(
        &mut self,
        question: Option<String>,
        model: usize,
        problem: InputProblem,
    ) {
        let problems = self.explanations.entry((question, model)).or_default();
        problems.push_back(problem);
    }

    /// Adds an answer of a model that has another response to the question.
    pub(crate) fn add_duplicate(&mut self, question: String, problem: InputProblem) {
        self.duplicates.entry(question).or_default().push(problem);
    }

    /// Adds a line without a readable model.
    pub(crate) fn add_unattributed(&mut self, problem: InputProblem) {
        self.unattributed.push(problem);
    }

    /// Removes and returns the line that explains a missing answer of the model to the question
    /// with one of these ids. If there is none and `allow_guess` is true, this is the model's first
    /// line whose question id is unreadable.
    pub(crate) fn take_explanation(
        &mut self,
        keys: &[String],
        model: usize,
        allow_guess: bool,
    ) -> Option<InputProblem> {
        let exact = keys.iter().map(|key| Some(key.clone()));
        let mut keys = exact.chain(allow_guess.then_some(None));
        keys.find_map(|key| self.explanations.get_mut(&(key, model))?.pop_front())
    }

    /// Returns the number of repeated answers and the first of them, by file and line.
    pub(crate) fn repeated(&self) -> Option<(u64, &InputProblem)> {
        let all = self.duplicates.values().flatten();
        let first = all.clone().min_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)))?;
        Some((all.count() as u64, first))
    }

    /// Removes and returns the repeated answers to the question with one of these ids.
    pub(crate) fn take_duplicates(&mut self, keys: &[String]) -> Vec<InputProblem> {
        let found = keys.iter().filter_map(|key| self.duplicates.remove(key));
        found.flatten().collect()
    }

    /// Removes and returns the remaining lines, in order.
    pub(crate) fn take_remaining(&mut self) -> Vec<InputProblem> {
        let explanations = self.explanations.drain().flat_map(|(_, lines)| lines);
        let duplicates = self.duplicates.drain().flat_map(|(_, lines)| lines);
        let mut lines: Vec<InputProblem> = explanations.chain(duplicates).collect();
        lines.append(&mut self.unattributed);
        lines.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        lines
    }
}
