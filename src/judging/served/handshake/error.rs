//! Why a server cannot judge.

use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::transport::RequestError;

/// Why a server cannot judge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::judging::served) enum HandshakeError {
    /// A request failed.
    #[error(
        "{model}: {error}\n\
         hint: check that the server is running, --model, and the environment variable with its key"
    )]
    Request {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
    },
    /// The server has no such model.
    #[error("{url}: the server has no model {model}\nhint: pass --model with one of {known}")]
    UnknownModel {
        /// The base URL.
        url: String,
        /// The model.
        model: String,
        /// The models of the server.
        known: String,
    },
    /// The model is the name of an adapter alone. The server would answer with its base.
    #[error(
        "{model}: SGLang answers with {base} if a request has the name of an adapter alone\n\
         hint: name the model {base}:{adapter}"
    )]
    AdapterName {
        /// The model and its URL.
        model: String,
        /// The name of the adapter.
        adapter: String,
        /// The name of the base.
        base: String,
    },
    /// The server rejects an option that the user passed.
    #[error("{model}: the server rejects `{option}`\nhint: omit {flag}")]
    RejectedOption {
        /// The model and its URL.
        model: String,
        /// The option.
        option: &'static str,
        /// Its flag.
        flag: &'static str,
    },
    /// The server ignores the constraint.
    #[error(
        "{model}: the server ignores the constraint in the notation of {engine}: {expected}, got `{text}`\n\
         hint: pass --engine with the engine of this server, or serve the model with vLLM 0.11 or \
         later, SGLang or llama.cpp"
    )]
    Unconstrained {
        /// The model and its URL.
        model: String,
        /// The engine whose notation was used.
        engine: &'static str,
        /// What the constraint demands.
        expected: String,
        /// What the server wrote.
        text: String,
    },
}

/// Returns the error of a request.
pub(super) fn request_error(model: &ServedModel) -> impl Fn(RequestError) -> HandshakeError {
    move |error| HandshakeError::Request { model: model.to_string(), error }
}
