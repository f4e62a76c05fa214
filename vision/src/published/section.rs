//! One object of a JSON file, whose errors name file and field.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::PublishedError;

/// An object and where it lies.
#[derive(Clone)]
pub(super) struct Section<'a> {
    file: &'static str,
    path: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn whole(file: &'static str, value: &'a Value) -> Result<Self, PublishedError> {
        match value.as_object() {
            Some(fields) => Ok(Self {
                file,
                path: String::new(),
                fields,
            }),
            None => Err(PublishedError::Field {
                file,
                field: ".".to_owned(),
                what: "is not an object".to_owned(),
            }),
        }
    }

    /// An object that stands in a file under this field.
    pub(super) fn part(
        file: &'static str,
        field: &str,
        value: &'a Value,
    ) -> Result<Self, PublishedError> {
        match value.as_object() {
            Some(fields) => Ok(Self {
                file,
                path: format!("{field}."),
                fields,
            }),
            None => Err(PublishedError::Field {
                file,
                field: field.to_owned(),
                what: "is not an object".to_owned(),
            }),
        }
    }

    /// An object inside, where there is one.
    pub(super) fn inner(&self, field: &str) -> Result<Option<Self>, PublishedError> {
        let Some(value) = self.value(field) else {
            return Ok(None);
        };
        match value.as_object() {
            Some(fields) => Ok(Some(Self {
                file: self.file,
                path: format!("{}{field}.", self.path),
                fields,
            })),
            None => Err(self.error(field, "is not an object")),
        }
    }

    /// The value of a field; `null` is as good as none.
    pub(super) fn value(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A field in its type.
    pub(super) fn get<T: DeserializeOwned>(
        &self,
        field: &str,
    ) -> Result<Option<T>, PublishedError> {
        let read = |value: &Value| {
            T::deserialize(value).map_err(|error| self.error(field, format!("is {value}: {error}")))
        };
        self.value(field).map(read).transpose()
    }

    /// Puts a field into `into`, where the file has it.
    pub(super) fn set<T: DeserializeOwned>(
        &self,
        field: &str,
        into: &mut T,
    ) -> Result<(), PublishedError> {
        if let Some(value) = self.get(field)? {
            *into = value;
        }
        Ok(())
    }

    /// A side of a square, written as a number or as two equal ones.
    pub(super) fn side(&self, field: &str, into: &mut usize) -> Result<(), PublishedError> {
        let Some(value) = self.value(field) else {
            return Ok(());
        };
        let sides = match value {
            Value::Array(sides) => sides.as_slice(),
            one => std::slice::from_ref(one),
        };
        let first = sides.first().and_then(Value::as_u64);
        let square =
            matches!(sides, [_] | [_, _]) && sides.iter().all(|side| side.as_u64() == first);
        match first.and_then(|side| usize::try_from(side).ok()) {
            Some(side) if square => *into = side,
            _ => {
                let what = format!("is {value}, expected a number or two equal ones");
                return Err(self.error(field, what));
            }
        }
        Ok(())
    }

    /// An error where the field has another value than `only`.
    pub(super) fn only(&self, field: &str, only: &Value) -> Result<(), PublishedError> {
        match self.value(field) {
            Some(value) if value != only => {
                Err(self.error(field, format!("is {value}, expected {only}")))
            }
            _ => Ok(()),
        }
    }

    /// An error about a field.
    pub(super) fn error(&self, field: &str, what: impl Into<String>) -> PublishedError {
        PublishedError::Field {
            file: self.file,
            field: format!("{}{field}", self.path),
            what: what.into(),
        }
    }

    /// The names of the fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.fields.keys().map(String::as_str)
    }
}
