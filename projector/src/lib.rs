//! Patch features to image tokens in the language model's embedding space, and their splicing into
//! an embedded prompt.
//!
//! These are stages 5 and 7 of judging a pair. [`Projector`] maps patch features to image tokens,
//! [`pack_tiles`] joins the tokens of tiles, [`splice()`] inserts image tokens at `<image>`.

mod projector;
mod splice;
mod tile_packing;

pub use projector::{Projector, ProjectorConfig, ProjectorKind};
pub use splice::{PromptSegment, SplicedPrompt, splice};
pub use tile_packing::{TileLayout, pack_tiles};
