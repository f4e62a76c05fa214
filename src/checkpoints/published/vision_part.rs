//! The vision settings of a checkpoint configuration.

use acem3_projector::ProjectorKind;
use acem3_vision::published::EncoderNetwork;
use acem3_vision::{Selection, Tiling};

/// Vision part of a configuration.
#[derive(Clone, Debug)]
pub(super) struct VisionPart {
    /// The vision tower, if the configuration describes it.
    pub network: Option<EncoderNetwork>,
    /// The name of the vision tower, if it is published separately.
    pub tower_name: Option<String>,
    /// Layer and tokens of the tower that are used as patch features.
    pub selection: Selection,
    /// Architecture of the projector.
    pub projector: ProjectorKind,
    /// Width of the decoder.
    pub hidden_size: usize,
    /// True if images are padded to a square.
    pub pads_to_square: bool,
    /// Method of tiling, if images are also encoded in tiles.
    pub tiling: Option<Tiling>,
}
