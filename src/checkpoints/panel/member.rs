//! A member of a panel before it is put together with the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use acem3_experts::TextTokenizer;
use acem3_experts::decoder::DecoderConfig;
use acem3_experts::prompt::Dialogue;
use acem3_projector::ProjectorConfig;
use acem3_vision::{ImageProcessor, Selection, VisionConfig};
use serde::Serialize;

use crate::checkpoints::store::weight_files::Checkpoint;

/// How a member sees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct VisionSetup {
    /// How images are prepared.
    pub processor: ImageProcessor,
    /// Heights and widths in pixels among which an image's is chosen, where it is seen in tiles too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinpoints: Option<Vec<[usize; 2]>>,
    /// The vision tower.
    pub vision: VisionConfig,
    /// Which of its states and tokens are used.
    pub selection: Selection,
    /// The projector.
    pub projector: ProjectorConfig,
}

/// A tokenizer with what `panel inspect` says of it.
#[derive(Clone)]
pub(crate) struct MemberTokenizer {
    /// The tokenizer.
    pub text: TextTokenizer,
    /// Its file, as messages name it.
    pub file: String,
    /// The hash of that file and of those beside it that add tokens.
    pub hash: String,
}

/// One of the four.
#[derive(Clone)]
pub(crate) struct Member {
    /// Where it came from: a folder, or a panel's file.
    pub origin: String,
    /// What kind of model it is.
    pub kind: String,
    /// Its eyes, where it has any.
    pub sight: Option<VisionSetup>,
    /// Its decoder.
    pub decoder: DecoderConfig,
    /// Its tokenizer.
    pub tokenizer: Arc<MemberTokenizer>,
    /// How it is spoken to.
    pub dialogue: Dialogue,
    /// The hash of each of its files.
    pub files: BTreeMap<String, String>,
    /// Its weights.
    pub weights: Checkpoint,
}

impl Member {
    /// The same member in another seat.
    pub(crate) fn renamed(&self, name: &str) -> Self {
        let mut twin = self.clone();
        twin.weights = self.weights.renamed(name);
        twin
    }

    /// Whether both can stand on one trunk: what they read and see must become the same rows.
    pub(crate) fn stands_with(&self, other: &Self) -> bool {
        let parts = [
            "model.vision_tower.",
            "model.mm_projector.",
            "model.image_newline",
            "model.embed_tokens.",
        ];
        self.sight == other.sight
            && self.decoder == other.decoder
            && self.dialogue == other.dialogue
            && self.tokenizer.hash == other.tokenizer.hash
            && parts
                .iter()
                .all(|part| self.weights.agrees_with(&other.weights, part))
    }
}
