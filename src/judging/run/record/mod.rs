//! One line of `records.jsonl`: a pair of responses, or one response, and the verdict, or the reason
//! for none.
//!
//! A record contains no time and no duration. Equal inputs and judges give equal bytes, independent
//! of batches and interruptions. Times are in the [manifest](crate::judging::run::manifest). The
//! last field of a line is its [checksum].

pub mod checksum;
pub mod damage;
pub mod find_records;
pub mod line_check;
pub mod record_reader;
pub mod record_row;

use std::borrow::Cow;

use acem3_conclusion::Verdict;
use acem3_experts::prompt::Form;
use acem3_vision::AppliedView;
use anyhow::Context as _;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::cases::{Case, CaseLabels, InputProblem, UnscoredReason};
use crate::data::images::image_cluster::ImageCluster;
use crate::judging::judge::Unscored;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::run::record::checksum::append_checksum;
use crate::support::digest::Digest;
use crate::support::text::cut::cut_message;

/// File name of the records in the output folder.
pub const RECORDS: &str = "records.jsonl";

/// Schema version of records. Fields are added, never renamed.
pub const SCHEMA: u32 = 1;

/// Responses and their outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Schema version.
    pub schema: u32,
    /// The pair, response or case that the record is about.
    #[serde(flatten)]
    pub subject: RecordSubject,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: RecordOutcome,
}

// Only the JSON Schema of this type is used.
/// A line of `records.jsonl`: responses, their outcome and a checksum.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Record")]
struct RecordLine {
    #[serde(flatten)]
    record: Record,
    /// First 16 digits of the SHA-256 of the line without this field, which is the last one. It
    /// shows that a line was damaged or edited; it is no signature.
    #[schemars(regex(pattern = r"^[0-9a-f]{16}$"))]
    checksum: String,
}

/// Subject of a record: the responses, and the data about them that reports and comparisons need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordSubject {
    /// Id of the case; `None` if unreadable.
    pub case: Option<String>,
    /// The form of judging; absent for pairs.
    #[serde(default, skip_serializing_if = "Form::is_pair")]
    pub form: Form,
    /// The models of the pair; `None` if there is no pair to judge, or the form judges responses
    /// alone.
    pub pair: Option<[String; 2]>,
    /// The models of a record without a pair: the model of the judged response, or the known models of
    /// a case that cannot be judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Number of pairs of each of these models that have no record of their own, because most
    /// responses of the case are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted_pairs: Option<u64>,
    /// Line or row of the case in its source, from 1.
    pub line: u64,
    /// File of the line, if the case could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The image, if the case has one.
    pub image: Option<ImageInfo>,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The judged responses, in the order of their models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responses: Option<Vec<String>>,
    /// The known correct answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The known scores of these responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<CaseLabels>,
    /// Subgroup fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Unknown fields of the case.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// First 16 digits of the hash of the judge's provenance.
    pub judge: String,
    /// Hash of everything that can change the verdict; `None` if a part of it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
}

/// The image of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageInfo {
    /// Name: the path relative to the folder of the source.
    pub name: String,
    /// SHA-256 of the file; `None` if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// Frame and window of a DICOM image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<AppliedView>,
}

/// Outcome of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RecordOutcome {
    /// A verdict.
    Judged(Box<RecordedVerdict>),
    /// No verdict, with the reason.
    Unscored(Unscored),
    /// An input problem that affects no verdict, for example invalid labels.
    Noted {
        /// The problem.
        message: String,
    },
}

/// The responses that a record of an input problem is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffectedResponses {
    /// A pair that cannot be judged.
    Pair([String; 2]),
    /// A response of this model that cannot be judged alone.
    Response(String),
    /// Models with pairs that have no record of their own.
    Models {
        /// The models.
        models: Vec<String>,
        /// Number of these pairs of each model.
        unlisted_pairs: u64,
    },
    /// The whole case with its known models, or no response.
    Case,
}

