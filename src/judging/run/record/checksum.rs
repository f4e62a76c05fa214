//! Checksums of record lines: they show that a line was damaged or edited after it was written.
//!
//! The last field of a record is `"checksum"`: the first 16 hexadecimal digits of the SHA-256 of
//! the line without this field. A checksum is no signature: whoever edits a line can compute a new
//! one.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::support::digest::Digest;

/// The bytes between the other fields of a line and its checksum.
const FIELD: &str = ",\"checksum\":\"";
/// Number of hexadecimal digits.
const DIGITS: usize = 16;
/// The bytes after the checksum.
const END: &str = "\"}";

/// The checksum of a line, as its hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineChecksum([u8; DIGITS]);

/// What the checksum of a line says about the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// The line has no checksum.
    Unchecked,
    /// The line is as it was written.
    Intact(LineChecksum),
    /// The line was changed after it was written.
    Changed,
}

/// Adds the checksum as the last field of a JSON object without line breaks.
pub fn append_checksum(json: &str) -> String {
    let Some(fields) = json.strip_suffix('}') else {
        return json.to_owned();
    };
    let checksum = LineChecksum::of(fields.as_bytes());
    format!("{fields}{FIELD}{checksum}{END}")
}

/// Compares a line with its checksum. Ignores the line break at its end.
pub fn check_line(line: &[u8]) -> LineState {
    let Some((fields, digits)) = split(line.trim_ascii_end()) else {
        return LineState::Unchecked;
    };
    if LineChecksum::of(fields).0 == digits {
        LineState::Intact(LineChecksum(digits))
    } else {
        LineState::Changed
    }
}

/// Splits a line into its other fields, without the last brace, and the digits of its checksum.
fn split(line: &[u8]) -> Option<(&[u8], [u8; DIGITS])> {
    let rest = line.strip_suffix(END.as_bytes())?;
    let (rest, digits) = rest.split_last_chunk::<DIGITS>()?;
    Some((rest.strip_suffix(FIELD.as_bytes())?, *digits))
}

impl LineChecksum {
    /// Computes the checksum of a line from its fields without the last brace.
    fn of(fields: &[u8]) -> Self {
        Self::of_parts(&[fields, b"}"])
    }

    /// Computes the checksum of a text from its consecutive parts.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        let digest = hasher.finalize();
        let mut digits = [0; DIGITS];
        for (digit, half) in digits.iter_mut().zip(digest.iter().flat_map(|b| [b >> 4, b & 15])) {
            *digit = b"0123456789abcdef".get(usize::from(half)).copied().unwrap_or_default();
        }
        Self(digits)
    }
}

impl fmt::Display for LineChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// The digest of a whole file: the SHA-256 of the checksums of its lines, in their order. It shows
/// that lines were removed, added or exchanged for lines of another run.
#[derive(Clone, Debug, Default)]
pub struct FileChecksum {
    hasher: Sha256,
    lines: u64,
}

impl FileChecksum {
    /// Adds the next line.
    pub fn add(&mut self, line: LineChecksum) {
        self.hasher.update(line.0);
        self.lines += 1;
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the digest of the lines so far.
    pub fn digest(&self) -> Digest {
        Digest::from_bytes(self.hasher.clone().finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"schema":1,"case":"ä","scores":[4.0,1.5]}"#;

    #[test]
    fn checksum_is_the_hash_of_the_line_without_it() {
        let line = append_checksum(JSON);
        let digits = Digest::sha256(JSON.as_bytes()).short_hex();
        assert_eq!(line, JSON.replace("]}", &format!("],\"checksum\":\"{digits}\"}}")));
        for end in ["", "\n", "\r\n"] {
            assert!(matches!(check_line((line.clone() + end).as_bytes()), LineState::Intact(_)));
        }
        assert_eq!(check_line(JSON.as_bytes()), LineState::Unchecked);
    }

    /// A flipped bit in the name of the field makes a line without checksum, which a run with
    /// checksums does not accept either.
    #[test]
    fn every_flipped_bit_is_noticed() {
        let line = append_checksum(JSON).into_bytes();
        for bit in 0..8 * line.len() {
            let mut flipped = line.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let state = check_line(&flipped);
            assert!(!matches!(state, LineState::Intact(_)), "bit {bit}");
        }
    }

    #[test]
    fn file_digest_depends_on_the_order_of_the_lines() {
        let checksum = |text: &str| match check_line(append_checksum(text).as_bytes()) {
            LineState::Intact(checksum) => checksum,
            other => panic!("{other:?}"),
        };
        let digest = |texts: [&str; 2]| {
            let mut file = FileChecksum::default();
            texts.into_iter().map(checksum).for_each(|line| file.add(line));
            (file.lines(), file.digest())
        };
        assert_eq!(digest([JSON, "{\"a\":1}"]).0, 2);
        assert_ne!(digest([JSON, "{\"a\":1}"]), digest(["{\"a\":1}", JSON]));
    }
}
