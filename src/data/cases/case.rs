//! One case: an image, a question about it, and the responses to be judged.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_experts::{Aspect, Criterion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One question about one image (or about none), with the responses of two or more models.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Unique within its source.
    pub id: String,
    /// Where the image is; `None` for a case that is judged as text.
    pub image: Option<ImageSource>,
    /// The question, as the patient or colleague asked it.
    pub question: String,
    /// The answers to be judged.
    pub responses: Vec<Response>,
    /// The known right answer, where there is one. It is kept for reports; the judge never sees it.
    pub reference: Option<String>,
    /// Known scores, where a person or a rule gave them.
    pub labels: Option<CaseLabels>,
    /// Subgroup fields (modality, organ, answer type, language, ...).
    pub meta: Map<String, Value>,
    /// Fields this program does not know, kept as they came.
    pub extra: Map<String, Value>,
    /// The line (or row) of the source, counted from one.
    pub line: u64,
}

/// One model's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The name of the model that wrote it.
    #[schemars(regex(pattern = r"\S"))]
    pub model: String,
    /// Its answer.
    #[schemars(regex(pattern = r"\S"))]
    pub text: String,
}

/// Where a case's image comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ImageSource {
    /// A file.
    File(PathBuf),
    /// Bytes that were embedded in the source, with the name they bear there.
    Bytes {
        /// The name in messages and records.
        name: String,
        /// The encoded image.
        bytes: Arc<[u8]>,
    },
}

/// Known scores of the responses, one number per response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CaseLabels {
    /// The final scores.
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<LabelScore>>")]
    pub last: Option<Vec<f64>>,
    /// The scores of aspects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<Aspect, Vec<LabelScore>>")]
    pub aspects: BTreeMap<Aspect, Vec<f64>>,
    /// The scores of criteria.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<Criterion, Vec<LabelScore>>")]
    pub criteria: BTreeMap<Criterion, Vec<f64>>,
}

/// One known score, 0 to 5.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct LabelScore(#[schemars(range(min = 0, max = 5))] f64);

/// Why a case or pair has no verdict. It is never a zero, a tie or a guess.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UnscoredReason {
    /// The case could not be read (broken line, missing field, empty answer).
    Parse,
    /// The case does not fit into the panel's context.
    Truncated,
    /// The judge declined.
    Refused,
    /// The judge could not be reached.
    Transport,
    /// The image is missing or could not be decoded.
    Image,
}

impl UnscoredReason {
    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Transport => "transport",
            Self::Image => "image",
        }
    }
}

/// A case that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputProblem {
    /// The file that holds the case.
    pub file: PathBuf,
    /// Its line or row, counted from one.
    pub line: u64,
    /// The case's id where it could be read.
    pub id: Option<String>,
    /// The kind of failure.
    pub reason: UnscoredReason,
    /// What was expected and what was found.
    pub message: String,
    /// What is lost by it.
    pub loss: ProblemScope,
}

/// What a [`InputProblem`] costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemScope {
    /// A whole case. Its models are named where they are known.
    Case(Vec<String>),
    /// A response of a case that follows.
    Response {
        /// Whose it is; `None` for a fault that costs no answer, as a line of an answers file that
        /// was needed by no case.
        model: Option<Box<str>>,
        /// The pairs that cannot be judged without it; the others can.
        pairs: Box<[[String; 2]]>,
    },
}

impl InputProblem {
    /// The pairs that are lost.
    pub fn pairs(&self) -> Vec<[String; 2]> {
        match &self.loss {
            ProblemScope::Response { pairs, .. } => pairs.to_vec(),
            ProblemScope::Case(models) => {
                let later = |(i, a): (usize, &String)| {
                    let a = a.clone();
                    models
                        .iter()
                        .skip(i + 1)
                        .map(move |b| [a.clone(), b.clone()])
                };
                models.iter().enumerate().flat_map(later).collect()
            }
        }
    }

    /// The models of a whole case that is lost, as far as they are known.
    pub fn models(&self) -> &[String] {
        match &self.loss {
            ProblemScope::Case(models) => models,
            ProblemScope::Response { .. } => &[],
        }
    }

    /// The model whose response to a case that follows is lost.
    pub fn lost_response(&self) -> Option<&str> {
        match &self.loss {
            ProblemScope::Response { model, .. } => model.as_deref(),
            ProblemScope::Case(_) => None,
        }
    }

    /// Whether no answer is lost by it.
    pub fn costs_nothing(&self) -> bool {
        matches!(&self.loss, ProblemScope::Response { model: None, pairs } if pairs.is_empty())
    }

    /// Whether a whole case is lost.
    pub fn is_case(&self) -> bool {
        matches!(self.loss, ProblemScope::Case(_))
    }

    /// A problem of reading ([`Reason::Parse`]).
    pub fn parse(file: &Path, line: u64, id: Option<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            file: file.to_path_buf(),
            line,
            id,
            reason: UnscoredReason::Parse,
            message,
            loss: ProblemScope::Case(Vec::new()),
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
