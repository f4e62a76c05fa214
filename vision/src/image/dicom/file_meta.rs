//! Finds the data set of an object and its transfer syntax.
//!
//! The file meta information states the transfer syntax. If it is missing, the first element of the
//! data set decides (reference: `read_partial` in `filereader.py` of `pydicom`).

use dicom_object::{FileMetaTable, FileMetaTableBuilder};

use super::super::error::DecodeError;
use super::error::damaged;

/// Number of bytes before the magic number.
const PREAMBLE_LENGTH: usize = 128;
const MAGIC: &[u8] = b"DICM";
/// Encoded tag (0002,0010).
const TRANSFER_SYNTAX: [u8; 4] = [2, 0, 0x10, 0];
/// UIDs of the transfer syntaxes that can be inferred from a data set.
pub(super) const EXPLICIT_LITTLE_ENDIAN: &str = "1.2.840.10008.1.2.1";
const IMPLICIT_LITTLE_ENDIAN: &str = "1.2.840.10008.1.2";
const EXPLICIT_BIG_ENDIAN: &str = "1.2.840.10008.1.2.2";
/// Value representations (VRs) with a 32-bit length, two letters each (PS3.5 7.1.2).
const LONG_VRS: &[u8] = b"OBODOFOLOVOWSQSVUCUNURUTUV";
/// Value representations with a 16-bit length.
const SHORT_VRS: &[u8] = b"AEASATCSDADSDTFDFLISLOLTPNSHSLSSSTTMUIULUS";

fn contains_vr(list: &[u8], vr: [u8; 2]) -> bool {
    list.chunks_exact(2).any(|known| known == vr)
}

/// Returns true if a file without a preamble starts like a DICOM object: with file meta information
/// or with group 8, the first group of a data set.
pub(in super::super) fn is_headerless_dicom(bytes: &[u8]) -> bool {
    match *bytes {
        [2, 0, _, 0, a, b, ..] | [0, 8, 0, _, a, b, ..] => {
            contains_vr(LONG_VRS, [a, b]) || contains_vr(SHORT_VRS, [a, b])
        }
        [8, 0, _, 0, n0, n1, n2, n3, ..] => {
            let length = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
            contains_vr(LONG_VRS, [n0, n1])
                || contains_vr(SHORT_VRS, [n0, n1])
                || (length.is_multiple_of(2) && length <= bytes.len().saturating_sub(8))
        }
        _ => false,
    }
}

/// Returns a file meta table with the transfer syntax of a file, and the bytes of its data set.
pub(super) fn read(bytes: &[u8]) -> Result<(FileMetaTable, &[u8]), DecodeError> {
    let after_magic = bytes.get(PREAMBLE_LENGTH..).and_then(|rest| rest.strip_prefix(MAGIC));
    let (syntax, data) = read_meta_elements(after_magic.unwrap_or(bytes))?;
    let syntax = match syntax {
        Some(uid) => String::from_utf8_lossy(uid).into_owned(),
        None => infer_transfer_syntax(data).to_owned(),
    };
    // The other elements are not used, and must not reach messages or records.
    let table = FileMetaTableBuilder::new()
        .transfer_syntax(syntax)
        .media_storage_sop_class_uid("")
        .media_storage_sop_instance_uid("")
        .build();
    let table = table.map_err(|_| damaged("the file meta information cannot be parsed"))?;
    Ok((table, data))
}

/// Returns the transfer syntax of the file meta information (explicit little endian) and the bytes
/// after it.
///
/// Ignores the stated length of the file meta information; it ends at the first element of another
/// group.
fn read_meta_elements(mut bytes: &[u8]) -> Result<(Option<&[u8]>, &[u8]), DecodeError> {
    let malformed = || damaged("the file meta information cannot be parsed");
    let mut syntax = None;
    while let [2, 0, e0, e1, rest @ ..] = bytes {
        let (length, value) = match rest {
            [a, b, _, _, n0, n1, n2, n3, value @ ..] if contains_vr(LONG_VRS, [*a, *b]) => {
                (u32::from_le_bytes([*n0, *n1, *n2, *n3]), value)
            }
            [a, b, n0, n1, value @ ..] if contains_vr(SHORT_VRS, [*a, *b]) => {
                (u32::from(u16::from_le_bytes([*n0, *n1])), value)
            }
            _ => return Err(malformed()),
        };
        let value_and_rest = value.split_at_checked(length as usize);
        let (value, after) = value_and_rest.ok_or_else(malformed)?;
        if [2, 0, *e0, *e1] == TRANSFER_SYNTAX {
            syntax = Some(value);
        }
        bytes = after;
    }
    Ok((syntax, bytes))
}

/// Infers the transfer syntax of a data set from its first element.
///
/// The syntax is explicit if a value representation follows the tag. An explicit data set is big
/// endian if its first two bytes are a group from 4 to 255 in that byte order.
fn infer_transfer_syntax(data: &[u8]) -> &'static str {
    match *data {
        [first, second, _, _, a, b, ..]
            if contains_vr(LONG_VRS, [a, b]) || contains_vr(SHORT_VRS, [a, b]) =>
        {
            if first == 0 && second >= 4 { EXPLICIT_BIG_ENDIAN } else { EXPLICIT_LITTLE_ENDIAN }
        }
        _ => IMPLICIT_LITTLE_ENDIAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_transfer_syntax_is_inferred() {
        assert_eq!(infer_transfer_syntax(b"\x08\0\x05\0CS\x0a\0"), EXPLICIT_LITTLE_ENDIAN);
        assert_eq!(infer_transfer_syntax(b"\0\x08\0\x05CS\0\x0a"), EXPLICIT_BIG_ENDIAN);
        assert_eq!(infer_transfer_syntax(b"\x08\0\x05\0\x0a\0\0\0"), IMPLICIT_LITTLE_ENDIAN);
        assert!(is_headerless_dicom(b"\x08\0\x05\0CS\x0a\0"));
        assert!(is_headerless_dicom(b"\x02\0\0\0UL\x04\0"));
        assert!(is_headerless_dicom(b"\0\x08\0\x05CS\0\x0a"));
        // The length of the value exceeds the file.
        assert!(!is_headerless_dicom(b"\x08\0\x05\0\xff\xff\0\0"));
        assert!(!is_headerless_dicom(b"\x08\0") && !is_headerless_dicom(b"\x02\0\0\0??"));
    }

    #[test]
    fn file_meta_information_ends_at_the_next_group() {
        let bytes = b"\x02\0\x01\0OB\0\0\x02\0\0\0\0\x01\x02\0\x10\0UI\x04\x001.2\0\x08\0rest";
        let (syntax, rest) = read_meta_elements(bytes).unwrap();
        assert_eq!(syntax, Some(&b"1.2\0"[..]));
        assert_eq!(rest, b"\x08\0rest");
        assert!(read_meta_elements(b"\x02\0\x10\0UI\xff\xff1.2").is_err());
        assert!(read_meta_elements(b"\x02\0\x10\0ZZ\x04\0").is_err());
        assert_eq!(read_meta_elements(b"").unwrap(), (None, &b""[..]));
    }
}
