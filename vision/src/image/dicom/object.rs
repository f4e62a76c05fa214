//! Parses DICOM objects and checks every stated length before allocating memory.

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
use super::super::format::Format;
use super::super::limits::Limits;
use super::error::{damaged, unsupported};
use super::meta;

const PIXELS: Tag = Tag(0x7fe0, 0x0010);
const DEFLATED: &str = "1.2.840.10008.1.2.1.99";
const RUN_LENGTH: &str = "1.2.840.10008.1.2.5";
const JPEG_2000: [&str; 2] = ["1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91"];
/// Maximum number of elements of an object, including nested ones.
const ELEMENTS: usize = 1_000_000;

/// Reads an object.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<DefaultDicomObject, DecodeError> {
    let (meta, data) = meta::read(bytes)?;
    let uid = plain(&meta.transfer_syntax).to_owned();
    let registry = TransferSyntaxRegistry;
    let syntax = registry.get(&uid).ok_or_else(|| unknown(&uid))?;
    let inflated;
    let (data, parsed_as) = if uid == DEFLATED {
        inflated = inflate(data, limits)?;
        let explicit = registry
            .get(meta::EXPLICIT)
            .ok_or_else(|| unknown(meta::EXPLICIT))?;
        (inflated.as_slice(), explicit)
    } else {
        (data, syntax)
    };
    walk(data, parsed_as)?;
    let object = InMemDicomObject::read_dataset_with_ts(data, parsed_as)
        .map_err(|_| damaged("the data set cannot be parsed"))?;
    if object.get(PIXELS).is_none() {
        return Err(DecodeError::NoPixels);
    }
    Ok(object.with_exact_meta(meta))
}

/// Checks that no value is longer than the data, before any memory is allocated.
fn walk(data: &[u8], syntax: &TransferSyntax) -> Result<(), DecodeError> {
    let broken = || damaged("the element lengths are invalid");
    let mut reader =
        LazyDataSetReader::new_with_ts(Cursor::new(data), syntax).map_err(|_| broken())?;
    let fits = |length: u32| (length as usize) <= data.len();
    for _ in 0..ELEMENTS {
        let Some(token) = reader.advance() else {
            return Ok(());
        };
        let token = token.map_err(|_| broken())?;
        let length = match &token {
            LazyDataToken::LazyValue { header, .. } => header.len.get().unwrap_or(0),
            LazyDataToken::LazyItemValue { len, .. } => *len,
            _ => 0,
        };
        if !fits(length) {
            return Err(DecodeError::Truncated {
                format: Format::Dicom,
            });
        }
        token.skip().map_err(|_| broken())?;
    }
    Err(damaged(format!("it has more than {ELEMENTS} elements")))
}

/// Inflates a deflated data set, up to the file size limit.
fn inflate(data: &[u8], limits: &Limits) -> Result<Vec<u8>, DecodeError> {
    let mut inflated = Vec::new();
    let most = limits.bytes as u64;
    DeflateDecoder::new(data)
        .take(most.saturating_add(1))
        .read_to_end(&mut inflated)
        .map_err(|_| damaged("the deflated data set is incomplete"))?;
    if inflated.len() > limits.bytes {
        return Err(DecodeError::TooManyBytes {
            got: inflated.len(),
            limit: limits.bytes,
        });
    }
    Ok(inflated)
}

/// Returns the error for a frame that cannot be decoded.
pub(super) fn undecodable(object: &DefaultDicomObject) -> DecodeError {
    let uid = plain(&object.meta().transfer_syntax);
    match TransferSyntaxRegistry.get(uid) {
        Some(syntax) if syntax.can_decode_all() => damaged("the pixel data cannot be decoded"),
        Some(syntax) => unsupported(format!(
            "its pixels are stored as {} ({uid})",
            syntax.name()
        )),
        None => unknown(uid),
    }
}

/// Returns the bytes of all frames if they are stored uncompressed.
pub(super) fn uncompressed(object: &DefaultDicomObject) -> Option<Cow<'_, [u8]>> {
    let primitive = object.get(PIXELS)?.value().primitive()?;
    Some(primitive.to_bytes())
}