impl RecordSubject {
    /// Returns the bootstrap cluster of the case.
    pub fn cluster(&self) -> ImageCluster<'_> {
        match &self.image {
            Some(image) => ImageCluster::from_image(&image.name, image.sha256),
            None => ImageCluster::Case(self.case.as_deref().unwrap_or_default()),
        }
    }

    /// Returns the models whose responses the record is about, in the order of the responses.
    pub fn judged_models(&self) -> &[String] {
        self.pair.as_ref().map_or(&self.models, |pair| pair)
    }

    /// Creates the subject of a case without a pair.
    pub fn for_case(case: &Case, form: Form, judge: &Digest) -> Self {
        Self {
            case: Some(case.id.clone()),
            form,
            pair: None,
            models: case.responses.iter().map(|r| r.model.clone()).collect(),
            unlisted_pairs: None,
            line: case.line,
            file: None,
            image: None,
            question: Some(case.question.clone()),
            responses: None,
            reference: case.reference.clone(),
            labels: None,
            meta: case.meta.clone(),
            extra: case.extra.clone(),
            judge: judge.short_hex(),
            key: None,
        }
    }

    /// Creates the subject of the responses of a case with these indices.
    pub fn for_responses(case: &Case, form: Form, indices: &[usize], judge: &Digest) -> Self {
        let responses = || indices.iter().filter_map(|i| case.responses.get(*i));
        let models: Vec<String> = responses().map(|r| r.model.clone()).collect();
        let pair = if form.is_pair() { <[String; 2]>::try_from(models.clone()).ok() } else { None };
        Self {
            models: if pair.is_some() { Vec::new() } else { models },
            pair,
            responses: Some(responses().map(|r| r.text.clone()).collect()),
            labels: case.labels.as_ref().and_then(|labels| labels.of_responses(indices)),
            ..Self::for_case(case, form, judge)
        }
    }

    /// Creates the subject of an input problem that affects these responses. `file` is the name of
    /// the file in records.
    pub fn from_problem(
        problem: &InputProblem,
        affected: AffectedResponses,
        file: String,
        judge: &Digest,
    ) -> Self {
        let subject = Self {
            case: problem.id.as_deref().map(str::to_owned),
            form: Form::Pair,
            models: problem.scope.models().to_vec(),
            unlisted_pairs: None,
            pair: None,
            line: problem.line,
            file: Some(file),
            image: None,
            question: None,
            responses: None,
            reference: problem.reference.as_deref().map(str::to_owned),
            labels: None,
            meta: Map::new(),
            extra: Map::new(),
            judge: judge.short_hex(),
            key: None,
        };
        subject.with_responses(affected)
    }

    /// Sets the form of judging.
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Sets the responses that the record is about.
    #[must_use]
    pub fn with_responses(self, affected: AffectedResponses) -> Self {
        match affected {
            AffectedResponses::Pair(pair) => Self { pair: Some(pair), models: Vec::new(), ..self },
            AffectedResponses::Models { models, unlisted_pairs } => {
                Self { models, unlisted_pairs: Some(unlisted_pairs), ..self }
            }
            AffectedResponses::Response(model) => Self { models: vec![model], ..self },
            AffectedResponses::Case => self,
        }
    }
}

impl RecordOutcome {
    /// Creates the outcome of a judge's result.
    ///
    /// # Errors
    ///
    /// The verdict is incomplete, or has a number that is not finite.
    pub fn from_result(
        result: Result<Verdict, Unscored>,
        form: Form,
        is_reproducible: bool,
    ) -> anyhow::Result<Self> {
        let reproducible = (!is_reproducible).then_some(false);
        Ok(match result {
            Ok(verdict) => {
                let verdict = RecordedVerdict::from_verdict(&verdict, form)?;
                Self::Judged(Box::new(RecordedVerdict { reproducible, ..verdict }))
            }
            Err(unscored) => Self::Unscored(Unscored { reproducible, ..unscored }),
        })
    }

