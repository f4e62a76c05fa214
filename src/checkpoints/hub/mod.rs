//! Download of the repository `owner/name[@revision]` from the Hugging Face Hub into a local cache.
//!
//! The cache has the layout of the Python tools, so that both share their downloads (reference:
//! `huggingface_hub`, `file_download.py` and `_snapshot_download.py`):
//!
//! ```text
//! HF_HUB_CACHE/models--owner--name/blobs/<hash>              a blob: the content of a file
//!                                 /blobs/<hash>.incomplete   a blob during its download
//!                                 /refs/<revision>           the commit of a branch or tag
//!                                 /snapshots/<commit>/<file> a symlink to the blob
//!                                 /listings/<commit>.json    all file names of a commit
//! HF_HUB_CACHE/.locks/models--owner--name/<hash>.lock        locked during a download
//! ```
//!
//! `listings` is an addition of acem3. A blob is verified before it gets its final name. Symlinks
//! are created after all blobs are complete, and the reference is written last. An interrupted
//! download therefore never looks complete, and the same command resumes it.
//!
//! `hf-hub` streams the bytes. Its own cache is not used, because it does not verify hashes or
//! resume over HTTP.

mod cache;
mod client;
mod download;
mod downloads;
mod error;
mod id;
mod remote_file;
mod settings;
mod snapshot;
mod verify;

use std::path::Path;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::file_filter::FileFilter;
pub use downloads::HubDownloads;
pub use error::{HubError, HubErrorKind};
pub use id::RepoRef;
pub use settings::{AccessToken, HubSettings, RetryPolicy};
pub use snapshot::{Hub, HubSource, Snapshot};

/// Flags of commands that can download from the hub.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct HubArgs {
    /// Never contact the Hugging Face Hub; use files downloaded before (like `HF_HUB_OFFLINE=1`)
    #[arg(long, env = "ACEM3_OFFLINE", value_parser = FalseyValueParser::new())]
    pub offline: bool,
}

/// Downloads the snapshot of a repository. Returns `None` if `text` is the path of an existing file
/// or folder, or does not look like a hub id.
///
/// # Errors
///
/// See [`HubErrorKind`].
pub fn snapshot_unless_path(
    text: &str,
    filter: &FileFilter,
    flags: HubArgs,
    quiet: bool,
) -> Result<Option<Snapshot>, HubError> {
    if Path::new(text).exists() {
        return Ok(None);
    }
    snapshot_by_id(text, filter, flags, quiet)
}

/// Downloads the snapshot of a repository. Returns `None` if `text` does not look like a hub id.
fn snapshot_by_id(
    text: &str,
    filter: &FileFilter,
    flags: HubArgs,
    quiet: bool,
) -> Result<Option<Snapshot>, HubError> {
    if !RepoRef::looks_like_id(text) {
        return Ok(None);
    }
    let repo = RepoRef::parse(text)?;
    let hub = Hub::new(HubSettings::from_env(flags.offline)?, quiet);
    hub.snapshot(&repo, filter).map(Some)
}
