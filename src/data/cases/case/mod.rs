//! A case: an image, a question about it, and the responses to judge.

pub(crate) mod case_id;
pub(crate) mod case_labels;
pub(crate) mod case_line;
pub(crate) mod text_limits;
pub(crate) mod unlisted_pairs;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_experts::{Aspect, Criterion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::unlisted_pairs::{AffectedPairs, UnlistedPairs, lists_pairs};

/// Field of cases that must not leave this machine.
pub(crate) const LOCAL_ONLY: &str = "local_only";
/// Start of the messages about such a case.
pub(crate) const MARKED_LOCAL_ONLY: &str = "the case is marked `local_only`";

/// A question, usually about an image, with the responses of models.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Unique within its source.
    pub id: String,
    /// The image; `None` for a case without image.
    pub image: Option<ImageSource>,
    /// The question.
    pub question: String,
    /// The responses to judge.
    pub responses: Vec<Response>,
    /// The reference answer, if known. The judge never sees it.
    pub reference: Option<String>,
    /// Labels, if known.
    pub labels: Option<CaseLabels>,
    /// Subgroup fields (modality, organ, answer type, language, ...).
    pub meta: Map<String, Value>,
    /// Unknown fields, kept unchanged.
    pub extra: Map<String, Value>,
    /// Line or row in the source, from 1.
    pub line: u64,
}

impl Case {
    /// Returns true if the case must not leave this machine: `local_only` in the case, or as a column of
    /// its table.
    pub fn is_local_only(&self) -> bool {
        let fields = [self.extra.get(LOCAL_ONLY), self.meta.get(LOCAL_ONLY)];
        fields.into_iter().flatten().any(|value| match value {
            Value::Bool(is_local) => *is_local,
            Value::String(text) => {
                !matches!(text.trim().to_lowercase().as_str(), "" | "false" | "0" | "no")
            }
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Null => false,
            Value::Array(_) | Value::Object(_) => true,
        })
    }

    /// Estimates the size in memory in bytes: texts, embedded image and other fields.
    pub fn stored_bytes(&self) -> usize {
        let image = match &self.image {
            Some(ImageSource::Bytes { bytes, .. }) => bytes.len(),
            Some(ImageSource::File(_)) | None => 0,
        };
        let responses = self.responses.iter().map(|response| response.text.len());
        image + self.question.len() + responses.sum::<usize>() + self.repeated_bytes()
    }

    /// Estimates the size in memory of the fields that each record repeats and no limit on texts
    /// holds down, in bytes: the reference, `meta` and unknown fields.
    pub(super) fn repeated_bytes(&self) -> usize {
        let fields = self.meta.iter().chain(&self.extra);
        let fields = fields.map(|(name, value)| name.len() + json_bytes(value));
        self.reference.as_ref().map_or(0, String::len) + fields.sum::<usize>()
    }
}

/// Estimates the size of a JSON value in memory in bytes.
fn json_bytes(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(json_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, v)| name.len() + json_bytes(v)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}

/// The response of one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Name of the model.
    #[schemars(regex(pattern = r"\S"))]
    pub model: String,
    /// The text.
    #[schemars(regex(pattern = r"\S"))]
    pub text: String,
}

/// Source of an image.
#[derive(Clone, Debug, PartialEq)]
pub enum ImageSource {
    /// A file.
    File(PathBuf),
    /// Bytes embedded in the source.
    Bytes {
        /// Name for messages and records.
        name: String,
        /// The encoded image.
        bytes: Arc<[u8]>,
    },
}

/// Labels: one score per response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CaseLabels {
    /// Final scores.
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<LabelScore>>")]
    pub final_scores: Option<Vec<f64>>,
    /// Scores of aspects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<Aspect, Vec<LabelScore>>")]
    pub aspects: BTreeMap<Aspect, Vec<f64>>,
    /// Scores of criteria.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<Criterion, Vec<LabelScore>>")]
    pub criteria: BTreeMap<Criterion, Vec<f64>>,
}

impl CaseLabels {
    /// Returns the labels of the responses with these indices, without score targets that lack a label for
    /// one of them; `None` if none is left.
    pub fn of_responses(&self, indices: &[usize]) -> Option<Self> {
        let pick = |all: &Vec<f64>| indices.iter().map(|i| all.get(*i).copied()).collect();
        let picked = Self {
            final_scores: self.final_scores.as_ref().and_then(pick),
            aspects: self.aspects.iter().filter_map(|(k, v)| Some((*k, pick(v)?))).collect(),
            criteria: self.criteria.iter().filter_map(|(k, v)| Some((*k, pick(v)?))).collect(),
        };
        (picked != Self::default()).then_some(picked)
    }
}

