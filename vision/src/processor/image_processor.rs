//! Conversion of images to pixel values, with the preprocessing of the encoder's training.
//!
//! The fields have the names of a Hugging Face `preprocessor_config.json` for CLIP, so such a file
//! deserialises without changes. `pad` and `centre` are additions. Missing fields have CLIP's
//! values.

use candle::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::error::ProcessError;
use super::size::{CropRounding, CropSize, Pad, ResizeSize};
use crate::image::DecodedImage;
use crate::resample::Resample;
use crate::resize::{buffer_size, resize};

/// Preprocessing settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageProcessor {
    /// Padding before all other steps.
    pub pad: Pad,
    /// True if the image is resized to `size`.
    pub do_resize: bool,
    /// Size after resizing.
    pub size: ResizeSize,
    /// Resampling filter.
    pub resample: Resample,
    /// True if the image is cropped to its centre. Default: true if there is a `crop_size`.
    pub do_center_crop: Option<bool>,
    /// Size of the centre crop.
    pub crop_size: Option<CropSize>,
    /// Rounding of the crop's margins if they cannot be equal.
    #[serde(rename = "centre", skip_serializing_if = "CropRounding::is_default")]
    pub crop_rounding: CropRounding,
    /// True if bytes are multiplied by `rescale_factor`.
    pub do_rescale: bool,
    /// Factor that scales the bytes; 1/255 maps them to the range from 0 to 1.
    pub rescale_factor: f64,
    /// True if `image_mean` is subtracted and the difference divided by `image_std`.
    pub do_normalize: bool,
    /// Means of red, green and blue.
    pub image_mean: [f64; 3],
    /// Standard deviations of red, green and blue.
    pub image_std: [f64; 3],
}

impl Default for ImageProcessor {
    /// Returns the settings of `OpenAI`'s CLIP without the centre crop.
    fn default() -> Self {
        Self {
            pad: Pad::None,
            do_resize: true,
            size: ResizeSize::ShortestEdge { shortest_edge: 224 },
            resample: Resample::Bicubic,
            do_center_crop: None,
            crop_size: None,
            crop_rounding: CropRounding::Down,
            do_rescale: true,
            rescale_factor: 1. / 255.,
            do_normalize: true,
            image_mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
            image_std: [0.268_629_54, 0.261_302_58, 0.275_777_11],
        }
    }
}

/// Maximum size in bytes of a resized image, and of the buffer between the horizontal and the
/// vertical pass of resizing. Images with more than twice this number of pixels are rejected too.
pub(super) const MAX_BUFFER_BYTES: usize = 1 << 27;

impl ImageProcessor {
    /// Returns the settings of the embedded panel: the image is padded to a grey square and resized
    /// to `side` pixels. Pixel values are from −1 to 1.
    pub fn square(side: usize) -> Self {
        Self {
            pad: Pad::Square,
            size: ResizeSize::Exact { height: side, width: side },
            do_center_crop: Some(false),
            image_mean: [0.5; 3],
            image_std: [0.5; 3],
            ..Self::default()
        }
    }

    /// Computes the pixel values of one image.
    ///
    /// # Shapes
    /// image → (3, s, s) in f32 on the CPU, or (3, height, width) if the settings do not yield a
    /// square.
    pub fn preprocess(&self, image: &DecodedImage) -> Result<Tensor, ProcessError> {
        let resized = self.pad_resize_crop(image)?;
        let (height, width) = (resized.height(), resized.width());
        let mut values = Vec::with_capacity(3 * width * height);
        for channel in 0..3 {
            let table = self.value_table(channel)?;
            let pixels = resized.data().as_chunks::<3>().0;
            values.extend(
                pixels
                    .iter()
                    .filter_map(|pixel| table.get(usize::from(*pixel.get(channel)?)).copied()),
            );
        }
        Ok(Tensor::from_vec(values, (3, height, width), &Device::Cpu)?)
    }

    /// Pads, resizes and crops an image. The result has bytes, not pixel values.
    pub fn pad_resize_crop(&self, image: &DecodedImage) -> Result<DecodedImage, ProcessError> {
        let padded = self.pad_image(image);
        let region = self.output_region(&padded)?;
        let (width, height) = (region.columns.len(), region.rows.len());
        let too_elongated =
            || ProcessError::TooElongated { width: image.width(), height: image.height() };
        let buffer_bytes = buffer_size(&padded, &region).filter(|bytes| *bytes <= MAX_BUFFER_BYTES);
        let output_pixels =
            width.checked_mul(height).filter(|pixels| *pixels <= MAX_BUFFER_BYTES / 3);
        let input_pixels = padded
            .width
            .checked_mul(image.height())
            .filter(|pixels| *pixels <= 2 * MAX_BUFFER_BYTES);
        if buffer_bytes.is_none() || output_pixels.is_none() || input_pixels.is_none() {
            return Err(too_elongated());
        }
        let data = resize(&padded, &region, self.resample);
        DecodedImage::from_rgb(width, height, data).ok_or_else(too_elongated)
    }

