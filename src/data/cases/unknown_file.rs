//! The errors for a file that is no source of cases.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde::de::IgnoredAny;

use crate::data::imports::import_file::FileSample;
use crate::data::imports::unknown_layout;
use crate::support::files::regular_file;

/// Mark at the start of some UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns the error for a file with an unknown layout.
pub(super) fn unknown_file_error(path: &Path) -> anyhow::Error {
    let sample = FileSample::read(path).ok().flatten();
    let is_workbook = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("xlsx"));
    if sample.is_none() && is_workbook {
        return anyhow!(
            "{}: no rows\nhint: the first sheet needs a header and one row per question",
            path.display()
        );
    }
    anyhow!("{}", unknown_layout::describe(path, sample.as_ref()))
}

/// Returns the error for a `.json` file of which no row can be read because its JSON is damaged,
/// or because it is one object without rows; `None` for other files.
///
/// # Errors
/// The file cannot be read.
pub(super) fn damaged_json_error(path: &Path) -> Result<Option<anyhow::Error>> {
    if path.metadata().is_ok_and(|data| data.len() == 0)
        || !matches!(FileSample::read(path), Ok(None))
    {
        return Ok(None);
    }
    let unreadable = || format!("{} cannot be read", path.display());
    let mut reader = BufReader::new(regular_file::open(path).with_context(unreadable)?);
    if reader.fill_buf().with_context(unreadable)?.starts_with(BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
    }
    let mut values = serde_json::Deserializer::from_reader(reader).into_iter::<IgnoredAny>();
    Ok(match values.next() {
        Some(Err(error)) if error.is_io() => None,
        Some(Err(error)) => {
            let hint = if error.is_eof() {
                "the file ends too early: copy or download it again"
            } else {
                "write the file again with a JSON library"
            };
            Some(anyhow!("{}: damaged JSON: {error}\nhint: {hint}", path.display()))
        }
        // One value over several lines, of which none is a row.
        Some(Ok(_)) if values.next().is_none() => Some(unknown_file_error(path)),
        Some(Ok(_)) | None => None,
    })
}
