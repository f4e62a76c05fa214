//! Converts palette indices to RGB (PS3.3 C.7.9).

use dicom_object::{DefaultDicomObject, Tag};

use super::super::error::DecodeError;
use super::error::unsupported;
use super::lookup_table::LookupTable;

/// Tags of descriptor and data of the red, green and blue lookup tables.
const PALETTE_TABLES: [[Tag; 2]; 3] = [
    [Tag(0x0028, 0x1101), Tag(0x0028, 0x1201)],
    [Tag(0x0028, 0x1102), Tag(0x0028, 0x1202)],
    [Tag(0x0028, 0x1103), Tag(0x0028, 0x1203)],
];
/// Tag of the segmented data of the red lookup table.
const SEGMENTED_RED_DATA: Tag = Tag(0x0028, 0x1221);

/// Returns the pixels, three bytes each.
pub(super) fn to_rgb8(
    object: &DefaultDicomObject,
    samples: &[i32],
) -> Result<Vec<u8>, DecodeError> {
    if object.get(SEGMENTED_RED_DATA).is_some() {
        return Err(unsupported("the palette is segmented"));
    }
    let [red, green, blue] = PALETTE_TABLES.map(|tags| LookupTable::read(object, tags));
    let tables = [red?, green?, blue?];
    let pixel = |sample: &i32| tables.each_ref().map(|t| t.look_up_byte(f64::from(*sample)));
    Ok(samples.iter().flat_map(pixel).collect())
}
