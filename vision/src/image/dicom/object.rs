//! Parses DICOM objects. Checks every length in the file before allocating memory.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use dicom_encoding::TransferSyntaxIndex as _;
use dicom_encoding::transfer_syntax::TransferSyntax;
use dicom_object::{DefaultDicomObject, InMemDicomObject, Tag};
use dicom_parser::dataset::LazyDataToken;
use dicom_parser::dataset::lazy_read::LazyDataSetReader;
use dicom_transfer_syntax_registry::TransferSyntaxRegistry;
use flate2::read::DeflateDecoder;

use super::super::error::DecodeError;
use super::super::format::FileFormat;
use super::super::jpeg;
use super::super::limits::ImageLimits;
use super::error::{damaged, unsupported};
use super::file_meta;

const PIXEL_DATA: Tag = Tag(0x7fe0, 0x0010);
const DEFLATED: &str = "1.2.840.10008.1.2.1.99";
const RLE_LOSSLESS: &str = "1.2.840.10008.1.2.5";
const JPEG_2000: [&str; 2] = ["1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91"];
/// Maximum number of elements of an object, including nested ones.
const MAX_ELEMENTS: usize = 1_000_000;
/// Maximum depth of nested sequences. The parser calls itself for each level. Objects of the
/// standard need fewer than ten levels.
const MAX_SEQUENCE_DEPTH: usize = 64;

/// Parses an object and checks that it has pixel data.
pub(super) fn read(bytes: &[u8], limits: &ImageLimits) -> Result<DefaultDicomObject, DecodeError> {
    let (meta, data) = file_meta::read(bytes)?;
    let uid = trim_padding(&meta.transfer_syntax).to_owned();
    let registry = TransferSyntaxRegistry;
    let syntax = registry.get(&uid).ok_or_else(|| unknown_transfer_syntax(&uid))?;
    let inflated;
    let (data, parsed_as) = if uid == DEFLATED {
        inflated = inflate(data, limits)?;
        let explicit = registry
            .get(file_meta::EXPLICIT_LITTLE_ENDIAN)
            .ok_or_else(|| unknown_transfer_syntax(file_meta::EXPLICIT_LITTLE_ENDIAN))?;
        (inflated.as_slice(), explicit)
    } else {
        (data, syntax)
    };
    check_elements(data, parsed_as)?;
    let object = InMemDicomObject::read_dataset_with_ts(data, parsed_as)
        .map_err(|_| damaged("the data set cannot be parsed"))?;
    if object.get(PIXEL_DATA).is_none() {
        return Err(DecodeError::NoPixels);
    }
    Ok(object.with_exact_meta(meta))
}

/// Checks the number of elements, the depth of their nesting, and the length of each value, before
/// the parser allocates memory or calls itself.
fn check_elements(data: &[u8], syntax: &TransferSyntax) -> Result<(), DecodeError> {
    let invalid = || damaged("the element lengths are invalid");
    let mut reader =
        LazyDataSetReader::new_with_ts(Cursor::new(data), syntax).map_err(|_| invalid())?;
    let fits = |length: u32| (length as usize) <= data.len();
    let (mut depth, mut has_partial_number) = (0_usize, false);
    for _ in 0..MAX_ELEMENTS {
        let Some(token) = reader.advance() else {
            return Ok(());
        };
        if has_partial_number {
            // The parser would read the rest of the number as the next element.
            return Err(invalid());
        }
        let token = token.map_err(|_| invalid())?;
        let length = match &token {
            LazyDataToken::LazyValue { header, .. } => {
                let length = header.len.get().unwrap_or(0);
                has_partial_number = !length.is_multiple_of(number_size(header.vr.to_string()));
                length
            }
            LazyDataToken::LazyItemValue { len, .. } => *len,
            LazyDataToken::SequenceStart { .. } | LazyDataToken::PixelSequenceStart => {
                depth += 1;
                0
            }
            LazyDataToken::SequenceEnd => {
                depth = depth.saturating_sub(1);
                0
            }
            _ => 0,
        };
        if depth > MAX_SEQUENCE_DEPTH {
            return Err(damaged(format!(
                "its sequences are nested more than {MAX_SEQUENCE_DEPTH} levels deep"
            )));
        }
        if !fits(length) {
            return Err(DecodeError::Truncated { format: FileFormat::Dicom });
        }
        token.skip().map_err(|_| invalid())?;
    }
    Err(damaged(format!("more than {MAX_ELEMENTS} elements")))
}

