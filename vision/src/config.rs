//! What a vision encoder looks like, and which of its states are its features.
//!
//! Field names are those of the `config.json` of a Hugging Face `CLIPVisionModel`, so that such a file
//! (or its `vision_config` part) is read as it is. An activation we do not know is an error, not a guess.

use serde::{Deserialize, Serialize};

mod form;

pub use form::Form;

/// A configuration that describes no network, or a selection that names no state of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A size that must be positive is zero.
    #[error("vision config: `{field}` is 0\nhint: expected a positive number")]
    Zero {
        /// The field of [`VisionConfig`].
        field: &'static str,
    },
    /// A size beyond those of any encoder.
    #[error(
        "vision config: `{field}` is {size}, expected at most {most}\nhint: the file may be damaged"
    )]
    Large {
        /// The field of [`VisionConfig`].
        field: &'static str,
        /// What it says.
        size: usize,
        /// The most that is read.
        most: usize,
    },
    /// The heads do not divide the hidden size.
    #[error(
        "vision config: `hidden_size` {hidden} is not a multiple of `num_attention_heads` {heads}\n\
         hint: check that both come from the same checkpoint"
    )]
    Heads {
        /// `hidden_size`.
        hidden: usize,
        /// `num_attention_heads`.
        heads: usize,
    },
    /// Not even one patch fits into the image.
    #[error(
        "vision config: `patch_size` {patch} is larger than `image_size` {image}\n\
         hint: check that both come from the same checkpoint"
    )]
    Patch {
        /// `patch_size`.
        patch: usize,
        /// `image_size`.
        image: usize,
    },
    /// The selected layer does not exist.
    #[error(
        "vision selection: `select_layer` {select} of an encoder with {layers} layers\n\
         hint: expected {low} to {layers}; 0 is the embeddings, -1 the last layer's output",
        low = -signed(*layers) - 1
    )]
    Layer {
        /// `select_layer`.
        select: i64,
        /// `num_hidden_layers`.
        layers: usize,
    },
}

/// The activation inside the MLP of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HiddenAct {
    /// `x · σ(1.702 x)`, `OpenAI`'s CLIP.
    #[serde(rename = "quick_gelu")]
    QuickGelu,
    /// The exact GELU, with the error function (`open_clip`, `BiomedCLIP`).
    #[serde(rename = "gelu")]
    Gelu,
    /// The GELU in its tanh form (`SigLIP`).
    #[serde(rename = "gelu_pytorch_tanh")]
    GeluPytorchTanh,
}

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
    pub hidden_act: HiddenAct,
    /// What it has that CLIP has not, and the other way round.
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

    /// Patches along one side of the image; pixels beyond the last whole patch are not looked at.
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

/// Which tokens of the selected hidden state are features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectFeature {
    /// The patches only (`LLaVA`).
    Patch,
    /// The class token, if there is one, then the patches.
    ClsPatch,
}

/// Which hidden state of the encoder is its output (`LLaVA`'s `mm_vision_select_layer` and `…_feature`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selection {
    /// Index into Hugging Face's tuple of hidden states, in which the embeddings come first. A negative
    /// index counts from its end: −1 is the output of the last block, −2 that of the last but one.
    pub select_layer: i64,
    /// Which tokens of that state.
    pub select_feature: SelectFeature,
    /// Whether they pass through the norm after the last block (`last_hidden_state` of `SigLIP` and
    /// `DINOv2`, whose hidden states are what comes before it).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub post_norm: bool,
}

impl Selection {
    /// The number of blocks that have to run: 0 for the embeddings, `num_hidden_layers` for the last state.
    pub fn layers(self, config: &VisionConfig) -> Result<usize, ConfigError> {
        let layers = config.num_hidden_layers;
        let state = if self.select_layer < 0 {
            signed(layers)
                .saturating_add(1)
                .saturating_add(self.select_layer)
        } else {
            self.select_layer
        };
        usize::try_from(state)
            .ok()
            .filter(|state| *state <= layers)
            .ok_or(ConfigError::Layer {
                select: self.select_layer,
                layers,
            })
    }
}

fn signed(layers: usize) -> i64 {
    i64::try_from(layers).unwrap_or(i64::MAX - 1)
}

fn three() -> usize {
    3
}

fn default_eps() -> f64 {
    1e-5
}

/// What Hugging Face's `CLIPVisionConfig` means when the field is left out.
fn default_act() -> HiddenAct {
    HiddenAct::QuickGelu
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

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
            hidden_act: HiddenAct::QuickGelu,
            form: Form::default(),
        }
    }

    fn select(select_layer: i64) -> Selection {
        Selection {
            select_layer,
            select_feature: SelectFeature::Patch,
            post_norm: false,
        }
    }

    #[test]
    fn negative_layers_count_from_the_end_of_the_tuple() {
        let config = tiny();
        let layers = |n| select(n).layers(&config);
        assert_eq!(layers(-1), Ok(3));
        assert_eq!(layers(-2), Ok(2));
        assert_eq!(layers(-4), Ok(0));
        assert_eq!(layers(0), Ok(0));
        assert_eq!(layers(3), Ok(3));
        for wrong in [4, -5, i64::MIN, i64::MAX] {
            let error = layers(wrong).unwrap_err();
            assert!(error.to_string().contains("expected -4 to 3"), "{error}");
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
        assert_eq!(config.hidden_act, HiddenAct::GeluPytorchTanh);
        assert_eq!(config.num_channels, 3);
        assert!((config.layer_norm_eps - 1e-5).abs() < 1e-12);
        assert!(config.form.is_default());
        let written = serde_json::to_string(&config).unwrap();
        assert!(!written.contains("form"), "{written}");
        let error = serde_json::from_str::<VisionConfig>(&json.replace("ACT", "swish"));
        assert!(error.unwrap_err().to_string().contains("swish"));
    }

    #[test]
    fn sizes_that_describe_no_network_are_named() {
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
