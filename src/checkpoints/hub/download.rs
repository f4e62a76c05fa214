//! One file's content: fetched, resumed, checked, and only then given its name.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use indicatif::ProgressBar;
use ureq::Body;
use ureq::http::Response;

use super::cache::Cache;
use super::checksum::Checksum;
use super::client::{Client, Trouble};
use super::lock::Lock;
use super::refusal::{Subject, header};
use super::{HubError, RepoRef};

/// A file to have.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// Its path in the repository.
    pub(super) file: String,
    /// Its size in bytes.
    pub(super) size: u64,
    /// Its hash, the name of its content.
    pub(super) hash: Checksum,
}

/// Brings contents of one commit into the cache.
pub(super) struct Download<'a> {
    /// Whom to ask.
    pub(super) client: &'a Client,
    /// Where to put it.
    pub(super) cache: &'a Cache,
    /// Whose files.
    pub(super) repo: &'a RepoRef,
    /// Of which commit.
    pub(super) commit: &'a str,
    /// Who watches.
    pub(super) bar: &'a ProgressBar,
    /// What to say when another process has the file.
    pub(super) wait: &'a dyn Fn(&str),
}

impl Download<'_> {
    /// Sees to it that a content is in the cache, whole.
    pub(super) fn bring(&self, wish: &Wish) -> Result<(), HubError> {
        let digits = wish.hash.digits();
        let _lock = Lock::take(&self.cache.lock(digits), &|| (self.wait)(&wish.file))?;
        let blob = self.cache.blob(digits);
        if blob
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() == wish.size)
        {
            self.bar.inc(wish.size);
            return Ok(());
        }
        let path = self.cache.incomplete(digits);
        let resumed = length(&path) > 0;
        let before = self.bar.position();
        self.fill(wish, &path)?;
        if let Err(error) = check(wish, &path) {
            if !resumed {
                return Err(error);
            }
            // What lay there may have been another's, or torn: once more from the beginning.
            self.bar.set_position(before);
            self.fill(wish, &path)?;
            check(wish, &path)?;
        }
        std::fs::rename(&path, &blob)
            .map_err(|error| HubError::disk(&blob, "cannot be made", error))
    }

    /// Fetches until the file has its size.
    fn fill(&self, wish: &Wish, path: &Path) -> Result<(), HubError> {
        let before = self.bar.position();
        self.client.patiently(|| {
            let result = self.fetch(wish, path, before);
            result.map_err(|trouble| match trouble {
                Trouble::Passing {
                    error: HubError::Unreachable { why, .. },
                    progress,
                } => Trouble::Passing {
                    error: HubError::Broken {
                        file: self.name(wish),
                        have: length(path),
                        size: wish.size,
                        why,
                    },
                    progress,
                },
                trouble => trouble,
            })
        })
    }

    /// One try: the bytes that are missing, or all of them.
    fn fetch(&self, wish: &Wish, path: &Path, before: u64) -> Result<(), Trouble> {
        let disk = |error| Trouble::Lasting(HubError::disk(path, "cannot be written", error));
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(path).map_err(disk)?;
        let mut have = file.metadata().map_err(disk)?.len();
        if have > wish.size {
            file.set_len(0).map_err(disk)?;
            have = 0;
        }
        self.bar.set_position(before + have);
        if have == wish.size {
            return file.sync_all().map_err(disk);
        }
        let subject = Subject {
            repo: self.repo,
            file: Some(&wish.file),
        };
        let answer = self.client.content(&subject, self.commit, have)?;
        match answer.status().as_u16() {
            206 if range_start(&answer) == Some(have) => {}
            // It does not go on where we are: begin again, with the next try if it said nothing.
            416 | 206 => {
                file.set_len(0).map_err(disk)?;
                let why = "the server does not resume".to_owned();
                let host = self.client.host();
                return Err(Trouble::Passing {
                    error: HubError::Unreachable { host, why },
                    progress: false,
                });
            }
            _ => {
                file.set_len(0).map_err(disk)?;
                have = 0;
                self.bar.set_position(before);
            }
        }
        if let Some(total) = total(&answer, have).filter(|total| *total != wish.size) {
            return Err(self.wrong_size(wish, path, total.to_string()));
        }
        self.copy(wish, (&mut file, path), have, answer)?;
        file.sync_all().map_err(disk)
    }

    /// Copies an answer behind what is there.
    fn copy(
        &self,
        wish: &Wish,
        (file, path): (&mut File, &Path),
        mut have: u64,
        answer: Response<Body>,
    ) -> Result<(), Trouble> {
        let disk = |error| Trouble::Lasting(HubError::disk(path, "cannot be written", error));
        let mut reader = answer.into_body().into_reader();
        let mut buffer = vec![0; 1 << 17];
        let start = have;
        loop {
            let n = match reader.read(&mut buffer) {
                Ok(n) => n,
                Err(error) => return Err(self.broke(&error, have > start)),
            };
            let bytes = buffer.get(..n).unwrap_or_default();
            if n == 0 {
                break;
            }
            if have + n as u64 > wish.size {
                let sent = format!("at least {}", have + n as u64);
                return Err(self.wrong_size(wish, path, sent));
            }
            file.write_all(bytes).map_err(disk)?;
            have += n as u64;
            self.bar.inc(n as u64);
        }
        if have < wish.size {
            let error =
                std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "it ended too early");
            return Err(self.broke(&error, have > start));
        }
        Ok(())
    }

    fn broke(&self, error: &std::io::Error, progress: bool) -> Trouble {
        match self.client.broken(error) {
            Trouble::Passing { error, .. } => Trouble::Passing { error, progress },
            lasting @ Trouble::Lasting(_) => lasting,
        }
    }

    fn wrong_size(&self, wish: &Wish, path: &Path, sent: String) -> Trouble {
        // The bytes are of another content; what cannot be removed is overwritten by the next try.
        let _ = std::fs::remove_file(path);
        Trouble::Lasting(HubError::WrongSize {
            file: self.name(wish),
            stated: wish.size,
            sent,
        })
    }

    fn name(&self, wish: &Wish) -> String {
        format!("{}/{}", self.repo.id(), wish.file)
    }
}

/// Whether the bytes are those that were promised; others are removed.
fn check(wish: &Wish, path: &Path) -> Result<(), HubError> {
    let got = wish.hash.of_file(path);
    let got = got.map_err(|error| HubError::disk(path, "cannot be read", error))?;
    if got == wish.hash.digits() {
        return Ok(());
    }
    std::fs::remove_file(path).map_err(|error| HubError::disk(path, "cannot be removed", error))?;
    Err(HubError::WrongHash {
        file: wish.file.clone(),
        kind: wish.hash.kind(),
        expected: wish.hash.digits().to_owned(),
        got,
    })
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.len())
}

/// The first byte that a partial answer holds.
fn range_start(answer: &Response<Body>) -> Option<u64> {
    let range = header(answer.headers(), "content-range")?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.trim().parse().ok()
}

/// The size of the whole, as far as the answer tells.
fn total(answer: &Response<Body>, have: u64) -> Option<u64> {
    let headers = answer.headers();
    if let Some(range) = header(headers, "content-range").filter(|_| answer.status() == 206) {
        return range.rsplit_once('/')?.1.trim().parse().ok();
    }
    let length: u64 = header(headers, "content-length")?.parse().ok()?;
    have.checked_add(length)
}
