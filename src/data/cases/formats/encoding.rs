//! Detects text that is not UTF-8.

/// Advice after an error about text that is not UTF-8.
pub(crate) const UTF8_HINT: &str = "\nhint: save the file in the encoding UTF-8";

/// Bytes at the start of a text that are examined.
const HEAD_BYTES: usize = 1 << 16;

/// Returns true if a text starts like UTF-16: with a byte-order mark, or with ASCII characters, of
/// which every second byte is zero.
pub(super) fn is_utf16(text: &[u8]) -> bool {
    let head = text.get(..HEAD_BYTES).unwrap_or(text);
    let has_mark = head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF");
    let zero_pairs = head.chunks_exact(2).filter(|pair| pair.contains(&0)).count();
    has_mark || zero_pairs > head.len() / 4
}
