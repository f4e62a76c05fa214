//! What the hub means by a status that is not a success (reference: `huggingface_hub`,
//! `utils/_http.py`, `hf_raise_for_status`).

use ureq::http::HeaderMap;

use super::{HubError, RepoRef};

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    /// The repository and revision.
    pub(super) repo: &'a RepoRef,
    /// The file, if it was one.
    pub(super) file: Option<&'a str>,
}

impl Subject<'_> {
    /// What messages call it.
    pub(super) fn name(&self) -> String {
        match self.file {
            Some(file) => format!("{}/{file}", self.repo.id()),
            None => self.repo.id(),
        }
    }
}

/// The value of a header, if it is text.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The error that an answer stands for. `token`: whether one was sent.
pub(super) fn refusal(
    subject: &Subject,
    status: u16,
    headers: &HeaderMap,
    (host, token): (String, bool),
) -> HubError {
    let id = subject.repo.id();
    let revision = subject.repo.revision().to_owned();
    let code = header(headers, "x-error-code").unwrap_or_default();
    let said = header(headers, "x-error-message").unwrap_or_default();
    let invalid = said.contains("Invalid credentials");
    match (status, code) {
        (_, "RevisionNotFound") => HubError::NoRevision { id, revision },
        (_, "EntryNotFound") => no_file(subject),
        (_, "GatedRepo") => HubError::Gated {
            id,
            status,
            hint: if token {
                "ask its owner for access on its page; the token's account must be the one that asks"
            } else {
                "ask its owner for access on its page, then set HF_TOKEN to a token of that account"
            },
        },
        (401, _) if token && (invalid || code != "RepoNotFound") => HubError::BadToken { id },
        (401, _) if !token => HubError::NeedsToken { id },
        (403, _) => HubError::Forbidden { id },
        (401 | 404, "RepoNotFound") => HubError::NotFound { id },
        (404 | 410, _) if subject.file.is_some() => no_file(subject),
        (404 | 410, _) => HubError::NotFound { id },
        _ => HubError::Status {
            what: subject.name(),
            host,
            status,
        },
    }
}

fn no_file(subject: &Subject) -> HubError {
    HubError::NoFile {
        id: subject.repo.id(),
        revision: subject.repo.revision().to_owned(),
        file: subject.file.unwrap_or_default().to_owned(),
        hint: "name another revision behind an @, or ask whoever keeps the repository".to_owned(),
    }
}

/// Whether the same request may succeed later.
pub(super) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

#[cfg(test)]
mod tests {
    use ureq::http::HeaderValue;

    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let repo = RepoRef::parse("a/b@v1").unwrap();
        let told = |status: u16, code: &'static str, token: bool, file: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert("x-error-code", HeaderValue::from_static(code));
            let subject = Subject { repo: &repo, file };
            refusal(&subject, status, &headers, ("h".to_owned(), token))
        };
        assert!(matches!(
            told(404, "RevisionNotFound", false, None),
            HubError::NoRevision { .. }
        ));
        assert!(matches!(
            told(404, "EntryNotFound", false, Some("x")),
            HubError::NoFile { .. }
        ));
        assert!(matches!(
            told(404, "", false, Some("x")),
            HubError::NoFile { .. }
        ));
        assert!(matches!(
            told(404, "RepoNotFound", true, None),
            HubError::NotFound { .. }
        ));
        assert!(matches!(
            told(401, "RepoNotFound", true, None),
            HubError::NotFound { .. }
        ));
        assert!(matches!(
            told(401, "RepoNotFound", false, None),
            HubError::NeedsToken { .. }
        ));
        assert!(matches!(
            told(401, "", true, None),
            HubError::BadToken { .. }
        ));
        assert!(matches!(
            told(403, "GatedRepo", true, None),
            HubError::Gated { status: 403, .. }
        ));
        assert!(matches!(
            told(403, "", true, None),
            HubError::Forbidden { .. }
        ));
        assert!(matches!(
            told(500, "", true, None),
            HubError::Status { status: 500, .. }
        ));
    }
}
