//! What a rater rates at once: one or two responses to a question.

use std::sync::Arc;

use crate::data::cases::Case;
use crate::judging::run::pairs::select_pairs;

/// One or two responses of a case.
#[derive(Clone, Debug)]
pub struct Task {
    /// The case.
    pub case: Arc<Case>,
    /// Indices of the responses, in the order of the case.
    pub responses: Vec<usize>,
}

impl Task {
    /// Returns the names of the models of the responses.
    pub fn models(&self) -> Vec<&str> {
        self.responses
            .iter()
            .filter_map(|i| Some(self.case.responses.get(*i)?.model.as_str()))
            .collect()
    }

    /// Returns the texts of the responses.
    pub fn texts(&self) -> Vec<&str> {
        self.responses
            .iter()
            .filter_map(|i| Some(self.case.responses.get(*i)?.text.as_str()))
            .collect()
    }
}

/// Returns the tasks of cases: all pairs of responses, or the only response.
///
/// # Errors
/// If a case has no response, or two of one model.
pub fn tasks_of_cases(cases: Vec<Case>) -> Result<Vec<Task>, String> {
    let mut tasks = Vec::new();
    for case in cases.into_iter().map(Arc::new) {
        if case.responses.len() == 1 {
            tasks.push(Task { case, responses: vec![0] });
            continue;
        }
        let pairs =
            select_pairs(&case, None).map_err(|error| format!("case {}: {error}", case.id))?;
        let pairs = pairs.into_iter();
        tasks.extend(pairs.map(|pair| Task { case: Arc::clone(&case), responses: pair.to_vec() }));
    }
    Ok(tasks)
}
