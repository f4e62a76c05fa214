//! Aspects and criteria of a verdict, by key. A rubric file defines them, see
//! [`Rubric`](crate::prompt::Rubric).
//!
//! The constants are the three aspects and ten criteria of ACE-M³ (§3; HDCEval, table 1), in which the
//! generated data and the training of the project are written.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::Error;
use crate::rubric_key::{KeyStore, RubricKey};

/// Keys of aspects that do not belong to ACE-M³.
static ASPECT_KEYS: KeyStore = KeyStore::new();
/// Keys of criteria that do not belong to ACE-M³.
static CRITERION_KEYS: KeyStore = KeyStore::new();

/// What one branch expert scores. Those of ACE-M³ come first, in the order of the papers, then those of
/// rubrics and records in the order in which the program read them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Aspect(RubricKey);

/// One item that is scored; higher is better. The order is that of [`Aspect`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Criterion(RubricKey);

impl Aspect {
    /// Wording of the response (EXP).
    pub const EXPRESSION: Self = Self(RubricKey::constant(0, "expression"));
    /// Medical correctness of the response (MKC).
    pub const MEDICAL_KNOWLEDGE: Self = Self(RubricKey::constant(1, "medical_knowledge"));
    /// Relevance to the patient's question and image (PQR).
    pub const PATIENT_RELEVANCE: Self = Self(RubricKey::constant(2, "patient_relevance"));

    /// The aspects of ACE-M³, in the order of the papers.
    pub const ALL: [Self; 3] = [Self::EXPRESSION, Self::MEDICAL_KNOWLEDGE, Self::PATIENT_RELEVANCE];

    /// Returns the aspect with a key.
    ///
    /// # Errors
    /// If the text is no key.
    pub fn from_key(key: &str) -> Result<Self, Error> {
        match Self::ALL.into_iter().find(|aspect| aspect.key() == key) {
            Some(known) => Ok(known),
            None => ASPECT_KEYS.store(key).map(Self),
        }
    }

    /// Returns the aspect with a key, if it belongs to ACE-M³ or to a rubric or record that the program
    /// has read.
    pub fn find(key: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|aspect| aspect.key() == key);
        known.or_else(|| ASPECT_KEYS.find(key).map(Self))
    }

    /// Returns those of ACE-M³, then those of the rubrics and records that the program has read.
    pub fn known() -> Vec<Self> {
        Self::ALL.into_iter().chain(ASPECT_KEYS.all().into_iter().map(Self)).collect()
    }

    /// Returns the name in records and panel files.
    pub fn key(self) -> &'static str {
        self.0.text()
    }

    /// Returns the name in prompts of ACE-M³ and in reports. Other aspects are named by their keys.
    pub fn name(self) -> String {
        match self {
            Self::EXPRESSION => "Expression".to_owned(),
            Self::MEDICAL_KNOWLEDGE => "Medical Knowledge Correctness".to_owned(),
            Self::PATIENT_RELEVANCE => "Patient Question Relevance".to_owned(),
            Self(key) => name_of_key(key.text()),
        }
    }

    /// Returns the criteria of an aspect of ACE-M³, in the order of an evaluation; none for other
    /// aspects.
    pub fn criteria(self) -> &'static [Criterion] {
        match self {
            Self::EXPRESSION => &Criterion::ALL[..4],
            Self::MEDICAL_KNOWLEDGE => &Criterion::ALL[4..7],
            Self::PATIENT_RELEVANCE => &Criterion::ALL[7..],
            _ => &[],
        }
    }
}

impl Criterion {
    /// CR: is the response easy to follow?
    pub const CLARITY_OF_RESPONSE: Self = Self(RubricKey::constant(0, "clarity_of_response"));
    /// LA: does the wording suit a patient?
    pub const LANGUAGE_APPROPRIATENESS: Self =
        Self(RubricKey::constant(1, "language_appropriateness"));
    /// TE: is the response courteous and humane?
    pub const TONE_AND_EMPATHY: Self = Self(RubricKey::constant(2, "tone_and_empathy"));
    /// EI: is the text complete, neither cut off nor garbled?
    pub const EXPRESSION_INTEGRITY: Self = Self(RubricKey::constant(3, "expression_integrity"));
    /// FA: does the response agree with the image and with medical knowledge?
    pub const FACTUAL_ACCURACY: Self = Self(RubricKey::constant(4, "factual_accuracy"));
    /// UI: does the response use current practice and terms?
    pub const UP_TO_DATE_INFORMATION: Self = Self(RubricKey::constant(5, "up_to_date_information"));
    /// HU: is the stated certainty appropriate?
    pub const HANDLING_UNCERTAINTY: Self = Self(RubricKey::constant(6, "handling_uncertainty"));
    /// CA: does the response refer to this image and this question?
    pub const CONTEXT_AWARENESS: Self = Self(RubricKey::constant(7, "context_awareness"));
    /// RPC: does the response concern the patient's condition?
    pub const RELEVANCE_TO_CONDITION: Self = Self(RubricKey::constant(8, "relevance_to_condition"));
    /// AMC: does the response answer every part of the question?
    pub const ADDRESSING_MULTIPLE_CONCERNS: Self =
        Self(RubricKey::constant(9, "addressing_multiple_concerns"));

