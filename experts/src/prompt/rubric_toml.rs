//! TOML of rubrics.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The key of a rubric file, read before the rest.
#[derive(Deserialize)]
struct RubricHead {
    key: String,
}

/// Parses TOML; an error names the line.
pub(super) fn parse_toml<T: DeserializeOwned>(source: &str) -> Result<T, Error> {
    toml::from_str(source).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = source.get(..start).map_or(1, |before| before.matches('\n').count() + 1);
        Error::Rubric(format!("line {line}: {}", error.message()))
    })
}

/// Returns the key of a rubric without parsing the rest, so that its aspects and criteria are not stored.
pub(super) fn key_of_rubric(source: &str) -> Result<String, Error> {
    parse_toml(source).map(|head: RubricHead| head.key)
}
