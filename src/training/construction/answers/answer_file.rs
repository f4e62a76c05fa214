//! Checks and repairs an answers file before a run continues it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::answer_record::{AnswerOutcome, AnswerRecord};
use super::answer_settings::{AnswerManifest, AnswerSettings};
use crate::judging::judge::server_usage::EarlierUsage;
use crate::support::files::atomic_file::replace_atomic;
use crate::support::files::regular_file;
use crate::support::text::format_count;

/// What an answers file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerFileScan {
    /// Answers and reasons for none.
    pub lines: u64,
    /// Requests and tokens of these answers.
    pub usage: EarlierUsage,
    /// Numbers of damaged lines.
    damaged: Vec<u64>,
    /// True if the last line is incomplete.
    pub is_torn: bool,
    /// True if the last line lacks only its line break.
    lacks_line_break: bool,
}

impl AnswerFileScan {
    /// Reads a file of this command with these settings, and passes its records on. A file that does
    /// not exist is empty.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is of another program, or was made with other settings.
    pub fn read(
        path: &Path,
        settings: &AnswerSettings,
        mut on_record: impl FnMut(&AnswerRecord),
    ) -> Result<Self> {
        let mut scan = Self::default();
        if !path.exists() {
            return Ok(scan);
        }
        let context = || format!("--out {}: cannot be read", path.display());
        let mut reader = BufReader::new(regular_file::open(path).with_context(context)?);
        let (hash, mut line) = (settings.hash(), Vec::new());
        for number in 1_u64.. {
            line.clear();
            if reader.read_until(b'\n', &mut line).with_context(context)? == 0 {
                break;
            }
            let is_complete = line.ends_with(b"\n");
            match AnswerRecord::parse(&line) {
                Some(record) if record.settings != hash => {
                    return Err(other_settings(path, settings, &record));
                }
                Some(record) => {
                    scan.add(&record);
                    on_record(&record);
                    scan.lacks_line_break = !is_complete;
                }
                None if is_complete => scan.damaged.push(number),
                None => scan.is_torn = true,
            }
        }
        if scan.lines == 0 && (scan.is_torn || !scan.damaged.is_empty()) {
            let is_own = scan.damaged.is_empty() && AnswerManifest::read(path)?.is_some();
            if !is_own {
                bail!(
                    "--out {}: already exists, and has no answers of this command\n\
                     hint: choose another file, or delete this one first",
                    path.display()
                );
            }
        }
        Ok(scan)
    }

    fn add(&mut self, record: &AnswerRecord) {
        self.lines += 1;
        self.add_usage(record);
    }

    /// Counts the request and the tokens of a record.
    pub(super) fn add_usage(&mut self, record: &AnswerRecord) {
        if let AnswerOutcome::Answered { prompt_tokens, written_tokens, .. } = &record.outcome {
            let usage = &mut self.usage.usage;
            usage.requests += 1;
            usage.prompt_tokens += prompt_tokens.unwrap_or_default();
            usage.written_tokens += written_tokens.unwrap_or_default();
            self.usage.jobs += 1;
        }
    }

    /// Removes the torn line, and moves damaged lines to the file [`damaged_path`].
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub(super) fn repair(&self, path: &Path) -> Result<()> {
        if self.damaged.is_empty() && !self.is_torn && !self.lacks_line_break {
            return Ok(());
        }
        let attempt = || -> io::Result<()> {
            let mut damaged = Vec::new();
            let mut reader = BufReader::new(File::open(path)?);
            replace_atomic(path, |out| {
                let mut line = Vec::new();
                for number in 1_u64.. {
                    line.clear();
                    if reader.read_until(b'\n', &mut line)? == 0 {
                        break;
                    }
                    let is_complete = line.ends_with(b"\n");
                    if self.damaged.contains(&number) || (self.is_torn && !is_complete) {
                        damaged.extend_from_slice(&line);
                        if !is_complete {
                            damaged.push(b'\n');
                        }
                        continue;
                    }
                    out.write_all(&line)?;
                    if !is_complete {
                        out.write_all(b"\n")?;
                    }
                }
                if self.damaged.is_empty() {
                    return Ok(());
                }
                // Damaged lines first, so that each line is in one of the files at any time.
                let options = || File::options().append(true).create(true).open(damaged_path(path));
                let mut file = options()?;
                file.write_all(&damaged)?;
                file.sync_data()
            })
        };
        attempt().with_context(|| {
            format!(
                "cannot repair {}\nhint: check free space and write permissions",
                path.display()
            )
        })
    }

    /// Describes the repair, one note per line, for the user.
    pub(super) fn notes(&self, path: &Path) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_torn {
            let note = "the last line of an interrupted run is incomplete; asking it again";
            notes.push(note.to_owned());
        }
        if let Some(first) = self.damaged.first() {
            notes.push(format!(
                "{}: {} moved to {}, and their questions asked again; the first is line {first}",
                path.display(),
                format_count(self.damaged.len() as u64, "damaged line"),
                damaged_path(path).display()
            ));
        }
        notes
    }
}

/// Returns the path of the damaged lines of an answers file.
fn damaged_path(path: &Path) -> PathBuf {
    path.with_extension("damaged")
}

/// Returns the error of a file with answers of other settings.
pub(super) fn other_settings(
    path: &Path,
    settings: &AnswerSettings,
    record: &AnswerRecord,
) -> anyhow::Error {
    let manifest = AnswerManifest::read(path).ok().flatten();
    let earlier = manifest.filter(|manifest| manifest.hash == record.settings);
    let difference = match earlier {
        Some(manifest) => settings.describe_differences(&manifest.settings),
        None => format!("their hash is {}, and was {}", settings.hash(), record.settings),
    };
    anyhow::anyhow!(
        "--out {}: has answers of {} with other settings: {difference}\n\
         hint: choose another --out, or repeat the command that began this file",
        path.display(),
        record.model_id
    )
}
