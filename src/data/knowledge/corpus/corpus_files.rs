//! The files of a corpus: one file, or all files of a folder with a known extension.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Hint for a file that is no corpus.
pub(super) const FORMATS_HINT: &str = "a corpus is MedQuAD's XML, or a JSONL, JSONL.gz, JSON, CSV or \
                                       Parquet file with a text in each row";
/// Extensions of the files of a corpus in a folder.
const EXTENSIONS: [&str; 8] = ["xml", "jsonl", "ndjson", "json", "csv", "tsv", "parquet", "gz"];
/// Depth of nested folders.
const MAX_DEPTH: usize = 16;

/// A file of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::data::knowledge) struct CorpusFile {
    pub(in crate::data::knowledge) path: PathBuf,
    /// Path within the corpus, with `/`, for the ids of rows without one.
    pub(in crate::data::knowledge) name: String,
}

/// Lists the files of a corpus in the order of their names.
///
/// # Errors
///
/// The path does not exist, a folder cannot be read, or no file has a known extension.
pub(in crate::data::knowledge) fn list_files(corpus: &Path) -> Result<Vec<CorpusFile>> {
    let metadata = fs::metadata(corpus)
        .with_context(|| format!("{}: cannot be read\nhint: {FORMATS_HINT}", corpus.display()))?;
    if !metadata.is_dir() {
        let name = corpus.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(vec![CorpusFile { path: corpus.to_owned(), name }]);
    }
    let mut files = Vec::new();
    add_files(corpus, "", 0, &mut files)?;
    if files.is_empty() {
        bail!("{}: a folder without a corpus\nhint: {FORMATS_HINT}", corpus.display());
    }
    // Equal on every machine, whatever the order of the file system.
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn add_files(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<CorpusFile>) -> Result<()> {
    let unreadable = || format!("{}: cannot list the folder", folder.display());
    if depth > MAX_DEPTH {
        bail!("{}: folders are nested more than {MAX_DEPTH} deep", folder.display());
    }
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // `.git` and the like.
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            add_files(&path, &format!("{name}/"), depth + 1, files)?;
        } else if EXTENSIONS.iter().any(|extension| has_extension(&path, extension)) {
            files.push(CorpusFile { path, name });
        }
    }
    Ok(())
}

/// Returns true if a file name ends with an extension, in upper or lower case.
pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}
