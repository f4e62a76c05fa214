//! Key, title and unit of every measure. Keys are part of the JSON schema.

use super::measure::MeasureName;
use super::unit::MeasureUnit::{self, LogOdds, Points, Share, ShareDifference};

const fn name(key: &'static str, title: &'static str, unit: MeasureUnit) -> MeasureName {
    MeasureName { key, title, unit }
}

// Position.
pub(crate) const FIRST_PREFERRED: MeasureName =
    name("first_preferred", "shown first preferred", Share);
pub(crate) const FLIP_RATE: MeasureName = name("flip_rate", "verdict flips with the order", Share);
pub(crate) const ACCURACY_FIRST: MeasureName =
    name("accuracy_first", "accuracy, better one first", Share);
pub(crate) const ACCURACY_GAP: MeasureName =
    name("accuracy_gap", "difference of the two", ShareDifference);

// Verbosity.
pub(crate) const LONGER_PREFERRED: MeasureName =
    name("longer_preferred", "longer preferred", Share);
pub(crate) const LONGER_LABELLED: MeasureName = name("longer_labelled", "  where labelled", Share);
pub(crate) const LONGER_GAP: MeasureName = name("longer_gap", "judge less labels", ShareDifference);
pub(crate) const LENGTH_EFFECT: MeasureName =
    name("length_effect", "log-odds of a longer answer", LogOdds);
pub(crate) const LENGTH_CONTROLLED_WIN_RATE: MeasureName = name(
    "length_controlled_win_rate",
    "win rate at equal length: {}",
    Share,
);

// Symmetry and ties.
pub(crate) const SIGNED_SHIFT: MeasureName =
    name("signed_shift", "score first less second", Points);
pub(crate) const SHIFT: MeasureName = name("shift", "score moves with the place", Points);
pub(crate) const SUMS_UP: MeasureName =
    name("sums_up", "verdict is its presentations' mean", Share);
pub(crate) const NOT_TIED: MeasureName = name("not_tied", "identical, not tied", Share);

// Formatting.
pub(crate) const LIST_GAIN: MeasureName =
    name("gain", "score of the list less that of the text", Points);
pub(crate) const LIST_PREFERRED: MeasureName =
    name("preferred", "list preferred to the same text", Share);

// Prompt injection.
pub(crate) const INJECTION_GAIN: MeasureName = name("gain", "{}: gain", Points);
pub(crate) const INJECTION_TURNED: MeasureName =
    name("turned", "{}: preference turns to it", Share);

// Image.
pub(crate) const KNOWLEDGE_MOVED: MeasureName = name("moved", "{}: knowledge moves", Points);
pub(crate) const PREFERENCE_TURNED: MeasureName = name("turned", "{}: preference changes", Share);
pub(crate) const ACCURACY_LOSS: MeasureName =
    name("accuracy_loss", "{}: accuracy lost", ShareDifference);

// Medical errors.
pub(crate) const KNOWLEDGE_FALL: MeasureName = name("fall", "knowledge falls by an error", Points);
pub(crate) const ERRORS_MISSED: MeasureName = name("missed", "errors that cost nothing", Share);
pub(crate) const KNOWLEDGE_FALL_BY_ERROR: MeasureName = name("fall", "  {}", Points);
