//! Maps patch features to image tokens in the language model's embedding space, and inserts them
//! into an embedded prompt.
//!
//! [`Projector`] maps patch features to image tokens, [`pixel_shuffle()`] joins neighbouring
//! features, [`pack_tiles`] and [`pack_limited_tiles`] join the tokens of tiles, and [`splice()`]
//! concatenates image tokens and embedded text.

mod pixel_shuffle;
mod pooled_projector;
mod projector;
mod shrink;
mod splice;
mod tile_packing;

pub use pixel_shuffle::pixel_shuffle;
pub use pooled_projector::PooledProjection;
pub use projector::{Projector, ProjectorConfig, ProjectorKind};
pub use shrink::limited_size;
pub use splice::{PromptSegment, SplicedPrompt, splice};
pub use tile_packing::{TileLayout, pack_limited_tiles, pack_tiles};
