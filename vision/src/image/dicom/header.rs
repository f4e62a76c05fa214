//! Pixel format attributes of DICOM objects.

use dicom_object::{DefaultDicomObject, Tag};

use super::super::error::DecodeError;
use super::super::format::Format;
use super::error::{damaged, unsupported};

const SAMPLES_PER_PIXEL: Tag = Tag(0x0028, 0x0002);
const PHOTOMETRIC: Tag = Tag(0x0028, 0x0004);
const PLANAR: Tag = Tag(0x0028, 0x0006);
const FRAMES: Tag = Tag(0x0028, 0x0008);
const ROWS: Tag = Tag(0x0028, 0x0010);
const COLUMNS: Tag = Tag(0x0028, 0x0011);
const BITS_ALLOCATED: Tag = Tag(0x0028, 0x0100);
const BITS_STORED: Tag = Tag(0x0028, 0x0101);
const SIGNED: Tag = Tag(0x0028, 0x0103);

/// Pixel format.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) frames: u32,
    pub(super) samples_per_pixel: u32,
    pub(super) bits_stored: u32,
    pub(super) photometric: Photometric,
    /// Black is the greatest value.
    pub(super) inverted: bool,
    /// One plane per colour.
    pub(super) planar: bool,
    pub(super) signed: bool,
    bits_allocated: u32,
}

/// Meaning of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Photometric {
    Grey,
    Rgb,
    /// Numbers of colours.
    Palette,
    /// Brightness and two differences of colours.
    Ybr(Sampling),
}

/// How often the differences of colours are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampling {
    /// For each pixel.
    Full,
    /// For two pixels side by side (PS3.3 C.7.6.3.1.2, `YBR_FULL_422`).
    Pairs,
    /// In ways that only a decoder of JPEG undoes.
    Jpeg,
}

impl Header {
    /// Reads and checks the attributes.
    pub(super) fn read(object: &DefaultDicomObject) -> Result<Self, DecodeError> {
        let number = |tag: Tag| -> Option<u32> { object.get(tag)?.to_int::<u32>().ok() };
        let needed = |tag: Tag, name: &str| {
            number(tag)
                .ok_or_else(|| damaged(format!("it does not say its {name}, or not as a number")))
        };
        let text = object.get(PHOTOMETRIC).and_then(|e| e.to_str().ok());
        let text = text
            .as_deref()
            .unwrap_or("MONOCHROME2")
            .trim_end_matches(['\0', ' '])
            .to_owned();
        let (photometric, samples) = match text.as_str() {
            "MONOCHROME1" | "MONOCHROME2" => (Photometric::Grey, 1),
            "RGB" => (Photometric::Rgb, 3),
            "YBR_FULL" => (Photometric::Ybr(Sampling::Full), 3),
            "YBR_FULL_422" => (Photometric::Ybr(Sampling::Pairs), 3),
            "YBR_PARTIAL_420" | "YBR_ICT" | "YBR_RCT" => (Photometric::Ybr(Sampling::Jpeg), 3),
            "PALETTE COLOR" => (Photometric::Palette, 1),
            _ => {
                return Err(unsupported(
                    "its photometric interpretation is not one that is read",
                ));
            }
        };
        let header = Self {
            rows: needed(ROWS, "rows")?,
            columns: needed(COLUMNS, "columns")?,
            frames: number(FRAMES).unwrap_or(1).max(1),
            samples_per_pixel: number(SAMPLES_PER_PIXEL).unwrap_or(samples),
            bits_allocated: needed(BITS_ALLOCATED, "bits allocated")?,
            bits_stored: needed(BITS_STORED, "bits stored")?,
            inverted: text == "MONOCHROME1",
            planar: number(PLANAR) == Some(1),
            signed: number(SIGNED) == Some(1),
            photometric,
        };
        header.check(samples)?;
        Ok(header)
    }

    fn check(&self, samples: u32) -> Result<(), DecodeError> {
        let (rows, columns) = (self.rows, self.columns);
        if rows == 0 || columns == 0 || rows > 0xffff || columns > 0xffff {
            return Err(damaged(format!("its size is {columns} x {rows}")));
        }
        if self.samples_per_pixel != samples {
            let found = self.samples_per_pixel;
            return Err(damaged(format!(
                "it has {found} samples per pixel, expected {samples}"
            )));
        }
        let (allocated, stored) = (self.bits_allocated, self.bits_stored);
        if !matches!(allocated, 8 | 16) {
            return Err(unsupported(format!("its samples have {allocated} bits")));
        }
        if stored == 0 || stored > allocated {
            return Err(damaged(format!("{stored} of {allocated} bits are stored")));
        }
        Ok(())
    }

    /// The samples of a frame (from 1) of all frames' bytes, in which two pixels side by side are stored as
    /// two brightnesses and then the differences that both have.
    pub(super) fn of_pairs(&self, bytes: &[u8], frame: u32) -> Result<Vec<i32>, DecodeError> {
        if !self.columns.is_multiple_of(2) {
            let columns = self.columns;
            return Err(damaged(format!(
                "its pixels are pairs, its columns {columns}"
            )));
        }
        let size = (self.bits_allocated / 8) as usize;
        let frame_bytes = self.rows as usize * self.columns as usize * 2 * size;
        let from = frame_bytes.saturating_mul(frame.saturating_sub(1) as usize);
        let stored = bytes.get(from..from.saturating_add(frame_bytes));
        let stored = stored.ok_or(DecodeError::Truncated {
            format: Format::Dicom,
        })?;
        let mut full = Vec::with_capacity(frame_bytes / 2 * 3);
        for pair in stored.chunks_exact(4 * size) {
            let (brightness, colours) = pair.split_at(2 * size);
            for own in brightness.chunks_exact(size) {
                full.extend_from_slice(own);
                full.extend_from_slice(colours);
            }
        }
        self.samples(&full)
    }

    /// How the samples of [`Header::of_pairs`] are.
    pub(super) fn unpaired(self) -> Self {
        Self {
            photometric: Photometric::Ybr(Sampling::Full),
            planar: false,
            ..self
        }
    }

    /// The samples of a frame's bytes (little endian), as numbers.
    pub(super) fn samples(&self, bytes: &[u8]) -> Result<Vec<i32>, DecodeError> {
        let needed = self.rows as usize * self.columns as usize * self.samples_per_pixel as usize;
        let size = (self.bits_allocated / 8) as usize;
        if bytes.len() < needed.saturating_mul(size) {
            return Err(DecodeError::Truncated {
                format: Format::Dicom,
            });
        }
        let unused = 32 - self.bits_stored;
        let number = |bytes: &[u8]| {
            let raw = bytes
                .iter()
                .rev()
                .fold(0_u32, |raw, byte| (raw << 8) | u32::from(*byte));
            let high = raw << unused;
            if self.signed {
                high.cast_signed() >> unused
            } else {
                (high >> unused).cast_signed()
            }
        };
        Ok(bytes.chunks_exact(size).take(needed).map(number).collect())
    }
}