/// Whether the pixels went through a decoder of JPEG or JPEG 2000, which gives red, green and blue.
pub(super) fn is_jpeg(object: &DefaultDicomObject) -> bool {
    plain(&object.meta().transfer_syntax).starts_with("1.2.840.10008.1.2.4.")
}

fn is_jpeg_2000(object: &DefaultDicomObject) -> bool {
    let uid = plain(&object.meta().transfer_syntax);
    JPEG_2000.contains(&uid)
}

/// Whether the decoder of JPEG would take red, green and blue for brightness and colour: nothing in
/// the stream says which they are, and then it believes the latter.
pub(super) fn is_unmarked_jpeg(object: &DefaultDicomObject) -> bool {
    let fragments = object.get(PIXELS).and_then(|e| e.value().fragments());
    let Some(first) = fragments.and_then(|all| all.first()) else {
        return false;
    };
    let head = first.windows(2).position(|w| w == [0xff, 0xda]);
    let head = head.and_then(|end| first.get(..end)).unwrap_or_default();
    let has = |mark: &[u8]| head.windows(mark.len()).any(|w| w == mark);
    let frame = head
        .windows(2)
        .position(|w| matches!(w, [0xff, 0xc0..=0xc3]));
    let ids = frame.and_then(|at| {
        let id = |n: usize| head.get(at + 10 + 3 * n).copied();
        Some([id(0)?, id(1)?, id(2)?])
    });
    is_jpeg(object)
        && !is_jpeg_2000(object)
        && !has(b"Adobe")
        && !has(b"JFIF")
        && ids != Some(*b"RGB")
}

/// Maximum number of segments of a run-length encoded frame (PS3.5 G.5).
const SEGMENTS: u32 = 15;

/// Checks that compressed frames are not larger than the object states, before their decoders allocate
/// memory for them.
pub(super) fn check_streams(object: &DefaultDicomObject, pixels: u64) -> Result<(), DecodeError> {
    let fragments = object.get(PIXELS).and_then(|e| e.value().fragments());
    let Some(fragments) = fragments else {
        return Ok(());
    };
    if is_jpeg_2000(object) {
        // Its decoder checks the stream's size itself.
        return Ok(());
    }
    if is_jpeg(object) {
        return check_jpeg(fragments, pixels);
    }
    let segments = |fragment: &Vec<u8>| match fragment.as_slice() {
        [n0, n1, n2, n3, ..] => u32::from_le_bytes([*n0, *n1, *n2, *n3]),
        _ => u32::MAX,
    };
    let uid = plain(&object.meta().transfer_syntax);
    if uid == RUN_LENGTH && fragments.iter().any(|f| segments(f) > SEGMENTS) {
        return Err(damaged("the run-length segments are invalid"));
    }
    Ok(())
}

/// Within a stream's picture data the mark of a frame cannot occur; in a comment it might, and is
/// taken for one.
fn check_jpeg(fragments: &[Vec<u8>], pixels: u64) -> Result<(), DecodeError> {
    // A frame may be spread over fragments.
    let stream = fragments.concat();
    for head in stream.windows(9) {
        if let [0xff, mark, _, _, bits, h1, h0, w1, w0] = *head
            && matches!(mark, 0xc0..=0xcf)
            && !matches!(mark, 0xc4 | 0xc8 | 0xcc)
        {
            // Lossless streams are read at any depth.
            if bits != 8 && mark != 0xc3 {
                return Err(unsupported(format!(
                    "its JPEG stream holds samples of {bits} bits"
                )));
            }
            let (height, width) = (u16::from_be_bytes([h1, h0]), u16::from_be_bytes([w1, w0]));
            if u64::from(width) * u64::from(height) > pixels {
                return Err(damaged(format!(
                    "its JPEG stream holds {width} x {height} pixels, more than the object says"
                )));
            }
        }
    }
    Ok(())
}

fn unknown(uid: &str) -> DecodeError {
    let is_uid = !uid.is_empty() && uid.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    // What is no identifier may be anything, and is not repeated.
    let uid = if is_uid { uid } else { "that is none" };
    unsupported(format!("its transfer syntax {uid} is unknown"))
}

/// Returns an identifier without its padding.
fn plain(uid: &str) -> &str {
    uid.trim_end_matches(['\0', ' '])
}
