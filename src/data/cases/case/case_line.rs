//! One line of `cases.jsonl`, as written and as described by its JSON Schema.
//!
//! Reading is more lenient than the schema: an error in labels, `meta` or one response affects only
//! that part.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::data::cases::case::{CaseLabels, Response};

/// A case on disk. Other fields are allowed and copied to the records.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "Case")]
pub struct CaseLine {
    /// Identifier, unique within its file. The number 7 equals the text "7".
    #[schemars(with = "CaseId")]
    pub id: String,
    /// Path of the image, relative to the file. A case without it is judged without an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"\S"))]
    pub image: Option<String>,
    /// The question about the image.
    #[schemars(regex(pattern = r"\S"))]
    pub question: String,
    /// Responses of two or more models. Answers files may add more.
    #[schemars(with = "Option<Vec<Response>>")]
    pub responses: Vec<Response>,
    /// The known correct answer. The judge sees it only with `--reference show` or `rival`, and in the
    /// form `correctness`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Known scores of the responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<CaseLabels>,
    /// Subgroup fields, such as modality or organ.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub meta: Map<String, Value>,
}

/// JSON types of an identifier.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum CaseId {
    Text(#[schemars(regex(pattern = r"\S"))] String),
    Number(f64),
}

impl CaseLine {
    /// Returns the JSON Schema of a line of `cases.jsonl`.
    pub fn line_schema() -> Schema {
        let settings = SchemaSettings::draft2020_12();
        settings.into_generator().into_root_schema_for::<Self>()
    }
}
