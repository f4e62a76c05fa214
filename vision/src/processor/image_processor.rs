//! Converts images to pixel values with the preprocessing of an encoder's training.
//!
//! The fields are those of a Hugging Face `preprocessor_config.json` for CLIP, so such a file deserialises as it
//! is, plus `pad` and `centre`. Missing fields have CLIP's values.

use candle::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::error::ProcessError;
use super::size::{Centre, CropSize, Pad, Size};
use crate::image::DecodedImage;
use crate::resize::{Resample, buffer_size, resize};

/// Preprocessing settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageProcessor {
    /// Whether the image is padded to a square first.
    pub pad: Pad,
    /// Whether the image is scaled to `size`.
    pub do_resize: bool,
    /// The size it is scaled to.
    pub size: Size,
    /// The filter.
    pub resample: Resample,
    /// Whether the centre is cropped; by default, if there is a `crop_size`.
    pub do_center_crop: Option<bool>,
    /// Size of the centre crop.
    pub crop_size: Option<CropSize>,
    /// Where it lies when the margins cannot be equal.
    #[serde(skip_serializing_if = "Centre::is_default")]
    pub centre: Centre,
    /// Whether bytes are multiplied by `rescale_factor`.
    pub do_rescale: bool,
    /// Factor, usually 1/255, which maps bytes to 0 to 1.
    pub rescale_factor: f64,
    /// Whether `image_mean` is subtracted and the rest divided by `image_std`.
    pub do_normalize: bool,
    /// For red, green and blue.
    pub image_mean: [f64; 3],
    /// For red, green and blue.
    pub image_std: [f64; 3],
}

impl Default for ImageProcessor {
    /// That of `OpenAI`'s CLIP, except that nothing is cut out.
    fn default() -> Self {
        Self {
            pad: Pad::None,
            do_resize: true,
            size: Size::ShortestEdge { shortest_edge: 224 },
            resample: Resample::Bicubic,
            do_center_crop: None,
            crop_size: None,
            centre: Centre::Down,
            do_rescale: true,
            rescale_factor: 1. / 255.,
            do_normalize: true,
            image_mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
            image_std: [0.268_629_54, 0.261_302_58, 0.275_777_11],
        }
    }
}

/// The most bytes that a resized image or the step before it may take, and half the pixels that may be read.
pub(super) const MAX_BYTES: usize = 1 << 29;

impl ImageProcessor {
    /// That of the embedded panel: the whole image on a grey square, scaled to `side` pixels, values from
    /// −1 to 1.
    pub fn square(side: usize) -> Self {
        Self {
            pad: Pad::Square,
            size: Size::Exact {
                height: side,
                width: side,
            },
            do_center_crop: Some(false),
            image_mean: [0.5; 3],
            image_std: [0.5; 3],
            ..Self::default()
        }
    }

    /// The pixel values of one image.
    ///
    /// # Shapes
    /// image → (3, s, s) of f32 on the CPU; (3, height, width) where the settings do not yield a square.
    pub fn preprocess(&self, image: &DecodedImage) -> Result<Tensor, ProcessError> {
        let seen = self.view(image)?;
        let (height, width) = (seen.height(), seen.width());
        let mut values = Vec::with_capacity(3 * width * height);
        for channel in 0..3 {
            let table = self.table(channel)?;
            let pixels = seen.data().as_chunks::<3>().0;
            values.extend(
                pixels
                    .iter()
                    .filter_map(|pixel| table.get(usize::from(*pixel.get(channel)?)).copied()),
            );
        }
        Ok(Tensor::from_vec(values, (3, height, width), &Device::Cpu)?)
    }

    /// What the encoder sees of an image: padded, scaled and cut, still as bytes.
    pub fn view(&self, image: &DecodedImage) -> Result<DecodedImage, ProcessError> {
        let canvas = self.canvas(image);
        let target = self.target(&canvas)?;
        let (width, height) = (target.columns.len(), target.rows.len());
        let too_oblong = || ProcessError::Oblong {
            width: image.width(),
            height: image.height(),
        };
        let between = buffer_size(&canvas, &target).filter(|bytes| *bytes <= MAX_BYTES);
        let after = width
            .checked_mul(height)
            .filter(|pixels| *pixels <= MAX_BYTES / 3);
        let work = canvas
            .width
            .checked_mul(image.height())
            .filter(|pixels| *pixels <= 2 * MAX_BYTES);
        if between.is_none() || after.is_none() || work.is_none() {
            return Err(too_oblong());
        }
        let data = resize(&canvas, &target, self.resample);
        DecodedImage::from_rgb(width, height, data).ok_or_else(too_oblong)
    }

