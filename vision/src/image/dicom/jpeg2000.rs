//! Decoder of JPEG 2000 frames (PS3.5 A.4.4), registered for its transfer syntaxes.

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

/// First two markers of a codestream: start of codestream and image size.
const CODESTREAM_START: [u8; 4] = [0xff, 0x4f, 0xff, 0x51];

/// Image size marker segment of a codestream (ISO/IEC 15444-1 A.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CodestreamSize {
    width: u32,
    height: u32,
    components: u16,
    is_signed: bool,
    /// Bits per sample.
    bits: u8,
}

impl CodestreamSize {
    /// Parses the start of a codestream; `None` if it is too short.
    fn read(stream: &[u8]) -> Option<Self> {
        let word = |offset: usize| -> Option<u32> {
            let bytes = stream.get(offset..offset + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let depth_and_sign = stream.get(42)?;
        Some(Self {
            width: word(8)?.checked_sub(word(16)?)?,
            height: word(12)?.checked_sub(word(20)?)?,
            components: u16::from_be_bytes(stream.get(40..42)?.try_into().ok()?),
            is_signed: depth_and_sign & 0x80 != 0,
            bits: (depth_and_sign & 0x7f) + 1,
        })
    }
}

/// JPEG 2000 decoder. Colour samples are interleaved.
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
        let samples = src.samples_per_pixel().context(missing("SamplesPerPixel"))?;
        let allocated = src.bits_allocated().context(missing("BitsAllocated"))?;
        // A single frame may span several fragments without an offset table.
        let data = match src.raw_pixel_data() {
            Some(raw) if src.number_of_frames().unwrap_or(1) == 1 => {
                Some(raw.fragments.concat().into())
            }
            _ => src.frame_pixel_data(frame),
        };
        let data = data.context(decode_error::FrameRangeOutOfBoundsSnafu)?;
        // Some writers wrap the codestream in a JP2 box, although the standard forbids it.
        let start =
            data.windows(CODESTREAM_START.len()).position(|bytes| bytes == CODESTREAM_START);
        let stream = start.and_then(|start| data.get(start..)).unwrap_or_default();
        let size = CodestreamSize::read(stream).whatever_context("no codestream")?;
        // Check the size in the stream before the decoder allocates memory for it.
        ensure_whatever!(
            (size.width, size.height) == (u32::from(columns), u32::from(rows))
                && size.components == samples,
            "the codestream has another size"
        );
        // Deeper samples would not fit into the allocated bytes.
        ensure_whatever!(
            u16::from(size.bits) <= allocated,
            "the codestream has more bits per sample than allocated"
        );
        let image = Image::new(stream, &DecodeSettings::default())
            .whatever_context("the codestream's header")?;
        let mut context = DecoderContext::default();
        let decoded = image.decode(&mut context).whatever_context("the codestream")?;
        let planes = decoded.components().iter().map(ComponentData::samples);
        let planes: Vec<&[f32]> = planes.collect();
        let pixels = usize::from(rows) * usize::from(columns);
        ensure_whatever!(
            planes.len() == usize::from(samples) && planes.iter().all(|p| p.len() == pixels),
            "the decoded planes have another size"
        );
        // The decoder adds half the range to every sample, also to signed ones. Lossy samples may
        // be out of range.
        let max = f32::powi(2.0, size.bits.into()) - 1.0;
        let offset = if size.is_signed { 1 << (size.bits - 1).min(30) } else { 0 };
        for pixel in 0..pixels {
            for plane in &planes {
                let value = plane[pixel].round().clamp(0.0, max) as i32 - offset;
                let bytes = value.to_le_bytes();
                dst.extend_from_slice(if allocated == 8 { &bytes[..1] } else { &bytes[..2] });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codestream_size_is_parsed() {
        let mut stream = CODESTREAM_START.to_vec();
        stream.extend([0, 41, 0, 0]);
        for word in [13_u32, 12, 1, 2, 13, 12, 0, 0] {
            stream.extend(word.to_be_bytes());
        }
        assert_eq!(CodestreamSize::read(&stream), None);
        stream.extend([0, 1, 0x8b, 1, 1]);
        let size =
            CodestreamSize { width: 12, height: 10, components: 1, is_signed: true, bits: 12 };
        assert_eq!(CodestreamSize::read(&stream), Some(size));
    }
}
