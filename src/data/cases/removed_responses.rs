//! Checks the responses of a case and removes those that cannot be judged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::case::{Case, ProblemScope, Response};
use crate::data::cases::answers::answer_index::MissingResponse;
use crate::data::cases::case::case_labels;
use crate::data::cases::case::text_limits::MAX_RESPONSES;
use crate::data::cases::case::unlisted_pairs::{AffectedPairs, UnlistedPairs, lists_pairs};
use crate::support::text::is_blank;

/// Maximum number of reasons in the message of a case without enough responses.
const MAX_REASONS: usize = 20;

/// Problem in a case, with the response that was removed because of it, if any.
pub(crate) struct RemovedResponse {
    /// The error message.
    pub(crate) message: String,
    /// The removed response, and the pairs that cannot be judged without it.
    pub(crate) scope: ProblemScope,
}

/// Removes responses and their labels from a case.
pub(crate) fn remove_responses(
    case: &mut Case,
    missing: Vec<MissingResponse>,
) -> Vec<RemovedResponse> {
    let numbers: HashMap<&str, usize> =
        missing.iter().enumerate().map(|(number, r)| (r.model.as_str(), number)).collect();
    let models: Vec<(&String, Option<usize>)> =
        case.responses.iter().map(|r| (&r.model, numbers.get(r.model.as_str()).copied())).collect();
    let names = |is_missing: bool| {
        let selected = models.iter().filter(|(_, number)| number.is_some() == is_missing);
        selected.map(|(model, _)| (*model).clone()).collect::<Vec<String>>()
    };
    let kept: Vec<bool> = models.iter().map(|(_, number)| number.is_none()).collect();
    let mut pairs: Vec<Vec<[String; 2]>> = vec![Vec::new(); missing.len()];
    let present = kept.iter().filter(|is_kept| **is_kept).count();
    let unlisted = if lists_pairs(present, kept.len() - present) {
        for (i, (a, first)) in models.iter().enumerate() {
            for (b, second) in models.iter().skip(i + 1) {
                // A pair of two missing responses is listed only once.
                if let Some(affected) = first.or(*second).and_then(|n| pairs.get_mut(n)) {
                    affected.push([(*a).clone(), (*b).clone()]);
                }
            }
        }
        None
    } else {
        Some(Arc::new(UnlistedPairs { present: names(false), missing: names(true) }))
    };
    if let Some(labels) = &mut case.labels {
        case_labels::retain_responses(labels, &kept);
    }
    let mut is_kept = kept.into_iter();
    case.responses.retain(|_| is_kept.next().unwrap_or(true));
    let removed = |(response, pairs): (MissingResponse, Vec<[String; 2]>)| RemovedResponse {
        message: response.message,
        scope: ProblemScope::Response {
            model: Some(response.model.into()),
            pairs: Box::new(match &unlisted {
                Some(unlisted) => AffectedPairs::Unlisted(Arc::clone(unlisted)),
                None => AffectedPairs::Listed(pairs.into()),
            }),
        },
    };
    missing.into_iter().zip(pairs).map(removed).collect()
}

/// Joins the reasons of the removed responses of a case that has not enough others.
pub(crate) fn join_reasons(removed: &[RemovedResponse]) -> String {
    let mut reasons: Vec<&str> = removed.iter().map(|r| r.message.as_str()).collect();
    reasons.dedup();
    let shown = reasons.get(..MAX_REASONS).unwrap_or(&reasons);
    let joined = shown.join("; ");
    match reasons.len() - shown.len() {
        0 => joined,
        others => format!("{joined}; and {others} more responses are missing"),
    }
}

/// Checks the responses of a case and returns those without text.
pub(super) fn check_responses(responses: &[Response]) -> Result<Vec<MissingResponse>, String> {
    if responses.len() > MAX_RESPONSES {
        return Err(format!(
            "the case has {} responses, the limit is {MAX_RESPONSES}\n\
             hint: split it into several cases",
            responses.len()
        ));
    }
    let mut missing = Vec::new();
    let mut models = HashSet::new();
    for (index, response) in responses.iter().enumerate() {
        let (number, model) = (index + 1, &response.model);
        if model.trim().is_empty() {
            return Err(format!(
                "response {number} has an empty `model`, expected a name\n\
                 hint: add the name of its model"
            ));
        }
        if !models.insert(model) {
            return Err(format!(
                "model {model} has two responses, expected one of each model\n\
                 hint: use a different model name for each response"
            ));
        }
        if is_blank(&response.text) {
            let message = format!(
                "response {number} (model {model}) is empty, missing or not a string\n\
                 hint: set `text` to a non-empty string; pairs with this response are not judged"
            );
            let model = model.clone();
            missing.push(MissingResponse { model, message });
        }
    }
    Ok(missing)
}
