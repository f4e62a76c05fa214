//! One line of `records.jsonl`: a pair of responses and the verdict on it, or why there is none.
//!
//! A record holds no time and no duration: the same input and judge give the same bytes, however
//! the run was cut into batches or interrupted. Times are in the [manifest](crate::judging::run::manifest).

use acem3_vision::Shown;
use anyhow::Context as _;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::cases::{Case, CaseLabels, InputProblem, UnscoredReason};
use crate::data::images::image_cluster::ImageCluster;
use crate::judging::judge::Unscored;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::support::digest::Digest;

/// The version of the record's form. Fields are added, never renamed.
pub const SCHEMA: u32 = 1;

/// A pair and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The version of this form.
    pub schema: u32,
    /// What was judged.
    #[serde(flatten)]
    pub subject: RecordSubject,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: RecordOutcome,
}

/// What a record is about: the pair, and all that reports and comparisons need to know of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordSubject {
    /// The case's id; `None` where it could not be read.
    pub case: Option<String>,
    /// The models that answered; `None` where there was no pair to judge.
    pub pair: Option<[String; 2]>,
    /// The models of a case without a pair, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The case's line or row in its source, counted from one.
    pub line: u64,
    /// The file of that line, where the case could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The image, if the case has one.
    pub image: Option<ImageInfo>,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The two answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responses: Option<[String; 2]>,
    /// The known right answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The known scores of these two responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<CaseLabels>,
    /// Subgroup fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Fields of the source this program does not know.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// Who judged: the first 16 digits of the hash of the judge's provenance.
    pub judge: String,
    /// The hash of all that can move the verdict; `None` where something of it was missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
}

/// Which image was judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageInfo {
    /// Its name: the path from the folder of the source.
    pub name: String,
    /// The hash of its bytes; `None` where they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// The frame and window of a DICOM image that were judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Shown>,
}

/// What came of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RecordOutcome {
    /// A verdict.
    Judged(Box<RecordedVerdict>),
    /// None, and why.
    Unscored(Unscored),
    /// There was nothing to judge and no verdict is lost: a fault of the input that is told, as labels
    /// that cannot be read.
    Noted {
        /// The fault.
        message: String,
    },
}

impl RecordSubject {
    /// The bootstrap cluster of the case.
    pub fn cluster(&self) -> ImageCluster<'_> {
        match &self.image {
            Some(image) => ImageCluster::from_image(&image.name, image.sha256),
            None => ImageCluster::Case(self.case.as_deref().unwrap_or_default()),
        }
    }

    /// A whole case, before a pair of it is chosen.
    pub fn of_case(case: &Case, judge: &Digest) -> Self {
        Self {
            case: Some(case.id.clone()),
            pair: None,
            models: case.responses.iter().map(|r| r.model.clone()).collect(),
            line: case.line,
            file: None,
            image: None,
            question: Some(case.question.clone()),
            responses: None,
            reference: case.reference.clone(),
            labels: None,
            meta: case.meta.clone(),
            extra: case.extra.clone(),
            judge: judge.short(),
            key: None,
        }
    }

    /// Two responses of a case.
    pub fn of_pair(case: &Case, pair: [usize; 2], judge: &Digest) -> Self {
        let response = |i: usize| case.responses.get(i);
        Self {
            pair: Some(pair.map(|i| response(i).map_or_else(String::new, |r| r.model.clone()))),
            responses: Some(pair.map(|i| response(i).map_or_else(String::new, |r| r.text.clone()))),
            models: Vec::new(),
            labels: case
                .labels
                .as_ref()
                .and_then(|labels| labels_of(labels, pair)),
            ..Self::of_case(case, judge)
        }
    }

    /// What could not be read, and the pair of models it concerns, where there is one. `file` is how
    /// its file is called in records.
    pub fn of_problem(
        problem: &InputProblem,
        pair: Option<[String; 2]>,
        file: String,
        judge: &Digest,
    ) -> Self {
        let models = if pair.is_none() {
            problem.models()
        } else {
            &[]
        };
        Self {
            case: problem.id.clone(),
            models: models.to_vec(),
            pair,
            line: problem.line,
            file: Some(file),
            image: None,
            question: None,
            responses: None,
            reference: None,
            labels: None,
            meta: Map::new(),
            extra: Map::new(),
            judge: judge.short(),
            key: None,
        }
    }
}