    /// The criteria of ACE-M³, grouped by aspect, in the order of the papers.
    pub const ALL: [Self; 10] = [
        Self::CLARITY_OF_RESPONSE,
        Self::LANGUAGE_APPROPRIATENESS,
        Self::TONE_AND_EMPATHY,
        Self::EXPRESSION_INTEGRITY,
        Self::FACTUAL_ACCURACY,
        Self::UP_TO_DATE_INFORMATION,
        Self::HANDLING_UNCERTAINTY,
        Self::CONTEXT_AWARENESS,
        Self::RELEVANCE_TO_CONDITION,
        Self::ADDRESSING_MULTIPLE_CONCERNS,
    ];

    /// Returns the criterion with a key.
    ///
    /// # Errors
    /// If the text is no key.
    pub fn from_key(key: &str) -> Result<Self, Error> {
        match Self::ALL.into_iter().find(|criterion| criterion.key() == key) {
            Some(known) => Ok(known),
            None => CRITERION_KEYS.store(key).map(Self),
        }
    }

    /// Returns the criterion with a key, if it belongs to ACE-M³ or to a rubric or record that the program
    /// has read.
    pub fn find(key: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|criterion| criterion.key() == key);
        known.or_else(|| CRITERION_KEYS.find(key).map(Self))
    }

    /// Returns those of ACE-M³, then those of the rubrics and records that the program has read.
    pub fn known() -> Vec<Self> {
        Self::ALL.into_iter().chain(CRITERION_KEYS.all().into_iter().map(Self)).collect()
    }

    /// Returns the name in records and rubric files.
    pub fn key(self) -> &'static str {
        self.0.text()
    }

    /// Returns the name in prompts of ACE-M³ and in reports. Other criteria are named by their keys.
    pub fn name(self) -> String {
        let name = match self {
            Self::CLARITY_OF_RESPONSE => "Clarity of Response",
            Self::LANGUAGE_APPROPRIATENESS => "Language Appropriateness",
            Self::TONE_AND_EMPATHY => "Tone and Empathy",
            Self::EXPRESSION_INTEGRITY => "Expression Integrity",
            Self::FACTUAL_ACCURACY => "Factual Accuracy",
            Self::UP_TO_DATE_INFORMATION => "Up-to-date Information",
            Self::HANDLING_UNCERTAINTY => "Handling Uncertainty",
            Self::CONTEXT_AWARENESS => "Context Awareness",
            Self::RELEVANCE_TO_CONDITION => "Relevance to Patient's Condition",
            Self::ADDRESSING_MULTIPLE_CONCERNS => "Addressing Multiple Concerns",
            Self(key) => return name_of_key(key.text()),
        };
        name.to_owned()
    }

    /// Returns the aspect of a criterion of ACE-M³; `None` for other criteria.
    pub fn aspect(self) -> Option<Aspect> {
        Aspect::ALL.into_iter().find(|aspect| aspect.criteria().contains(&self))
    }
}

/// Converts a key to a name: spaces for underscores, and a capital first letter.
fn name_of_key(key: &str) -> String {
    let mut name = key.replace('_', " ");
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

/// Implements what both kinds of keys have in common: text, serde and JSON Schema.
macro_rules! impl_key {
    ($type:ident) => {
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.key())
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.key())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let key = Cow::<'de, str>::deserialize(deserializer)?;
                Self::from_key(&key).map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": "^[a-z][a-z0-9_]{0,47}$" })
            }
        }
    };
}

impl_key!(Aspect);
impl_key!(Criterion);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_ace_m3_come_first_in_the_order_of_the_papers() {
        let own = Criterion::from_key("brevity").unwrap();
        let mut all: Vec<Criterion> = Criterion::ALL.into_iter().rev().collect();
        all.insert(3, own);
        all.sort();
        assert_eq!(all[..10], Criterion::ALL);
        assert_eq!(all[10], own);
        assert_eq!(Criterion::from_key("factual_accuracy").unwrap(), Criterion::FACTUAL_ACCURACY);
    }

    #[test]
    fn key_round_trips_through_json() {
        let aspect: Aspect = serde_json::from_str("\"safety\"").unwrap();
        assert_eq!(serde_json::to_string(&aspect).unwrap(), "\"safety\"");
        assert!(serde_json::from_str::<Aspect>("\"Not A Key\"").is_err());
    }
}
