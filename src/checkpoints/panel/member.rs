//! A panel member as read from its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use acem3_experts::decoder::DecoderConfig;
use acem3_experts::prompt::ChatTemplate;
use acem3_experts::{ImagePackingConfig, TextTokenizer};
use acem3_projector::ProjectorConfig;
use acem3_vision::{ImageProcessor, Selection, Tiling, VisionConfig};
use serde::Serialize;

use crate::checkpoints::store::weight_files::Checkpoint;

/// Vision configuration of a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct VisionSetup {
    /// Image preprocessing.
    pub processor: ImageProcessor,
    /// Method of tiling, if images are also encoded in tiles.
    #[serde(flatten)]
    pub tiling: Option<Tiling>,
    /// The vision tower.
    pub vision: VisionConfig,
    /// Layer and tokens of the tower that are used as patch features.
    pub selection: Selection,
    /// Shape of the projector.
    pub projector: ProjectorConfig,
}

impl VisionSetup {
    /// Returns the sizes that determine the image tokens of an image.
    pub(crate) fn image_packing(&self) -> ImagePackingConfig {
        let features = self.vision.token_count(self.selection);
        ImagePackingConfig {
            tiling: self.tiling.clone(),
            grid_side: self.vision.grid_side(),
            input_tokens: self.projector.kind.token_count(features),
            hidden_size: self.projector.hidden_size,
        }
    }
}

/// A tokenizer with its file name and hash.
#[derive(Clone)]
pub struct MemberTokenizer {
    /// The tokenizer.
    pub text: TextTokenizer,
    /// Name of its file for messages.
    pub file: String,
    /// Hash of that file and of the files that add tokens.
    pub hash: String,
}

/// One of the four members of a panel.
#[derive(Clone)]
pub(crate) struct Member {
    /// The file that defines the member.
    pub origin: String,
    /// Model type.
    pub model_type: String,
    /// Vision configuration; `None` for a text-only member.
    pub vision: Option<VisionSetup>,
    /// Decoder configuration.
    pub decoder: DecoderConfig,
    /// Tokenizer.
    pub tokenizer: Arc<MemberTokenizer>,
    /// Chat template.
    pub chat_template: ChatTemplate,
    /// Hash of each of its files.
    pub files: BTreeMap<String, String>,
    /// Weights.
    pub weights: Checkpoint,
}

impl Member {
    /// Returns a copy of the member under another name.
    pub(crate) fn with_name(&self, name: &str) -> Self {
        let mut copy = self.clone();
        copy.weights = self.weights.with_owner(name);
        copy
    }

    /// Returns true if both can share a trunk: equal inputs must give equal embeddings.
    pub(crate) fn shares_trunk_with(&self, other: &Self) -> bool {
        let parts = [
            "model.vision_tower.",
            "model.mm_projector.",
            "model.image_newline",
            "model.embed_tokens.",
        ];
        self.vision == other.vision
            && self.decoder == other.decoder
            && self.chat_template == other.chat_template
            && self.tokenizer.hash == other.tokenizer.hash
            && parts.iter().all(|part| self.weights.has_equal_tensors(&other.weights, part))
    }
}
