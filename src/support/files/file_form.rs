//! Forms of output files, recognised by content.
//!
//! A command replaces an existing file only if the file has the form that the command writes.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// A file that can be read at any position.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Bytes at the start of a file that most forms are recognised by.
const HEAD_BYTES: u64 = 64 << 10;
/// Maximum lines of a file that are searched for a field.
const MAX_LINES: usize = 1000;
/// Maximum bytes of a file that are searched for a text or a field.
const MAX_SEARCHED_BYTES: u64 = 256 << 20;

/// The form of an output file.
#[derive(Clone, Copy)]
pub struct FileForm {
    /// Description with its article, for messages: "an HTML report".
    pub name: &'static str,
    /// Returns true if a file has this form. The file is read from its start.
    pub recognise: fn(&mut dyn ReadSeek) -> io::Result<bool>,
}

impl fmt::Debug for FileForm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FileForm").field(&self.name).finish()
    }
}

/// Reads the first bytes of a file.
///
/// # Errors
///
/// The file cannot be read.
pub fn read_head(file: &mut dyn ReadSeek) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns true if a file starts with this text.
///
/// # Errors
///
/// The file cannot be read.
pub fn starts_with(file: &mut dyn ReadSeek, text: &str) -> io::Result<bool> {
    Ok(read_head(file)?.starts_with(text.as_bytes()))
}

/// Returns true if a line of a file contains this text.
///
/// # Errors
///
/// The file cannot be read.
pub fn contains_text(file: &mut dyn ReadSeek, text: &str) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file.take(MAX_SEARCHED_BYTES));
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if contains_bytes(&line, text.as_bytes()) {
            return Ok(true);
        }
        line.clear();
    }
    Ok(false)
}

/// Returns true if bytes contain other bytes.
pub fn contains_bytes(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns true if a file starts with a JSON object that has these fields near its start.
///
/// # Errors
///
/// The file cannot be read.
pub fn has_json_fields(file: &mut dyn ReadSeek, names: &[&str]) -> io::Result<bool> {
    let head = read_head(file)?;
    let fields = field_names(&head);
    Ok(names.iter().all(|name| fields.contains(&name.as_bytes())))
}

/// Returns true if one of the first lines of a file is a JSON object with these fields.
///
/// # Errors
///
/// The file cannot be read.
pub fn has_json_line(file: &mut dyn ReadSeek, names: &[&str]) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file.take(MAX_SEARCHED_BYTES));
    let mut line = Vec::new();
    for _ in 0..MAX_LINES {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let fields = field_names(&line);
        if names.iter().all(|name| fields.contains(&name.as_bytes())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the names of the fields of a JSON object, whose text may be cut at any byte. Nested
/// fields are not included.
fn field_names(text: &[u8]) -> Vec<&[u8]> {
    let mut names = Vec::new();
    let (mut depth, mut i) = (0_usize, 0);
    let mut last_string: &[u8] = &[];
    while let Some(byte) = text.get(i) {
        i += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = i;
                while text.get(i).is_some_and(|byte| *byte != b'"') {
                    i += if text.get(i) == Some(&b'\\') { 2 } else { 1 };
                }
                last_string = text.get(start..i).unwrap_or_default();
                i += 1;
            }
            b':' if depth == 1 => names.push(last_string),
            byte if depth == 0 && !byte.is_ascii_whitespace() => return Vec::new(),
            _ => {}
        }
        if depth == 0 && !names.is_empty() {
            break;
        }
    }
    if text.trim_ascii_start().starts_with(b"{") { names } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn fields_of_cut_objects_are_found() {
        let names = |text: &str| -> Vec<String> {
            let names = field_names(text.as_bytes());
            names.into_iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect()
        };
        let text = r#" {"a": {"x": "}:"}, "b\"c": [1, {"y": 2}], "d": "e: \\", "f": 1}{"g": 1}"#;
        assert_eq!(names(text), ["a", "b\\\"c", "d", "f"]);
        for end in 0..text.len() {
            let cut = names(&text[..end]);
            assert!(
                ["a", "b\\\"c", "d", "f"]
                    .starts_with(&cut.iter().map(String::as_str).collect::<Vec<_>>())
            );
        }
        for other in ["", "[{\"a\": 1}]", "x{\"a\": 1}", "\"a\": 1", "# {\"a\": 1}"] {
            assert_eq!(names(other), Vec::<String>::new(), "{other}");
        }
    }

    #[test]
    fn lines_are_searched_for_fields_and_text() {
        let mut file = Cursor::new("{\"a\": 1}\n{\"a\": 1, \"b\": {\"c\": 2}}\nlast");
        assert!(has_json_line(&mut file, &["a", "b"]).unwrap());
        assert!(!has_json_line(&mut file, &["c"]).unwrap());
        assert!(has_json_fields(&mut file, &["a"]).unwrap());
        assert!(!has_json_fields(&mut file, &["b"]).unwrap());
        assert!(contains_text(&mut file, "last").unwrap());
        assert!(!contains_text(&mut file, "first").unwrap());
        assert!(starts_with(&mut file, "{\"a\"").unwrap());
    }
}
