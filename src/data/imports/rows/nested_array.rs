//! Finds an array in a large JSON object, so that its elements can be read one at a time.

use std::io::{self, BufRead};

/// Maximum length of a field name that is compared.
const MAX_NAME_BYTES: usize = 256;

/// Moves a reader to the bracket that opens the array in the field `name` of a JSON object. Returns
/// false if there is no such field.
pub(crate) fn seek_array(reader: &mut impl BufRead, name: &str) -> io::Result<bool> {
    let mut depth = 0_u32;
    let mut string: Option<Vec<u8>> = None;
    let mut escaped = false;
    let mut last_string = Vec::new();
    let mut is_field = false;
    loop {
        let Some(byte) = reader.fill_buf()?.first().copied() else {
            return Ok(false);
        };
        if let Some(text) = &mut string {
            if !escaped && byte == b'"' {
                last_string = std::mem::take(text);
                string = None;
            } else {
                escaped = !escaped && byte == b'\\';
                if text.len() < MAX_NAME_BYTES {
                    text.push(byte);
                }
            }
        } else {
            match byte {
                b'"' => string = Some(Vec::new()),
                b':' => is_field = depth == 1 && last_string == name.as_bytes(),
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
}