impl RecordOutcome {
    /// What comes of a fault of the input.
    pub fn of_problem(problem: &InputProblem) -> Self {
        let message = problem.message.clone();
        if problem.costs_nothing() {
            Self::Noted { message }
        } else {
            let reason = problem.reason;
            Self::Unscored(Unscored { reason, message })
        }
    }
}

impl Record {
    /// A record of this program's form.
    pub fn new(subject: RecordSubject, outcome: RecordOutcome) -> Self {
        Self {
            schema: SCHEMA,
            subject,
            outcome,
        }
    }

    /// Returns the JSON Schema of a line of `records.jsonl`.
    pub fn line_schema() -> Schema {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        settings.into_generator().into_root_schema_for::<Self>()
    }

    /// The line that is written, with its line break.
    pub fn line(&self) -> anyhow::Result<String> {
        let mut line = serde_json::to_string(self).context("cannot write a record as json")?;
        line.push('\n');
        Ok(line)
    }

    /// The verdict, if there is one.
    pub fn judgement(&self) -> Option<&RecordedVerdict> {
        match &self.outcome {
            RecordOutcome::Judged(judgement) => Some(judgement),
            RecordOutcome::Unscored(_) | RecordOutcome::Noted { .. } => None,
        }
    }

    /// True if the outcome came from the judge and would come again. What the input caused is
    /// looked at afresh (it costs nothing), and a judge that was out of reach is asked again.
    pub fn is_settled(&self) -> bool {
        match &self.outcome {
            RecordOutcome::Judged(_) => true,
            RecordOutcome::Unscored(u) => matches!(
                u.reason,
                UnscoredReason::Truncated | UnscoredReason::Refused
            ),
            RecordOutcome::Noted { .. } => false,
        }
    }
}

/// The labels of two responses; what is not known of both is left out.
fn labels_of(labels: &CaseLabels, pair: [usize; 2]) -> Option<CaseLabels> {
    let pick = |all: &Vec<f64>| Some(vec![*all.get(pair[0])?, *all.get(pair[1])?]);
    let picked = CaseLabels {
        last: labels.last.as_ref().and_then(pick),
        aspects: labels
            .aspects
            .iter()
            .filter_map(|(k, v)| Some((*k, pick(v)?)))
            .collect(),
        criteria: labels
            .criteria
            .iter()
            .filter_map(|(k, v)| Some((*k, pick(v)?)))
            .collect(),
    };
    (picked != CaseLabels::default()).then_some(picked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::Response;

    fn case() -> Case {
        let response = |model: &str| Response {
            model: model.into(),
            text: format!("of {model}"),
        };
        Case {
            id: "c1".into(),
            image: None,
            question: "where?".into(),
            responses: ["a", "b", "c"].map(response).into(),
            reference: None,
            labels: Some(CaseLabels {
                last: Some(vec![1.0, 2.5, 3.0]),
                ..CaseLabels::default()
            }),
            meta: Map::new(),
            extra: Map::new(),
            line: 7,
        }
    }

    #[test]
    fn a_subject_takes_the_labels_of_its_two_responses() {
        let subject = RecordSubject::of_pair(&case(), [2, 0], &Digest::of(b"judge"));
        assert_eq!(subject.pair, Some(["c".to_owned(), "a".to_owned()]));
        assert_eq!(subject.labels.and_then(|l| l.last), Some(vec![3.0, 1.0]));
    }

    #[test]
    fn an_unscored_record_reads_as_it_was_written() {
        let subject = RecordSubject::of_pair(&case(), [0, 1], &Digest::of(b"judge"));
        let unscored = Unscored {
            reason: UnscoredReason::Image,
            message: "x.png: no such file".into(),
        };
        let record = Record::new(subject, RecordOutcome::Unscored(unscored));
        let line = record.line().unwrap();
        assert!(
            line.contains(r#""status":"unscored","reason":"image""#),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        assert!(!record.is_settled());
    }
}
