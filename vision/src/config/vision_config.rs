//! Sizes of a vision transformer.
//!
//! The fields have the names of `config.json` of a Hugging Face `CLIPVisionModel`. Such a file, or
//! its `vision_config` object, deserialises without changes. An unknown activation is an error.

use acem3_kernels::Activation;
use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::selection::{SelectFeature, Selection};
use super::vit_variant::VitVariant;

/// Sizes and variant of a vision transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VisionConfig {
    /// Width `c_v` of the hidden states.
    pub hidden_size: usize,
    /// Width inside the MLP.
    pub intermediate_size: usize,
    /// Number of transformer blocks.
    pub num_hidden_layers: usize,
    /// Number of heads `h`.
    pub num_attention_heads: usize,
    /// Side `s` of the square input, in pixels.
    pub image_size: usize,
    /// Side of a square patch, in pixels.
    pub patch_size: usize,
    /// Colour channels of the input.
    #[serde(default = "default_channels")]
    pub num_channels: usize,
    /// Constant that is added to the variance in every layer norm.
    #[serde(default = "default_eps")]
    pub layer_norm_eps: f64,
    /// Activation of the MLP.
    #[serde(default = "default_activation")]
    pub hidden_act: Activation,
    /// Differences from CLIP.
    #[serde(default, rename = "form", skip_serializing_if = "VitVariant::is_default")]
    pub variant: VitVariant,
}

impl VisionConfig {
    /// Returns an error if the sizes do not describe a network.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("image_size", self.image_size),
            ("patch_size", self.patch_size),
            ("num_channels", self.num_channels),
            ("form.position_grid", self.variant.position_grid.unwrap_or(1)),
        ];
        if let Some(&(field, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(ConfigError::ZeroSize { field });
        }
        // Within these bounds, products of sizes do not overflow.
        for (field, size) in sizes {
            let max = match field {
                "image_size" | "patch_size" | "form.position_grid" => 8192,
                "num_hidden_layers" => 4096,
                _ => 1 << 24,
            };
            if size > max {
                return Err(ConfigError::SizeTooLarge { field, size, max });
            }
        }
        let eps = self.layer_norm_eps;
        if !(eps > 0.0 && eps <= 1.0) {
            let value = eps.to_string();
            return Err(ConfigError::InvalidEpsilon { field: "layer_norm_eps", value });
        }
        let (hidden, heads) = (self.hidden_size, self.num_attention_heads);
        if !hidden.is_multiple_of(heads) {
            return Err(ConfigError::IndivisibleHeads { hidden, heads });
        }
        let (patch, image) = (self.patch_size, self.image_size);
        if patch > image {
            return Err(ConfigError::PatchTooLarge { patch, image });
        }
        Ok(())
    }

    /// Returns the number of patches along one side of the image. Pixels beyond the last whole
    /// patch are ignored.
    pub fn grid_side(&self) -> usize {
        self.image_size.checked_div(self.patch_size).unwrap_or(0)
    }

    /// Returns the number of class tokens: 1 or 0.
    pub fn class_token_count(&self) -> usize {
        usize::from(self.variant.class_token)
    }

    /// Returns the number of tokens inside the encoder: the patches, and the class token if there
    /// is one.
    pub fn sequence_length(&self) -> usize {
        self.grid_side() * self.grid_side() + self.class_token_count()
    }

    /// Returns the number of rows of the table of position embeddings.
    pub fn position_count(&self) -> usize {
        let side = self.variant.position_grid.unwrap_or_else(|| self.grid_side());
        side.saturating_mul(side).saturating_add(self.class_token_count())
    }

    /// Returns the number of features `p` of one image for a [`Selection`].
    pub fn token_count(&self, selection: Selection) -> usize {
        match selection.select_feature {
            SelectFeature::Patch => self.grid_side() * self.grid_side(),
            SelectFeature::ClsPatch => self.sequence_length(),
        }
    }
}

