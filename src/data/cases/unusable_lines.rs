//! Lines of answers files that could not be used, until their case passes by.
//!
//! Each is told once: with the case it belongs to, or behind the last case. A run that stops before
//! (`--limit`) hears nothing of the lines it did not come to.

use std::collections::{HashMap, VecDeque};

use super::case::InputProblem;

/// The lines, by what they stand for.
#[derive(Default)]
pub(super) struct UnusableLines {
    /// By question (where it could be read) and model: each explains one missing answer.
    missing: HashMap<(Option<String>, usize), VecDeque<InputProblem>>,
    /// Second answers of a model to a question.
    repeated: HashMap<String, Vec<InputProblem>>,
    /// Those of a model that cannot be told.
    nobodys: Vec<InputProblem>,
}

impl UnusableLines {
    /// Keeps a line that explains why a model has no answer.
    pub(super) fn explains(
        &mut self,
        question: Option<String>,
        model: usize,
        problem: InputProblem,
    ) {
        let all = self.missing.entry((question, model)).or_default();
        all.push_back(problem);
    }

    /// Keeps a second answer to a question.
    pub(super) fn repeats(&mut self, question: String, problem: InputProblem) {
        self.repeated.entry(question).or_default().push(problem);
    }

    /// Keeps a line that stands for nothing.
    pub(super) fn of_nobody(&mut self, problem: InputProblem) {
        self.nobodys.push(problem);
    }

    /// The line that explains why a model has no answer to the question known under one of `keys`; the
    /// first one whose question could not be read may be it, where that may be guessed.
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

    /// The second answers to the question known under one of `keys`.
    pub(super) fn repetitions(&mut self, keys: &[String]) -> Vec<InputProblem> {
        let found = keys.iter().filter_map(|key| self.repeated.remove(key));
        found.flatten().collect()
    }

    /// The lines that no case missed, in their order.
    pub(super) fn leftover(&mut self) -> Vec<InputProblem> {
        let missing = self.missing.drain().flat_map(|(_, left)| left);
        let repeated = self.repeated.drain().flat_map(|(_, left)| left);
        let mut left: Vec<InputProblem> = missing.chain(repeated).collect();
        left.append(&mut self.nobodys);
        left.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        left
    }
}
