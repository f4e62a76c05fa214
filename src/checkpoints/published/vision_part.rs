//! The vision settings of a checkpoint configuration.

use acem3_projector::ProjectorKind;
use acem3_vision::Selection;
use acem3_vision::published::Network;

/// What a configuration says of a model's eyes.
#[derive(Clone, Debug)]
pub(super) struct VisionPart {
    /// The tower, where it is in the configuration.
    pub network: Option<Network>,
    /// The name of the tower, where it is published on its own.
    pub tower: Option<String>,
    /// Which of its states and tokens are used.
    pub selection: Selection,
    /// The projector.
    pub projector: ProjectorKind,
    /// Width of the decoder.
    pub hidden_size: usize,
    /// Whether oblong images are made square first, where the configuration says it.
    pub pad: bool,
    /// Heights and widths among which an image's is chosen, where it is seen in tiles.
    pub pinpoints: Option<Vec<[usize; 2]>>,
}
