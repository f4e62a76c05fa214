//! Preference pairs and evaluations: generated from phantoms or read from files, and converted to
//! sequences.

pub(crate) mod evaluation_preferences;
pub mod files;
pub(crate) mod mistakes;
pub(crate) mod negatives;
pub(crate) mod own_evaluations;
pub(crate) mod phantom_preferences;
pub(crate) mod preference_sequence;
pub(crate) mod prompt_style;
pub(crate) mod prompt_text;
pub(crate) mod quality;
pub(crate) mod recorded_evaluations;

pub use crate::training::preferences::files::evaluations_file::{
    EvaluationExample, read_evaluations,
};
pub use crate::training::preferences::files::jsonl_line::ParsedFile;
pub(crate) use crate::training::preferences::files::jsonl_line::{
    check_image_for, check_member, numbered_lines,
};
pub use crate::training::preferences::files::preference_folder::{
    PreferenceFolderConfig, WrittenCounts,
};
pub(crate) use crate::training::preferences::files::preferences_file::select_negatives;
pub use crate::training::preferences::files::preferences_file::{PreferencePair, read_preferences};
pub(crate) use crate::training::preferences::files::rated_file::make_image_paths_absolute;
pub use crate::training::preferences::files::rated_file::{RATED_FORM, write_rated};
pub use evaluation_preferences::write_evaluation_preferences;
pub use mistakes::{
    MistakeCounts, MistakeFiles, SkipReason, SkippedMistakes, write_mistake_preferences,
};
pub(crate) use negatives::{EvaluationContent, derive_any_negative};
pub use negatives::{NegativeCounts, NotApplicable};
pub use phantom_preferences::write_phantom_preferences;
pub use prompt_style::PromptStyle;
pub(crate) use prompt_text::{IMAGE_MARKER, prompt_text};
pub use quality::{
    ClassifierQualities, EmbeddingQualities, QualityClassifier, QualityReport, check_ratings,
    predict_quality,
};
pub use recorded_evaluations::MissingPart;
