//! Records read back one by one, whole.

use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::journal::RECORDS;
use super::record::Record;
use crate::data::cases::Lines;
use crate::support::files::regular_file;

/// The records of a file, or of the folder of a run, in their order. A last one that is not whole is left out.
///
/// # Errors
/// A file that cannot be read, or a line that is no record.
pub fn records(path: &Path) -> Result<impl Iterator<Item = Result<Record>>> {
    let path = if path.is_dir() {
        path.join(RECORDS)
    } else {
        path.to_owned()
    };
    let file = regular_file::open(&path).with_context(|| {
        format!(
            "records {} cannot be opened\n\
             hint: expected the folder that `acem3 judge --out` wrote, or its records.jsonl",
            path.display()
        )
    })?;
    let mut lines = Lines::new(BufReader::with_capacity(1 << 20, file));
    let next = move || {
        let (number, line) = lines.next()?;
        let record = line.map_err(|fault| anyhow!(fault)).and_then(|line| {
            serde_json::from_str(&line).context(
                "not a record\nhint: expected the records.jsonl that `acem3 judge --out` wrote",
            )
        });
        if record.is_err() && lines.is_torn(number) {
            return None;
        }
        Some(record.with_context(|| format!("{} line {number}", path.display())))
    };
    Ok(std::iter::from_fn(next))
}
