//! Download of one file: it is resumed, verified, and then renamed to its final name.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use futures_util::StreamExt;
use indicatif::ProgressBar;

use super::RetryPolicy;
use super::cache::RepoCache;
use super::client::HubClient;
use super::error::{HubError, HubErrorKind};
use super::remote_file::RemoteFile;
use super::verify::{mismatch_error, verify_hash};

/// Bytes received in the current interval. A server that sends single bytes would otherwise keep a
/// download open for ever.
struct DownloadSpeed {
    policy: RetryPolicy,
    start: Instant,
    bytes: u64,
}

impl DownloadSpeed {
    fn new(policy: RetryPolicy) -> Self {
        Self { policy, start: Instant::now(), bytes: 0 }
    }

    /// Counts received bytes. Returns true at the end of an interval with too few.
    fn is_too_slow(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.start.elapsed() < self.policy.slow_timeout {
            return false;
        }
        let is_too_slow = self.bytes < RetryPolicy::MIN_BYTES;
        *self = Self::new(self.policy);
        is_too_slow
    }
}

/// Downloads files of one commit into the cache.
pub(super) struct Downloader<'a> {
    /// Client of the hub for the repository.
    pub(super) client: &'a HubClient<'a>,
    /// The cache of the repository.
    pub(super) cache: &'a RepoCache,
    /// Commit of the files.
    pub(super) commit: &'a str,
    /// Progress bar of the downloaded bytes.
    pub(super) bar: ProgressBar,
}

impl Downloader<'_> {
    /// Downloads a file unless the cache contains its blob. Calls `on_wait` if another process is
    /// downloading it.
    pub(super) fn fetch(&self, file: &RemoteFile, on_wait: impl Fn()) -> Result<(), HubError> {
        let _lock = self.cache.lock(file.hash.hex(), on_wait)?;
        let blob = self.cache.blob_path(file.hash.hex());
        let bar_start = self.bar.position();
        if blob.is_file() && file_len(&blob) == file.size {
            self.bar.set_position(bar_start + file.size);
            return Ok(());
        }
        let part = self.cache.incomplete_path(file.hash.hex());
        let is_resumed = file_len(&part) > 0;
        let mut result = self.transfer(file, &part, bar_start);
        if is_resumed && result.as_ref().is_err_and(is_mismatch) {
            // The first bytes are from an earlier download and may be damaged: start over, once.
            result = self.transfer(file, &part, bar_start);
        }
        result?;
        std::fs::rename(&part, &blob).map_err(|error| HubError::disk(&blob, &error))
    }

    /// Downloads the missing bytes of the file at `part` and verifies it. Deletes it if its hash or
    /// size is wrong.
    fn transfer(&self, file: &RemoteFile, part: &Path, bar_start: u64) -> Result<(), HubError> {
        let mut attempt = || {
            let before = file_len(part);
            match self.append(file, part, bar_start) {
                // An attempt that receives enough new bytes does not count against the limit. One
                // byte per connection would otherwise keep a download open for ever.
                Err(error)
                    if error.kind == HubErrorKind::Unavailable
                        && file_len(part) >= before.saturating_add(RetryPolicy::MIN_BYTES) =>
                {
                    Ok(false)
                }
                result => result.map(|()| true),
            }
        };
        let result = loop {
            match self.client.retry(&mut attempt) {
                Ok(false) => {}
                Ok(true) => break verify_hash(file, part),
                Err(error) => break Err(error),
            }
        };
        if result.as_ref().is_err_and(is_mismatch) {
            std::fs::remove_file(part).map_err(|error| HubError::disk(part, &error))?;
        }
        result
    }

    /// Requests the missing bytes once and appends them to `part`.
    fn append(&self, file: &RemoteFile, part: &Path, bar_start: u64) -> Result<(), HubError> {
        let (name, size) = (&file.name, file.size);
        let disk_error = |error| HubError::disk(part, &error);
        let output = OpenOptions::new().create(true).append(true).open(part);
        let mut output = output.map_err(disk_error)?;
        let mut received = output.metadata().map_err(disk_error)?.len();
        if received > size {
            output.set_len(0).map_err(disk_error)?;
            received = 0;
        }
        self.bar.set_position(bar_start + received);
        if received == size {
            return Ok(());
        }
        let opened = self.client.open(self.commit, name, received..size);
        let (length, mut bytes) = match opened {
            Err(error) if received > 0 && error.kind == HubErrorKind::BadResponse => {
                output.set_len(0).map_err(disk_error)?;
                return Err(self
                    .client
                    .transient_error(Some(name), "the server does not support range requests"));
            }
            opened => opened?,
        };
        if received > 0 && length != Some(size - received) {
            // The server ignores the range and sends the complete file.
            output.set_len(0).map_err(disk_error)?;
            received = 0;
        }
        if let Some(found) = length.filter(|length| received + length != size) {
            return Err(mismatch_error(file, &format!("expected {size} bytes, found {found}")));
        }
        let mut speed = DownloadSpeed::new(self.client.retry_policy());
        while let Some(chunk) = self.client.block_on(bytes.next()) {
            let chunk = chunk.map_err(|error| self.client.hub_error(Some(name), error))?;
            let count = chunk.as_ref().len() as u64;
            received += count;
            if received > size {
                let details = format!("expected {size} bytes, found at least {received}");
                return Err(mismatch_error(file, &details));
            }
            output.write_all(chunk.as_ref()).map_err(disk_error)?;
            self.bar.set_position(bar_start + received);
            if speed.is_too_slow(count) {
                return Err(self.client.slow_error(name));
            }
        }
        if received < size {
            let why = format!("closed after {received} of {size} bytes");
            return Err(self.client.transient_error(Some(name), &why));
        }
        output.sync_all().map_err(disk_error)
    }
}

fn is_mismatch(error: &HubError) -> bool {
    error.kind == HubErrorKind::Mismatch
}

/// Returns the length of a file, or 0 if it does not exist.
fn file_len(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}
