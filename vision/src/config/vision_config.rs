//! The sizes of a vision transformer.
//!
//! Field names are those of the `config.json` of a Hugging Face `CLIPVisionModel`, so such a file
//! (or its `vision_config` object) deserialises as it is. An unknown activation is an error.

use acem3_kernels::Activation;
use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::form::Form;
use super::selection::{SelectFeature, Selection};

/// The sizes of a vision transformer.
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
    #[serde(default = "three")]
    pub num_channels: usize,
    /// Added to the variance in every layer norm.
    #[serde(default = "default_eps")]
    pub layer_norm_eps: f64,
    /// The MLP's activation.
    #[serde(default = "default_act")]
    pub hidden_act: Activation,
    /// Differences from CLIP.
    #[serde(default, skip_serializing_if = "Form::is_default")]
    pub form: Form,
}

impl VisionConfig {
    /// Checks that the sizes describe a network.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("image_size", self.image_size),
            ("patch_size", self.patch_size),
            ("num_channels", self.num_channels),
            ("form.position_grid", self.form.position_grid.unwrap_or(1)),
        ];
        if let Some(&(field, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(ConfigError::Zero { field });
        }
        // Bounds within which products of sizes can be computed.
        for (field, size) in sizes {
            let most = match field {
                "image_size" | "patch_size" | "form.position_grid" => 8192,
                "num_hidden_layers" => 4096,
                _ => 1 << 24,
            };
            if size > most {
                return Err(ConfigError::Large { field, size, most });
            }
        }
        let (hidden, heads) = (self.hidden_size, self.num_attention_heads);
        if !hidden.is_multiple_of(heads) {
            return Err(ConfigError::Heads { hidden, heads });
        }
        let (patch, image) = (self.patch_size, self.image_size);
        if patch > image {
            return Err(ConfigError::Patch { patch, image });
        }
        Ok(())
    }

    /// Patches along one side of the image; pixels beyond the last whole patch are ignored.
    pub fn grid(&self) -> usize {
        self.image_size.checked_div(self.patch_size).unwrap_or(0)
    }

    /// Number of class tokens: 1 or 0.
    pub fn class_tokens(&self) -> usize {
        usize::from(self.form.class_token)
    }

    /// Tokens inside the encoder: the class token, if there is one, and `grid²` patches.
    pub fn sequence(&self) -> usize {
        self.grid() * self.grid() + self.class_tokens()
    }

    /// Rows of the table of positions.
    pub fn positions(&self) -> usize {
        let side = self.form.position_grid.unwrap_or_else(|| self.grid());
        side.saturating_mul(side)
            .saturating_add(self.class_tokens())
    }

    /// Number of tokens `p` that a [`Selection`] yields for one image.
    pub fn tokens(&self, selection: Selection) -> usize {
        match selection.select_feature {
            SelectFeature::Patch => self.grid() * self.grid(),
            SelectFeature::ClsPatch => self.sequence(),
        }
    }
}

fn three() -> usize {
    3
}

fn default_eps() -> f64 {
    1e-5
}

/// Default of Hugging Face's `CLIPVisionConfig`.
fn default_act() -> Activation {
    Activation::QuickGelu
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::selection::tests::select;

    /// A small encoder for tests.
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
            form: Form::default(),
        }
    }

    #[test]
    fn tokens_follow_the_selection() {
        let config = tiny();
        assert_eq!(config.grid(), 2);
        assert_eq!(config.tokens(select(-2)), 4);
        let cls = Selection {
            select_feature: SelectFeature::ClsPatch,
            ..select(-2)
        };
        assert_eq!(config.tokens(cls), 5);
        let siglip = VisionConfig {
            form: Form::siglip(),
            ..tiny()
        };
        assert_eq!((siglip.tokens(select(-2)), siglip.tokens(cls)), (4, 4));
    }

    #[test]
    fn reads_a_hub_config_and_rejects_an_unknown_activation() {
        let json = r#"{"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
            "num_attention_heads": 12, "image_size": 224, "patch_size": 32, "projection_dim": 512,
            "hidden_act": "ACT"}"#;
        let config: VisionConfig =
            serde_json::from_str(&json.replace("ACT", "gelu_pytorch_tanh")).unwrap();
        assert_eq!(config.hidden_act, Activation::GeluPytorchTanh);
        assert_eq!(config.num_channels, 3);
        assert!((config.layer_norm_eps - 1e-5).abs() < 1e-12);
        assert!(config.form.is_default());
        let written = serde_json::to_string(&config).unwrap();
        assert!(!written.contains("form"), "{written}");
        let error = serde_json::from_str::<VisionConfig>(&json.replace("ACT", "swish"));
        assert!(error.unwrap_err().to_string().contains("swish"));
    }

    #[test]
    fn inconsistent_sizes_are_rejected() {
        assert_eq!(tiny().validate(), Ok(()));
        let zero = VisionConfig {
            patch_size: 0,
            ..tiny()
        };
        assert_eq!(
            zero.validate(),
            Err(ConfigError::Zero {
                field: "patch_size"
            })
        );
        assert_eq!(zero.grid(), 0);
        let large = VisionConfig {
            image_size: 1 << 40,
            ..tiny()
        };
        let error = large.validate().unwrap_err().to_string();
        assert!(error.contains("`image_size` is 1099511627776"), "{error}");
        let heads = VisionConfig {
            num_attention_heads: 3,
            ..tiny()
        };
        assert_eq!(
            heads.validate(),
            Err(ConfigError::Heads {
                hidden: 8,
                heads: 3
            })
        );
        let patch = VisionConfig {
            patch_size: 11,
            ..tiny()
        };
        assert_eq!(
            patch.validate(),
            Err(ConfigError::Patch {
                patch: 11,
                image: 10
            })
        );
    }
}
