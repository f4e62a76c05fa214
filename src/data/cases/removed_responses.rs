//! Checks the responses of a case and removes those that cannot be judged.

use super::case::{Case, Response};
use crate::data::cases::answers::answer_index::MissingResponse;
use crate::data::cases::case::case_labels;

/// Problem in a case, with the response that was removed because of it, if any.
pub(super) struct RemovedResponse {
    /// The error message.
    pub(super) message: String,
    /// The model of the removed response; `None` if no response was removed.
    pub(super) model: Option<Box<str>>,
    /// The pairs that cannot be judged.
    pub(super) pairs: Box<[[String; 2]]>,
}

/// Removes responses and their labels from a case.
pub(super) fn remove_responses(
    case: &mut Case,
    missing: Vec<MissingResponse>,
) -> Vec<RemovedResponse> {
    let missing_index = |model: &String| missing.iter().position(|r| r.model == *model);
    let models: Vec<&String> = case.responses.iter().map(|r| &r.model).collect();
    let mut pairs: Vec<Vec<[String; 2]>> = vec![Vec::new(); missing.len()];
    for (i, a) in models.iter().enumerate() {
        for b in models.iter().skip(i + 1) {
            // A pair of two missing responses is listed only once.
            if let Some(affected) =
                missing_index(a).or(missing_index(b)).and_then(|index| pairs.get_mut(index))
            {
                affected.push([(*a).clone(), (*b).clone()]);
            }
        }
    }
    let kept: Vec<bool> = models.iter().map(|model| missing_index(model).is_none()).collect();
    if let Some(labels) = &mut case.labels {
        case_labels::retain_responses(labels, &kept);
    }
    case.responses.retain(|r| missing_index(&r.model).is_none());
    let removed = |(response, pairs): (MissingResponse, Vec<_>)| RemovedResponse {
        message: response.message,
        model: Some(response.model.into()),
        pairs: pairs.into(),
    };
    missing.into_iter().zip(pairs).map(removed).collect()
}

/// Checks the responses of a case and returns those without text.
pub(super) fn check_responses(responses: &[Response]) -> Result<Vec<MissingResponse>, String> {
    let mut missing = Vec::new();
    for (index, response) in responses.iter().enumerate() {
        let (number, model) = (index + 1, &response.model);
        if model.trim().is_empty() {
            return Err(format!(
                "response {number} has an empty `model`, expected a name\n\
                 hint: add the name of its model"
            ));
        }
        if responses.iter().take(index).any(|r| r.model == *model) {
            return Err(format!(
                "model {model} has two responses, expected one of each model\n\
                 hint: use a different model name for each response"
            ));
        }
        if response.text.trim().is_empty() {
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