/// Returns the size in bytes of the numbers of a value representation (PS3.5 6.2); 1 for others.
fn number_size(vr: &str) -> u32 {
    match vr {
        "OW" | "SS" | "US" => 2,
        "AT" | "FL" | "OF" | "OL" | "SL" | "UL" => 4,
        "FD" | "OD" | "OV" | "SV" | "UV" => 8,
        _ => 1,
    }
}

/// Inflates a deflated data set, up to the file size limit.
fn inflate(data: &[u8], limits: &ImageLimits) -> Result<Vec<u8>, DecodeError> {
    let mut inflated = Vec::new();
    let max_bytes = limits.bytes as u64;
    DeflateDecoder::new(data)
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut inflated)
        .map_err(|_| damaged("the deflated data set is incomplete"))?;
    if inflated.len() > limits.bytes {
        return Err(DecodeError::TooManyBytes { size: inflated.len(), limit: limits.bytes });
    }
    Ok(inflated)
}

/// Returns the error for a frame that cannot be decoded.
pub(super) fn frame_decode_error(object: &DefaultDicomObject) -> DecodeError {
    let uid = trim_padding(&object.meta().transfer_syntax);
    match TransferSyntaxRegistry.get(uid) {
        Some(syntax) if syntax.can_decode_all() => damaged("the pixel data cannot be decoded"),
        Some(syntax) => unsupported(format!("the pixels are stored as {} ({uid})", syntax.name())),
        None => unknown_transfer_syntax(uid),
    }
}

/// Returns the bytes of all frames if they are stored uncompressed.
pub(super) fn uncompressed_bytes(object: &DefaultDicomObject) -> Option<Cow<'_, [u8]>> {
    let primitive = object.get(PIXEL_DATA)?.value().primitive()?;
    Some(primitive.to_bytes())
}

/// Returns true if the pixels are compressed with JPEG or JPEG 2000, whose decoders return RGB.
pub(super) fn is_jpeg(object: &DefaultDicomObject) -> bool {
    trim_padding(&object.meta().transfer_syntax).starts_with("1.2.840.10008.1.2.4.")
}

fn is_jpeg_2000(object: &DefaultDicomObject) -> bool {
    let uid = trim_padding(&object.meta().transfer_syntax);
    JPEG_2000.contains(&uid)
}

/// Returns true for a JPEG stream that does not declare its colour space. The decoder assumes
/// `YCbCr` for such a stream.
pub(super) fn is_jpeg_without_colour_space(object: &DefaultDicomObject) -> bool {
    let fragments = object.get(PIXEL_DATA).and_then(|e| e.value().fragments());
    let Some(first) = fragments.and_then(|all| all.first()) else {
        return false;
    };
    let header_end = first.windows(2).position(|w| w == [0xff, 0xda]);
    let header = header_end.and_then(|end| first.get(..end)).unwrap_or_default();
    let contains = |text: &[u8]| header.windows(text.len()).any(|w| w == text);
    let frame = header.windows(2).position(|w| matches!(w, [0xff, 0xc0..=0xc3]));
    let component_ids = frame.and_then(|start| {
        let id = |n: usize| header.get(start + 10 + 3 * n).copied();
        Some([id(0)?, id(1)?, id(2)?])
    });
    is_jpeg(object)
        && !is_jpeg_2000(object)
        && !contains(b"Adobe")
        && !contains(b"JFIF")
        && component_ids != Some(*b"RGB")
}

