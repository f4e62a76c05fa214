//! Preferences to train on: right evaluations, each beside a worse one.

mod evaluation_preferences;
mod evaluations_file;
mod folder;
mod jsonl_line;
mod negative;
mod phantom_preferences;
mod preferences_file;
mod quality;
mod rated_file;

pub use crate::training::preferences::data::evaluation_preferences::given;
pub(crate) use crate::training::preferences::data::jsonl_line::{numbered, there};
pub use crate::training::preferences::data::phantom_preferences::drawn;
pub use crate::training::preferences::data::preferences_file::{PreferencePair, read};
pub use evaluations_file::{EvaluationExample, evaluations};
pub(crate) use folder::{IMAGE, prompt_text};
pub use folder::{PreferenceFolderConfig, WrittenCounts};
pub use negative::Negative;
pub(crate) use negative::{EvaluationRatings, negative};
pub use quality::{QualityReport, rate};
pub(crate) use rated_file::whole_images;
pub use rated_file::write_rated;

/// The reward tokens of ACE-M³ (§3.4): before a preferred evaluation and before a rejected one.
pub const REWARD_TOKENS: [&str; 2] = ["[Good]", "[Bad]"];
