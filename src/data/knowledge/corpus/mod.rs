//! Corpora: files and folders with documents, as their publishers release them.

mod corpus_files;
mod document_row;
mod medquad_xml;

use std::path::Path;

use anyhow::Result;

pub(super) use corpus_files::{CorpusFile, list_files};

use crate::data::imports::rows::row_format::{detect_format, open_gzip_lines, open_rows};

/// A document: a title, which may be empty, and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnowledgeDocument {
    /// Its id in the corpus, after the name of its source if it has one.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: String,
}

/// One row of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CorpusRow {
    Document(KnowledgeDocument),
    /// A row without text, such as an answer that was removed for copyright.
    WithoutText,
}

/// A row with its line or row number, from 1, or why it cannot be read.
pub(super) type NumberedCorpusRow = (u64, Result<CorpusRow, String>);

/// The rows of a file.
pub(super) type CorpusRows = Box<dyn Iterator<Item = NumberedCorpusRow>>;

/// Opens a file of a corpus.
///
/// # Errors
///
/// The file cannot be read, or has an unknown format.
pub(super) fn open_file(file: &CorpusFile) -> Result<CorpusRows> {
    let path = file.path.as_path();
    if has_extension(path, "xml") {
        return medquad_xml::read(path);
    }
    let rows = if has_extension(path, "gz") {
        open_gzip_lines(path)?
    } else {
        let Some(format) = detect_format(path)? else {
            anyhow::bail!(
                "{}: unknown format of a corpus\nhint: {}",
                path.display(),
                corpus_files::FORMATS_HINT
            );
        };
        open_rows(path, &format)?
    };
    let name = file.name.clone();
    Ok(Box::new(rows.map(move |(number, row)| {
        (number, row.and_then(|row| document_row::to_corpus_row(&row, &name, number)))
    })))
}

/// Returns true if a file name ends with an extension, in upper or lower case.
fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}
