//! Checkpoints from the hub: `owner/name[@revision]` to a folder on this machine.
//!
//! The cache is that of the Python tools, folder by folder, so that what either has downloaded the
//! other finds (reference: `huggingface_hub`, `file_download.py` and `_snapshot_download.py`):
//!
//! ```text
//! HF_HUB_CACHE/models--owner--name/blobs/<hash>              a file's content, under its hash
//!                                 /blobs/<hash>.incomplete   one that is on its way
//!                                 /refs/<revision>           the commit a branch or tag stood at
//!                                 /snapshots/<commit>/<file> a link to the content
//!                                 /trees/<commit>.json       the names of all files of a commit
//! HF_HUB_CACHE/.locks/models--owner--name/<hash>.lock        held by who downloads it
//! ```
//!
//! Contents come first, then the links, then the reference: a download that breaks leaves nothing
//! that looks whole, and goes on where it broke when the same command is typed again.

mod agent;
mod cache;
mod checksum;
mod client;
mod download;
mod downloads;
mod error;
mod flags;
mod id;
mod lock;
mod redirect;
mod refusal;
mod settings;
mod snapshot;
mod tree;
mod wanted;

use std::path::Path;

pub(crate) use agent::agent;
pub use downloads::Downloads;
pub use error::HubError;
pub use flags::HubFlags;
pub use id::RepoRef;
pub use settings::{Patience, Settings, Token};
pub use snapshot::{Hub, HubStamp, Snapshot};
pub use wanted::Wanted;

/// The snapshot of the repository that a flag names by its id. `None` where the text is the path of
/// something that exists, or cannot be an id.
///
/// # Errors
///
/// Everything that keeps the files from being there and whole; see [`HubError`].
pub fn named(
    text: &str,
    wanted: &Wanted,
    flags: HubFlags,
    quiet: bool,
) -> Result<Option<Snapshot>, HubError> {
    if Path::new(text).exists() {
        return Ok(None);
    }
    resembling(text, wanted, flags, quiet)
}

/// The snapshot of the repository of this id; `None` where the text cannot be one.
fn resembling(
    text: &str,
    wanted: &Wanted,
    flags: HubFlags,
    quiet: bool,
) -> Result<Option<Snapshot>, HubError> {
    if !RepoRef::resembles(text) {
        return Ok(None);
    }
    let repo = RepoRef::parse(text)?;
    let hub = Hub::new(Settings::from_env(flags.offline)?, quiet)?;
    hub.snapshot(&repo, wanted).map(Some)
}
