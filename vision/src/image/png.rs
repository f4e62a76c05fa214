//! Removes the chunks of a PNG file that do not change its pixels.
//!
//! Colour profiles and texts are compressed. A small file can hold a profile that decompresses to
//! gigabytes, and the decoder would decompress it.

use std::borrow::Cow;

const SIGNATURE_LENGTH: usize = 8;
/// Bytes of a chunk besides its data: length, type and checksum.
const CHUNK_OVERHEAD: usize = 12;
/// Maximum size of EXIF data in bytes, the same as in a JPEG file.
const MAX_EXIF_BYTES: usize = 1 << 16;

/// Returns the file with its critical chunks, its transparency and its EXIF data.
///
/// Bytes that are not a complete chunk are kept, so that the decoder reports them.
pub(super) fn without_extra_chunks(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let (signature, mut rest) = bytes.split_at(SIGNATURE_LENGTH.min(bytes.len()));
    kept.push(signature);
    while let Some((chunk, after)) = split_chunk(rest) {
        if changes_the_image(chunk) {
            kept.push(chunk);
        }
        rest = after;
    }
    kept.push(rest);
    if kept.iter().map(|part| part.len()).sum::<usize>() == bytes.len() {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(kept.concat())
}

/// Splits the first chunk off; `None` if it is incomplete.
fn split_chunk(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    bytes.split_at_checked(length.checked_add(CHUNK_OVERHEAD)?)
}

/// Returns true for a chunk that the pixels or their orientation depend on.
fn changes_the_image(chunk: &[u8]) -> bool {
    match chunk.get(4..8) {
        Some(b"tRNS") => true,
        Some(b"eXIf") => chunk.len() <= MAX_EXIF_BYTES,
        // The names of critical chunks start with an upper-case letter.
        Some([first, ..]) => first.is_ascii_uppercase(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length, name, data, &[0; 4]].concat()
    }

    #[test]
    fn only_chunks_that_change_the_image_are_kept() {
        let signature = b"\x89PNG\r\n\x1a\n".to_vec();
        let header = chunk(b"IHDR", &[1; 13]);
        let (profile, text) = (chunk(b"iCCP", &[2; 40]), chunk(b"zTXt", b"x"));
        let (exif, pixels) = (chunk(b"eXIf", &[3; 30]), chunk(b"IDAT", &[4; 9]));
        let long_exif = chunk(b"eXIf", &vec![3; 1 << 16]);
        let end = chunk(b"IEND", b"");
        let file = [&signature, &header, &profile, &text, &exif, &long_exif, &pixels, &end]
            .map(Vec::as_slice)
            .concat();
        let expected = [&signature, &header, &exif, &pixels, &end].map(Vec::as_slice).concat();
        assert_eq!(without_extra_chunks(&file), expected);
        assert!(matches!(without_extra_chunks(&expected), Cow::Borrowed(_)));
        for length in 0..expected.len() {
            assert_eq!(*without_extra_chunks(&expected[..length]), expected[..length]);
        }
    }
}
