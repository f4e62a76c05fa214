//! Why a request has no usable response.

/// Why a request has no usable response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::judging::served) enum RequestError {
    /// The prompt is longer than the context of the model.
    #[error("{0}")]
    TooLong(String),
    /// The server rejects this request; it may accept others.
    #[error("{0}")]
    Rejected(String),
    /// All attempts failed, while other requests succeed.
    #[error("{0}")]
    Failed(String),
    /// The server failed at this request several times, or its responses are unreadable.
    #[error("{0}")]
    Broken(String),
    /// The server has no such model or path.
    #[error("{0}")]
    Missing(String),
    /// The server redirects to another address, which could be another host.
    #[error("{0}")]
    Redirected(String),
    /// The server rejects the key, or there is none.
    #[error("{0}")]
    Denied(String),
    /// There is no connection to the server.
    #[error("{0}")]
    Unreachable(String),
    /// No request succeeds now; later ones may.
    #[error("{0}")]
    Outage(String),
    /// No request can succeed.
    #[error("{0}")]
    Unusable(String),
}
