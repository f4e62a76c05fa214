//! Lower part of a model that a stage does not train.

/// Lower part of a model that is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrozenPart {
    /// Nothing: weights may be frozen, but not the whole vision tower.
    Nothing,
    /// The vision tower.
    VisionTower,
    /// The vision tower, the projector, the embedding and this number of decoder layers.
    Trunk(usize),
}

impl FrozenPart {
    /// Returns the number of frozen decoder layers.
    pub(crate) fn decoder_layers(self) -> usize {
        match self {
            Self::Trunk(layers) => layers,
            Self::VisionTower | Self::Nothing => 0,
        }
    }
}
