//! Patch features to image tokens in the language model's embedding space, and their splicing into
//! an embedded prompt.
//!
//! Stages 5 and 7 of a judgement: [`Projector`] maps what the vision tower saw into the language
//! model's space, [`splice`] puts it where the prompt says `<image>`.

mod projector;
mod splice;

pub use projector::{Projector, ProjectorConfig, ProjectorKind};
pub use splice::{Segment, Spliced, splice};