fn default_channels() -> usize {
    3
}

fn default_eps() -> f64 {
    1e-5
}

/// Default of Hugging Face's `CLIPVisionConfig`.
fn default_activation() -> Activation {
    Activation::QuickGelu
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::selection::tests::select;
    use candle::{Device, Tensor};

    /// Configuration of a small encoder for tests.
    pub(crate) fn tiny() -> VisionConfig {
        VisionConfig {
            hidden_size: 8,
            intermediate_size: 16,
            num_hidden_layers: 3,
            num_attention_heads: 2,
            image_size: 10,
            patch_size: 4,
            num_channels: 3,
            layer_norm_eps: 1e-5,
            hidden_act: Activation::QuickGelu,
            variant: VitVariant::default(),
        }
    }

    /// Pixels of images for the small encoder. All values differ.
    pub(crate) fn tiny_pixels(images: usize) -> Tensor {
        let count = u16::try_from(images * 300).unwrap();
        let values = (0..count).map(|i| f32::from(i).sin());
        Tensor::from_iter(values, &Device::Cpu).unwrap().reshape((images, 3, 10, 10)).unwrap()
    }

    #[test]
    fn token_count_depends_on_the_selection() {
        let config = tiny();
        assert_eq!(config.grid_side(), 2);
        assert_eq!(config.token_count(select(-2)), 4);
        let cls = Selection { select_feature: SelectFeature::ClsPatch, ..select(-2) };
        assert_eq!(config.token_count(cls), 5);
        let siglip = VisionConfig { variant: VitVariant::siglip(), ..tiny() };
        assert_eq!((siglip.token_count(select(-2)), siglip.token_count(cls)), (4, 4));
    }

    #[test]
    fn hub_config_is_read_and_unknown_activation_is_rejected() {
        let json = r#"{"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
            "num_attention_heads": 12, "image_size": 224, "patch_size": 32, "projection_dim": 512,
            "hidden_act": "ACT"}"#;
        let config: VisionConfig =
            serde_json::from_str(&json.replace("ACT", "gelu_pytorch_tanh")).unwrap();
        assert_eq!(config.hidden_act, Activation::GeluPytorchTanh);
        assert_eq!(config.num_channels, 3);
        assert!((config.layer_norm_eps - 1e-5).abs() < 1e-12);
        assert!(config.variant.is_default());
        let written = serde_json::to_string(&config).unwrap();
        assert!(!written.contains("form"), "{written}");
        let error = serde_json::from_str::<VisionConfig>(&json.replace("ACT", "swish"));
        assert!(error.unwrap_err().to_string().contains("swish"));
    }

    #[test]
    fn inconsistent_sizes_are_rejected() {
        assert_eq!(tiny().validate(), Ok(()));
        let zero = VisionConfig { patch_size: 0, ..tiny() };
        assert_eq!(zero.validate(), Err(ConfigError::ZeroSize { field: "patch_size" }));
        assert_eq!(zero.grid_side(), 0);
        let large = VisionConfig { image_size: 1 << 40, ..tiny() };
        let error = large.validate().unwrap_err().to_string();
        assert!(error.contains("`image_size` is 1099511627776"), "{error}");
        for layer_norm_eps in [0.0, -1e-5, f64::NAN, f64::INFINITY, 2.0] {
            let error = VisionConfig { layer_norm_eps, ..tiny() }.validate().unwrap_err();
            assert!(error.to_string().contains("`layer_norm_eps` is"), "{error}");
        }
        let heads = VisionConfig { num_attention_heads: 3, ..tiny() };
        assert_eq!(heads.validate(), Err(ConfigError::IndivisibleHeads { hidden: 8, heads: 3 }));
        let patch = VisionConfig { patch_size: 11, ..tiny() };
        assert_eq!(patch.validate(), Err(ConfigError::PatchTooLarge { patch: 11, image: 10 }));
    }
}
