//! Errors of the hub client: what failed, and the next step.

use std::io;
use std::path::Path;

/// Why files of a repository could not be loaded. No message contains a token or a signed URL.
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
    /// The id, the revision or a setting is invalid.
    Input,
    /// The hub denies access, or has no such repository or revision.
    Refused,
    /// The repository or the cache lacks a file.
    MissingFile,
    /// The hub is busy or the connection broke; another attempt may succeed.
    Unavailable,
    /// The network or the host is missing.
    Unreachable,
    /// The hub's answer is malformed or contradicts itself.
    BadAnswer,
    /// Downloaded bytes differ in size or hash from what the hub states.
    Mismatch,
    /// A file or folder of the cache could not be read or written.
    Disk,
}

/// An HTTP status other than success, with the hub's own headers.
pub(super) struct Refusal<'a> {
    /// The HTTP status.
    pub(super) status: u16,
    /// `X-Error-Code`, such as `RepoNotFound`.
    pub(super) code: &'a str,
    /// `X-Error-Message`.
    pub(super) message: &'a str,
    /// True if the request carried a token.
    pub(super) had_token: bool,
}

impl HubError {
    /// An error with its message and the text after `hint:`.
    pub(super) fn new(kind: HubErrorKind, message: impl Into<String>, hint: &str) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: hint.to_owned(),
        }
    }

    /// The hub's answer about a repository or file cannot be used.
    pub(super) fn bad_answer(name: &str, why: &str) -> Self {
        let hint = "check that HF_ENDPOINT is a hub; then try again";
        Self::new(HubErrorKind::BadAnswer, format!("{name}: {why}"), hint)
    }

    /// A file or folder could not be read or written.
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
        Self::new(
            HubErrorKind::Disk,
            format!("{}: {error}", path.display()),
            hint,
        )
    }

    /// The hub refuses a request about a repository or a file of it
    /// (reference: `huggingface_hub`, `utils/_http.py`, `hf_raise_for_status`).
    pub(super) fn refused(id: &str, revision: &str, file: Option<&str>, refusal: &Refusal) -> Self {
        use HubErrorKind::{BadAnswer, MissingFile, Refused, Unavailable};
        let &Refusal {
            status,
            code,
            had_token,
            ..
        } = refusal;
        let invalid = refusal.message.contains("Invalid credentials");
        let (kind, what, hint) = match (status, code) {
            (_, "RevisionNotFound") => {
                let hint = "name a branch, tag or full commit, or leave the @revision out for main";
                (Refused, format!("no revision `{revision}`"), hint)
            }
            (_, "GatedRepo") => {
                let hint =
                    "request access on its page, then set HF_TOKEN to a token of that account";
                (Refused, "access is gated".to_owned(), hint)
            }
            (401, _) if had_token && (invalid || code != "RepoNotFound") => {
                let hint = "create a new token and set HF_TOKEN, or log in again";
                (Refused, "the hub rejects the token".to_owned(), hint)
            }
            (401, _) if !had_token => {
                let hint = "check the spelling, or set HF_TOKEN to a token with read access";
                (
                    Refused,
                    "not found, or private and no token is set".to_owned(),
                    hint,
                )
            }
            (403, _) => {
                let hint = "give the token read access to this repository";
                (Refused, "access is forbidden".to_owned(), hint)
            }
            (404 | 410, _) if file.is_some() && code != "RepoNotFound" => {
                let hint = "name another @revision, or report it to the owner of the repository";
                let file = file.unwrap_or_default();
                (MissingFile, format!("no file {file} at {revision}"), hint)
            }
            (401 | 404 | 410, _) => {
                let hint = "check the spelling; if it is the path of a folder, there is none";
                (Refused, "no such repository".to_owned(), hint)
            }
            _ => {
                let is_busy = matches!(status, 408 | 429 | 500 | 502 | 503 | 504);
                let kind = if is_busy { Unavailable } else { BadAnswer };
                let file = file.map_or(String::new(), |file| format!(" for {file}"));
                let hint = "try again later; what is downloaded so far is kept";
                (kind, format!("the hub refuses the request{file}"), hint)
            }
        };
        Self::new(kind, format!("{id}: {what} ({status})"), hint)
    }

    /// The first line, without the hint.
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_distinct_messages() {
        use HubErrorKind::{BadAnswer, MissingFile, Refused, Unavailable};
        let file = Some("x");
        let cases = [
            (
                404,
                "RevisionNotFound",
                false,
                None,
                Refused,
                "no revision `v1`",
            ),
            (
                404,
                "EntryNotFound",
                false,
                file,
                MissingFile,
                "no file x at v1",
            ),
            (404, "", false, file, MissingFile, "no file x at v1"),
            (
                404,
                "RepoNotFound",
                true,
                None,
                Refused,
                "no such repository (404)",
            ),
            (
                401,
                "RepoNotFound",
                true,
                None,
                Refused,
                "no such repository (401)",
            ),
            (
                401,
                "RepoNotFound",
                false,
                None,
                Refused,
                "no token is set (401)",
            ),
            (401, "", true, None, Refused, "rejects the token (401)"),
            (
                403,
                "GatedRepo",
                true,
                None,
                Refused,
                "access is gated (403)",
            ),
            (403, "", true, None, Refused, "access is forbidden (403)"),
            (500, "", true, file, Unavailable, "for x (500)"),
            (416, "", true, file, BadAnswer, "for x (416)"),
        ];
        for (status, code, had_token, file, kind, expected) in cases {
            let mut refusal = Refusal {
                status,
                code,
                message: "",
                had_token,
            };
            let error = HubError::refused("a/b", "v1", file, &refusal);
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
            refusal.message = "Invalid credentials in Authorization header";
            let error = HubError::refused("a/b", "v1", file, &refusal);
            let is_rejected = error.to_string().contains("rejects the token");
            assert_eq!(is_rejected, status == 401 && had_token, "{error}");
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
