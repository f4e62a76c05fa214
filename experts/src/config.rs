//! Configuration of a member: vision tower, projector and decoder.

use acem3_kernels::Activation;
use acem3_projector::{ProjectorConfig, ProjectorKind};
use acem3_vision::{SelectFeature, Selection, Tiling, VisionConfig, VitVariant};
use serde::{Deserialize, Serialize};

use crate::ImagePackingConfig;
use crate::decoder::DecoderConfig;

/// Sizes of all layers of a member, from pixels to logits.
///
/// A text model has no vision tower: the sizes of `vision` and `projector` are zero, and files
/// contain only `decoder`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ModelFile", into = "ModelFile")]
pub struct ModelConfig {
    /// Sizes of the vision tower.
    pub vision: VisionConfig,
    /// Layer and tokens of the vision tower that the projector receives.
    pub selection: Selection,
    /// Sizes of the projector.
    pub projector: ProjectorConfig,
    /// Method by which a large image becomes several encoder inputs; `None` for one input.
    pub tiling: Option<Tiling>,
    /// Sizes of the decoder.
    pub decoder: DecoderConfig,
}

/// The configuration in files.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vision: Option<VisionConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    selection: Option<Selection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    projector: Option<ProjectorConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tiling: Option<Tiling>,
    decoder: DecoderConfig,
}

impl TryFrom<ModelFile> for ModelConfig {
    type Error = String;

    fn try_from(file: ModelFile) -> Result<Self, String> {
        let ModelFile { vision, selection, projector, tiling, decoder } = file;
        match (vision, selection, projector) {
            (Some(vision), Some(selection), Some(projector)) => {
                Ok(Self { vision, selection, projector, tiling, decoder })
            }
            (None, None, None) if tiling.is_none() => Ok(Self::of_text_model(decoder)),
            (vision, selection, _) => {
                let missing = match (vision, selection) {
                    (None, _) => "vision",
                    (_, None) => "selection",
                    _ => "projector",
                };
                Err(format!(
                    "missing field `{missing}`; a model with images has `vision`, `selection` and \
                     `projector`, a text model none of them"
                ))
            }
        }
    }
}

impl From<ModelConfig> for ModelFile {
    fn from(config: ModelConfig) -> Self {
        let is_text_only = config.is_text_only();
        let ModelConfig { vision, selection, projector, tiling, decoder } = config;
        Self {
            vision: (!is_text_only).then_some(vision),
            selection: (!is_text_only).then_some(selection),
            projector: (!is_text_only).then_some(projector),
            tiling,
            decoder,
        }
    }
}

impl ModelConfig {
    /// Returns the configuration of a text model.
    pub fn of_text_model(decoder: DecoderConfig) -> Self {
        Self {
            vision: VisionConfig {
                hidden_size: 0,
                intermediate_size: 0,
                num_hidden_layers: 0,
                num_attention_heads: 0,
                image_size: 0,
                // A divisor.
                patch_size: 1,
                num_channels: 0,
                layer_norm_eps: 0.0,
                hidden_act: Activation::Gelu,
                variant: VitVariant::default(),
            },
            selection: Selection {
                select_layer: -1,
                select_feature: SelectFeature::Patch,
                post_norm: false,
            },
            projector: ProjectorConfig {
                kind: ProjectorKind::Linear,
                vision_hidden_size: 0,
                hidden_size: 0,
            },
            tiling: None,
            decoder,
        }
    }

    /// Returns true if the model has no vision tower.
    pub fn is_text_only(&self) -> bool {
        self.vision.num_hidden_layers == 0
    }

    /// Returns the index of the first block of the vision tower after the one whose output the
    /// projector reads; `None` if all blocks are used.
    pub fn first_unused_block(&self) -> Option<usize> {
        let blocks = self.vision.num_hidden_layers;
        let used = self.selection.state_index(blocks).ok()?;
        (used < blocks).then_some(used)
    }

    /// Returns true for the name of a weight in a block of the vision tower that no layer reads.
    pub fn is_unused_block(&self, name: &str) -> bool {
        let block = name.strip_prefix("model.vision_tower.vision_model.encoder.layers.");
        let block = block.and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
        match (block, self.first_unused_block()) {
            (Some(block), Some(first)) => block >= first,
            _ => false,
        }
    }

    /// Returns the number of image tokens of one encoder input: a whole image or a tile; 0 for a
    /// text model.
    pub fn input_tokens(&self) -> usize {
        if self.is_text_only() {
            return 0;
        }
        self.projector.kind.token_count(self.vision.token_count(self.selection))
    }

    /// Returns the sizes that determine the image tokens of an image.
    pub fn image_packing(&self) -> ImagePackingConfig {
        ImagePackingConfig {
            tiling: self.tiling.clone(),
            grid_side: self.vision.grid_side(),
            input_tokens: self.input_tokens(),
            hidden_size: self.projector.hidden_size,
        }
    }

    /// Returns an error if a size is invalid or if the parts do not fit each other.
    pub fn validate(&self) -> Result<(), String> {
        self.decoder.validate().map_err(|problem| format!("decoder: {problem}"))?;
        if self.is_text_only() {
            return Ok(());
        }
        self.vision.validate().map_err(|problem| problem.to_string())?;
        let expected = (self.vision.hidden_size, self.decoder.hidden_size);
        let found = (self.projector.vision_hidden_size, self.projector.hidden_size);
        if found != expected {
            return Err(format!(
                "projector: expected hidden sizes {} (input) and {} (output), found {} and {}",
                expected.0, expected.1, found.0, found.1
            ));
        }
        Ok(())
    }
}
