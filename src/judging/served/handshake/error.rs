//! Why a server cannot judge.

use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::transport::RequestError;
use crate::support::terminal::exit::RunFailure;

/// Why a server cannot judge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::judging::served) enum HandshakeError {
    /// A request failed.
    #[error(
        "{model}: {error}\n\
         hint: check --model, and look at the log of the server"
    )]
    Request {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
    },
    /// The server rejects the key.
    #[error("{model}: {error}\n{hint}")]
    Denied {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
        /// What to do.
        hint: String,
    },
    /// There is no connection to the server.
    #[error(
        "{model}: {error}\n\
         hint: check the address (host, port, http or https), start the server if it does not run yet, and run \
         the same command again"
    )]
    Unreachable {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
    },
    /// The server answers no request now.
    #[error(
        "{model}: {error}\n\
         hint: run the same command again when the server has capacity, or pass a larger --max-outage or \
         --request-timeout"
    )]
    Unavailable {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
    },
    /// The server has no completions at this URL.
    #[error(
        "{model}: {error}\n\
         hint: check the model, and the URL: it is the part before /chat/completions, such as {expected}"
    )]
    WrongUrl {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
        /// A URL as servers have it.
        expected: String,
    },
    /// The server fails, or writes something else than completions.
    #[error(
        "{model}: {error}\n\
         hint: look at the log of the server, and check the URL: it is that of the API, such as {expected}"
    )]
    Broken {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
        /// A URL as servers have it.
        expected: String,
    },
    /// The server redirects to another address.
    #[error(
        "{model}: {error}\n\
         hint: acem3 follows no redirects, because they can lead to another host; pass the URL of the server itself"
    )]
    Redirected {
        /// The model and its URL.
        model: String,
        /// The error.
        error: RequestError,
    },
    /// The server lists no models.
    #[error(
        "{url}: the server has no models\nhint: load {model} on the server, then run the same command again"
    )]
    NoModels {
        /// The base URL.
        url: String,
        /// The model.
        model: String,
    },
    /// The server has no such model.
    #[error(
        "{url}: the server has no model {model}\n\
         hint: choose one of {known}, with --model or in the panel file"
    )]
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
    /// The model refuses to answer the test.
    #[error("{model}: the model refused to rate a test sentence: {text}\nhint: use another model")]
    Refused {
        /// The model and its URL.
        model: String,
        /// What the model wrote.
        text: String,
    },
    /// The answer to the test is not complete.
    #[error(
        "{model}: the server reached its limit of tokens in the test, after `{text}`\n\
         hint: serve the model with a longer context, or raise the limit of tokens of the server"
    )]
    Truncated {
        /// The model and its URL.
        model: String,
        /// What the model wrote.
        text: String,
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
    move |error| {
        let key_hint = model.key_hint();
        let (url, model) = (model.url.as_str(), model.to_string());
        match error {
            RequestError::Outage(_) | RequestError::Failed(_) => {
                HandshakeError::Unavailable { model, error }
            }
            RequestError::Denied(_) => HandshakeError::Denied { model, error, hint: key_hint },
            RequestError::Unreachable(_) => HandshakeError::Unreachable { model, error },
            RequestError::Broken(_) => {
                HandshakeError::Broken { model, error, expected: expected_url(url) }
            }
            RequestError::Missing(_) => {
                HandshakeError::WrongUrl { model, error, expected: expected_url(url) }
            }
            RequestError::Redirected(_) => HandshakeError::Redirected { model, error },
            RequestError::TooLong(_) | RequestError::Rejected(_) | RequestError::Unusable(_) => {
                HandshakeError::Request { model, error }
            }
        }
    }
}

/// Returns the base URL that servers have at the address of `url`.
fn expected_url(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let base = ["/chat/completions", "/completions", "/models"]
        .into_iter()
        .find_map(|path| url.strip_suffix(path))
        .unwrap_or(url);
    let last = base.rsplit('/').next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    if is_version { base.to_owned() } else { format!("{base}/v1") }
}

/// Converts the error of a handshake. The run can succeed later if the server was only unavailable or not
/// started yet.
pub(in crate::judging::served) fn to_run_error(error: HandshakeError) -> anyhow::Error {
    match error {
        HandshakeError::Unavailable { .. } | HandshakeError::Unreachable { .. } => {
            anyhow::Error::new(RunFailure(error.to_string()))
        }
        error => anyhow::Error::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_url_is_the_base() {
        for url in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/chat/completions"]
        {
            assert_eq!(expected_url(url), "http://h:1/v1");
        }
        assert_eq!(expected_url("https://h/openai/v1/models"), "https://h/openai/v1");
        assert_eq!(expected_url("https://h/v1beta2"), "https://h/v1beta2");
    }
}
