//! Pixel format attributes of DICOM objects.

use dicom_object::{DefaultDicomObject, Tag};

use super::super::error::DecodeError;
use super::super::format::FileFormat;
use super::error::{damaged, unsupported};

const MODALITY: Tag = Tag(0x0008, 0x0060);
const SAMPLES_PER_PIXEL: Tag = Tag(0x0028, 0x0002);
const PHOTOMETRIC_INTERPRETATION: Tag = Tag(0x0028, 0x0004);
const PLANAR_CONFIGURATION: Tag = Tag(0x0028, 0x0006);
const NUMBER_OF_FRAMES: Tag = Tag(0x0028, 0x0008);
const ROWS: Tag = Tag(0x0028, 0x0010);
const COLUMNS: Tag = Tag(0x0028, 0x0011);
const BITS_ALLOCATED: Tag = Tag(0x0028, 0x0100);
const BITS_STORED: Tag = Tag(0x0028, 0x0101);
const PIXEL_REPRESENTATION: Tag = Tag(0x0028, 0x0103);

/// Size and pixel format of an object.
#[derive(Clone, Debug)]
pub(super) struct PixelHeader {
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) frames: u32,
    pub(super) samples_per_pixel: u32,
    pub(super) bits_stored: u32,
    pub(super) photometric: PhotometricInterpretation,
    /// True if the largest value is black (`MONOCHROME1`).
    pub(super) is_inverted: bool,
    /// True if each colour is stored as a plane.
    pub(super) is_planar: bool,
    pub(super) is_signed: bool,
    pub(super) modality: Modality,
    bits_allocated: u32,
}

/// Kind of device that made the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modality {
    /// Computed tomography, whose values are Hounsfield units.
    Ct,
    Other,
}

/// Photometric interpretation: meaning of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhotometricInterpretation {
    Grey,
    Rgb,
    /// Indices into a palette.
    Palette,
    /// Luminance and two chrominance components.
    Ybr(ChromaSampling),
}

/// Subsampling of the chrominance components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChromaSampling {
    /// One chrominance sample per pixel.
    Full,
    /// One chrominance sample per two horizontal neighbours (PS3.3 C.7.6.3.1.2, `YBR_FULL_422`).
    HalfWidth,
    /// A scheme that only a JPEG decoder supports.
    JpegOnly,
}

impl PixelHeader {
    /// Reads and checks the attributes.
    pub(super) fn read(object: &DefaultDicomObject) -> Result<Self, DecodeError> {
        let number = |tag: Tag| -> Option<u32> { object.get(tag)?.to_int::<u32>().ok() };
        let required = |tag: Tag, name: &str| {
            number(tag).ok_or_else(|| damaged(format!("{name} is missing or not a number")))
        };
        let code = |tag: Tag| -> Option<String> {
            let text = object.get(tag)?.to_str().ok()?;
            Some(text.trim_end_matches(['\0', ' ']).to_owned())
        };
        let interpretation = code(PHOTOMETRIC_INTERPRETATION);
        let interpretation = interpretation.unwrap_or_else(|| "MONOCHROME2".to_owned());
        let (photometric, samples) = match interpretation.as_str() {
            "MONOCHROME1" | "MONOCHROME2" => (PhotometricInterpretation::Grey, 1),
            "RGB" => (PhotometricInterpretation::Rgb, 3),
            "YBR_FULL" => (PhotometricInterpretation::Ybr(ChromaSampling::Full), 3),
            "YBR_FULL_422" => (PhotometricInterpretation::Ybr(ChromaSampling::HalfWidth), 3),
            "YBR_PARTIAL_420" | "YBR_ICT" | "YBR_RCT" => {
                (PhotometricInterpretation::Ybr(ChromaSampling::JpegOnly), 3)
            }
            "PALETTE COLOR" => (PhotometricInterpretation::Palette, 1),
            _ => {
                return Err(unsupported("unknown photometric interpretation"));
            }
        };
        let header = Self {
            rows: required(ROWS, "Rows")?,
            columns: required(COLUMNS, "Columns")?,
            frames: number(NUMBER_OF_FRAMES).unwrap_or(1).max(1),
            samples_per_pixel: number(SAMPLES_PER_PIXEL).unwrap_or(samples),
            bits_allocated: required(BITS_ALLOCATED, "BitsAllocated")?,
            bits_stored: required(BITS_STORED, "BitsStored")?,
            is_inverted: interpretation == "MONOCHROME1",
            is_planar: number(PLANAR_CONFIGURATION) == Some(1),
            is_signed: number(PIXEL_REPRESENTATION) == Some(1),
            modality: match code(MODALITY).as_deref() {
                Some("CT") => Modality::Ct,
                _ => Modality::Other,
            },
            photometric,
        };
        header.check(samples)?;
        Ok(header)
    }

