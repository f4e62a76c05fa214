//! Errors of the hub client, with hints.

use std::io;
use std::path::Path;

/// Error of a download from the hub. The message contains no token and no signed URL.
#[derive(Debug, thiserror::Error)]
#[error("{message}\nhint: {hint}")]
pub struct HubError {
    /// The kind of failure.
    pub kind: HubErrorKind,
    message: String,
    hint: String,
}

/// The kinds of [`HubError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubErrorKind {
    /// The id or the revision is invalid.
    Input,
    /// An environment variable or the configuration of the client is invalid.
    Setting,
    /// The hub denies access, or the repository or revision does not exist.
    Rejected,
    /// The repository does not contain a file.
    MissingFile,
    /// The cache does not contain the revision or one of its files, and downloads are forbidden.
    NotCached,
    /// The hub is busy or the connection broke; another attempt may succeed.
    Unavailable,
    /// The network or the host cannot be reached.
    Unreachable,
    /// The response is malformed or contradicts an earlier one.
    BadResponse,
    /// The size or hash of the downloaded bytes differs from the hub's.
    Mismatch,
    /// A file or folder of the cache could not be read or written.
    Disk,
}

/// HTTP response with an error status, and the error headers of the hub.
pub(super) struct ErrorResponse<'a> {
    /// The HTTP status.
    pub(super) status: u16,
    /// `X-Error-Code`, such as `RepoNotFound`.
    pub(super) code: &'a str,
    /// `X-Error-Message`.
    pub(super) message: &'a str,
    /// True if the request contained a token.
    pub(super) had_token: bool,
}

impl HubError {
    /// Creates an error. `hint`: the text after `hint:`.
    pub(super) fn new(kind: HubErrorKind, message: impl Into<String>, hint: &str) -> Self {
        Self { kind, message: message.into(), hint: hint.to_owned() }
    }

    /// Creates an error for a response about a repository or file that cannot be used.
    pub(super) fn bad_response(name: &str, why: &str) -> Self {
        let hint = "check that HF_ENDPOINT is the URL of a hub, then try again";
        Self::new(HubErrorKind::BadResponse, format!("{name}: {why}"), hint)
    }

    /// Creates an error for a file or folder that could not be read or written.
    pub(super) fn disk(path: &Path, error: &io::Error) -> Self {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let hint = match error.kind() {
            StorageFull | QuotaExceeded => {
                "free some space, or set HF_HUB_CACHE to a folder on a larger disk; the same \
                 command resumes the download"
            }
            PermissionDenied | ReadOnlyFilesystem => {
                "set HF_HUB_CACHE to a folder you can write to"
            }
            _ => "check the disk, or set HF_HUB_CACHE to another folder",
        };
        Self::new(HubErrorKind::Disk, format!("{}: {error}", path.display()), hint)
    }

    /// Creates an error from an error response about a repository or one of its files
    /// (reference: `huggingface_hub`, `utils/_http.py`, `hf_raise_for_status`).
    pub(super) fn from_response(
        id: &str,
        revision: &str,
        file: Option<&str>,
        response: &ErrorResponse,
    ) -> Self {
        use HubErrorKind::{BadResponse, MissingFile, Rejected, Unavailable};
        let &ErrorResponse { status, code, had_token, .. } = response;
        let is_invalid_token = response.message.contains("Invalid credentials");
        let (kind, what, hint) = match (status, code) {
            (_, "RevisionNotFound") => {
                let hint = "pass a branch, tag or full commit hash, or omit @revision to use main";
                (Rejected, format!("no revision `{revision}`"), hint)
            }
            (_, "GatedRepo") => {
                let hint =
                    "request access on its page, then set HF_TOKEN to a token of that account";
                (Rejected, "access is gated".to_owned(), hint)
            }
            (401, _) if had_token && (is_invalid_token || code != "RepoNotFound") => {
                let hint = "create a new token and set HF_TOKEN, or log in again";
                (Rejected, "the hub rejects the token".to_owned(), hint)
            }
            (401, _) if !had_token => {
                let hint = "check the spelling, or set HF_TOKEN to a token with read access";
                (Rejected, "not found, or private and no token is set".to_owned(), hint)
            }
            (403, _) => {
                let hint = "give the token read access to this repository";
                (Rejected, "access is forbidden".to_owned(), hint)
            }
            (404 | 410, _) if file.is_some() && code != "RepoNotFound" => {
                let hint = "pass another @revision, or report it to the owner of the repository";
                let file = file.unwrap_or_default();
                (MissingFile, format!("no file {file} at {revision}"), hint)
            }
            (401 | 404 | 410, _) => {
                let hint = "check the spelling; for a local path, check that the folder exists";
                (Rejected, "no such repository".to_owned(), hint)
            }
            _ => {
                let is_busy = matches!(status, 408 | 429 | 500 | 502 | 503 | 504);
                let kind = if is_busy { Unavailable } else { BadResponse };
                let file = file.map_or(String::new(), |file| format!(" for {file}"));
                let hint = "try again later; downloaded data is kept";
                (kind, format!("the hub rejects the request{file}"), hint)
            }
        };
        Self::new(kind, format!("{id}: {what} ({status})"), hint)
    }

