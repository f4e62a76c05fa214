//! Maps patch features to image tokens in the language model's embedding space, and inserts them
//! into an embedded prompt.
//!
//! [`Projector`] maps patch features to image tokens, [`pack_tiles`] joins the tokens of tiles, and
//! [`splice()`] concatenates image tokens and embedded text.

mod pooled_projector;
mod projector;
mod splice;
mod tile_packing;

pub use pooled_projector::PooledProjection;
pub use projector::{Projector, ProjectorConfig, ProjectorKind};
pub use splice::{PromptSegment, SplicedPrompt, splice};
pub use tile_packing::{TileLayout, pack_tiles};