    /// The pixel value of every byte in one channel.
    fn table(&self, channel: usize) -> Result<Vec<f32>, ProcessError> {
        let of = |values: &[f64; 3]| values.get(channel).map_or(0., |value| *value as f32);
        let (mean, std) = (of(&self.image_mean), of(&self.image_std));
        if self.do_normalize && !(mean.is_finite() && std.is_normal()) {
            let what = format!("`image_mean` {mean} and `image_std` {std} of a channel");
            return Err(ProcessError::settings(what));
        }
        let value = |byte: u8| {
            let scale = if self.do_rescale {
                self.rescale_factor
            } else {
                1.
            };
            let value = (f64::from(byte) * scale) as f32;
            if self.do_normalize {
                (value - mean) / std
            } else {
                value
            }
        };
        Ok((0..=u8::MAX).map(value).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: usize, height: usize) -> DecodedImage {
        let data = (0..3 * width * height)
            .map(|i| (i * 7 % 251) as u8)
            .collect();
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
    fn hub_files_of_both_ages_are_read() {
        let new = clip();
        let old = r#"{"crop_size": 6, "size": 8, "do_center_crop": true, "do_resize": true,
            "image_mean": [0.5, 0.4, 0.3], "image_std": [0.25, 0.2, 0.1], "resample": 3}"#;
        let old: ImageProcessor = serde_json::from_str(old).unwrap();
        let image = image(31, 20);
        assert_eq!(new.view(&image).unwrap(), old.view(&image).unwrap());
        assert_eq!(new.preprocess(&image).unwrap().dims(), [3, 6, 6]);
        let error = serde_json::from_str::<ImageProcessor>(r#"{"size": {"longest_edge": 8}}"#);
        assert!(error.unwrap_err().to_string().contains("shortest_edge"));
    }

    #[test]
    fn centre_is_cropped() {
        let image = image(30, 10);
        let full = ImageProcessor {
            do_center_crop: Some(false),
            ..clip()
        };
        let full = full.view(&image).unwrap();
        assert_eq!((full.width(), full.height()), (24, 8));
        let part = clip().view(&image).unwrap();
        assert_eq!(part.row(0), &full.row(1)[3 * 9..3 * 15]);
        assert_eq!(part.row(5), &full.row(6)[3 * 9..3 * 15]);
    }

    #[test]
    fn values_are_normalised() {
        let image = DecodedImage::from_rgb(1, 1, vec![255, 0, 51]).unwrap();
        let settings = ImageProcessor {
            do_center_crop: Some(false),
            do_resize: false,
            ..clip()
        };
        let values = settings.preprocess(&image).unwrap().flatten_all().unwrap();
        let values = values.to_vec1::<f32>().unwrap();
        for (value, expected) in values.iter().zip([2., -2., -1.]) {
            assert!((value - expected).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn the_preset_shows_all_of_the_image_on_grey() {
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
            (
                ImageProcessor {
                    crop_size: Some(CropSize::Number(9)),
                    ..clip()
                },
                "crop_size",
            ),
            (
                ImageProcessor {
                    crop_size: Some(CropSize::Number(0)),
                    ..clip()
                },
                "crop_size",
            ),
            (
                ImageProcessor {
                    crop_size: None,
                    ..clip()
                },
                "do_center_crop",
            ),
            (
                ImageProcessor {
                    size: Size::Number(0),
                    ..clip()
                },
                "size",
            ),
            (
                ImageProcessor {
                    image_std: [0.; 3],
                    ..clip()
                },
                "image_std",
            ),
        ];
        for (settings, name) in wrong {
            let error = settings.preprocess(&image).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn extremely_elongated_image_is_rejected_unless_cropped() {
        let strip = image(1, 1 << 20);
        let whole = ImageProcessor {
            size: Size::Number(336),
            do_center_crop: None,
            crop_size: None,
            ..clip()
        };
        assert!(matches!(
            whole.view(&strip),
            Err(ProcessError::Oblong { .. })
        ));
        assert!(clip().view(&strip).is_ok());
        let padded = ImageProcessor::square(64).view(&strip);
        assert!(matches!(padded, Err(ProcessError::Oblong { .. })));
    }
}