    /// Creates the outcome of an input problem.
    pub fn from_problem(problem: &InputProblem) -> Self {
        let message = problem.message.clone();
        if problem.scope.affects_no_response() {
            Self::Noted { message }
        } else {
            let reason = problem.reason;
            Self::Unscored(Unscored::new(reason, message))
        }
    }
}

impl Record {
    /// Creates a record with the current schema version.
    pub fn new(subject: RecordSubject, mut outcome: RecordOutcome) -> Self {
        if let RecordOutcome::Unscored(Unscored { message, .. }) | RecordOutcome::Noted { message } =
            &mut outcome
            && let Cow::Owned(cut) = cut_message(message)
        {
            *message = cut;
        }
        Self { schema: SCHEMA, subject, outcome }
    }

    /// Returns the JSON Schema of a line of `records.jsonl`.
    pub fn line_schema() -> Schema {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        settings.into_generator().into_root_schema_for::<RecordLine>()
    }

    /// Serializes the record to a line with its checksum and its line break.
    pub fn to_line(&self) -> anyhow::Result<String> {
        let json = serde_json::to_string(self).context("cannot write a record as json")?;
        let mut line = append_checksum(&json);
        line.push('\n');
        Ok(line)
    }

    /// Returns the verdict, if there is one.
    pub fn verdict(&self) -> Option<&RecordedVerdict> {
        match &self.outcome {
            RecordOutcome::Judged(verdict) => Some(verdict),
            RecordOutcome::Unscored(_) | RecordOutcome::Noted { .. } => None,
        }
    }

    /// Returns true if the judge was not bit-reproducible.
    pub fn is_irreproducible(&self) -> bool {
        let reproducible = match &self.outcome {
            RecordOutcome::Judged(verdict) => verdict.reproducible,
            RecordOutcome::Unscored(unscored) => unscored.reproducible,
            RecordOutcome::Noted { .. } => None,
        };
        reproducible == Some(false)
    }

    /// Returns true if a later run can reuse the outcome: it came from the judge. Input problems are cheap to detect again, and a judge that could not be
    /// reached is called again.
    pub fn is_reusable(&self) -> bool {
        match &self.outcome {
            RecordOutcome::Judged(_) => true,
            RecordOutcome::Unscored(u) => {
                matches!(u.reason, UnscoredReason::Truncated | UnscoredReason::Refused)
            }
            RecordOutcome::Noted { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::Response;

    fn case() -> Case {
        let response = |model: &str| Response { model: model.into(), text: format!("of {model}") };
        Case {
            id: "c1".into(),
            image: None,
            question: "where?".into(),
            responses: ["a", "b", "c"].map(response).into(),
            reference: None,
            labels: Some(CaseLabels {
                final_scores: Some(vec![1.0, 2.5, 3.0]),
                ..CaseLabels::default()
            }),
            meta: Map::new(),
            extra: Map::new(),
            line: 7,
        }
    }

    #[test]
    fn subject_has_the_labels_of_its_two_responses() {
        let subject =
            RecordSubject::for_responses(&case(), Form::Pair, &[2, 0], &Digest::sha256(b"judge"));
        assert_eq!(subject.pair, Some(["c".to_owned(), "a".to_owned()]));
        assert_eq!(subject.labels.and_then(|l| l.final_scores), Some(vec![3.0, 1.0]));
    }

    #[test]
    fn unscored_record_round_trips_through_json() {
        let subject =
            RecordSubject::for_responses(&case(), Form::Pair, &[0, 1], &Digest::sha256(b"judge"));
        let unscored = Unscored::new(UnscoredReason::Image, "x.png: no such file".into());
        let record = Record::new(subject, RecordOutcome::Unscored(unscored));
        let line = record.to_line().unwrap();
        assert!(line.contains(r#""status":"unscored","reason":"image""#), "{line}");
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        assert!(!record.is_reusable());
    }
}
