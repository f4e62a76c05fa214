//! Maps patch features to image tokens in the language model's embedding space, and inserts them
//! into an embedded prompt.
//!
//! [`Projector`] maps patch features to image tokens, [`pixel_shuffle()`] joins neighbouring
//! features, [`pack_tiles`] joins the tokens of tiles, and
//! [`splice()`] concatenates image tokens and embedded text.

mod pixel_shuffle;
mod projector;
mod splice;
mod tile_packing;

pub use pixel_shuffle::pixel_shuffle;
pub use projector::{Projector, ProjectorConfig, ProjectorKind};
pub use splice::{PromptSegment, SplicedPrompt, splice};
pub use tile_packing::{TileLayout, pack_tiles};
