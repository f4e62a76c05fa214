//! A file of lines that a run appends to and reads again when it resumes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::support::terminal::exit::RunFailure;

/// An append-only file of lines, open for one writer. Lines are written completely or not at all.
#[derive(Debug)]
pub struct AppendFile {
    path: PathBuf,
    file: File,
    /// Number of bytes of complete lines.
    length: u64,
    /// True if a part of a line remains at the end, so that no line may follow.
    is_torn: bool,
}

impl AppendFile {
    /// Opens or creates a file and removes a torn last line. Also returns the text of the file.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is not UTF-8.
    pub fn open(path: &Path) -> Result<(Self, String)> {
        let context = || format!("cannot open {}", path.display());
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(path).with_context(context)?;
        sync_folder(path).with_context(context)?;
        let text = read_complete_lines(path)?;
        let length = text.len() as u64;
        file.set_len(length).with_context(context)?;
        Ok((Self { path: path.to_owned(), file, length, is_torn: false }, text))
    }

    /// Appends lines. When this returns, they are on disk.
    ///
    /// # Errors
    /// If the lines cannot be written. The file then does not contain them.
    pub fn append(&mut self, lines: &[String]) -> Result<()> {
        if self.is_torn {
            bail!(
                "{} has a part of a line at its end\nhint: start the command again",
                self.path.display()
            );
        }
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A part of the lines may be in the file. The next line must not continue it.
            self.is_torn = self.file.set_len(self.length).is_err();
            let remainder = if self.is_torn { ", and a part of a line remains" } else { "" };
            let error =
                anyhow!("{error}\nhint: free disk space; run the command again if it has ended");
            let failure = RunFailure(format!("cannot write {}{remainder}", self.path.display()));
            return Err(error.context(failure));
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

/// Reads a file of lines, without a line that another process is writing.
///
/// # Errors
/// If the file cannot be read, or is not UTF-8. The message names the line.
pub fn read_complete_lines(path: &Path) -> Result<String> {
    let mut bytes =
        std::fs::read(path).with_context(|| format!("cannot open {}", path.display()))?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    bytes.truncate(end);
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = valid.filter(|byte| **byte == b'\n').count() + 1;
        anyhow!(
            "{} line {line}: not UTF-8\n\
             hint: restore the file from a copy, or move the line to another file",
            path.display()
        )
    })
}

/// Writes the names of the files beside a file to the disk, so that a new file is still there after the
/// machine stops.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) { File::open(folder.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn complete_lines_are_kept_and_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines.jsonl");
        let long = "x".repeat(200_000);
        for (text, kept) in [
            (String::new(), 0),
            ("a\nb\n".to_owned(), 4),
            ("a\nb".to_owned(), 2),
            ("torn".to_owned(), 0),
            (format!("a\n{long}"), 2),
            (format!("{long}\n{long}"), 200_001),
        ] {
            fs::write(&path, &text).unwrap();
            let (mut file, complete) = AppendFile::open(&path).unwrap();
            assert_eq!(complete, text[..kept]);
            assert_eq!(fs::metadata(&path).unwrap().len(), kept as u64);
            file.append(&["c".to_owned(), "d".to_owned()]).unwrap();
            assert_eq!(read_complete_lines(&path).unwrap(), complete + "c\nd\n");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_named_by_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines.jsonl");
        fs::write(&path, b"1\n\xff\n").unwrap();
        let error = AppendFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2: not UTF-8") && error.contains("hint: "), "{error}");
    }
}
