//! What each score of each criterion means: the text of a data file, never of the code.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::{Aspect, Criterion, Error};

/// The rubric that this version of the program carries.
const BUILT_IN: &str = include_str!("../../data/rubric.toml");

/// One criterion's question and the meaning of its six scores.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// What the criterion asks.
    pub definition: String,
    /// What the scores 0 to 5 mean.
    pub anchors: [String; 6],
}

/// The scales of all ten criteria.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rubric {
    /// Raised whenever a text changes.
    pub version: u32,
    #[serde(flatten)]
    scales: BTreeMap<Criterion, Scale>,
    #[serde(skip)]
    source: String,
}

impl Rubric {
    /// The built-in rubric.
    pub fn built_in() -> Result<Self, Error> {
        Self::parse(BUILT_IN)
    }

    /// A rubric from TOML with all ten criteria.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let mut rubric: Self = toml::from_str(source).map_err(|e| Error::Rubric(e.to_string()))?;
        if let Some(missing) = Criterion::ALL
            .iter()
            .find(|c| !rubric.scales.contains_key(c))
        {
            return Err(Error::Rubric(format!("no scale for {}", missing.key())));
        }
        source.clone_into(&mut rubric.source);
        Ok(rubric)
    }

    /// The text whose hash belongs to every result.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// A criterion's scale.
    pub fn scale(&self, criterion: Criterion) -> Option<&Scale> {
        self.scales.get(&criterion)
    }

    /// The criteria of an aspect as a prompt states them.
    pub fn describe(&self, aspect: Aspect, detail: Detail) -> String {
        let mut text = String::new();
        for (i, criterion) in aspect.criteria().iter().enumerate() {
            if i > 0 {
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(text, "{}. {}", i + 1, criterion.name());
            if let (Detail::Full, Some(scale)) = (detail, self.scale(*criterion)) {
                let _ = write!(text, ": {}", scale.definition);
                for (score, anchor) in scale.anchors.iter().enumerate() {
                    let _ = write!(text, "\n{score}: {anchor}");
                }
            }
        }
        text
    }
}

/// How much of the rubric a panel's prompts spell out. It is part of what a panel was trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Definitions and the meaning of every score.
    #[default]
    Full,
    /// The criteria's names alone, for small models that learn the scale from their training.
    Names,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_rubric_has_ten_scales_of_six_scores() -> Result<(), Error> {
        let rubric = Rubric::built_in()?;
        assert_eq!(rubric.scales.len(), 10);
        let text = rubric.describe(Aspect::MedicalKnowledge, Detail::Full);
        assert_eq!(text.lines().count(), 3 * 7);
        assert!(text.starts_with("1. Factual Accuracy: Do the statements agree"));
        Ok(())
    }

    #[test]
    fn a_missing_criterion_is_named() {
        let error = Rubric::parse("version = 1").unwrap_err().to_string();
        assert!(error.contains("clarity_of_response"), "{error}");
    }
}
