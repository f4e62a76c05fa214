//! What a rater rates at once: one or two responses to a question.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::data::cases::Case;
use crate::judging::run::pairs::select_pairs;
use crate::training::introspection::decisions::unresolved_pair::UnresolvedPair;

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

    /// Returns the known final scores of the two responses.
    pub fn labels(&self) -> Option<[f64; 2]> {
        let scores = self.case.labels.as_ref()?.final_scores.as_ref()?;
        let [first, second] = self.responses.as_slice() else { return None };
        Some([*scores.get(*first)?, *scores.get(*second)?])
    }
}

/// Returns one task for each unresolved pair.
///
/// # Errors
/// If the cases do not have a pair, or a pair is listed twice.
pub fn tasks_of_unresolved(
    cases: Vec<Case>,
    pairs: &[UnresolvedPair],
) -> Result<Vec<Task>, String> {
    let cases: HashMap<String, Arc<Case>> =
        cases.into_iter().map(|case| (case.id.clone(), Arc::new(case))).collect();
    let task = |pair: &UnresolvedPair| {
        let case = cases.get(pair.case())?;
        let place = |model: &String| case.responses.iter().position(|r| r.model == *model);
        let responses = pair.models().iter().map(place).collect::<Option<_>>()?;
        Some(Task { case: Arc::clone(case), responses })
    };
    let mut known = HashSet::new();
    let tasks = pairs.iter().map(|pair| {
        if !known.insert((pair.case(), pair.models())) {
            return Err(format!(
                "--unresolved: the pair of {} in case {} is listed twice\nhint: remove one of the lines",
                pair.models().join(" and "),
                pair.case()
            ));
        }
        task(pair).ok_or_else(|| {
            let [first, second] = pair.models();
            format!(
                "--unresolved: the cases have no responses of {first} and {second} in case {}\n\
                 hint: pass the cases of the introspection",
                pair.case()
            )
        })
    });
    tasks.collect()
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