    /// Checks size, bit depth and the expected number of samples per pixel.
    fn check(&self, samples: u32) -> Result<(), DecodeError> {
        let (rows, columns) = (self.rows, self.columns);
        if rows == 0 || columns == 0 || rows > 0xffff || columns > 0xffff {
            return Err(damaged(format!("the image size is {columns} x {rows}")));
        }
        if self.samples_per_pixel != samples {
            let found = self.samples_per_pixel;
            return Err(damaged(format!("found {found} samples per pixel, expected {samples}")));
        }
        let (allocated, stored) = (self.bits_allocated, self.bits_stored);
        if !matches!(allocated, 8 | 16) {
            return Err(unsupported(format!("samples of {allocated} bits")));
        }
        if stored == 0 || stored > allocated {
            return Err(damaged(format!("found {stored} bits stored, expected 1 to {allocated}")));
        }
        Ok(())
    }

    /// Returns the samples of a `YBR_FULL_422` frame with one chrominance sample per pixel.
    ///
    /// `bytes` are those of all frames: for each pair of pixels two luminance samples, then the two
    /// chrominance samples of the pair. `frame` counts from 1.
    pub(super) fn upsampled_samples(
        &self,
        bytes: &[u8],
        frame: u32,
    ) -> Result<Vec<i32>, DecodeError> {
        if !self.columns.is_multiple_of(2) {
            let columns = self.columns;
            return Err(damaged(format!(
                "YBR_FULL_422 requires an even number of columns, found {columns}"
            )));
        }
        let sample_bytes = (self.bits_allocated / 8) as usize;
        let frame_bytes = self.rows as usize * self.columns as usize * 2 * sample_bytes;
        let start = frame_bytes.saturating_mul(frame.saturating_sub(1) as usize);
        let stored = bytes.get(start..start.saturating_add(frame_bytes));
        let stored = stored.ok_or(DecodeError::Truncated { format: FileFormat::Dicom })?;
        let mut full = Vec::with_capacity(frame_bytes / 2 * 3);
        for pair in stored.chunks_exact(4 * sample_bytes) {
            let (luminances, chrominances) = pair.split_at(2 * sample_bytes);
            for luminance in luminances.chunks_exact(sample_bytes) {
                full.extend_from_slice(luminance);
                full.extend_from_slice(chrominances);
            }
        }
        self.samples(&full)
    }

    /// Returns the format of the samples of [`PixelHeader::upsampled_samples`].
    pub(super) fn with_full_sampling(self) -> Self {
        Self {
            photometric: PhotometricInterpretation::Ybr(ChromaSampling::Full),
            is_planar: false,
            ..self
        }
    }

    /// Converts the bytes of a frame (little endian) to samples.
    pub(super) fn samples(&self, bytes: &[u8]) -> Result<Vec<i32>, DecodeError> {
        let count = self.rows as usize * self.columns as usize * self.samples_per_pixel as usize;
        let sample_bytes = (self.bits_allocated / 8) as usize;
        if bytes.len() < count.saturating_mul(sample_bytes) {
            return Err(DecodeError::Truncated { format: FileFormat::Dicom });
        }
        let unused_bits = 32 - self.bits_stored;
        let to_sample = |bytes: &[u8]| {
            let raw = bytes.iter().rev().fold(0_u32, |raw, byte| (raw << 8) | u32::from(*byte));
            let shifted = raw << unused_bits;
            if self.is_signed {
                shifted.cast_signed() >> unused_bits
            } else {
                (shifted >> unused_bits).cast_signed()
            }
        };
        let samples = bytes.chunks_exact(sample_bytes).take(count);
        Ok(samples.map(to_sample).collect())
    }
}