    /// Returns the pixel value of each byte in one channel.
    fn value_table(&self, channel: usize) -> Result<Vec<f32>, ProcessError> {
        let channel_value =
            |values: &[f64; 3]| values.get(channel).map_or(0., |value| *value as f32);
        let (mean, std) = (channel_value(&self.image_mean), channel_value(&self.image_std));
        if self.do_normalize && !(mean.is_finite() && std.is_normal()) {
            let problem = format!(
                "`image_mean` is {mean} and `image_std` is {std} in channel {channel}, expected finite \
                 numbers and a standard deviation other than 0"
            );
            return Err(ProcessError::invalid_settings(problem));
        }
        let value = |byte: u8| {
            let scale = if self.do_rescale { self.rescale_factor } else { 1. };
            let value = (f64::from(byte) * scale) as f32;
            if self.do_normalize { (value - mean) / std } else { value }
        };
        Ok((0..=u8::MAX).map(value).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: usize, height: usize) -> DecodedImage {
        let data = (0..3 * width * height).map(|i| (i * 7 % 251) as u8).collect();
        DecodedImage::from_rgb(width, height, data).unwrap()
    }

    fn clip() -> ImageProcessor {
        let json = r#"{"crop_size": {"height": 6, "width": 6}, "do_center_crop": true,
            "do_convert_rgb": true, "do_normalize": true, "do_rescale": true, "do_resize": true,
            "image_mean": [0.5, 0.4, 0.3], "image_std": [0.25, 0.2, 0.1], "resample": 3,
            "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 8}}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn old_and_new_hub_files_are_read() {
        let new = clip();
        let old = r#"{"crop_size": 6, "size": 8, "do_center_crop": true, "do_resize": true,
            "image_mean": [0.5, 0.4, 0.3], "image_std": [0.25, 0.2, 0.1], "resample": 3}"#;
        let old: ImageProcessor = serde_json::from_str(old).unwrap();
        let image = image(31, 20);
        assert_eq!(new.pad_resize_crop(&image).unwrap(), old.pad_resize_crop(&image).unwrap());
        assert_eq!(new.preprocess(&image).unwrap().dims(), [3, 6, 6]);
        let error = serde_json::from_str::<ImageProcessor>(r#"{"size": {"longest_edge": 8}}"#);
        assert!(error.unwrap_err().to_string().contains("shortest_edge"));
    }

    #[test]
    fn centre_is_cropped() {
        let image = image(30, 10);
        let full = ImageProcessor { do_center_crop: Some(false), ..clip() };
        let full = full.pad_resize_crop(&image).unwrap();
        assert_eq!((full.width(), full.height()), (24, 8));
        let part = clip().pad_resize_crop(&image).unwrap();
        assert_eq!(part.row(0), &full.row(1)[3 * 9..3 * 15]);
        assert_eq!(part.row(5), &full.row(6)[3 * 9..3 * 15]);
    }

    #[test]
    fn values_are_normalised() {
        let image = DecodedImage::from_rgb(1, 1, vec![255, 0, 51]).unwrap();
        let settings = ImageProcessor { do_center_crop: Some(false), do_resize: false, ..clip() };
        let values = settings.preprocess(&image).unwrap().flatten_all().unwrap();
        let values = values.to_vec1::<f32>().unwrap();
        for (value, expected) in values.iter().zip([2., -2., -1.]) {
            assert!((value - expected).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn square_preset_pads_with_grey_and_crops_nothing() {
        let white = DecodedImage::from_rgb(20, 10, vec![255; 600]).unwrap();
        let values = ImageProcessor::square(8).preprocess(&white).unwrap();
        let rows = values.get(0).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!((rows.len(), rows[0].len()), (8, 8));
        assert!(rows[0][3].abs() < 0.1 && rows[7][3].abs() < 0.1);
        assert!((rows[4][0] - 1.).abs() < 1e-6 && (rows[4][7] - 1.).abs() < 1e-6);
    }

    #[test]
    fn contradictory_settings_are_rejected() {
        let image = image(30, 10);
        let wrong = [
            (ImageProcessor { crop_size: Some(CropSize::Number(9)), ..clip() }, "crop_size"),
            (ImageProcessor { crop_size: Some(CropSize::Number(0)), ..clip() }, "crop_size"),
            (ImageProcessor { crop_size: None, ..clip() }, "do_center_crop"),
            (ImageProcessor { size: ResizeSize::Number(0), ..clip() }, "size"),
            (ImageProcessor { image_std: [0.; 3], ..clip() }, "image_std"),
        ];
        for (settings, name) in wrong {
            let error = settings.preprocess(&image).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn extremely_elongated_image_is_rejected_unless_cropped() {
        let strip = image(1, 1 << 20);
        let uncropped = ImageProcessor {
            size: ResizeSize::Number(336),
            do_center_crop: None,
            crop_size: None,
            ..clip()
        };
        assert!(matches!(
            uncropped.pad_resize_crop(&strip),
            Err(ProcessError::TooElongated { .. })
        ));
        assert!(clip().pad_resize_crop(&strip).is_ok());
        let padded = ImageProcessor::square(64).pad_resize_crop(&strip);
        assert!(matches!(padded, Err(ProcessError::TooElongated { .. })));
    }
}
