//! The results of an annotation: who rated, and what each control says.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::control_names::{
    COMMENT_CONTROL, ControlSubject, RATER_CONTROL, names_hint, parse_response,
};
use super::control_value::{ControlKind, ControlValue};
use crate::data::cases::{json_type, parse_id};
use crate::data::labels::entry::{LabelValue, UNNAMED_RATER};
use crate::data::labels::target::ScoreTarget;
use crate::data::labels::vote::Vote;

/// A rating of an annotation.
#[derive(Debug)]
pub(super) struct ControlRating {
    /// Score target.
    pub(super) target: ScoreTarget,
    /// The score or preference.
    pub(super) value: LabelValue,
}

/// Returns the rater of an annotation: the text of the control `rater`, else the e-mail address or the
/// number of the account.
///
/// # Errors
/// If the account has neither.
pub(super) fn read_rater(annotation: &Map<String, Value>) -> Result<String, String> {
    let is_rater = |result: &&Value| {
        field(result, "from_name") == RATER_CONTROL && field(result, "type") == "textarea"
    };
    let named = results(annotation)?.iter().find(is_rater);
    if let Some(named) = named.and_then(|result| result.get("value")?.get("text")) {
        let text = match named {
            Value::Array(lines) if lines.len() == 1 => lines.first().and_then(parse_id),
            other => parse_id(other),
        };
        return text.ok_or_else(|| {
            format!("`{RATER_CONTROL}`: expected one name\nhint: one annotation has one rater")
        });
    }
    match annotation.get("completed_by") {
        None | Some(Value::Null) => Ok(UNNAMED_RATER.to_owned()),
        Some(Value::Object(account)) => {
            let id = ["email", "id"].iter().find_map(|name| account.get(*name).and_then(parse_id));
            id.ok_or_else(|| {
                "`completed_by` has neither `email` nor `id`\nhint: export the users with the annotations"
                    .to_owned()
            })
        }
        Some(other) => parse_id(other).ok_or_else(|| {
            format!(
                "`completed_by`: expected a number or an object, found {}\n\
                 hint: export the project as JSON",
                json_type(other)
            )
        }),
    }
}

/// Reads the ratings of an annotation. Adds the controls that do not rate to `unused`.
///
/// # Errors
/// If a control that rates has an unknown name, or its value is no rating of these models. The message
/// starts with the name of the control.
pub(super) fn read_ratings(
    annotation: &Map<String, Value>,
    models: &[String],
    unused: &mut BTreeSet<String>,
) -> Result<Vec<ControlRating>, String> {
    let mut ratings = Vec::new();
    for result in results(annotation)? {
        let (name, kind) = (field(result, "from_name"), field(result, "type"));
        let fields = result.get("value").and_then(Value::as_object);
        let (Some(kind), Some(fields)) = (ControlKind::from_name(kind), fields) else {
            let is_known_text = [COMMENT_CONTROL, RATER_CONTROL].contains(&name);
            if !is_known_text {
                unused.insert(format!("{name} ({kind})").trim_start().to_owned());
            }
            continue;
        };
        let value = ControlValue { kind, fields };
        let in_control = |error: String| format!("`{name}`: {error}");
        match ControlSubject::from_name(name).map_err(in_control)? {
            None if value.is_region() => {
                unused.insert(format!("{name} (region)"));
            }
            None => {
                return Err(in_control(format!(
                    "the name of the control matches nothing that can be rated\n{}",
                    names_hint()
                )));
            }
            Some(_) if value.is_region() => {
                return Err(in_control(
                    "the rating of a region, expected one of the whole response\n\
                     hint: remove perRegion from the control, or rename it"
                        .to_owned(),
                ));
            }
            Some(subject) => {
                let rated = RatedControl { value, to_name: field(result, "to_name"), models };
                ratings.push(rated.read(subject).map_err(in_control)?);
            }
        }
    }
    Ok(ratings)
}

/// A control that rates, with what is needed to find the response.
struct RatedControl<'a> {
    value: ControlValue<'a>,
    to_name: &'a str,
    models: &'a [String],
}

impl RatedControl<'_> {
    fn read(&self, subject: ControlSubject) -> Result<ControlRating, String> {
        match subject {
            ControlSubject::Preference(target) => self.preference(target),
            ControlSubject::Score { target, response: None }
                if self.value.kind == ControlKind::Pairwise =>
            {
                self.preference(target)
            }
            ControlSubject::Score { target, response } => {
                let model = self.model(response)?.to_owned();
                let value = LabelValue::Score { model, value: self.value.score()? };
                Ok(ControlRating { target, value })
            }
        }
    }

    fn preference(&self, target: ScoreTarget) -> Result<ControlRating, String> {
        let [first, second] = self.models else {
            return Err("a preference, but the task has one model\n\
                 hint: write both models to `meta` or `data` of the task"
                .to_owned());
        };
        let order = self.value.order([first, second])?;
        let models = Some([first.clone(), second.clone()]);
        let value = LabelValue::Preference { models, vote: Vote::Order(order) };
        Ok(ControlRating { target, value })
    }

    /// Returns the model whose response is scored: that of the name of the control, else that of the
    /// field, else the only one.
    fn model(&self, named: Option<usize>) -> Result<&str, String> {
        let of_field = parse_response(self.to_name);
        if let (Some(named), Some(of_field)) = (named, of_field)
            && named != of_field
        {
            return Err(format!(
                "the name is about one response and the field `{}` is the other\n\
                 hint: in a control with -b, toName is `response_b`",
                self.to_name
            ));
        }
        let only = (self.models.len() == 1).then_some(0);
        let Some(response) = named.or(of_field).or(only) else {
            return Err(format!(
                "neither the name nor the field `{}` says which response is scored\n\
                 hint: add -a or -b to the name, or name the fields response_a and response_b",
                self.to_name
            ));
        };
        let model = self.models.get(response).map(String::as_str);
        model.ok_or_else(|| {
            "a score of the second response, but the task has one model\n\
             hint: write both models to `meta` or `data` of the task"
                .to_owned()
        })
    }
}

/// Returns the results of an annotation.
fn results(annotation: &Map<String, Value>) -> Result<&[Value], String> {
    match annotation.get("result") {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(format!(
            "`result`: expected an array, found {}\nhint: export the project as JSON",
            json_type(other)
        )),
    }
}

/// Returns a text field of a result; empty if it has none.
fn field<'a>(result: &'a Value, name: &str) -> &'a str {
    result.get(name).and_then(Value::as_str).unwrap_or_default()
}
