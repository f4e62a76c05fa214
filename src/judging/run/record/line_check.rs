//! Decides whether a line of records is as it was written.
//!
//! Records of earlier versions have no checksum. They are accepted, unless the manifest of the run
//! or other lines of the file show that its records have checksums: then someone removed it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::judging::run::record::checksum::{LineChecksum, LineState, check_line};

/// Length of the end of a file that is read to find its last line.
const TAIL_BYTES: u64 = 16 << 20;

/// Checks the lines of one records file.
#[derive(Debug, Default)]
pub struct LineCheck {
    /// True if a line without checksum is damaged.
    requires_checksum: bool,
    /// Line number of each checksum, to find lines that were copied.
    lines: HashMap<LineChecksum, u64>,
}

impl LineCheck {
    /// Creates the check for a file. `promises_checksums`: the manifest of the run says that its
    /// records have checksums. Otherwise the first and the last line of the file decide.
    pub fn for_file(path: &Path, promises_checksums: bool) -> io::Result<Self> {
        let requires_checksum = promises_checksums || has_checksums(path)?;
        Ok(Self { requires_checksum, lines: HashMap::new() })
    }

    /// Returns true if a line without checksum is damaged.
    pub fn requires_checksum(&self) -> bool {
        self.requires_checksum
    }

    /// Checks a line. Returns its checksum, or `None` for a line of an earlier version.
    ///
    /// # Errors
    ///
    /// The line is damaged; the message says what is wrong.
    pub fn check(&self, line: &[u8]) -> Result<Option<LineChecksum>, String> {
        match check_line(line) {
            LineState::Intact(checksum) => Ok(Some(checksum)),
            LineState::Changed => Err(CHANGED.to_owned()),
            LineState::Unchecked if self.requires_checksum => {
                Err(match serde_json::from_slice::<IgnoredAny>(line) {
                    Ok(_) => "the checksum is missing or was changed".to_owned(),
                    Err(error) => format!("not a record, {error}"),
                })
            }
            LineState::Unchecked => check_score_ranges(line).map(|()| None),
        }
    }

    /// Remembers an intact line. Returns the number of an earlier line with the same bytes.
    pub fn find_copy(&mut self, checksum: LineChecksum, number: u64) -> Option<u64> {
        let first = *self.lines.entry(checksum).or_insert(number);
        (first != number).then_some(first)
    }
}

/// Message for a line whose checksum does not match.
const CHANGED: &str = "the checksum does not match: the line was changed after it was written";

/// Returns true if the first or the last complete line of a file has a checksum.
fn has_checksums(path: &Path) -> io::Result<bool> {
    let has_checksum = |line: &[u8]| check_line(line) != LineState::Unchecked;
    let mut reader = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    reader.by_ref().take(TAIL_BYTES).read_until(b'\n', &mut line)?;
    if has_checksum(&line) {
        return Ok(true);
    }
    let length = reader.get_ref().metadata()?.len();
    reader.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    line.clear();
    reader.read_to_end(&mut line)?;
    let complete = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = line.get(..complete).unwrap_or_default().trim_ascii_end();
    Ok(lines.rsplit(|byte| *byte == b'\n').next().is_some_and(has_checksum))
}

/// The scores of a record, which must be from 0 to 5.
#[derive(Deserialize)]
struct RecordScores {
    scores: Option<Vec<f64>>,
    expected: Option<Vec<f64>>,
    #[serde(default)]
    aspects: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    criteria: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    orders: Vec<OrderRange>,
}

/// The scores of one presentation order.
#[derive(Deserialize)]
struct OrderRange {
    scores: Vec<f64>,
}

/// Checks the scores of a line of an earlier version, the only edit that can be noticed there. The
/// reader of the record reports other problems of the line.
fn check_score_ranges(line: &[u8]) -> Result<(), String> {
    let Ok(record) = serde_json::from_slice::<RecordScores>(line) else {
        return Ok(());
    };
    let combined = [record.scores, record.expected].into_iter().flatten();
    let by_target = record.aspects.into_values().chain(record.criteria.into_values());
    let orders = record.orders.into_iter().map(|order| order.scores);
    let mut all = combined.chain(by_target).chain(orders).flatten();
    match all.find(|score| !(0.0..=5.0).contains(score)) {
        Some(score) => Err(format!(
            "a score of {score}, expected 0 to 5: the line was edited after it was written"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::judging::run::record::checksum::append_checksum;

    /// Checks each line of a file. Returns the lines that are accepted.
    fn accepted(text: &str, promises_checksums: bool) -> Vec<bool> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        fs::write(&path, text).unwrap();
        let check = LineCheck::for_file(&path, promises_checksums).unwrap();
        text.lines().map(|line| check.check(line.as_bytes()).is_ok()).collect()
    }

    #[test]
    fn line_without_checksum_is_accepted_in_old_files_only() {
        let old = r#"{"schema":1,"scores":[4.0,1.0]}"#;
        let new = append_checksum(old);
        assert_eq!(accepted(&format!("{old}\n{old}\n"), false), [true; 2]);
        assert_eq!(accepted(&format!("{old}\n{old}\n"), true), [false; 2]);
        assert_eq!(accepted(&format!("{old}\n{new}\n{old}"), false), [false, true, false]);
        assert_eq!(accepted(&format!("{new}\n{old}\n"), false), [true, false]);
    }

    #[test]
    fn score_out_of_range_is_noticed_without_checksum() {
        let lines = [
            r#"{"scores":[7.0,1.0]}"#,
            r#"{"aspects":{"expression":[1.0,-1.0]}}"#,
            r#"{"orders":[{"scores":[9,1],"aspects":{}}]}"#,
            r#"{"scores":[5.0,0.0]}"#,
        ];
        assert_eq!(accepted(&lines.join("\n"), false), [false, false, false, true]);
    }

    #[test]
    fn copied_line_is_found() {
        let line = append_checksum(r#"{"case":"a"}"#);
        let mut check = LineCheck::default();
        let checksum = check.check(line.as_bytes()).unwrap().unwrap();
        assert_eq!(check.find_copy(checksum, 3), None);
        assert_eq!(check.find_copy(checksum, 5), Some(3));
    }
}
