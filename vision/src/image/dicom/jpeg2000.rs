//! Frames stored as JPEG 2000 (PS3.5 A.4.4), for the registry of transfer syntaxes.

use dicom_encoding::adapters::{DecodeResult, PixelDataObject, PixelDataReader, decode_error};
use dicom_encoding::snafu::prelude::*;
use dicom_encoding::{Codec, NeverAdapter, NeverPixelAdapter, submit_ele_transfer_syntax};
use hayro_jpeg2000::{ComponentData, DecodeSettings, DecoderContext, Image};

submit_ele_transfer_syntax!(
    "1.2.840.10008.1.2.4.90",
    "JPEG 2000 Image Compression (Lossless Only)",
    Codec::<NeverAdapter, _, NeverPixelAdapter>::EncapsulatedPixelData(Some(Jpeg2000), None)
);
submit_ele_transfer_syntax!(
    "1.2.840.10008.1.2.4.91",
    "JPEG 2000 Image Compression",
    Codec::<NeverAdapter, _, NeverPixelAdapter>::EncapsulatedPixelData(Some(Jpeg2000), None)
);

/// The marks that a codestream begins with: its start, and its size.
const START: [u8; 4] = [0xff, 0x4f, 0xff, 0x51];

/// What a codestream says of itself (ISO/IEC 15444-1 A.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    width: u32,
    height: u32,
    components: u16,
    signed: bool,
    bits: u8,
}

impl Size {
    fn read(stream: &[u8]) -> Option<Self> {
        let word = |at: usize| -> Option<u32> {
            let bytes = stream.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let kind = stream.get(42)?;
        Some(Self {
            width: word(8)?.checked_sub(word(16)?)?,
            height: word(12)?.checked_sub(word(20)?)?,
            components: u16::from_be_bytes(stream.get(40..42)?.try_into().ok()?),
            signed: kind & 0x80 != 0,
            bits: (kind & 0x7f) + 1,
        })
    }
}

/// Decodes frames, red, green and blue interleaved.
struct Jpeg2000;

impl PixelDataReader for Jpeg2000 {
    fn decode_frame(
        &self,
        src: &dyn PixelDataObject,
        frame: u32,
        dst: &mut Vec<u8>,
    ) -> DecodeResult<()> {
        let missing = |name| decode_error::MissingAttributeSnafu { name };
        let rows = src.rows().context(missing("Rows"))?;
        let columns = src.cols().context(missing("Columns"))?;
        let samples = src
            .samples_per_pixel()
            .context(missing("SamplesPerPixel"))?;
        let allocated = src.bits_allocated().context(missing("BitsAllocated"))?;
        // A lone frame may be spread over fragments that no table tells apart.
        let data = match src.raw_pixel_data() {
            Some(raw) if src.number_of_frames().unwrap_or(1) == 1 => {
                Some(raw.fragments.concat().into())
            }
            _ => src.frame_pixel_data(frame),
        };
        let data = data.context(decode_error::FrameRangeOutOfBoundsSnafu)?;
        // Some writers keep the box around the stream, which the standard leaves out.
        let at = data.windows(START.len()).position(|bytes| bytes == START);
        let stream = at.and_then(|at| data.get(at..)).unwrap_or_default();
        let size = Size::read(stream).whatever_context("no codestream")?;
        // Before any memory is taken for what the stream states.
        ensure_whatever!(
            (size.width, size.height) == (u32::from(columns), u32::from(rows))
                && size.components == samples,
            "the codestream is of another size"
        );
        // What does not fit into the bytes of a sample would come out as something else.
        ensure_whatever!(
            u16::from(size.bits) <= allocated,
            "the codestream is deeper than the object says"
        );
        let image = Image::new(stream, &DecodeSettings::default())
            .whatever_context("the codestream's header")?;
        let mut context = DecoderContext::default();
        let decoded = image
            .decode(&mut context)
            .whatever_context("the codestream")?;
        let planes = decoded.components().iter().map(ComponentData::samples);
        let planes: Vec<&[f32]> = planes.collect();
        let pixels = usize::from(rows) * usize::from(columns);
        ensure_whatever!(
            planes.len() == usize::from(samples) && planes.iter().all(|p| p.len() == pixels),
            "planes of another size"
        );
        // The decoder raises every stream by half its range, as unsigned ones are stored, and a lossy
        // one goes beyond it.
        let most = f32::powi(2.0, size.bits.into()) - 1.0;
        let raised = if size.signed {
            1 << (size.bits - 1).min(30)
        } else {
            0
        };
        for pixel in 0..pixels {
            for plane in &planes {
                let value = plane[pixel].round().clamp(0.0, most) as i32 - raised;
                let bytes = value.to_le_bytes();
                dst.extend_from_slice(if allocated == 8 {
                    &bytes[..1]
                } else {
                    &bytes[..2]
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codestream_says_its_size() {
        let mut stream = START.to_vec();
        stream.extend([0, 41, 0, 0]);
        for word in [13_u32, 12, 1, 2, 13, 12, 0, 0] {
            stream.extend(word.to_be_bytes());
        }
        assert_eq!(Size::read(&stream), None);
        stream.extend([0, 1, 0x8b, 1, 1]);
        let size = Size {
            width: 12,
            height: 10,
            components: 1,
            signed: true,
            bits: 12,
        };
        assert_eq!(Size::read(&stream), Some(size));
    }
}
