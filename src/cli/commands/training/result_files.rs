//! The result of a comparison in several formats: files with one name in the output folder.

use std::path::Path;

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
pub(super) struct ResultFiles(Vec<OutFile>);

impl ResultFiles {
    /// Checks that the files are new, or of an earlier run of the same command.
    ///
    /// # Errors
    ///
    /// A file has another form, or cannot be written.
    pub(super) fn check(folder: &Path, name: &str, formats: &[ResultFormat]) -> Result<Self> {
        let check = |format: &ResultFormat| {
            let path = folder.join(format!("{name}.{}", format.extension));
            OutFile::check(&path, format.form, &[])
        };
        Ok(Self(formats.iter().map(check).collect::<Result<_>>()?))
    }

    /// Writes the file with this extension.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn write(&self, extension: &str, text: &str) -> Result<()> {
        let has_extension =
            |file: &&OutFile| file.path().extension().is_some_and(|found| found == extension);
        let file = self.0.iter().find(has_extension);
        file.with_context(|| format!("no result file .{extension}"))?.write(text.as_bytes())
    }
}
