//! A file of JSON lines that a run appends to and reads again when it resumes.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::torn_line::truncate_torn_line;
use crate::support::terminal::exit::RunFailure;

/// An append-only file of lines, open for one writer.
#[derive(Debug)]
pub struct AppendFile {
    path: PathBuf,
    file: File,
}

impl AppendFile {
    /// Opens or creates a file and removes a torn last line. Also returns the text of the file.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(path: &Path) -> Result<(Self, String)> {
        let describe = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let mut file = options.open(path).with_context(describe)?;
        truncate_torn_line(&mut file).with_context(describe)?;
        let text = std::fs::read_to_string(path).with_context(describe)?;
        Ok((Self { path: path.to_owned(), file }, text))
    }

    /// Appends a line.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, line: &str) -> Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes()).with_context(|| {
            RunFailure(format!(
                "cannot write {}\nhint: free disk space, then run the same command to resume",
                self.path.display()
            ))
        })
    }
}
