//! Files that a program wrote and people have edited since: kept under another name before the
//! program writes them again.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result, anyhow};

use super::regular_file;
use crate::support::digest::{Digest, HashingReader};

/// Maximum number of kept files beside one file.
const MAX_KEPT: u32 = 1000;

/// An edited file that was renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedFile {
    /// Its first path.
    original: PathBuf,
    /// Its path now.
    kept: PathBuf,
}

impl EditedFile {
    /// Writes a file again. If its hash is not `written`, the hash of what the program wrote, somebody
    /// edited it: then it is renamed before, and returned. It gets its first name again if the
    /// function fails.
    ///
    /// # Errors
    ///
    /// The error of the function; the file cannot be read or renamed, or a thousand files are kept.
    pub fn replace<T>(
        path: &Path,
        written: Option<Digest>,
        write: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Option<Self>)> {
        let edited = Self::set_aside(path, written)?;
        match (write(), edited) {
            (Ok(value), edited) => Ok((value, edited)),
            (Err(error), Some(edited)) => Err(edited.restore_after(error)),
            (Err(error), None) => Err(error),
        }
    }

    /// Renames a file that somebody edited: `cases.jsonl` becomes `cases.old-1.jsonl`. Returns `None` if
    /// there is no such file or nobody edited it.
    fn set_aside(path: &Path, written: Option<Digest>) -> Result<Option<Self>> {
        let Some(found) = hash_file(path)? else {
            return Ok(None);
        };
        if written == Some(found) {
            return Ok(None);
        }
        let is_free = |path: &PathBuf| {
            let metadata = fs::symlink_metadata(path);
            metadata.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let kept = (1..=MAX_KEPT).map(|number| kept_path(path, number)).find(is_free);
        let kept = kept.with_context(|| {
            format!("{}: {MAX_KEPT} edited files\nhint: move them", path.display())
        })?;
        fs::rename(path, &kept)
            .with_context(|| format!("cannot rename {} to {}", path.display(), kept.display()))?;
        Ok(Some(Self { original: path.to_owned(), kept }))
    }

    /// Gives the file its first name again after an error, unless there is another file of this name.
    /// Returns the error, with the path of the file if it could not be renamed.
    fn restore_after(&self, error: anyhow::Error) -> anyhow::Error {
        if !self.original.exists() && fs::rename(&self.kept, &self.original).is_ok() {
            return error;
        }
        anyhow!("{error:#}\nnote: the edited file is now {}", self.kept.display())
    }

    /// Returns true for the names of edited files whose name was `original`.
    pub fn is_kept_name(name: &str, original: &str) -> bool {
        let original = Path::new(original);
        (1..=MAX_KEPT).any(|number| kept_path(original, number) == Path::new(name))
    }

    /// Says where the file is now.
    pub fn note(&self) -> String {
        let name = self.original.file_name().unwrap_or_default().to_string_lossy();
        format!("note: {name} was not as this command wrote it; it is now {}", self.kept.display())
    }

    /// Returns the path of the file.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.kept
    }
}

/// Returns the hash of a file; `None` if there is none.
///
/// # Errors
///
/// The file cannot be read.
pub fn hash_file(path: &Path) -> Result<Option<Digest>> {
    let file = match regular_file::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut reader = HashingReader::new(file);
    io::copy(&mut reader, &mut io::sink()).with_context(|| path.display().to_string())?;
    Ok(Some(reader.digest()))
}

fn kept_path(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| extension.to_string_lossy());
    let extension = extension.map_or(String::new(), |extension| format!(".{extension}"));
    path.with_file_name(format!("{stem}.old-{number}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_edited_files_are_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.jsonl");
        assert_eq!(EditedFile::set_aside(&path, None).unwrap(), None);
        fs::write(&path, "written").unwrap();
        let written = hash_file(&path).unwrap();
        assert_eq!(EditedFile::set_aside(&path, written).unwrap(), None);
        for number in 1..3 {
            fs::write(&path, format!("edit {number}")).unwrap();
            let kept = EditedFile::set_aside(&path, written).unwrap().unwrap();
            assert_eq!(kept.path(), folder.path().join(format!("cases.old-{number}.jsonl")));
            assert_eq!(fs::read_to_string(kept.path()).unwrap(), format!("edit {number}"));
            assert!(!path.exists());
        }
        assert!(EditedFile::is_kept_name("cases.old-2.jsonl", "cases.jsonl"));
        assert!(!EditedFile::is_kept_name("cases.old-x.jsonl", "cases.jsonl"));
    }

    #[test]
    fn restored_file_replaces_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases");
        fs::write(&path, "edit").unwrap();
        let kept = EditedFile::set_aside(&path, None).unwrap().unwrap();
        assert_eq!(kept.path(), folder.path().join("cases.old-1"));
        assert_eq!(kept.restore_after(anyhow!("full disk")).to_string(), "full disk");
        assert_eq!(fs::read_to_string(&path).unwrap(), "edit");
        let kept = EditedFile::set_aside(&path, None).unwrap().unwrap();
        fs::write(&path, "new").unwrap();
        let error = kept.restore_after(anyhow!("full disk")).to_string();
        assert!(error.ends_with("cases.old-1"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(kept.path().exists());
    }
}
