//! Download of one file: resumed, verified, and only then stored under its final name.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use futures_util::StreamExt;
use indicatif::ProgressBar;

use super::cache::RepoCache;
use super::client::HubClient;
use super::error::{HubError, HubErrorKind};
use super::remote_file::RemoteFile;
use super::verify::{mismatch, verify};

/// Downloads files of one commit into the cache.
pub(super) struct Downloader<'a> {
    /// The hub.
    pub(super) client: &'a HubClient<'a>,
    /// The cache of the repository.
    pub(super) cache: &'a RepoCache,
    /// The commit.
    pub(super) commit: &'a str,
    /// Counts bytes.
    pub(super) bar: ProgressBar,
}

impl Downloader<'_> {
    /// Downloads a file unless the cache has its content. `on_wait` is called if another process downloads it.
    pub(super) fn fetch(&self, file: &RemoteFile, on_wait: impl Fn()) -> Result<(), HubError> {
        let _lock = self.cache.lock(file.hash.hex(), on_wait)?;
        let blob = self.cache.blob(file.hash.hex());
        let start = self.bar.position();
        if blob.is_file() && len(&blob) == file.size {
            self.bar.set_position(start + file.size);
            return Ok(());
        }
        let part = self.cache.incomplete(file.hash.hex());
        let is_resumed = len(&part) > 0;
        let mut result = self.transfer(file, &part, start);
        if is_resumed && result.as_ref().is_err_and(is_mismatch) {
            // The first bytes are from an earlier download, perhaps a damaged one: start over, once.
            result = self.transfer(file, &part, start);
        }
        result?;
        std::fs::rename(&part, &blob).map_err(|error| HubError::disk(&blob, &error))
    }

    /// Completes and verifies the file at `part`; deletes it if it does not match.
    fn transfer(&self, file: &RemoteFile, part: &Path, start: u64) -> Result<(), HubError> {
        let mut attempt = || {
            let before = len(part);
            match self.append(file, part, start) {
                // An attempt that brings new bytes does not count against the limit.
                Err(error) if error.kind == HubErrorKind::Unavailable && len(part) > before => {
                    Ok(false)
                }
                result => result.map(|()| true),
            }
        };
        let result = loop {
            match self.client.retry(&mut attempt) {
                Ok(false) => {}
                Ok(true) => break verify(file, part),
                Err(error) => break Err(error),
            }
        };
        if result.as_ref().is_err_and(is_mismatch) {
            std::fs::remove_file(part).map_err(|error| HubError::disk(part, &error))?;
        }
        result
    }

    /// Requests the missing bytes, once.
    fn append(&self, file: &RemoteFile, part: &Path, start: u64) -> Result<(), HubError> {
        let (name, size) = (&file.name, file.size);
        let disk = |error| HubError::disk(part, &error);
        let output = OpenOptions::new().create(true).append(true).open(part);
        let mut output = output.map_err(disk)?;
        let mut have = output.metadata().map_err(disk)?.len();
        if have > size {
            output.set_len(0).map_err(disk)?;
            have = 0;
        }
        self.bar.set_position(start + have);
        if have == size {
            return Ok(());
        }
        let opened = self.client.open(self.commit, name, have..size);
        let (length, mut bytes) = match opened {
            Err(error) if have > 0 && error.kind == HubErrorKind::BadAnswer => {
                output.set_len(0).map_err(disk)?;
                return Err(self
                    .client
                    .interrupted(Some(name), "the server does not resume"));
            }
            opened => opened?,
        };
        if have > 0 && length != Some(size - have) {
            // The server ignores the range and sends the whole file.
            output.set_len(0).map_err(disk)?;
            have = 0;
        }
        if let Some(found) = length.filter(|length| have + length != size) {
            return Err(mismatch(
                file,
                &format!("expected {size} bytes, found {found}"),
            ));
        }
        while let Some(chunk) = self.client.block_on(bytes.next()) {
            let chunk = chunk.map_err(|error| self.client.hub_error(Some(name), error))?;
            have += chunk.as_ref().len() as u64;
            if have > size {
                let what = format!("expected {size} bytes, found at least {have}");
                return Err(mismatch(file, &what));
            }
            output.write_all(chunk.as_ref()).map_err(disk)?;
            self.bar.set_position(start + have);
        }
        if have < size {
            let why = format!("it closed after {have} of {size} bytes");
            return Err(self.client.interrupted(Some(name), &why));
        }
        output.sync_all().map_err(disk)
    }
}

fn is_mismatch(error: &HubError) -> bool {
    error.kind == HubErrorKind::Mismatch
}

fn len(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.len())
}
