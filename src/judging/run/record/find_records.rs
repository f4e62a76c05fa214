//! Finds the records that a path names.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use crate::judging::run::output::contains_records;
use crate::judging::run::record::{RECORDS, Record};
use crate::support::files::regular_file;

/// Maximum number of lines that are read to find a record; the first ones can be damaged.
const MAX_LINES: usize = 100;
/// Maximum length of a line in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Finds the records file of a path: the file itself, or the records in the output folder of a run.
/// Returns `None` for other paths.
pub fn find_records(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return contains_records(path).then(|| path.join(RECORDS));
    }
    contains_record(path).ok()?.then(|| path.to_owned())
}

/// Returns true if one of the first lines of a file is a record.
fn contains_record(path: &Path) -> io::Result<bool> {
    let mut reader = BufReader::new(regular_file::open(path)?);
    let mut line = Vec::new();
    for _ in 0..MAX_LINES {
        line.clear();
        if reader.by_ref().take(MAX_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if serde_json::from_slice::<Record>(&line).is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn find_records_rejects_other_files() {
        let record = r#"{"schema":1,"case":"a","pair":null,"line":1,"image":null,"judge":"j","status":"noted","message":"m"}"#;
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(find_records(folder.path()), None);
        let file = folder.path().join(RECORDS);
        for text in [format!("{record}\n"), format!("{{}}\n\0\n{record}")] {
            fs::write(&file, text).unwrap();
            assert_eq!(find_records(folder.path()), Some(file.clone()));
            assert_eq!(find_records(&file), Some(file.clone()));
        }
        fs::write(&file, "{\"id\": 1}\n").unwrap();
        assert_eq!(find_records(&file), None);
    }
}
