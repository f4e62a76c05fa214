//! The result of a comparison in several formats: files with one name in the output folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::support::files::file_form::FileForm;
use crate::support::files::out_file::OutFile;

/// An extension and the form of its file.
pub(super) struct ResultFormat {
    /// Extension without its dot.
    pub(super) extension: &'static str,
    /// Form of the file.
    pub(super) form: FileForm,
}

/// Files `NAME.EXTENSION` of a folder, checked before the computation starts.
pub(super) struct ResultFiles {
    folder: PathBuf,
    name: String,
    formats: Vec<ResultFormat>,
}

impl ResultFiles {
    /// Checks that the files are new, or of an earlier run of the same command. The folder need not
    /// exist yet.
    ///
    /// # Errors
    ///
    /// A file has another form, or cannot be written.
    pub(super) fn check(folder: &Path, name: &str, formats: Vec<ResultFormat>) -> Result<Self> {
        let files = Self { folder: folder.to_owned(), name: name.to_owned(), formats };
        if folder.exists() {
            files.formats.iter().try_for_each(|format| files.check_file(format).map(|_| ()))?;
        }
        Ok(files)
    }

    /// Writes the file with this extension.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn write(&self, extension: &str, text: &str) -> Result<()> {
        let format = self.formats.iter().find(|format| format.extension == extension);
        let format = format.with_context(|| format!("no result file .{extension}"))?;
        self.check_file(format)?.write(text.as_bytes())
    }

    fn check_file(&self, format: &ResultFormat) -> Result<OutFile> {
        let path = self.folder.join(format!("{}.{}", self.name, format.extension));
        OutFile::check(&path, format.form, &[])
    }
}
