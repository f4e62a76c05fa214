//! Decodes DICOM objects to RGB: one frame, with modality transform and window applied.
//!
//! The formulas are those of the standard (PS3.3 C.7.6.3, C.11.1 and C.11.2); reference: `pydicom`,
//! `pixels/processing.py`. Text of an object is neither quoted in errors nor stored, so that
//! messages and records contain no patient name.

mod colour;
mod error;
mod file_meta;
mod grey;
mod jpeg2000;
mod lookup_table;
mod object;
mod palette;
mod pixel_header;
pub(super) mod view;

use dicom_object::DefaultDicomObject;
use dicom_pixeldata::PixelDecoder as _;

use super::decoded_image::DecodedImage;
use super::error::DecodeError;
use super::format::FileFormat;
use super::limits::ImageLimits;
use error::unsupported;
pub(super) use file_meta::is_headerless_dicom;
use pixel_header::{ChromaSampling, Modality, PhotometricInterpretation, PixelHeader};

pub use view::{AppliedView, AppliedWindow, DicomView, DicomWindow, WindowSource};

/// Decodes the frame that a view selects.
pub(super) fn decode(
    bytes: &[u8],
    limits: &ImageLimits,
    view: &DicomView,
) -> Result<DecodedImage, DecodeError> {
    let object = object::read(bytes, limits)?;
    let header = PixelHeader::read(&object)?;
    let (width, height) = (header.columns, header.rows);
    let pixels = u64::from(width) * u64::from(height);
    if pixels > limits.pixels {
        return Err(DecodeError::TooManyPixels {
            format: FileFormat::Dicom,
            width,
            height,
            limit: limits.pixels,
        });
    }
    object::check_stream_sizes(&object, pixels)?;
    let frame = view.frame_number(header.frames)?;
    let mut applied_view = AppliedView { frame, frames: header.frames, window: None };
    if header.photometric == PhotometricInterpretation::Ybr(ChromaSampling::HalfWidth)
        && let Some(bytes) = object::uncompressed_bytes(&object)
    {
        let samples = header.upsampled_samples(&bytes, frame)?;
        let header = header.with_full_sampling();
        let data = colour_pixels(&object, &header, &samples, view)?;
        return dicom_image(&header, data, applied_view);
    }
    let decoded = object.decode_pixel_data_frame(frame - 1);
    let decoded = decoded.map_err(|_| object::frame_decode_error(&object))?;
    let samples = header.samples(decoded.data())?;
    let data = if header.photometric == PhotometricInterpretation::Grey {
        let modality = grey::ModalityTransform::read(&object, &decoded)?;
        let value_range = || modality.value_range(&samples);
        let (window_transform, window) = grey::select_window(&object, &decoded, value_range, view)?;
        applied_view.window = window;
        let grey = samples.iter().map(|sample| window_transform.apply(modality.apply(*sample)));
        let inversion = if header.is_inverted { u8::MAX } else { 0 };
        grey.flat_map(|v| [v ^ inversion; 3]).collect()
    } else {
        colour_pixels(&object, &header, &samples, view)?
    };
    dicom_image(&header, data, applied_view)
}

/// Creates the image from its pixels; an error if `data` is too short.
fn dicom_image(
    header: &PixelHeader,
    data: Vec<u8>,
    applied_view: AppliedView,
) -> Result<DecodedImage, DecodeError> {
    let (width, height) = (header.columns as usize, header.rows as usize);
    let image = DecodedImage::from_rgb(width, height, data);
    image
        .map(|image| image.with_dicom_view(applied_view, header.modality == Modality::Ct))
        .ok_or(DecodeError::Truncated { format: FileFormat::Dicom })
}

/// Returns the pixels of a colour frame, three bytes each.
fn colour_pixels(
    object: &DefaultDicomObject,
    header: &PixelHeader,
    samples: &[i32],
    view: &DicomView,
) -> Result<Vec<u8>, DecodeError> {
    if !matches!(view.window, DicomWindow::File | DicomWindow::Auto) {
        return Err(view::window_on_colour_error());
    }
    if header.photometric == PhotometricInterpretation::Palette {
        return palette::to_rgb8(object, samples);
    }
    if header.photometric == PhotometricInterpretation::Rgb
        && object::is_jpeg_without_colour_space(object)
    {
        return Err(unsupported("the colours are RGB, but the JPEG stream does not declare RGB"));
    }
    colour::to_rgb8(header, samples, object::is_jpeg(object))
}
