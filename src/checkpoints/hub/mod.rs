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

mod args;
mod cache;
mod client;
mod download;
mod downloads;
mod error;
mod id;
mod memory_growth;
mod redirects;
mod remote_file;
mod resolve;
mod settings;
mod snapshot;
mod verify;

pub use args::HubArgs;
pub use downloads::HubDownloads;
pub use error::{HubError, HubErrorKind};
pub use id::RepoRef;
pub use resolve::snapshot_unless_path;
pub use settings::{HubSettings, RetryPolicy};
pub use snapshot::{Hub, HubSource, Snapshot};