    /// Converts the error for display. The first line is `name` (the flag or key, with the id) and
    /// what failed.
    pub fn into_error(self, name: &str) -> anyhow::Error {
        let problem = match self.kind {
            HubErrorKind::Input => "invalid hub id or revision",
            HubErrorKind::Setting => "invalid setting of the hub client",
            HubErrorKind::MissingFile => "missing file",
            HubErrorKind::NotCached => "not in the cache",
            _ => "download failed",
        };
        anyhow::Error::new(self).context(format!("{name}: {problem}"))
    }

    /// Returns the message without the hint.
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_have_distinct_messages() {
        use HubErrorKind::{BadResponse, MissingFile, Rejected, Unavailable};
        let file = Some("x");
        let cases = [
            (404, "RevisionNotFound", false, None, Rejected, "no revision `v1`"),
            (404, "EntryNotFound", false, file, MissingFile, "no file x at v1"),
            (404, "", false, file, MissingFile, "no file x at v1"),
            (404, "RepoNotFound", true, None, Rejected, "no such repository (404)"),
            (401, "RepoNotFound", true, None, Rejected, "no such repository (401)"),
            (401, "RepoNotFound", false, None, Rejected, "no token is set (401)"),
            (401, "", true, None, Rejected, "rejects the token (401)"),
            (403, "GatedRepo", true, None, Rejected, "access is gated (403)"),
            (403, "", true, None, Rejected, "access is forbidden (403)"),
            (500, "", true, file, Unavailable, "for x (500)"),
            (416, "", true, file, BadResponse, "for x (416)"),
        ];
        for (status, code, had_token, file, kind, expected) in cases {
            let mut response = ErrorResponse { status, code, message: "", had_token };
            let error = HubError::from_response("a/b", "v1", file, &response);
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
            response.message = "Invalid credentials in Authorization header";
            let error = HubError::from_response("a/b", "v1", file, &response);
            let is_rejected = error.to_string().contains("rejects the token");
            assert_eq!(is_rejected, status == 401 && had_token, "{error}");
        }
    }

    #[test]
    fn first_line_states_what_failed() {
        for (kind, expected) in [
            (HubErrorKind::Input, "--panel a/b: invalid hub id or revision"),
            (HubErrorKind::NotCached, "--panel a/b: not in the cache"),
            (HubErrorKind::Rejected, "--panel a/b: download failed"),
        ] {
            let error = HubError::new(kind, "message", "hint").into_error("--panel a/b");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn disk_errors_have_a_hint_for_their_kind() {
        let text = |kind: io::ErrorKind| {
            HubError::disk(Path::new("blobs/ab"), &io::Error::from(kind)).to_string()
        };
        let full = text(io::ErrorKind::StorageFull);
        assert!(full.starts_with("blobs/ab: "), "{full}");
        assert!(full.contains("hint: free some space"), "{full}");
        let denied = text(io::ErrorKind::PermissionDenied);
        assert!(denied.contains("hint: set HF_HUB_CACHE"), "{denied}");
    }
}
