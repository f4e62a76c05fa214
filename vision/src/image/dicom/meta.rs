//! Where an object's data set begins and how it is encoded: by its file meta information, or, where that says
//! nothing, by how the data set itself begins (reference: `pydicom`, `read_partial` in its `filereader.py`).

use dicom_object::{FileMetaTable, FileMetaTableBuilder};

use super::super::error::DecodeError;
use super::error::damaged;

/// Where the mark stands in a file, and the mark.
const PREAMBLE: usize = 128;
const MARK: &[u8] = b"DICM";
const TRANSFER_SYNTAX: [u8; 4] = [2, 0, 0x10, 0];
/// Transfer syntaxes that a data set shows by itself.
pub(super) const EXPLICIT: &str = "1.2.840.10008.1.2.1";
const IMPLICIT: &str = "1.2.840.10008.1.2";
const BIG_ENDIAN: &str = "1.2.840.10008.1.2.2";
/// Value representations whose lengths have 32 bits, and those whose lengths have 16 (PS3.5 7.1.2).
const LONG: &[u8] = b"OBODOFOLOVOWSQSVUCUNURUTUV";
const SHORT: &[u8] = b"AEASATCSDADSDTFDFLISLOLTPNSHSLSSSTTMUIULUS";

fn is(all: &[u8], kind: [u8; 2]) -> bool {
    all.chunks_exact(2).any(|known| known == kind)
}

/// Whether a file without the mark begins as the objects do that lack it: with file meta information, or with
/// the first group of a data set.
pub(in super::super) fn is_headerless_dicom(bytes: &[u8]) -> bool {
    match *bytes {
        [2, 0, _, 0, a, b, ..] | [0, 8, 0, _, a, b, ..] => is(LONG, [a, b]) || is(SHORT, [a, b]),
        [8, 0, _, 0, n0, n1, n2, n3, ..] => {
            let length = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
            is(LONG, [n0, n1])
                || is(SHORT, [n0, n1])
                || (length.is_multiple_of(2) && length <= bytes.len().saturating_sub(8))
        }
        _ => false,
    }
}

/// How a file's data set is encoded, and the data set.
pub(super) fn read(bytes: &[u8]) -> Result<(FileMetaTable, &[u8]), DecodeError> {
    let marked = bytes.get(PREAMBLE..).and_then(|b| b.strip_prefix(MARK));
    let (syntax, data) = elements(marked.unwrap_or(bytes))?;
    let syntax = match syntax {
        Some(uid) => String::from_utf8_lossy(uid).into_owned(),
        None => shown(data).to_owned(),
    };
    // Nothing else of the file meta information counts, and nothing of it is kept.
    let table = FileMetaTableBuilder::new()
        .transfer_syntax(syntax)
        .media_storage_sop_class_uid("")
        .media_storage_sop_instance_uid("")
        .build();
    let table = table.map_err(|_| damaged("its file meta information cannot be read"))?;
    Ok((table, data))
}

/// The transfer syntax that file meta information, explicit little endian, names, and what follows it. Its
/// own statement of its length is not believed: it ends where another group begins.
fn elements(mut bytes: &[u8]) -> Result<(Option<&[u8]>, &[u8]), DecodeError> {
    let broken = || damaged("its file meta information cannot be read");
    let mut syntax = None;
    while let [2, 0, e0, e1, rest @ ..] = bytes {
        let (length, value) = match rest {
            [a, b, _, _, n0, n1, n2, n3, value @ ..] if is(LONG, [*a, *b]) => {
                (u32::from_le_bytes([*n0, *n1, *n2, *n3]), value)
            }
            [a, b, n0, n1, value @ ..] if is(SHORT, [*a, *b]) => {
                (u32::from(u16::from_le_bytes([*n0, *n1])), value)
            }
            _ => return Err(broken()),
        };
        let split = value.split_at_checked(length as usize);
        let (value, after) = split.ok_or_else(broken)?;
        if [2, 0, *e0, *e1] == TRANSFER_SYNTAX {
            syntax = Some(value);
        }
        bytes = after;
    }
    Ok((syntax, bytes))
}

/// How a data set is encoded, by its first element: values that say of what kind they are, or not; and groups
/// below 256 whose higher byte comes first.
fn shown(data: &[u8]) -> &'static str {
    match *data {
        [first, second, _, _, a, b, ..] if is(LONG, [a, b]) || is(SHORT, [a, b]) => {
            if first == 0 && second >= 4 {
                BIG_ENDIAN
            } else {
                EXPLICIT
            }
        }
        _ => IMPLICIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_seen() {
        assert_eq!(shown(b"\x08\0\x05\0CS\x0a\0"), EXPLICIT);
        assert_eq!(shown(b"\0\x08\0\x05CS\0\x0a"), BIG_ENDIAN);
        assert_eq!(shown(b"\x08\0\x05\0\x0a\0\0\0"), IMPLICIT);
        assert!(is_headerless_dicom(b"\x08\0\x05\0CS\x0a\0"));
        assert!(is_headerless_dicom(b"\x02\0\0\0UL\x04\0"));
        assert!(is_headerless_dicom(b"\0\x08\0\x05CS\0\x0a"));
        // The value would be longer than the file.
        assert!(!is_headerless_dicom(b"\x08\0\x05\0\xff\xff\0\0"));
        assert!(!is_headerless_dicom(b"\x08\0") && !is_headerless_dicom(b"\x02\0\0\0??"));
    }

    #[test]
    fn file_meta_information_ends_where_another_group_begins() {
        let bytes = b"\x02\0\x01\0OB\0\0\x02\0\0\0\0\x01\x02\0\x10\0UI\x04\x001.2\0\x08\0rest";
        let (syntax, rest) = elements(bytes).unwrap();
        assert_eq!(syntax, Some(&b"1.2\0"[..]));
        assert_eq!(rest, b"\x08\0rest");
        assert!(elements(b"\x02\0\x10\0UI\xff\xff1.2").is_err());
        assert!(elements(b"\x02\0\x10\0ZZ\x04\0").is_err());
        assert_eq!(elements(b"").unwrap(), (None, &b""[..]));
    }
}
