//! Checkpoints from the hub: `owner/name[@revision]` to a folder on this machine.
//!
//! The cache has the layout of the Python tools, so that each finds what the other has downloaded
//! (reference: `huggingface_hub`, `file_download.py` and `_snapshot_download.py`):
//!
//! ```text
//! HF_HUB_CACHE/models--owner--name/blobs/<hash>              the content of a file
//!                                 /blobs/<hash>.incomplete   a content during its download
//!                                 /refs/<revision>           the commit of a branch or tag
//!                                 /snapshots/<commit>/<file> a link to the content
//!                                 /listings/<commit>.json    the names of all files of a commit (ours)
//! HF_HUB_CACHE/.locks/models--owner--name/<hash>.lock        locked during a download
//! ```
//!
//! Contents are verified before they get their final name, links follow once all contents are complete, and the
//! reference comes last: an interrupted download never looks complete, and the same command resumes it.
//!
//! `hf-hub` streams the bytes. Its own cache is not used: it neither verifies hashes nor resumes over HTTP.

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

/// The flags of commands that can download from the hub.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct HubArgs {
    /// Never contact the Hugging Face Hub; use files downloaded before (like `HF_HUB_OFFLINE=1`)
    #[arg(long, env = "ACEM3_OFFLINE", value_parser = FalseyValueParser::new())]
    pub offline: bool,
}

/// The snapshot of the repository that a flag names by its id. `None` if the text is the path of a file or folder
/// that exists, or does not have the shape of an id.
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

/// The snapshot of the repository with this id; `None` if the text does not have the shape of an id.
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
