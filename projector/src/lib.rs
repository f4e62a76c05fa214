//! Patch features to image tokens in the language model's embedding space, and their splicing into
//! an embedded prompt.
//!
//! Stages 5 and 7 of a judgement: [`Projector`] maps what the vision tower saw into the language
//! model's space, [`pack`] lays the tokens of tiles together, [`splice`] puts it where the prompt says `<image>`.

mod pack;
mod projector;
mod splice;

pub use pack::{TileLayout, pack};
pub use projector::{Projector, ProjectorConfig, ProjectorKind};
pub use splice::{Segment, Spliced, splice};
