//! Values of the controls that rate: stars, numbers, choices and comparisons.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::data::cases::json_type;
use crate::data::labels::vote::Vote;

/// Fields that only the value of a region has: the place in an image, text, sound or video.
const REGION_FIELDS: [&str; 6] = ["x", "points", "vertices", "start", "rle", "sequence"];

/// Type of a control that rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlKind {
    /// Stars.
    Rating,
    /// A number.
    Number,
    /// Choices, of which one counts.
    Choices,
    /// A comparison without a tie.
    Pairwise,
}

impl ControlKind {
    /// Returns the type with this name; `None` for the type of a control that does not rate, such as a
    /// bounding box or a text.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "rating" => Some(Self::Rating),
            "number" => Some(Self::Number),
            "choices" => Some(Self::Choices),
            "pairwise" => Some(Self::Pairwise),
            _ => None,
        }
    }

    /// Returns the field of the value.
    fn field(self) -> &'static str {
        match self {
            Self::Rating => "rating",
            Self::Number => "number",
            Self::Choices => "choices",
            Self::Pairwise => "selected",
        }
    }
}

/// The value of a control that rates.
pub(super) struct ControlValue<'a> {
    /// Type of the control.
    pub(super) kind: ControlKind,
    /// Fields of the value.
    pub(super) fields: &'a Map<String, Value>,
}

impl ControlValue<'_> {
    /// Returns true if the value is about a region and not about the whole response.
    pub(super) fn is_region(&self) -> bool {
        REGION_FIELDS.iter().any(|field| self.fields.contains_key(*field))
    }

    /// Returns the score.
    ///
    /// # Errors
    /// If the value is not one number.
    pub(super) fn score(&self) -> Result<f64, String> {
        let content = self.content()?;
        let score = match content {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().replace(',', ".").parse().ok(),
            _ => None,
        };
        score.filter(|score| score.is_finite()).ok_or_else(|| {
            format!(
                "expected a number, found {}\n\
                 hint: choices of a score are numbers, such as 0 to 5; the text beside a number belongs in `hint`",
                shown(content)
            )
        })
    }

    /// Returns the order of two responses, which are named in the order of the models.
    ///
    /// # Errors
    /// If the value is neither a position nor one of the models.
    pub(super) fn order(&self, models: [&str; 2]) -> Result<Ordering, String> {
        if !matches!(self.kind, ControlKind::Pairwise | ControlKind::Choices) {
            return Err(format!(
                "a preference with the type `{}`, expected `pairwise` or `choices`\n\
                 hint: name a control of scores after a criterion",
                self.kind.field()
            ));
        }
        match self.content()? {
            Value::String(text) => Vote::parse(text).order(models),
            other => Err(format!(
                "expected a text, found {}\nhint: a choice is a position or a model",
                json_type(other)
            )),
        }
    }

    /// Returns the content, of choices the only one.
    fn content(&self) -> Result<&Value, String> {
        let field = self.kind.field();
        let content = self.fields.get(field).ok_or_else(|| {
            format!("the value has no `{field}`\nhint: export the annotations as JSON")
        })?;
        match content {
            Value::Array(choices) => match choices.as_slice() {
                [choice] => Ok(choice),
                _ => Err(format!(
                    "{} choices, expected one\nhint: use choice=\"single-radio\" in the configuration",
                    choices.len()
                )),
            },
            other => Ok(other),
        }
    }
}

/// Shows a value in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", text.trim()),
        other => json_type(other).to_owned(),
    }
}
