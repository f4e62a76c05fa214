//! A task of Label Studio: its case, its models and its annotations.

use serde_json::{Map, Value};

use crate::data::cases::{json_type, parse_id};

/// Names of the field with the id of the case.
const CASE_FIELDS: [&str; 3] = ["case", "case_id", "id"];
/// What a task is expected to have.
const TASK_HINT: &str = "hint: write the case and its models to `meta` or `data` of each task, such as \
    {\"case\": \"c1\", \"models\": [\"m1\", \"m2\"]}, in the order of the responses";

/// A task in a file.
pub(super) struct StudioTask<'a> {
    fields: &'a Map<String, Value>,
}

/// The case and the models of a task, by which ratings are joined to verdicts.
pub(super) struct RatedCase {
    /// Id of the case.
    pub(super) case: String,
    /// One or two models, in the order in which the task shows their responses.
    pub(super) models: Vec<String>,
}

impl<'a> StudioTask<'a> {
    /// Wraps an element of a file.
    ///
    /// # Errors
    /// If it is not a task.
    pub(super) fn new(element: &'a Value) -> Result<Self, String> {
        let expected = "expected a task of Label Studio, an object with `data` and `annotations`\n\
             hint: export the project as JSON, not as JSON-MIN; without Label Studio write one object per line (JSONL)";
        match element {
            Value::Object(fields)
                if fields.contains_key("annotations") || fields.contains_key("data") =>
            {
                Ok(Self { fields })
            }
            Value::Object(_) => Err(format!("an object without `annotations`, {expected}")),
            other => Err(format!("found {}, {expected}", json_type(other))),
        }
    }

    /// Returns the name of the task in messages.
    pub(super) fn name(&self) -> String {
        let id = self.fields.get("id").and_then(parse_id);
        id.map_or_else(|| "a task without id".to_owned(), |id| format!("task {id}"))
    }

    /// Returns the annotations that were not cancelled.
    ///
    /// # Errors
    /// If the annotations are not a list of objects.
    pub(super) fn annotations(&self) -> Result<Vec<&'a Map<String, Value>>, String> {
        let list = match self.fields.get("annotations") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(other) => {
                return Err(format!(
                    "`annotations`: expected an array, found {}",
                    json_type(other)
                ));
            }
        };
        let mut counted = Vec::new();
        for annotation in list {
            let Value::Object(fields) = annotation else {
                let found = json_type(annotation);
                return Err(format!(
                    "`annotations`: expected objects, found {found}\n\
                     hint: export whole annotations, not only their ids"
                ));
            };
            if fields.get("was_cancelled") != Some(&Value::Bool(true)) {
                counted.push(fields);
            }
        }
        Ok(counted)
    }

    /// Returns the case and the models.
    ///
    /// # Errors
    /// If the task lacks one of them.
    pub(super) fn rated_case(&self) -> Result<RatedCase, String> {
        let case = self.find(&CASE_FIELDS).and_then(parse_id);
        let case = case.ok_or_else(|| format!("the case id is missing\n{TASK_HINT}"))?;
        Ok(RatedCase { case, models: self.models()? })
    }

    fn models(&self) -> Result<Vec<String>, String> {
        let one = |name: &str| self.find(&[name]).and_then(parse_id);
        let pair = || Some(vec![one("model_a")?, one("model_b")?]);
        let models = match self.find(&["models"]) {
            Some(Value::Array(list)) => list.iter().map(parse_id).collect(),
            _ => pair().or_else(|| Some(vec![one("model")?])),
        };
        let models: Vec<String> =
            models.ok_or_else(|| format!("the models are missing\n{TASK_HINT}"))?;
        match models.as_slice() {
            [first, second] if first == second => Err(format!(
                "both models are `{first}`, expected two different models\n{TASK_HINT}"
            )),
            [_] | [_, _] => Ok(models),
            _ => Err(format!("{} models, expected one or two\n{TASK_HINT}", models.len())),
        }
    }

    /// Returns the first of these fields in `meta`, else in `data`.
    fn find(&self, names: &[&str]) -> Option<&'a Value> {
        let objects = ["meta", "data"].into_iter();
        let mut objects = objects.filter_map(|name| self.fields.get(name)?.as_object());
        objects.find_map(|object| names.iter().find_map(|name| object.get(*name)))
    }
}
