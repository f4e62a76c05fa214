//! The panel: four members loaded from files, judging pairs.
//!
//! Files and hashes are read here; the mathematics is in the crates below.

mod bench;
mod eyes;
mod files;
mod load;
mod spec;
mod weights;

pub use bench::{Bench, Options};
pub use files::PanelFiles;
pub use load::Panel;
pub use spec::{Members, PANEL_FILE, PanelSpec, TOKENIZER_FILE};
