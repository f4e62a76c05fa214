//! Why a checkpoint did not come from the hub, and what to do.

use std::io;
use std::path::PathBuf;

/// What stands between an id and its files. No message holds a token or a signed address.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// No id.
    #[error(
        "`{text}` is no hub id: {why}\n\
         hint: expected owner/name or owner/name@revision; for a folder, give a path that exists"
    )]
    BadId {
        /// What was typed.
        text: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// No name of a branch, tag or commit.
    #[error(
        "`{text}` cannot be a revision\n\
         hint: expected a branch, a tag or a commit behind the @, as in owner/name@main"
    )]
    BadRevision {
        /// What was typed.
        text: String,
    },
    /// A setting that cannot be used.
    #[error("{name}: {why}\nhint: {hint}")]
    Setting {
        /// The variable or file.
        name: String,
        /// What is wrong with it.
        why: String,
        /// What to do.
        hint: &'static str,
    },
    /// The repository is not there.
    #[error(
        "{id}: the hub has no such repository (404)\n\
         hint: check the spelling; if it is the path of a folder, there is none there"
    )]
    NotFound {
        /// `owner/name`.
        id: String,
    },
    /// Nobody was named, and the hub does not say whether it exists.
    #[error(
        "{id}: the hub does not show it without a token (401): it is private, gated or not there\n\
         hint: check the spelling, or set HF_TOKEN to a token that may read it"
    )]
    NeedsToken {
        /// `owner/name`.
        id: String,
    },
    /// The token is not known.
    #[error(
        "{id}: the hub refuses the token (401)\n\
         hint: HF_TOKEN, or the token file in HF_HOME, holds one that is wrong or has expired; \
         make a new one in the settings of your account"
    )]
    BadToken {
        /// `owner/name`.
        id: String,
    },
    /// The owner wants to be asked.
    #[error("{id}: access to it is gated ({status})\nhint: {hint}")]
    Gated {
        /// `owner/name`.
        id: String,
        /// 401 or 403.
        status: u16,
        /// What to do, by whether there was a token.
        hint: &'static str,
    },
    /// The token may not read it.
    #[error(
        "{id}: access is forbidden (403)\n\
         hint: the token needs the right to read this repository; check its permissions"
    )]
    Forbidden {
        /// `owner/name`.
        id: String,
    },
    /// The repository has no such revision.
    #[error(
        "{id}: it has no revision `{revision}`\n\
         hint: name a branch, tag or full commit of it, or leave @{revision} out for main"
    )]
    NoRevision {
        /// `owner/name`.
        id: String,
        /// What was asked for.
        revision: String,
    },
    /// The revision has no such file.
    #[error("{id}: it has no file {file} at {revision}\nhint: {hint}")]
    NoFile {
        /// `owner/name`.
        id: String,
        /// What was asked for.
        revision: String,
        /// The file, or what its name should be like.
        file: String,
        /// What to do.
        hint: String,
    },
    /// Offline, and never downloaded.
    #[error(
        "{id}: {revision} is not in the cache {}, and {why} forbids to ask the hub\n\
         hint: run the same command once without {why}, or give a folder", cache.display()
    )]
    NotCached {
        /// `owner/name`.
        id: String,
        /// What was asked for.
        revision: String,
        /// The cache that was searched.
        cache: PathBuf,
        /// What forbids to ask: a flag or a variable.
        why: &'static str,
    },
    /// In the cache, but not all of it.
    #[error(
        "{id}: {file} of {revision} is not in the cache {}\n\
         hint: run the same command once with access to the hub; what is there is kept",
        cache.display()
    )]
    Incomplete {
        /// `owner/name`.
        id: String,
        /// What was asked for.
        revision: String,
        /// The first file that is missing.
        file: String,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// Nobody answers.
    #[error(
        "the hub at {host} cannot be reached: {why}\n\
         hint: check the network, the proxy and HF_ENDPOINT; --offline uses what was downloaded before"
    )]
    Unreachable {
        /// The endpoint's host.
        host: String,
        /// The reason.
        why: String,
    },
    /// An answer that is of no use.
    #[error("{what}: the hub at {host} answered {status}\nhint: try again later; nothing was lost")]
    Status {
        /// The repository or file.
        what: String,
        /// Who answered.
        host: String,
        /// The status code.
        status: u16,
    },
    /// An answer that breaks the hub's rules.
    #[error("{what}: {why}\nhint: is HF_ENDPOINT a hub? try again, or tell who runs it")]
    BadAnswer {
        /// The repository or file.
        what: String,
        /// The rule.
        why: String,
    },
    /// The connection broke again and again.
    #[error(
        "{file}: the download broke after {have} of {size} bytes: {why}\n\
         hint: run the same command again; it goes on from there"
    )]
    Broken {
        /// The file.
        file: String,
        /// Bytes that are safe.
        have: u64,
        /// Bytes there should be.
        size: u64,
        /// The last reason.
        why: String,
    },
    /// More or fewer bytes than stated.
    #[error(
        "{file}: the hub states {stated} bytes and sends {sent}\n\
         hint: nothing of it was kept; try again later, or another HF_ENDPOINT"
    )]
    WrongSize {
        /// The file.
        file: String,
        /// The size in its metadata.
        stated: u64,
        /// What came, `at least N` where the rest was not read.
        sent: String,
    },
    /// Other bytes than stated.
    #[error(
        "{file}: its {kind} is {got}, expected {expected}\n\
         hint: nothing of it was kept; try again, and if it stays so, trust neither the server nor the proxy"
    )]
    WrongHash {
        /// The file.
        file: String,
        /// The kind of hash.
        kind: &'static str,
        /// What the hub stated.
        expected: String,
        /// What the bytes have.
        got: String,
    },
    /// The disk refuses.
    #[error("{}: {what}: {source}\nhint: {hint}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What to do.
        hint: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl HubError {
    /// An error of the disk, with the hint for its kind.
    pub(super) fn disk(path: impl Into<PathBuf>, what: &'static str, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, or set HF_HUB_CACHE to a folder on a larger disk; what was \
                 downloaded is kept, and the same command goes on"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "set HF_HUB_CACHE to a folder you may write to"
            }
            _ => "check the disk, or set HF_HUB_CACHE to another folder",
        };
        Self::Disk {
            path: path.into(),
            what,
            hint,
            source,
        }
    }

    /// Whether the hub was out of reach, so that what lies in the cache may stand in.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Status { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trouble_of_the_disk_has_its_hint() {
        let told = |kind: io::ErrorKind| HubError::disk("blobs/ab", "cannot write", kind.into());
        let full = told(io::ErrorKind::StorageFull).to_string();
        assert!(full.starts_with("blobs/ab: cannot write: "), "{full}");
        assert!(full.contains("hint: free some space"), "{full}");
        let denied = told(io::ErrorKind::PermissionDenied).to_string();
        assert!(denied.contains("hint: set HF_HUB_CACHE"), "{denied}");
    }
}
