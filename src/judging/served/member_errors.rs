//! The errors of a served model as reasons of the responses or questions that it was asked about.

use super::endpoint::ServedModel;
use super::transport::RequestError;
use crate::data::cases::UnscoredReason;
use crate::judging::judge::{MemberError, Unscored};

/// Returns the error of one request; others may succeed.
pub(super) fn unscored(reason: UnscoredReason, message: String) -> MemberError {
    MemberError::Unscored(Unscored::new(reason, message))
}

/// Converts the error of a request to a model for a `result`, such as an evaluation.
pub(super) fn to_member_error(
    error: RequestError,
    result: &str,
    model: &ServedModel,
) -> MemberError {
    match error {
        RequestError::TooLong(message) => unscored(
            UnscoredReason::Truncated,
            format!("{message}\nhint: serve the model with a longer context"),
        ),
        RequestError::Rejected(message) => {
            unscored(UnscoredReason::Refused, format!("the server rejects the request: {message}"))
        }
        RequestError::Failed(message) | RequestError::Broken(message) => {
            unscored(UnscoredReason::Transport, format!("the server gave no {result}: {message}"))
        }
        RequestError::Denied(message) => {
            MemberError::Unusable(format!("{model}: {message}\n{}", model.key_hint()))
        }
        RequestError::Missing(message)
        | RequestError::Unreachable(message)
        | RequestError::Redirected(message)
        | RequestError::Outage(message)
        | RequestError::Unusable(message) => MemberError::Unusable(format!("{model}: {message}")),
    }
}
