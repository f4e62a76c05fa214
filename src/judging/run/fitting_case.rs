//! A case without the responses that no prompt of the judge can hold.
//!
//! A case with n responses has n (n − 1) / 2 pairs. Without this check, each pair with a response of
//! 200 kB would tokenise it again and copy it into a record.

use std::sync::Arc;

use anyhow::Context as _;

use crate::data::cases::{
    Case, MissingResponse, ProblemScope, RemovedResponse, join_reasons, remove_responses,
};
use crate::judging::judge::Judge;

/// A case whose question and responses each fit into a prompt.
pub(super) struct FittingCase {
    /// The case; `None` if too few of its responses can be judged.
    pub(super) case: Option<Arc<Case>>,
    /// The responses that were removed, or the reason why the whole case does not fit.
    pub(super) removed: Vec<RemovedResponse>,
}

impl FittingCase {
    /// Removes the responses that no prompt of the judge can hold. A case with fewer responses than
    /// the form of judging needs is removed as a whole.
    ///
    /// # Errors
    ///
    /// The judge fails.
    pub(super) fn new(case: &Arc<Case>, judge: &dyn Judge) -> anyhow::Result<Self> {
        let reject = |text: &str| {
            judge
                .reject_text(text)
                .with_context(|| format!("case `{}`, line {}", case.id, case.line))
        };
        if let Some(why) = reject(&case.question)? {
            return Ok(Self::without_pairs(case, format!("the question is too long: {why}")));
        }
        let reference = case.reference.as_deref().filter(|_| judge.shows_reference());
        if let Some(why) = reference.map(reject).transpose()?.flatten() {
            return Ok(Self::without_pairs(case, format!("the reference is too long: {why}")));
        }
        let mut rejected = Vec::new();
        for (index, response) in case.responses.iter().enumerate() {
            if let Some(why) = reject(&response.text)? {
                let (number, model) = (index + 1, response.model.clone());
                let message = format!("response {number} (model {model}) is too long: {why}");
                rejected.push(MissingResponse { model, message });
            }
        }
        if rejected.is_empty() {
            return Ok(Self { case: Some(Arc::clone(case)), removed: Vec::new() });
        }
        let mut fitting = Case::clone(case);
        let removed = remove_responses(&mut fitting, rejected);
        if fitting.responses.len() < judge.form().min_responses() {
            return Ok(Self::without_pairs(case, join_reasons(&removed)));
        }
        Ok(Self { case: Some(Arc::new(fitting)), removed })
    }

    /// Creates the result for a case of which nothing can be judged.
    fn without_pairs(case: &Case, message: String) -> Self {
        let models = case.responses.iter().map(|response| response.model.clone()).collect();
        let removed = vec![RemovedResponse { message, scope: ProblemScope::Case(models) }];
        Self { case: None, removed }
    }
}
