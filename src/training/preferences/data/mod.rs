//! Preferences to train on: right evaluations, each beside a worse one.

mod drawn;
mod evaluations_file;
mod folder;
mod given;
mod line;
mod negative;
mod pairs_file;
mod quality;
mod rated_file;

pub use drawn::drawn;
pub use evaluations_file::{EvaluationExample, evaluations};
pub(crate) use folder::{IMAGE, prompt_text};
pub use folder::{PreferenceFolderConfig, WrittenCounts};
pub use given::given;
pub(crate) use line::{numbered, there};
pub use negative::Negative;
pub(crate) use negative::{EvaluationRatings, negative};
pub use pairs_file::{PreferencePair, read};
pub use quality::{QualityReport, rate};
pub(crate) use rated_file::whole_images;
pub use rated_file::write_rated;

/// The reward tokens of ACE-M³ (§3.4): before a preferred evaluation and before a rejected one.
pub const REWARD_TOKENS: [&str; 2] = ["[Good]", "[Bad]"];
