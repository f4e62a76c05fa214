//! Unusable lines of answers files, stored until their case is read.
//!
//! Each line is reported once: with its case, or after the last case. With `--limit`, lines of later cases are not
//! reported.

use std::collections::{HashMap, VecDeque};

use super::case::InputProblem;

/// Unusable lines by their effect.
#[derive(Default)]
pub(super) struct UnusableLines {
    /// By question (if readable) and model: each explains one missing answer.
    missing: HashMap<(Option<String>, usize), VecDeque<InputProblem>>,
    /// Repeated answers of a model to a question.
    repeated: HashMap<String, Vec<InputProblem>>,
    /// Lines without a readable model.
    nobodys: Vec<InputProblem>,
}

impl UnusableLines {
    /// Adds a line that explains a missing answer.
    pub(super) fn explains(
        &mut self,
        question: Option<String>,
        model: usize,
        problem: InputProblem,
    ) {
        let all = self.missing.entry((question, model)).or_default();
        all.push_back(problem);
    }

    /// Adds a repeated answer.
    pub(super) fn repeats(&mut self, question: String, problem: InputProblem) {
        self.repeated.entry(question).or_default().push(problem);
    }

    /// Adds a line without model.
    pub(super) fn of_nobody(&mut self, problem: InputProblem) {
        self.nobodys.push(problem);
    }

    /// Removes and returns the line that explains a missing answer to the question with one of these ids. If `guess` allows, this may be the first
    /// line without readable question.
    pub(super) fn explanation(
        &mut self,
        keys: &[String],
        model: usize,
        guess: bool,
    ) -> Option<InputProblem> {
        let exact = keys.iter().map(|key| Some(key.clone()));
        let mut keys = exact.chain(guess.then_some(None));
        keys.find_map(|key| self.missing.get_mut(&(key, model))?.pop_front())
    }

    /// Removes and returns the repeated answers to the question with one of these ids.
    pub(super) fn repetitions(&mut self, keys: &[String]) -> Vec<InputProblem> {
        let found = keys.iter().filter_map(|key| self.repeated.remove(key));
        found.flatten().collect()
    }

    /// Removes and returns the remaining lines, in order.
    pub(super) fn leftover(&mut self) -> Vec<InputProblem> {
        let missing = self.missing.drain().flat_map(|(_, left)| left);
        let repeated = self.repeated.drain().flat_map(|(_, left)| left);
        let mut left: Vec<InputProblem> = missing.chain(repeated).collect();
        left.append(&mut self.nobodys);
        left.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        left
    }
}
