//! The three aspects and ten criteria of a verdict (ACE-M³ §3, HDCEval table 1).
//!
//! Their names are fixed by the papers and by the record format. What a score *means* is data:
//! see [`crate::rubric`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What one branch expert looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// How the response is written (EXP).
    Expression,
    /// Whether what it says is right (MKC).
    MedicalKnowledge,
    /// Whether it answers this patient's question about this image (PQR).
    PatientRelevance,
}

impl Aspect {
    /// The three, in the order of the papers.
    pub const ALL: [Self; 3] = [
        Self::Expression,
        Self::MedicalKnowledge,
        Self::PatientRelevance,
    ];

    /// The name in records and panel files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Expression => "expression",
            Self::MedicalKnowledge => "medical_knowledge",
            Self::PatientRelevance => "patient_relevance",
        }
    }

    /// The name in prompts and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expression => "Expression",
            Self::MedicalKnowledge => "Medical Knowledge Correctness",
            Self::PatientRelevance => "Patient Question Relevance",
        }
    }

    /// Its criteria, in the order in which an evaluation names them.
    pub fn criteria(self) -> &'static [Criterion] {
        match self {
            Self::Expression => &Criterion::ALL[..4],
            Self::MedicalKnowledge => &Criterion::ALL[4..7],
            Self::PatientRelevance => &Criterion::ALL[7..],
        }
    }
}

/// One of the ten things that are scored 0–5, higher being better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// CR: is it easy to follow?
    ClarityOfResponse,
    /// LA: does the wording suit a patient?
    LanguageAppropriateness,
    /// TE: is it courteous and humane?
    ToneAndEmpathy,
    /// EI: is the text whole, neither cut off nor garbled?
    ExpressionIntegrity,
    /// FA: does it agree with the image and with medicine?
    FactualAccuracy,
    /// UI: is it the practice and the wording of today?
    UpToDateInformation,
    /// HU: is it as sure as it may be?
    HandlingUncertainty,
    /// CA: does it speak about this image and this question?
    ContextAwareness,
    /// RPC: does it concern the patient's condition?
    RelevanceToCondition,
    /// AMC: does it answer every part of the question?
    AddressingMultipleConcerns,
}

impl Criterion {
    /// The ten, grouped by aspect, in the order of the papers.
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

    /// The name in records and rubric files.
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

    /// The name in prompts and reports.
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

    /// The aspect it belongs to.
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

/// The names in records, so that the schema of a map lists its keys.
impl JsonSchema for Aspect {
    fn schema_name() -> Cow<'static, str> {
        "Aspect".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::key) })
    }
}

/// The names in records, so that the schema of a map lists its keys.
impl JsonSchema for Criterion {
    fn schema_name() -> Cow<'static, str> {
        "Criterion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::key) })
    }
}
