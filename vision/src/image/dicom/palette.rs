//! Palette colours (PS3.3 C.7.9).

use dicom_object::{DefaultDicomObject, Tag};

use super::super::error::DecodeError;
use super::error::unsupported;
use super::table::Table;

/// Descriptor and data of red, green and blue.
const TABLES: [[Tag; 2]; 3] = [
    [Tag(0x0028, 0x1101), Tag(0x0028, 0x1201)],
    [Tag(0x0028, 0x1102), Tag(0x0028, 0x1202)],
    [Tag(0x0028, 0x1103), Tag(0x0028, 0x1203)],
];
/// The data of red where tables are written in segments.
const SEGMENTED: Tag = Tag(0x0028, 0x1221);

/// The pixels, three bytes each.
pub(super) fn rgb(object: &DefaultDicomObject, samples: &[i32]) -> Result<Vec<u8>, DecodeError> {
    if object.get(SEGMENTED).is_some() {
        return Err(unsupported("its palette is written in segments"));
    }
    let [red, green, blue] = TABLES.map(|tags| Table::read(object, tags));
    let tables = [red?, green?, blue?];
    let pixel = |sample: &i32| tables.each_ref().map(|t| t.byte(f64::from(*sample)));
    Ok(samples.iter().flat_map(pixel).collect())
}
