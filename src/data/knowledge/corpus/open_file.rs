//! Opens a file of a corpus.

use anyhow::Result;

use super::corpus_files::{CorpusFile, FORMATS_HINT, has_extension};
use super::corpus_row::CorpusRows;
use super::{document_row, medquad_xml};
use crate::data::imports::rows::row_format::{detect_format, open_gzip_lines, open_rows};

/// Opens a file of a corpus.
///
/// # Errors
///
/// The file cannot be read, or has an unknown format.
pub(in crate::data::knowledge) fn open_file(file: &CorpusFile) -> Result<CorpusRows> {
    let path = file.path.as_path();
    if has_extension(path, "xml") {
        return medquad_xml::read(path);
    }
    let rows = if has_extension(path, "gz") {
        open_gzip_lines(path)?
    } else {
        let Some(format) = detect_format(path)? else {
            anyhow::bail!("{}: unknown format of a corpus\nhint: {}", path.display(), FORMATS_HINT);
        };
        open_rows(path, &format)?
    };
    let name = file.name.clone();
    Ok(Box::new(rows.map(move |(number, row)| {
        (number, row.and_then(|row| document_row::to_corpus_row(&row, &name, number)))
    })))
}
