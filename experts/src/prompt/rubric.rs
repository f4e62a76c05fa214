//! Rubric: the meaning of each score of each criterion, read from a data file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::{Aspect, Criterion, Error};

/// Built-in rubric (TOML).
const BUILT_IN: &str = include_str!("../../data/rubric.toml");

/// Definition and anchors of one criterion.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriterionScale {
    /// Question that the criterion asks about a response.
    pub definition: String,
    /// Meaning of the scores 0 to 5.
    pub anchors: [String; 6],
}

/// Scales of all ten criteria.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rubric {
    /// Incremented whenever a text changes.
    pub version: u32,
    #[serde(flatten)]
    scales: BTreeMap<Criterion, CriterionScale>,
    #[serde(skip)]
    source: String,
}

impl Rubric {
    /// Parses the built-in rubric.
    pub fn built_in() -> Result<Self, Error> {
        Self::parse(BUILT_IN)
    }

    /// Parses a rubric in TOML.
    ///
    /// # Errors
    /// If the TOML is invalid or a criterion is missing.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let mut rubric: Self = toml::from_str(source).map_err(|e| Error::Rubric(e.to_string()))?;
        if let Some(missing) =
            Criterion::ALL.iter().find(|criterion| !rubric.scales.contains_key(criterion))
        {
            return Err(Error::Rubric(format!("criterion `{}` is missing", missing.key())));
        }
        source.clone_into(&mut rubric.source);
        Ok(rubric)
    }

    /// Returns the TOML text. Its hash is part of the provenance.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the scale of a criterion.
    pub fn scale(&self, criterion: Criterion) -> Option<&CriterionScale> {
        self.scales.get(&criterion)
    }

    /// Renders the criteria of an aspect for a prompt.
    pub fn describe(&self, aspect: Aspect, detail: RubricDetail) -> String {
        let mut text = String::new();
        for (i, criterion) in aspect.criteria().iter().enumerate() {
            if i > 0 {
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(text, "{}. {}", i + 1, criterion.name());
            if let (RubricDetail::Full, Some(scale)) = (detail, self.scale(*criterion)) {
                let _ = write!(text, ": {}", scale.definition);
                for (score, anchor) in scale.anchors.iter().enumerate() {
                    let _ = write!(text, "\n{score}: {anchor}");
                }
            }
        }
        text
    }
}

/// Amount of the rubric in a panel's prompts. A panel uses the value that it was trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RubricDetail {
    /// Names, definitions and anchors.
    #[default]
    Full,
    /// Names only, for small models that learn the scale during training.
    Names,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_rubric_has_all_criteria_and_anchors() -> Result<(), Error> {
        let rubric = Rubric::built_in()?;
        assert_eq!(rubric.scales.len(), 10);
        let text = rubric.describe(Aspect::MedicalKnowledge, RubricDetail::Full);
        assert_eq!(text.lines().count(), 3 * 7);
        assert!(text.starts_with("1. Factual Accuracy: Do the statements agree"));
        Ok(())
    }

    #[test]
    fn missing_criterion_is_named() {
        let error = Rubric::parse("version = 1").unwrap_err().to_string();
        assert!(error.contains("clarity_of_response"), "{error}");
    }
}
