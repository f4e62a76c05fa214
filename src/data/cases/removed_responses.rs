//! Responses that cannot be judged, and the case without them.

use super::case::{Case, Response};
use crate::data::cases::answer_index::MissingResponse;
use crate::data::cases::case_labels;

/// A response or another part that is left out.
pub(super) struct RemovedResponse {
    /// What is wrong with it.
    pub(super) message: String,
    /// The model whose response it is.
    pub(super) model: Option<Box<str>>,
    /// The pairs that are lost by it.
    pub(super) pairs: Box<[[String; 2]]>,
}

/// Takes the lost responses out of a case, with their labels.
pub(super) fn leave_out(case: &mut Case, lost: Vec<MissingResponse>) -> Vec<RemovedResponse> {
    let gone = |model: &String| lost.iter().position(|l| l.model == *model);
    let models: Vec<&String> = case.responses.iter().map(|r| &r.model).collect();
    let mut pairs: Vec<Vec<[String; 2]>> = vec![Vec::new(); lost.len()];
    for (i, a) in models.iter().enumerate() {
        for b in models.iter().skip(i + 1) {
            // A pair of two lost responses is lost once.
            if let Some(of) = gone(a).or(gone(b)).and_then(|l| pairs.get_mut(l)) {
                of.push([(*a).clone(), (*b).clone()]);
            }
        }
    }
    let kept: Vec<bool> = models.iter().map(|model| gone(model).is_none()).collect();
    if let Some(labels) = &mut case.labels {
        case_labels::keep(labels, &kept);
    }
    case.responses.retain(|r| gone(&r.model).is_none());
    let loose = |(lost, pairs): (MissingResponse, Vec<_>)| RemovedResponse {
        message: lost.message,
        model: Some(lost.model.into()),
        pairs: pairs.into(),
    };
    lost.into_iter().zip(pairs).map(loose).collect()
}

/// Checks the responses that came with the case; those without an answer are lost.
pub(super) fn check_own(responses: &[Response]) -> Result<Vec<MissingResponse>, String> {
    let mut lost = Vec::new();
    for (index, response) in responses.iter().enumerate() {
        let (number, model) = (index + 1, &response.model);
        if model.trim().is_empty() {
            return Err(format!(
                "response {number} has an empty `model`, expected a name\n\
                 hint: name the model that wrote it"
            ));
        }
        if responses.iter().take(index).any(|r| r.model == *model) {
            return Err(format!(
                "model {model} has two responses, expected one of each model\n\
                 hint: give each response a name of its own"
            ));
        }
        if response.text.trim().is_empty() {
            let message = format!(
                "response {number} (model {model}) is empty, missing or not a string\n\
                 hint: each response needs {{\"model\", \"text\"}}; its pairs are left out"
            );
            let model = model.clone();
            lost.push(MissingResponse { model, message });
        }
    }
    Ok(lost)
}
