//! Repository ids: `owner/name[@revision]`.

use std::fmt;

use super::error::{HubError, HubErrorKind};

/// The default revision.
const MAIN: &str = "main";
/// Maximum length of an owner or name (reference: `huggingface_hub`, `utils/_validators.py`).
const MAX_LEN: usize = 96;

/// Model repository on the hub, at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoRef {
    id: String,
    revision: String,
}

impl RepoRef {
    /// Returns true if a text looks like an id, valid or not: two parts separated by one `/`,
    /// optionally with a revision. Returns false for paths that begin with `.`, `/` or `~`.
    pub fn looks_like_id(text: &str) -> bool {
        let id = text.split_once('@').map_or(text, |(id, _)| id);
        let halves = id.split_once('/');
        id.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            && !id.contains(['\\', ':'])
            && halves.is_some_and(|(_, name)| !name.is_empty() && !name.contains('/'))
    }

    /// Parses an id and its revision. The default revision is `main`.
    ///
    /// # Errors
    ///
    /// If the id or the revision is invalid.
    pub fn parse(text: &str) -> Result<Self, HubError> {
        let (id, revision) = text.split_once('@').unwrap_or((text, MAIN));
        let is_valid = |(owner, name)| {
            is_valid_name(owner) && is_valid_name(name) && id.strip_suffix(".git").is_none()
        };
        if !id.split_once('/').is_some_and(is_valid) {
            let message = format!("`{text}` is not a repository id");
            let hint = "expected owner/name[@revision], with at most 96 letters, digits, `-`, `_` \
                        and `.` in owner and in name, or the path of an existing folder";
            return Err(HubError::new(HubErrorKind::Input, message, hint));
        }
        if !is_valid_revision(revision) {
            let message = format!("`{revision}` is not a valid revision");
            let hint = "expected a branch, tag or commit after the @, for example owner/name@main";
            return Err(HubError::new(HubErrorKind::Input, message, hint));
        }
        Ok(Self { id: id.to_owned(), revision: revision.to_owned() })
    }

    /// Returns `owner/name`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }
}

impl fmt::Display for RepoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if self.revision == MAIN {
            return Ok(());
        }
        write!(f, "@{}", self.revision)
    }
}

/// Returns true if a text is valid as an owner or a name.
fn is_valid_name(text: &str) -> bool {
    let forbidden_ends = ['-', '.'];
    (1..=MAX_LEN).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !text.starts_with(forbidden_ends)
        && !text.ends_with(forbidden_ends)
        && !text.contains("--")
        && !text.contains("..")
}

/// Returns true if a text is valid as a revision and as a file path below `refs`.
fn is_valid_revision(text: &str) -> bool {
    let is_valid_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part != "@"
            && part.strip_suffix(".lock").is_none()
    };
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\\"<>|%#".contains(c);
    text.len() <= 200
        && text.split('/').all(is_valid_part)
        && !text.contains("..")
        && !text.contains("@{")
        && !text.contains(forbidden)
}

/// Returns true if a text is a full commit hash: 40 hexadecimal digits.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && is_hex(text)
}

/// Returns true if all characters are lower-case hexadecimal digits.
pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinguished_from_paths() {
        for id in ["a/b", "a/b@main", "owner/na.me-1@refs/pr/3", "bad--id/x"] {
            assert!(RepoRef::looks_like_id(id), "{id}");
        }
        for path in ["a", "a/b/c", "./a/b", "../b", "/a/b", "~/a", "a/", "C:/b", "a\\b"] {
            assert!(!RepoRef::looks_like_id(path), "{path}");
        }
    }

    #[test]
    fn revision_is_optional() {
        let repo = RepoRef::parse("liuhaotian/llava-v1.5-7b").unwrap();
        assert_eq!((repo.id(), repo.revision()), ("liuhaotian/llava-v1.5-7b", "main"));
        let repo = RepoRef::parse("a/b@refs/pr/3").unwrap();
        assert_eq!((repo.revision(), repo.to_string().as_str()), ("refs/pr/3", "a/b@refs/pr/3"));
    }

    #[test]
    fn invalid_ids_and_revisions_are_rejected() {
        let long = format!("a/{}", "b".repeat(97));
        let bad =
            ["a--b/c", "a/b..c", "a/.b", "-a/b", "a/b.git", "a/b c", "a/bé", "a", "a/b/c", &long];
        for id in bad {
            let error = RepoRef::parse(id).unwrap_err();
            assert_eq!(error.kind, HubErrorKind::Input);
            assert!(error.to_string().contains("is not a repository id"), "{id}: {error}");
        }
        let bad = ["", "..", "../x", "a//b", "a b", "/x", ".git", "x\0", "a/../../b", "x?y"];
        for revision in bad {
            let error = RepoRef::parse(&format!("a/b@{revision}")).unwrap_err();
            assert!(error.to_string().contains("is not a valid revision"), "{revision}");
        }
    }
}
