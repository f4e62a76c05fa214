//! Reads the elements of a large JSON array one at a time.
//!
//! The released data sets are single arrays of thousands of objects. Splitting at top-level commas
//! keeps memory constant and isolates malformed elements.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde::de::DeserializeOwned;

use super::lines::MAX_LINE_BYTES;
use super::python_json;
use crate::data::cases::case::InputProblem;
use crate::data::cases::case::case_id::{find_id_in_malformed, parse_id};
use crate::support::files::regular_file;

/// A row of an array file with its line number, or its problem.
pub(crate) type NumberedRow<T> = Result<(u64, T), InputProblem>;

/// Reads the rows of a JSON array file. The field `id` contains their ids.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn read_rows<T: DeserializeOwned>(
    path: &Path,
    id: &'static str,
) -> anyhow::Result<impl Iterator<Item = NumberedRow<T>> + use<T>> {
    let opened =
        regular_file::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let file: Arc<Path> = path.into();
    Ok(Elements::new(BufReader::new(opened)).map(move |(line, element)| {
        let bytes =
            element.map_err(|message| InputProblem::parse_error(&file, line, None, message))?;
        let malformed_row = |id, e: serde_json::Error| {
            InputProblem::parse_error(
                &file,
                line,
                id,
                format!("malformed row: {}", python_json::error_reason(&e)),
            )
        };
        let text = String::from_utf8_lossy(&bytes);
        let value = python_json::parse(&text)
            .map_err(|e| malformed_row(find_id_in_malformed(&text, id), e))?;
        let found = value.get(id).and_then(parse_id);
        serde_json::from_value(value).map(|row| (line, row)).map_err(|e| malformed_row(found, e))
    }))
}

/// Elements of an array as raw JSON, with line numbers.
pub(crate) struct Elements<R> {
    reader: R,
    line: u64,
    state: ArrayState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    Start,
    Inside,
    Ended,
}

impl<R: BufRead> Elements<R> {
    /// Creates an iterator over the array in `reader`.
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, line: 1, state: ArrayState::Start }
    }

    /// Reads a byte and counts line breaks.
    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.reader.fill_buf() {
                Ok(chunk) => {
                    let Some(&byte) = chunk.first() else {
                        return Ok(None);
                    };
                    self.reader.consume(1);
                    self.line += u64::from(byte == b'\n');
                    return Ok(Some(byte));
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Reads up to the bracket that opens the array.
    fn enter_array(&mut self) -> Result<(), String> {
        loop {
            match self.next_byte().map_err(read_error)? {
                Some(0xEF | 0xBB | 0xBF) => {}
                Some(b) if b.is_ascii_whitespace() => {}
                Some(b'[') => return Ok(()),
                _ => return Err("the file is not a JSON array".into()),
            }
        }
    }

    /// Reads the next element, up to the comma or bracket that ends it; `None` at the end of the
    /// array.
    fn next_element(&mut self) -> Result<Option<(u64, Vec<u8>)>, String> {
        let (mut bytes, mut depth, mut quoted, mut escaped) = (Vec::new(), 0_u32, false, false);
        let mut start = self.line;
        loop {
            let Some(byte) = self.next_byte().map_err(read_error)? else {
                self.state = ArrayState::Ended;
                return Err("the file ends within the array".into());
            };
            if quoted {
                quoted = escaped || byte != b'"';
                escaped = !escaped && byte == b'\\';
            } else {
                match byte {
                    b'"' => quoted = true,
                    b'{' | b'[' => depth += 1,
                    b']' if depth == 0 => {
                        self.state = ArrayState::Ended;
                        return Ok((!bytes.is_empty()).then_some((start, bytes)));
                    }
                    b',' if depth == 0 => return Ok(Some((start, bytes))),
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    b if b.is_ascii_whitespace() && bytes.is_empty() => {
                        start = self.line;
                        continue;
                    }
                    _ => {}
                }
            }
            bytes.push(byte);
            if bytes.len() > MAX_LINE_BYTES {
                self.state = ArrayState::Ended;
                return Err(format!("the element is longer than {MAX_LINE_BYTES} bytes"));
            }
        }
    }
}

impl<R: BufRead> Iterator for Elements<R> {
    /// The line, and the text of the element or an error.
    type Item = (u64, Result<Vec<u8>, String>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == ArrayState::Start {
            if let Err(message) = self.enter_array() {
                self.state = ArrayState::Ended;
                return Some((self.line, Err(message)));
            }
            self.state = ArrayState::Inside;
        }
        if self.state == ArrayState::Ended {
            return None;
        }
        match self.next_element() {
            Ok(found) => found.map(|(line, bytes)| (line, Ok(bytes))),
            Err(message) => {
                self.state = ArrayState::Ended;
                Some((self.line, Err(message)))
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
fn read_error(error: io::Error) -> String {
    format!("the file cannot be read any further: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(u64, Result<String, String>)> {
        let text_of = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
        Elements::new(text.as_bytes()).map(|(line, e)| (line, e.map(text_of))).collect()
    }

    #[test]
    fn splits_at_top_level_commas() {
        let found = all("\u{feff}[{\"a\": \"],}\\\"\", \"b\": [1, {}]},\n\n 2 ,\n \"x,\" ]\n");
        let texts: Vec<_> = found.iter().map(|(l, e)| (*l, e.clone().unwrap())).collect();
        assert_eq!(texts[0], (1, "{\"a\": \"],}\\\"\", \"b\": [1, {}]}".into()));
        assert_eq!(texts[1], (3, "2".into()));
        assert_eq!(texts[2], (4, "\"x,\"".into()));
        assert_eq!(texts.len(), 3);
        assert!(all("[]").is_empty());
    }

    #[test]
    fn truncated_array_is_an_error_with_line() {
        let found = all("[{\"a\": 1},\n{\"b\": ");
        assert_eq!(found.len(), 2);
        assert!(found[1].1.as_ref().unwrap_err().contains("ends within"));
        assert!(all("{\"a\": 1}")[0].1.is_err());
        assert!(all("")[0].1.is_err());
    }
}
