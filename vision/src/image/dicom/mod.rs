//! Decodes DICOM objects to RGB: one frame, with modality transform and window applied.
//!
//! The formulas are those of the standard (PS3.3 C.7.6.3, C.11.1 and C.11.2); reference: `pydicom`,
//! `pixels/processing.py`. No text of an object is kept or quoted in errors, so that no
//! patient name gets into a message or a record.

mod colour;
mod error;
mod grey;
mod header;
mod jpeg2000;
mod meta;
mod object;
mod palette;
mod table;
mod view;

use dicom_object::DefaultDicomObject;
use dicom_pixeldata::PixelDecoder as _;

use super::decoded_image::DecodedImage;
use super::error::DecodeError;
use super::format::Format;
use super::limits::Limits;
use error::unsupported;
use header::{Header, Photometric, Sampling};
pub(super) use meta::is_headerless_dicom;

pub use view::{Shown, ShownWindow, View, Window, WindowSource};

/// Decodes the frame of an object that a view chooses.
pub(super) fn decode(
    bytes: &[u8],
    limits: &Limits,
    view: &View,
) -> Result<DecodedImage, DecodeError> {
    let object = object::read(bytes, limits)?;
    let header = Header::read(&object)?;
    let (width, height) = (header.columns, header.rows);
    let pixels = u64::from(width) * u64::from(height);
    if pixels > limits.pixels {
        return Err(DecodeError::TooManyPixels {
            format: Format::Dicom,
            width,
            height,
            limit: limits.pixels,
        });
    }
    object::check_streams(&object, pixels)?;
    let frame = view.frame_of(header.frames)?;
    let mut shown = Shown {
        frame,
        frames: header.frames,
        window: None,
    };
    if header.photometric == Photometric::Ybr(Sampling::Pairs)
        && let Some(bytes) = object::uncompressed(&object)
    {
        let samples = header.of_pairs(&bytes, frame)?;
        let header = header.unpaired();
        let data = coloured(&object, &header, &samples, view)?;
        return finished(&header, data, shown);
    }
    let decoded = object.decode_pixel_data_frame(frame - 1);
    let decoded = decoded.map_err(|_| object::undecodable(&object))?;
    let samples = header.samples(decoded.data())?;
    let data = if header.photometric == Photometric::Grey {
        let modality = grey::Modality::read(&object, &decoded)?;
        let range = || modality.range(&samples);
        let (lut, window) = grey::window(&object, &decoded, range, view)?;
        shown.window = window;
        let grey = samples.iter().map(|v| lut.apply(modality.apply(*v)));
        let flip = if header.inverted { u8::MAX } else { 0 };
        grey.flat_map(|v| [v ^ flip; 3]).collect()
    } else {
        coloured(&object, &header, &samples, view)?
    };
    finished(&header, data, shown)
}

fn finished(header: &Header, data: Vec<u8>, shown: Shown) -> Result<DecodedImage, DecodeError> {
    let (width, height) = (header.columns as usize, header.rows as usize);
    let image = DecodedImage::from_rgb(width, height, data);
    image
        .map(|image| image.with_dicom_view(shown))
        .ok_or(DecodeError::Truncated {
            format: Format::Dicom,
        })
}

/// The pixels of a frame in colour, three bytes each.
fn coloured(
    object: &DefaultDicomObject,
    header: &Header,
    samples: &[i32],
    view: &View,
) -> Result<Vec<u8>, DecodeError> {
    if !matches!(view.window, Window::File | Window::Auto) {
        return Err(view::unwindowed());
    }
    if header.photometric == Photometric::Palette {
        return palette::rgb(object, samples);
    }
    if header.photometric == Photometric::Rgb && object::is_unmarked_jpeg(object) {
        return Err(unsupported(
            "its colours are RGB in a JPEG stream that does not say so",
        ));
    }
    colour::rgb(header, samples, object::is_jpeg(object))
}
