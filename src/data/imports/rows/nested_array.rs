//! Finds an array in a large JSON object, so that its elements can be read one at a time.

use std::io::{self, BufRead};

/// Maximum length of a field name that is compared.
const MAX_NAME_BYTES: usize = 256;
/// Maximum number of fields that are listed.
const MAX_FIELDS: usize = 1000;

/// Follows the strings of a JSON text byte by byte.
#[derive(Default)]
struct StringScanner {
    /// The string that is open.
    open: Option<Vec<u8>>,
    is_escaped: bool,
    /// The last string that ended, up to [`MAX_NAME_BYTES`].
    last: Vec<u8>,
}

impl StringScanner {
    /// Takes a byte. Returns true if it belongs to a string, its quotation marks included.
    fn push(&mut self, byte: u8) -> bool {
        let Some(text) = &mut self.open else {
            let starts = byte == b'"';
            self.open = starts.then(Vec::new);
            return starts;
        };
        if !self.is_escaped && byte == b'"' {
            self.last = std::mem::take(text);
            self.open = None;
        } else {
            self.is_escaped = !self.is_escaped && byte == b'\\';
            if text.len() < MAX_NAME_BYTES {
                text.push(byte);
            }
        }
        true
    }
}

/// Moves a reader to the bracket that opens the array in the field `name` of a JSON object. Returns
/// false if there is no such field.
pub(crate) fn seek_array(reader: &mut impl BufRead, name: &str) -> io::Result<bool> {
    let mut depth = 0_u32;
    let mut strings = StringScanner::default();
    let mut is_field = false;
    loop {
        let Some(byte) = reader.fill_buf()?.first().copied() else {
            return Ok(false);
        };
        if strings.push(byte) {
            is_field = false;
        } else {
            match byte {
                b':' => is_field = depth == 1 && strings.last == name.as_bytes(),
                b'[' if is_field => return Ok(true),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if !byte.is_ascii_whitespace() && byte != b':' {
                is_field = false;
            }
        }
        reader.consume(1);
    }
}

/// The fields of one JSON object, without their content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectFields {
    /// Names of all fields.
    pub(crate) names: Vec<String>,
    /// Names of the fields with an array whose first element is an object.
    pub(crate) arrays: Vec<String>,
}

/// Lists the fields of the JSON object in a file; `None` if another value follows it, as in a file
/// with one object per line. An object that is cut off counts up to its end.
pub(crate) fn list_fields(reader: &mut impl BufRead) -> io::Result<Option<ObjectFields>> {
    let mut fields = ObjectFields::default();
    let mut depth = 0_u32;
    let mut strings = StringScanner::default();
    // The byte that is not white space before this one.
    let mut previous = 0;
    let mut is_ended = false;
    loop {
        let Some(byte) = reader.fill_buf()?.first().copied() else {
            return Ok(Some(fields));
        };
        reader.consume(1);
        if !is_ended && strings.push(byte) {
            previous = byte;
            continue;
        }
        if byte.is_ascii_whitespace() {
            continue;
        }
        if is_ended {
            return Ok(None);
        }
        match byte {
            b':' if depth == 1 && fields.names.len() < MAX_FIELDS => {
                fields.names.push(String::from_utf8_lossy(&strings.last).into_owned());
            }
            b'{' | b'[' => {
                let is_first = depth == 2 && byte == b'{' && previous == b'[';
                if let Some(name) = fields.names.last().filter(|_| is_first) {
                    fields.arrays.push(name.clone());
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                is_ended = depth == 0;
            }
            _ => {}
        }
        previous = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_of_a_field_is_found() {
        let text = br#"{"a": {"rows": [1]}, "b": ["rows", "\"rows\":["], "rows" : [2, 3]}"#;
        let mut reader = &text[..];
        assert!(seek_array(&mut reader, "rows").unwrap());
        assert_eq!(reader, b"[2, 3]}");
        assert!(!seek_array(&mut &b"{\"rows\": 1}"[..], "rows").unwrap());
    }
    #[test]
    fn fields_of_one_object_are_listed() {
        let list = |text: &str| list_fields(&mut text.as_bytes()).unwrap();
        let fields = list(
            r#"{"n": 1, "rows": [ {"a": [{}]}, {"b:": 2}], "tags": ["{"], "x": {"y": [{}]}} "#,
        );
        let fields = fields.unwrap();
        assert_eq!(fields.names, ["n", "rows", "tags", "x"]);
        assert_eq!(fields.arrays, ["rows"]);
        assert_eq!(list("{\"rows\": [{\"a\": ").unwrap().arrays, ["rows"]);
        assert_eq!(list("{\"a\": 1}\n{\"a\": 2}"), None);
    }
}
