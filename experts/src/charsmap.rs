//! Normalization table of a model (`precompiled_charsmap`, written by `SentencePiece`'s
//! `builder.cc`): a double-array trie, followed by the replacement texts, each terminated by a zero
//! byte.
//!
//! The library that uses the table does not check its offsets. This module checks them first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokenizers::normalizers::Precompiled;

use crate::Error;

/// Maximum length of a replacement text in bytes. The longest one of Unicode's compatibility forms has
/// 33 bytes.
pub(crate) const MAX_REPLACEMENT_LEN: usize = 42;

/// A unit of the double array (`darts_clone`, `DoubleArrayUnit`).
#[derive(Clone, Copy)]
struct TrieUnit(u32);

impl TrieUnit {
    fn has_leaf(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    /// Returns the offset of the replacement text of a leaf.
    fn text_offset(self) -> usize {
        (self.0 & 0x7fff_ffff) as usize
    }

    /// Returns the byte of the edge to this unit; more than 255 for a leaf.
    fn label(self) -> u32 {
        self.0 & 0x8000_00ff
    }

    /// Returns the offset of its children.
    fn child_offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 & 1 << 9) >> 6)) as usize
    }
}

/// Parses a table and checks that all its offsets are in range.
///
/// # Errors
/// The table is malformed.
pub fn parse(bytes: &[u8]) -> Result<Precompiled, Error> {
    check(bytes)?;
    Precompiled::from(bytes).map_err(|error| table_error(&error.to_string()))
}

/// Checks all tables in a parsed `tokenizer.json`.
///
/// # Errors
/// A table is malformed.
pub(crate) fn check_tokenizer(json: &Value) -> Result<(), Error> {
    match json {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| match value {
            Value::String(table) if name == "precompiled_charsmap" => {
                let bytes =
                    STANDARD.decode(table).map_err(|error| table_error(&error.to_string()))?;
                check(&bytes)
            }
            value => check_tokenizer(value),
        }),
        Value::Array(values) => values.iter().try_for_each(check_tokenizer),
        _ => Ok(()),
    }
}

fn table_error(problem: &str) -> Error {
    Error::Tokenizer(format!("precompiled_charsmap: {problem}"))
}

/// Checks that all offsets of a table are in range.
fn check(bytes: &[u8]) -> Result<(), Error> {
    let truncated = || table_error("unexpected end of the table");
    let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(truncated)?;
    let size = u32::from_le_bytes(*size) as usize;
    let (units, texts) = rest.split_at_checked(size).ok_or_else(truncated)?;
    let (units, remainder) = units.as_chunks::<4>();
    let units: Vec<TrieUnit> =
        units.iter().map(|bytes| TrieUnit(u32::from_le_bytes(*bytes))).collect();
    let Ok(texts) = std::str::from_utf8(texts) else {
        return Err(table_error("replacement texts are not UTF-8"));
    };
    if !remainder.is_empty() || !offsets_in_range(&units, texts) {
        return Err(table_error("offset out of range, or a replacement is too long"));
    }
    Ok(())
}

/// Returns true if all reachable units exist and every leaf points to a character boundary.
fn offsets_in_range(units: &[TrieUnit], texts: &str) -> bool {
    let mut visited = vec![false; units.len()];
    let mut pending = vec![0];
    while let Some(index) = pending.pop() {
        let Some(unit) = units.get(index).copied() else {
            return false;
        };
        let base = index ^ unit.child_offset();
        // The root's leaf belongs to the empty text, which is never looked up.
        if index != 0 && unit.has_leaf() {
            let value = units.get(base).map(|leaf| leaf.text_offset());
            if value.is_none_or(|offset| !is_replacement(texts, offset)) {
                return false;
            }
        }
        for byte in 1..=u32::from(u8::MAX) {
            let child_index = base ^ byte as usize;
            let Some(child) = units.get(child_index) else {
                return false;
            };
            let is_new = visited.get(child_index).is_some_and(|visited| !visited);
            if child.label() == byte && is_new {
                if let Some(visited) = visited.get_mut(child_index) {
                    *visited = true;
                }
                pending.push(child_index);
            }
        }
    }
    true
}

/// Returns true if a replacement text of allowed length starts at this offset.
fn is_replacement(texts: &str, offset: usize) -> bool {
    let rest = texts.is_char_boundary(offset).then(|| texts.as_bytes().get(offset..)).flatten();
    rest.is_some_and(|rest| {
        let start = rest.get(..=MAX_REPLACEMENT_LEN).unwrap_or(rest);
        rest.len() <= MAX_REPLACEMENT_LEN || start.contains(&0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a table of 256 units with the given units set.
    fn build_table(assigned: &[(usize, u32)], texts: &str) -> Vec<u8> {
        let mut units = vec![0x8000_0000_u32; 256];
        for (index, unit) in assigned {
            units[*index] = *unit;
        }
        let mut bytes = 1024u32.to_le_bytes().to_vec();
        bytes.extend(units.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(texts.as_bytes());
        bytes
    }

    #[test]
    fn table_replaces_characters() {
        // The root at 0 has its children at 1 ^ byte. The leaf of `a` is at 2 and points to the
        // text at 2.
        let a = 1 ^ usize::from(b'a');
        let unit = u32::from(b'a') | 1 << 8 | (u32::try_from(a).unwrap() ^ 2) << 10;
        let map =
            parse(&build_table(&[(0, 1 << 10), (a, unit), (2, 0x8000_0002)], "x\0yz\0")).unwrap();
        assert_eq!(map.transform("a"), Some("yz"));
        assert_eq!(map.transform("b"), None);
        // A leaf that points past the end of the texts, or into a character.
        for value in [9, 0x7fff_ffff, 1] {
            let leaf = 0x8000_0000 | value;
            let texts = "\u{e4}\0";
            assert!(parse(&build_table(&[(0, 1 << 10), (a, unit), (2, leaf)], texts)).is_err());
        }
        // A replacement that is too long.
        let parse_text =
            |text: &str| parse(&build_table(&[(0, 1 << 10), (a, unit), (2, 0x8000_0000)], text));
        assert!(parse_text(&("x".repeat(42) + "\0")).is_ok() && parse_text("x").is_ok());
        assert!(parse_text(&("x".repeat(43) + "\0")).is_err());
    }

    #[test]
    fn offset_out_of_range_is_rejected() {
        assert!(parse(&[]).is_err() && parse(&[255; 4]).is_err() && parse(&[255; 40]).is_err());
        assert!(parse(&build_table(&[(0, 0xffff << 10)], "")).is_err());
        assert!(parse(&build_table(&[(0, 0)], "")[..1000]).is_err());
    }

    #[test]
    fn tables_of_a_tokenizer_are_checked() {
        let tokenizer = |table: &[u8]| {
            serde_json::json!({
                "version": "1.0", "added_tokens": [],
                "normalizer": {"type": "Sequence", "normalizers": [
                    {"type": "Precompiled", "precompiled_charsmap": STANDARD.encode(table)},
                ]},
                "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
            })
        };
        let parse =
            |table: &[u8]| crate::TextTokenizer::parse(tokenizer(table).to_string().as_bytes());
        assert!(parse(&build_table(&[(0, 1 << 10)], "")).is_ok());
        let error = parse(&build_table(&[(0, 0xffff << 10)], "")).unwrap_err().to_string();
        assert!(error.contains("precompiled_charsmap: offset out of range, or"), "{error}");
    }
}
