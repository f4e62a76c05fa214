//! Object in a JSON file. Its errors name the file and the field.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::PublishedError;

/// Object in a JSON file, with its position.
#[derive(Clone)]
pub(super) struct JsonSection<'a> {
    file: &'static str,
    /// Text before the names of fields in messages: the enclosing fields, each followed by a dot.
    prefix: String,
    fields: &'a Map<String, Value>,
}

impl<'a> JsonSection<'a> {
    /// Returns the top-level object of a file.
    pub(super) fn root(file: &'static str, value: &'a Value) -> Result<Self, PublishedError> {
        match value.as_object() {
            Some(fields) => Ok(Self { file, prefix: String::new(), fields }),
            None => Err(PublishedError::InvalidField {
                file,
                field: ".".to_owned(),
                problem: "is not an object".to_owned(),
            }),
        }
    }

    /// Returns the object that is the value of a top-level field.
    pub(super) fn from_field_value(
        file: &'static str,
        field: &str,
        value: &'a Value,
    ) -> Result<Self, PublishedError> {
        match value.as_object() {
            Some(fields) => Ok(Self { file, prefix: format!("{field}."), fields }),
            None => Err(PublishedError::InvalidField {
                file,
                field: field.to_owned(),
                problem: "is not an object".to_owned(),
            }),
        }
    }

    /// Returns the object in a field; `None` if the field is missing or `null`.
    pub(super) fn child(&self, field: &str) -> Result<Option<Self>, PublishedError> {
        let Some(value) = self.value(field) else {
            return Ok(None);
        };
        match value.as_object() {
            Some(fields) => Ok(Some(Self {
                file: self.file,
                prefix: format!("{}{field}.", self.prefix),
                fields,
            })),
            None => Err(self.field_error(field, "is not an object")),
        }
    }

    /// Returns the value of a field; `None` if it is missing or `null`.
    pub(super) fn value(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// Parses the value of a field; `None` if it is missing or `null`.
    pub(super) fn get<T: DeserializeOwned>(
        &self,
        field: &str,
    ) -> Result<Option<T>, PublishedError> {
        let parse = |value: &Value| {
            T::deserialize(value)
                .map_err(|error| self.field_error(field, format!("is {value}: {error}")))
        };
        self.value(field).map(parse).transpose()
    }

    /// Parses the value of a field into `target`; keeps `target` if the field is missing or `null`.
    pub(super) fn read_into<T: DeserializeOwned>(
        &self,
        field: &str,
        target: &mut T,
    ) -> Result<(), PublishedError> {
        if let Some(value) = self.get(field)? {
            *target = value;
        }
        Ok(())
    }

    /// Parses the side of a square into `target`: a number, or a list of one number or two equal
    /// ones.
    pub(super) fn read_side(&self, field: &str, target: &mut usize) -> Result<(), PublishedError> {
        let Some(value) = self.value(field) else {
            return Ok(());
        };
        let sides = match value {
            Value::Array(sides) => sides.as_slice(),
            number => std::slice::from_ref(number),
        };
        let first = sides.first().and_then(Value::as_u64);
        let is_square =
            matches!(sides, [_] | [_, _]) && sides.iter().all(|side| side.as_u64() == first);
        match first.and_then(|side| usize::try_from(side).ok()) {
            Some(side) if is_square => *target = side,
            _ => {
                let problem = format!("is {value}, expected a number or two equal ones");
                return Err(self.field_error(field, problem));
            }
        }
        Ok(())
    }

    /// Returns an error if a field has another value than `expected`. It may be missing or `null`.
    pub(super) fn expect_value(&self, field: &str, expected: &Value) -> Result<(), PublishedError> {
        match self.value(field) {
            Some(value) if value != expected => {
                Err(self.field_error(field, format!("is {value}, expected {expected}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error about a field. `problem` follows the name of the field in the message.
    pub(super) fn field_error(&self, field: &str, problem: impl Into<String>) -> PublishedError {
        PublishedError::InvalidField {
            file: self.file,
            field: format!("{}{field}", self.prefix),
            problem: problem.into(),
        }
    }

    /// Returns the names of the fields.
    pub(super) fn field_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.fields.keys().map(String::as_str)
    }
}