/// Maximum number of segments of a run-length encoded frame (PS3.5 G.5).
const MAX_RLE_SEGMENTS: u32 = 15;

/// Checks that compressed frames are not larger than the object's rows and columns, before the
/// decoders allocate memory for them. `pixels`: rows times columns.
pub(super) fn check_stream_sizes(
    object: &DefaultDicomObject,
    pixels: u64,
) -> Result<(), DecodeError> {
    let fragments = object.get(PIXEL_DATA).and_then(|e| e.value().fragments());
    let Some(fragments) = fragments else {
        return Ok(());
    };
    if is_jpeg_2000(object) {
        // The JPEG 2000 decoder checks the size of the stream.
        return Ok(());
    }
    if is_jpeg(object) {
        return check_jpeg_frames(fragments, pixels);
    }
    let segments = |fragment: &Vec<u8>| match fragment.as_slice() {
        [n0, n1, n2, n3, ..] => u32::from_le_bytes([*n0, *n1, *n2, *n3]),
        _ => u32::MAX,
    };
    let uid = trim_padding(&object.meta().transfer_syntax);
    if uid == RLE_LOSSLESS && fragments.iter().any(|f| segments(f) > MAX_RLE_SEGMENTS) {
        return Err(damaged("the run-length segments are invalid"));
    }
    Ok(())
}

/// Checks bit depth and size of every frame header of a JPEG stream.
///
/// A frame marker cannot occur in the entropy-coded data. One in a comment is treated as a frame
/// header.
fn check_jpeg_frames(fragments: &[Vec<u8>], pixels: u64) -> Result<(), DecodeError> {
    // A frame may span several fragments.
    let stream = fragments.concat();
    jpeg::check_scan_work(&stream, pixels)?;
    for window in stream.windows(9) {
        if let [0xff, marker, _, _, bits, h1, h0, w1, w0] = *window
            && matches!(marker, 0xc0..=0xcf)
            && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
        {
            // The decoder supports lossless streams of any bit depth.
            if bits != 8 && marker != 0xc3 {
                return Err(unsupported(format!("the JPEG stream has samples of {bits} bits")));
            }
            let (height, width) = (u16::from_be_bytes([h1, h0]), u16::from_be_bytes([w1, w0]));
            if u64::from(width) * u64::from(height) > pixels {
                return Err(damaged(format!(
                    "the JPEG stream has {width} x {height} pixels, more than the object's {pixels}"
                )));
            }
        }
    }
    Ok(())
}

fn unknown_transfer_syntax(uid: &str) -> DecodeError {
    let is_uid = !uid.is_empty() && uid.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    // Other text might name a patient and is not quoted.
    let uid = if is_uid { uid } else { "(not a valid UID)" };
    unsupported(format!("unknown transfer syntax {uid}"))
}

/// Returns a UID without its padding.
fn trim_padding(uid: &str) -> &str {
    uid.trim_end_matches(['\0', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parser reads whole numbers only, and would continue within the value.
    #[test]
    fn value_that_ends_within_a_number_is_rejected() {
        let syntax = TransferSyntaxRegistry.get("1.2.840.10008.1.2").unwrap();
        let check = |data: &[u8]| check_elements(data, syntax);
        // Rows of 2 and of 3 bytes, and columns.
        let (rows, odd_rows) = (b"\x28\0\x10\0\x02\0\0\0\x01\0", b"\x28\0\x10\0\x03\0\0\0\x01\0\0");
        let columns = b"\x28\0\x11\0\x02\0\0\0\x01\0";
        assert_eq!(check(&[rows.as_slice(), columns].concat()), Ok(()));
        assert!(check(&[odd_rows.as_slice(), columns].concat()).is_err());
        // Nothing follows.
        assert_eq!(check(odd_rows), Ok(()));
    }
}
