//! Numbered lines of a text file. Malformed lines do not end the stream.
//!
//! In contrast to `BufRead::lines`, [`Lines`] continues after invalid UTF-8 and limits the length
//! of a line.

use std::io::{self, BufRead};

use super::encoding::{UTF8_HINT, is_utf16};

/// Maximum length of a line, in bytes. A parsed line takes up to 50 times its length in memory.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;

/// Iterator over numbered lines, without line feeds, blank lines and byte-order mark.
pub(crate) struct Lines<R> {
    reader: R,
    /// Number of the line read most recently, from 1.
    number: u64,
    max_bytes: usize,
    ended: bool,
    /// Number of the last line of the file if it has no line break.
    torn_line: Option<u64>,
    /// True if reading failed; the last item is the error.
    has_failed: bool,
}

impl<R: BufRead> Lines<R> {
    /// Creates an iterator over the lines of `reader`.
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            number: 0,
            max_bytes: MAX_LINE_BYTES,
            ended: false,
            torn_line: None,
            has_failed: false,
        }
    }

    /// Returns true if this line is the last one and has no line break. Another program may still
    /// be writing it.
    pub(crate) fn is_torn(&self, number: u64) -> bool {
        self.torn_line == Some(number)
    }

    /// Returns true if the last item is an error of the file system, after which no line can be
    /// read.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Reads a line without its line break; `None` at the end. The flag is true if the line was too
    /// long; the rest of the line is skipped.
    fn read_line(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        let mut line = Vec::new();
        let mut is_truncated = false;
        let mut has_bytes = false;
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if chunk.is_empty() {
                if has_bytes {
                    self.torn_line = Some(self.number + 1);
                }
                return Ok(has_bytes.then_some((line, is_truncated)));
            }
            has_bytes = true;
            let end = chunk.iter().position(|&b| b == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let room = self.max_bytes.saturating_sub(line.len());
            is_truncated |= part.len() > room;
            line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some((line, is_truncated)));
            }
        }
    }

    fn decode(&self, line: &[u8]) -> Result<String, String> {
        let mark: &[u8] = if self.number == 1 { b"\xEF\xBB\xBF" } else { b"" };
        let bytes = line.strip_prefix(mark).unwrap_or(line).to_vec();
        if self.number == 1 && is_utf16(&bytes) {
            return Err(format!("the file is UTF-16, expected UTF-8{UTF8_HINT}"));
        }
        String::from_utf8(bytes).map_err(|e| {
            let byte = e.utf8_error().valid_up_to() + 1;
            format!("byte {byte} of the line is not UTF-8{UTF8_HINT}")
        })
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    /// The line number from 1, and the text or an error.
    type Item = (u64, Result<String, String>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let read = self.read_line();
            self.number += 1;
            let text = match read {
                Ok(Some((_, true))) => {
                    Err(format!("the line is longer than {} bytes", self.max_bytes))
                }
                Ok(Some((line, false))) => self.decode(&line),
                Ok(None) => {
                    self.ended = true;
                    return None;
                }
                Err(e) => {
                    self.ended = true;
                    self.has_failed = true;
                    Err(format!("the file cannot be read any further: {e}"))
                }
            };
            match text {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => return Some((self.number, Ok(line))),
                Err(message) => return Some((self.number, Err(message))),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_without_break_is_torn() {
        let mut lines = Lines::new(&b"a\n\nb\nc"[..]);
        let numbers: Vec<u64> = lines.by_ref().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 3, 4]);
        assert_eq!([1, 3, 4].map(|n| lines.is_torn(n)), [false, false, true]);
        let mut complete = Lines::new(&b"a\nb\n"[..]);
        assert_eq!(complete.by_ref().count(), 2);
        assert!(!complete.is_torn(2));
    }

    #[test]
    fn byte_order_mark_carriage_returns_and_blank_lines_are_accepted() {
        let all: Vec<_> = Lines::new(&b"\xEF\xBB\xBFa\r\n\r\n  \nb\n\xC3\x28\nc"[..]).collect();
        assert_eq!(all.len(), 4);
        assert_eq!(all[0], (1, Ok("a\r".into())));
        assert_eq!(all[1], (4, Ok("b".into())));
        assert!(matches!(&all[2], (5, Err(e)) if e.contains("byte 1")), "{:?}", all[2]);
        assert_eq!(all[3], (6, Ok("c".into())));
    }

    #[test]
    fn overlong_line_is_skipped() {
        let text = [b"x".repeat(50), b"\nshort\n".to_vec()].concat();
        let mut lines = Lines::new(io::BufReader::with_capacity(8, &text[..]));
        lines.max_bytes = 20;
        assert!(lines.next().unwrap().1.is_err());
        assert_eq!(lines.next(), Some((2, Ok("short".into()))));
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn utf_16_is_named_in_the_error() {
        let first = Lines::new(&b"\xFF\xFE{\0\n\0"[..]).next().unwrap();
        assert!(first.1.unwrap_err().contains("UTF-16"));
        let first = Lines::new(&b"{\0\"\0i\0d\0\"\0\n\0"[..]).next().unwrap();
        assert!(first.1.unwrap_err().contains("hint: save the file"));
    }
}
