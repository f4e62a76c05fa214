//! The three aspects and ten criteria of a verdict (ACE-M³ §3, HDCEval table 1).
//!
//! The papers and the record format fix the names. The rubric file defines the scores, see
//! [`Rubric`](crate::prompt::Rubric).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What one branch expert scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// Wording of the response (EXP).
    Expression,
    /// Medical correctness of the response (MKC).
    MedicalKnowledge,
    /// Relevance to the patient's question and image (PQR).
    PatientRelevance,
}

impl Aspect {
    /// All aspects, in the order of the papers.
    pub const ALL: [Self; 3] = [Self::Expression, Self::MedicalKnowledge, Self::PatientRelevance];

    /// Returns the name in records and panel files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Expression => "expression",
            Self::MedicalKnowledge => "medical_knowledge",
            Self::PatientRelevance => "patient_relevance",
        }
    }

    /// Returns the name in prompts and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expression => "Expression",
            Self::MedicalKnowledge => "Medical Knowledge Correctness",
            Self::PatientRelevance => "Patient Question Relevance",
        }
    }

    /// Returns the criteria of the aspect, in the order of an evaluation.
    pub fn criteria(self) -> &'static [Criterion] {
        match self {
            Self::Expression => &Criterion::ALL[..4],
            Self::MedicalKnowledge => &Criterion::ALL[4..7],
            Self::PatientRelevance => &Criterion::ALL[7..],
        }
    }
}

/// One of the ten items that are scored from 0 to 5; higher is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// CR: is the response easy to follow?
    ClarityOfResponse,
    /// LA: does the wording suit a patient?
    LanguageAppropriateness,
    /// TE: is the response courteous and humane?
    ToneAndEmpathy,
    /// EI: is the text complete, neither cut off nor garbled?
    ExpressionIntegrity,
    /// FA: does the response agree with the image and with medical knowledge?
    FactualAccuracy,
    /// UI: does the response use current practice and terms?
    UpToDateInformation,
    /// HU: is the stated certainty appropriate?
    HandlingUncertainty,
    /// CA: does the response refer to this image and this question?
    ContextAwareness,
    /// RPC: does the response concern the patient's condition?
    RelevanceToCondition,
    /// AMC: does the response answer every part of the question?
    AddressingMultipleConcerns,
}

impl Criterion {
    /// All criteria, grouped by aspect, in the order of the papers.
    pub const ALL: [Self; 10] = [
        Self::ClarityOfResponse,
        Self::LanguageAppropriateness,
        Self::ToneAndEmpathy,
        Self::ExpressionIntegrity,
        Self::FactualAccuracy,
        Self::UpToDateInformation,
        Self::HandlingUncertainty,
        Self::ContextAwareness,
        Self::RelevanceToCondition,
        Self::AddressingMultipleConcerns,
    ];

    /// Returns the name in records and rubric files.
    pub fn key(self) -> &'static str {
        match self {
            Self::ClarityOfResponse => "clarity_of_response",
            Self::LanguageAppropriateness => "language_appropriateness",
            Self::ToneAndEmpathy => "tone_and_empathy",
            Self::ExpressionIntegrity => "expression_integrity",
            Self::FactualAccuracy => "factual_accuracy",
            Self::UpToDateInformation => "up_to_date_information",
            Self::HandlingUncertainty => "handling_uncertainty",
            Self::ContextAwareness => "context_awareness",
            Self::RelevanceToCondition => "relevance_to_condition",
            Self::AddressingMultipleConcerns => "addressing_multiple_concerns",
        }
    }

    /// Returns the name in prompts and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClarityOfResponse => "Clarity of Response",
            Self::LanguageAppropriateness => "Language Appropriateness",
            Self::ToneAndEmpathy => "Tone and Empathy",
            Self::ExpressionIntegrity => "Expression Integrity",
            Self::FactualAccuracy => "Factual Accuracy",
            Self::UpToDateInformation => "Up-to-date Information",
            Self::HandlingUncertainty => "Handling Uncertainty",
            Self::ContextAwareness => "Context Awareness",
            Self::RelevanceToCondition => "Relevance to Patient's Condition",
            Self::AddressingMultipleConcerns => "Addressing Multiple Concerns",
        }
    }

    /// Returns the aspect that contains the criterion.
    pub fn aspect(self) -> Aspect {
        match self {
            Self::ClarityOfResponse
            | Self::LanguageAppropriateness
            | Self::ToneAndEmpathy
            | Self::ExpressionIntegrity => Aspect::Expression,
            Self::FactualAccuracy | Self::UpToDateInformation | Self::HandlingUncertainty => {
                Aspect::MedicalKnowledge
            }
            Self::ContextAwareness
            | Self::RelevanceToCondition
            | Self::AddressingMultipleConcerns => Aspect::PatientRelevance,
        }
    }
}

/// The schema is a list of the names in records. schemars uses it for the keys of maps.
impl JsonSchema for Aspect {
    fn schema_name() -> Cow<'static, str> {
        "Aspect".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::key) })
    }
}

/// The schema is a list of the names in records. schemars uses it for the keys of maps.
impl JsonSchema for Criterion {
    fn schema_name() -> Cow<'static, str> {
        "Criterion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::key) })
    }
}
