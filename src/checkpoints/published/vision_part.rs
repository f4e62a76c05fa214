//! The vision settings of a checkpoint configuration.

use acem3_projector::ProjectorKind;
use acem3_vision::Selection;
use acem3_vision::published::Network;

/// Vision part of a configuration.
#[derive(Clone, Debug)]
pub(super) struct VisionPart {
    /// The vision tower, if the configuration describes it.
    pub network: Option<Network>,
    /// The name of the vision tower, if it is published separately.
    pub tower: Option<String>,
    /// Layer and tokens of the tower that are used as patch features.
    pub selection: Selection,
    /// The projector.
    pub projector: ProjectorKind,
    /// Width of the decoder.
    pub hidden_size: usize,
    /// Whether the configuration requests padding of images to a square.
    pub pad: bool,
    /// Heights and widths of the tile layouts, if images are tiled.
    pub pinpoints: Option<Vec<[usize; 2]>>,
}
