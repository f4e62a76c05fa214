//! Score targets: a criterion, an aspect or the whole response.

use acem3_experts::{Aspect, Criterion};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Subject of a score or preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScoreTarget {
    /// The whole response (final score).
    Final,
    /// An aspect.
    Aspect(Aspect),
    /// A criterion.
    Criterion(Criterion),
}

impl ScoreTarget {
    /// Iterates over all targets: final, aspects and criteria, those of ACE-M³ first, then those of the
    /// rubrics and records that the program has read.
    pub fn all() -> impl Iterator<Item = Self> {
        let aspects = Aspect::known().into_iter().map(Self::Aspect);
        let criteria = Criterion::known().into_iter().map(Self::Criterion);
        std::iter::once(Self::Final).chain(aspects).chain(criteria)
    }

    /// Returns the name used in files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Aspect(aspect) => aspect.key(),
            Self::Criterion(criterion) => criterion.key(),
        }
    }

    /// Returns the target with this name: the name used in files, the name in the papers, or an
    /// abbreviation of ACE-M³ or HDCEval. Ignores case, spaces, hyphens and underscores.
    pub fn parse_name(name: &str) -> Option<Self> {
        let name = normalize_name(name);
        Self::all().find(|target| {
            normalize_name(target.key()) == name
                || normalize_name(&target.title()) == name
                || target.abbreviations().contains(&name.as_str())
        })
    }

    /// Returns the target with this name, or the criterion with this key, which a rubric or record that
    /// is read later may have; `None` if the text is neither.
    pub fn parse_name_or_key(name: &str) -> Option<Self> {
        let criterion = || Criterion::from_key(name).ok().map(Self::Criterion);
        Self::parse_name(name).or_else(criterion)
    }

    /// Returns the aspect with the key of a criterion that [`Self::parse_name_or_key`] guessed, if the
    /// program has read such an aspect since.
    #[must_use]
    pub fn resolved(self) -> Self {
        Aspect::find(self.key()).map_or(self, Self::Aspect)
    }

    fn title(self) -> String {
        match self {
            Self::Final => "overall".to_owned(),
            Self::Aspect(aspect) => aspect.name(),
            Self::Criterion(criterion) => criterion.name(),
        }
    }

    fn abbreviations(self) -> &'static [&'static str] {
        match self {
            Self::Final => &["conclusion", "total"],
            Self::Aspect(Aspect::EXPRESSION) => &["exp"],
            Self::Aspect(Aspect::MEDICAL_KNOWLEDGE) => &["mkc", "cor"],
            Self::Aspect(Aspect::PATIENT_RELEVANCE) => &["pqr", "rel"],
            Self::Aspect(_) => &[],
            Self::Criterion(criterion) => match criterion {
                Criterion::CLARITY_OF_RESPONSE => &["cr", "clar"],
                Criterion::LANGUAGE_APPROPRIATENESS => &["la", "lang"],
                Criterion::TONE_AND_EMPATHY => &["te"],
                Criterion::EXPRESSION_INTEGRITY => &["ei", "inte"],
                Criterion::FACTUAL_ACCURACY => &["fa", "acc"],
                Criterion::UP_TO_DATE_INFORMATION => &["ui", "info"],
                Criterion::HANDLING_UNCERTAINTY => &["hu", "unc"],
                Criterion::CONTEXT_AWARENESS => &["ca", "cont"],
                Criterion::RELEVANCE_TO_CONDITION => &["rpc", "cond"],
                Criterion::ADDRESSING_MULTIPLE_CONCERNS => &["amc", "conc"],
                _ => &[],
            },
        }
    }
}

/// Removes punctuation and spaces from a name and converts it to lower case.
pub(super) fn normalize_name(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

impl Serialize for ScoreTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

impl<'de> Deserialize<'de> for ScoreTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse_name_or_key(&name)
            .ok_or_else(|| D::Error::custom(format!("unknown criterion `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_identify_targets_uniquely() {
        for target in ScoreTarget::all() {
            assert_eq!(ScoreTarget::parse_name(target.key()), Some(target));
            assert_eq!(ScoreTarget::parse_name(&target.title()), Some(target));
            for short in target.abbreviations() {
                assert_eq!(ScoreTarget::parse_name(&short.to_uppercase()), Some(target), "{short}");
            }
        }
        assert!(ScoreTarget::all().count() >= 14);
        assert_eq!(
            ScoreTarget::parse_name("Up to date information"),
            ScoreTarget::parse_name("UI")
        );
        assert_eq!(ScoreTarget::parse_name("beauty"), None);
    }
}