/// One known score, 0 to 5.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct LabelScore(#[schemars(range(min = 0, max = 5))] f64);

/// Reason why a case or pair is unscored.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UnscoredReason {
    /// The case could not be read (malformed line, missing field, empty answer).
    Parse,
    /// The prompt exceeds the context of the panel.
    Truncated,
    /// The judge refused.
    Refused,
    /// The evaluation of the judge does not have its format.
    Format,
    /// The judge could not be reached.
    Transport,
    /// The image is missing or could not be decoded.
    Image,
}

impl UnscoredReason {
    /// Returns the name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Format => "format",
            Self::Transport => "transport",
            Self::Image => "image",
        }
    }
}

/// A problem with a case of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputProblem {
    /// File of the case.
    pub file: Box<Path>,
    /// Line or row, from 1.
    pub line: u64,
    /// Id of the case, if readable.
    pub id: Option<Box<str>>,
    /// Category of the problem.
    pub reason: UnscoredReason,
    /// Message with expected and found values.
    pub message: String,
    /// Scope of the problem.
    pub scope: ProblemScope,
    /// The reference of the case, if the problem is that responses are missing: text metrics count them
    /// as wrong.
    pub reference: Option<Box<str>>,
}

/// Scope of an [`InputProblem`]: a whole case, one response, or no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemScope {
    /// The whole case, with its models if known.
    Case(Vec<String>),
    /// A response of the next case in the stream, or no response.
    Response {
        /// The model; `None` if the problem affects no response, for example an ignored field or an
        /// answer line that matches no case.
        model: Option<Box<str>>,
        /// The pairs that cannot be judged; none if no response is affected.
        pairs: Box<AffectedPairs>,
    },
}

impl ProblemScope {
    /// Returns the pairs that cannot be judged; none if they are too many to be listed.
    pub fn affected_pairs(&self) -> Vec<[String; 2]> {
        match self {
            Self::Response { pairs, .. } => pairs.listed().to_vec(),
            Self::Case(models) if !lists_pairs(0, models.len()) => Vec::new(),
            Self::Case(models) => {
                let pairs_with_later = |(i, a): (usize, &String)| {
                    let a = a.clone();
                    models.iter().skip(i + 1).map(move |b| [a.clone(), b.clone()])
                };
                models.iter().enumerate().flat_map(pairs_with_later).collect()
            }
        }
    }

    /// Returns the models of a case whose pairs are too many to be listed, if they are affected.
    pub fn unlisted_pairs(&self) -> Option<Arc<UnlistedPairs>> {
        match self {
            Self::Response { pairs, .. } => pairs.unlisted(),
            Self::Case(models) => (!lists_pairs(0, models.len()))
                .then(|| Arc::new(UnlistedPairs { present: Vec::new(), missing: models.clone() })),
        }
    }

    /// Returns the known models of an unreadable case.
    pub fn models(&self) -> &[String] {
        match self {
            Self::Case(models) => models,
            Self::Response { .. } => &[],
        }
    }

    /// Returns the model whose response is missing.
    pub fn model_without_response(&self) -> Option<&str> {
        match self {
            Self::Response { model, .. } => model.as_deref(),
            Self::Case(_) => None,
        }
    }

    /// Returns true if the problem affects no response.
    pub fn affects_no_response(&self) -> bool {
        let Self::Response { model: None, pairs } = self else {
            return false;
        };
        pairs.listed().is_empty() && pairs.unlisted().is_none()
    }
}

impl InputProblem {
    /// Returns true if the problem affects the whole case.
    pub fn affects_whole_case(&self) -> bool {
        matches!(self.scope, ProblemScope::Case(_))
    }

    /// Creates a problem with the reason `parse` that affects a whole case.
    pub fn parse_error(
        file: &Path,
        line: u64,
        id: Option<String>,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self {
            file: file.into(),
            line,
            id: id.map(String::into_boxed_str),
            reason: UnscoredReason::Parse,
            message,
            scope: ProblemScope::Case(Vec::new()),
            reference: None,
        }
    }
}

impl fmt::Display for InputProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file.display(), self.line)?;
        if let Some(id) = &self.id {
            write!(f, " (case {id})")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for InputProblem {}
