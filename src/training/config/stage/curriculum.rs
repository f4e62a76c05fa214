//! Order of the evaluations of a stage by their quality.

use serde::{Deserialize, Serialize};

/// Blocks of evaluations that a stage trains on one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CurriculumValue", into = "CurriculumValue")]
pub enum Curriculum {
    /// All evaluations in one block.
    #[default]
    None,
    /// The lower half by quality, all evaluations, the upper half; each for a third of the steps.
    Overlapping,
    /// Every evaluation in one block: the worst fifth, the middle, the best quarter
    /// (`AutoMedEval` §3.2: 1,911, 5,264 and 2,394 of 9,569 evaluations). Each block takes the
    /// proportion of the steps that it is of the evaluations.
    Disjoint,
}

impl Curriculum {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// A curriculum in a file.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged)]
enum CurriculumValue {
    Switch(bool),
    Name(String),
}

impl TryFrom<CurriculumValue> for Curriculum {
    type Error = String;

    fn try_from(value: CurriculumValue) -> Result<Self, String> {
        match value {
            CurriculumValue::Switch(false) => Ok(Self::None),
            CurriculumValue::Switch(true) => Ok(Self::Overlapping),
            CurriculumValue::Name(name) => match name.as_str() {
                "overlapping" => Ok(Self::Overlapping),
                "disjoint" => Ok(Self::Disjoint),
                _ => Err(format!(
                    "unknown curriculum {name:?}, expected \"disjoint\", \"overlapping\", true or false"
                )),
            },
        }
    }
}

impl From<Curriculum> for CurriculumValue {
    fn from(curriculum: Curriculum) -> Self {
        match curriculum {
            Curriculum::None => Self::Switch(false),
            Curriculum::Overlapping => Self::Switch(true),
            Curriculum::Disjoint => Self::Name("disjoint".to_owned()),
        }
    }
}
