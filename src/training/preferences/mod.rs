//! Preference pairs and evaluations: generated from phantoms or read from files, and converted to
//! sequences.

pub(crate) mod evaluation_preferences;
pub(crate) mod evaluations_file;
pub(crate) mod file_sequences;
pub(crate) mod jsonl_line;
pub(crate) mod negative_ratings;
pub(crate) mod phantom_preferences;
pub(crate) mod preference_folder;
pub(crate) mod preference_sequence;
pub(crate) mod preferences_file;
pub(crate) mod prompt_text;
pub(crate) mod quality;
pub(crate) mod rated_file;

pub use evaluation_preferences::write_evaluation_preferences;
pub use evaluations_file::{EvaluationExample, read_evaluations};
pub use jsonl_line::ParsedFile;
pub(crate) use jsonl_line::{check_image, numbered_lines};
pub(crate) use negative_ratings::{EvaluationRatings, derive_any_negative};
pub use phantom_preferences::write_phantom_preferences;
pub use preference_folder::{PreferenceFolderConfig, WrittenCounts};
pub use preferences_file::{PreferencePair, read_preferences};
pub(crate) use prompt_text::{IMAGE_MARKER, prompt_text};
pub use quality::{QualityReport, predict_quality};
pub(crate) use rated_file::make_image_paths_absolute;
pub use rated_file::write_rated;
