//! What a person types to name a checkpoint on the hub: `owner/name[@revision]`.

use std::fmt;

use super::HubError;

/// The branch that is meant where none is named.
const MAIN: &str = "main";
/// The longest name of an owner or a repository (reference: `utils/_validators.py`).
const LONGEST: usize = 96;

/// A repository of a model on the hub, and a revision of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoRef {
    owner: String,
    name: String,
    revision: String,
}

impl RepoRef {
    /// Whether a text has the shape of an id, good or bad: two words with one `/` between them, and
    /// perhaps a revision. Texts that begin as paths do, with `.`, `/` or `~`, have not.
    pub fn resembles(text: &str) -> bool {
        let id = text.split_once('@').map_or(text, |(id, _)| id);
        let starts_well = id.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let halves = id.split_once('/');
        starts_well
            && !id.contains(['\\', ':'])
            && halves.is_some_and(|(_, name)| !name.is_empty() && !name.contains('/'))
    }

    /// Reads an id and its revision, `main` where none is named.
    pub fn parse(text: &str) -> Result<Self, HubError> {
        let (id, revision) = text.split_once('@').unwrap_or((text, MAIN));
        let bad = |why: &'static str| HubError::BadId {
            text: text.to_owned(),
            why,
        };
        let (owner, name) = id
            .split_once('/')
            .ok_or_else(|| bad("there is no `/` in it"))?;
        for part in [owner, name] {
            if let Some(why) = fault(part) {
                return Err(bad(why));
            }
        }
        if id.contains("--") || id.contains("..") {
            return Err(bad("`--` and `..` are not allowed"));
        }
        if id.strip_suffix(".git").is_some() {
            return Err(bad("it must not end in `.git`"));
        }
        if !is_revision(revision) {
            return Err(HubError::BadRevision {
                text: revision.to_owned(),
            });
        }
        Ok(Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
            revision: revision.to_owned(),
        })
    }

    /// `owner/name`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// The branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The name of its folder in the cache.
    pub(super) fn folder(&self) -> String {
        format!("models--{}--{}", self.owner, self.name)
    }
}

impl fmt::Display for RepoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)?;
        if self.revision == MAIN {
            return Ok(());
        }
        write!(f, "@{}", self.revision)
    }
}

/// What is wrong with an owner or a name.
fn fault(part: &str) -> Option<&'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if part.is_empty() || part.len() > LONGEST {
        Some("an owner and a name have 1 to 96 characters")
    } else if !part.chars().all(allowed) {
        Some("only letters, digits, `-`, `_` and `.` are allowed")
    } else if part.starts_with(['-', '.']) || part.ends_with(['-', '.']) {
        Some("an owner and a name neither begin nor end with `-` or `.`")
    } else {
        None
    }
}

/// Whether a text may name a branch, tag or commit, and a file below `refs`.
fn is_revision(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.strip_suffix(".lock").is_none()
            && part != "@"
    };
    let banned = |c: char| c.is_control() || " ~^:?*[\\\"<>|%#".contains(c);
    text.len() <= 200
        && text.split('/').all(part)
        && !text.contains("..")
        && !text.contains("@{")
        && !text.contains(banned)
}

/// Whether a text is a commit: 40 hexadecimal digits.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && is_hex(text)
}

/// Whether all characters are lower-case hexadecimal digits.
pub(super) fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_paths() {
        for id in ["a/b", "a/b@main", "owner/na.me-1@refs/pr/3", "bad--id/x"] {
            assert!(RepoRef::resembles(id), "{id}");
        }
        for path in [
            "a", "a/b/c", "./a/b", "../b", "/a/b", "~/a", "a/", "C:/b", "a\\b",
        ] {
            assert!(!RepoRef::resembles(path), "{path}");
        }
    }

    #[test]
    fn a_revision_may_be_named() {
        let repo = RepoRef::parse("liuhaotian/llava-v1.5-7b").unwrap();
        assert_eq!(
            (repo.id().as_str(), repo.revision()),
            ("liuhaotian/llava-v1.5-7b", "main")
        );
        assert_eq!(repo.folder(), "models--liuhaotian--llava-v1.5-7b");
        let repo = RepoRef::parse("a/b@refs/pr/3").unwrap();
        assert_eq!(
            (repo.revision(), repo.to_string().as_str()),
            ("refs/pr/3", "a/b@refs/pr/3")
        );
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let long = format!("a/{}", "b".repeat(97));
        let bad = [
            "a--b/c", "a/b..c", "a/.b", "-a/b", "a/b.git", "a/b c", "a/bé", &long,
        ];
        for id in bad {
            let error = RepoRef::parse(id).unwrap_err();
            assert!(matches!(error, HubError::BadId { .. }), "{id}: {error}");
        }
        for revision in [
            "",
            "..",
            "../x",
            "a//b",
            "a b",
            "/x",
            ".git",
            "x\0",
            "a/../../b",
            "x?y",
        ] {
            let error = RepoRef::parse(&format!("a/b@{revision}")).unwrap_err();
            assert!(matches!(error, HubError::BadRevision { .. }), "{revision}");
        }
    }
}
