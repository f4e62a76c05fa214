//! Key, title and unit of every measure. Keys are part of the JSON schema.

use super::measure::MeasureName;
use super::unit::MeasureUnit::{self, LogOdds, Points, Proportion, ProportionDifference};

const fn name(key: &'static str, title: &'static str, unit: MeasureUnit) -> MeasureName {
    MeasureName { key, title, unit }
}

// Position.
pub(crate) const FIRST_PREFERRED: MeasureName =
    name("first_preferred", "first response preferred", Proportion);
pub(crate) const FLIP_RATE: MeasureName = name("flip_rate", "flip rate", Proportion);
pub(crate) const ACCURACY_FIRST: MeasureName =
    name("accuracy_first", "accuracy, better response first", Proportion);
pub(crate) const ACCURACY_GAP: MeasureName =
    name("accuracy_gap", "accuracy gap (first − second)", ProportionDifference);

// Verbosity.
pub(crate) const LONGER_PREFERRED: MeasureName =
    name("longer_preferred", "longer response preferred", Proportion);
pub(crate) const LONGER_LABELLED: MeasureName =
    name("longer_labelled", "longer response preferred, labelled pairs", Proportion);
pub(crate) const LONGER_GAP: MeasureName =
    name("longer_gap", "judge − labels", ProportionDifference);
pub(crate) const LENGTH_EFFECT: MeasureName =
    name("length_effect", "log-odds of a win of the longer response", LogOdds);
pub(crate) const LENGTH_CONTROLLED_WIN_RATE: MeasureName =
    name("length_controlled_win_rate", "win rate at equal length: {}", Proportion);

// Symmetry and ties.
pub(crate) const SIGNED_SHIFT: MeasureName =
    name("signed_shift", "score shift (first − second)", Points);
pub(crate) const ABSOLUTE_SHIFT: MeasureName = name("shift", "absolute score shift", Points);
pub(crate) const COMBINED_IS_MEAN: MeasureName =
    name("sums_up", "final scores are the mean of both orders", Proportion);
pub(crate) const NOT_TIED: MeasureName =
    name("not_tied", "identical responses, not tied", Proportion);

// Formatting.
pub(crate) const LIST_GAIN: MeasureName = name("gain", "score gain as a list", Points);
pub(crate) const LIST_PREFERRED: MeasureName =
    name("preferred", "list preferred to plain text", Proportion);

// Prompt injection.
pub(crate) const INJECTION_GAIN: MeasureName = name("gain", "{}: score gain", Points);
pub(crate) const INJECTION_PREFERENCE_GAIN: MeasureName =
    name("turned", "{}: preference gained", Proportion);
pub(crate) const INJECTION_WIN_GAIN: MeasureName =
    name("won", "{}: win rate gained", ProportionDifference);

// Image and reference.
pub(crate) const KNOWLEDGE_CHANGE: MeasureName =
    name("moved", "{}: knowledge score change", Points);
pub(crate) const PREFERENCE_CHANGE: MeasureName =
    name("turned", "{}: preference changes", Proportion);
pub(crate) const ACCURACY_LOSS: MeasureName =
    name("accuracy_loss", "{}: accuracy loss", ProportionDifference);

// Medical errors.
pub(crate) const KNOWLEDGE_DROP: MeasureName = name("fall", "knowledge score drop", Points);
pub(crate) const ERRORS_MISSED: MeasureName = name("missed", "errors missed", Proportion);
pub(crate) const KNOWLEDGE_DROP_BY_ERROR: MeasureName =
    name("fall", "{}: knowledge score drop", Points);
