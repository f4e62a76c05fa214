//! Score targets: a criterion, an aspect or the whole response.

use acem3_experts::{Aspect, Criterion};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Subject of a score or preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScoreTarget {
    /// The whole response (final score).
    Final,
    /// One of the three aspects.
    Aspect(Aspect),
    /// One of the ten criteria.
    Criterion(Criterion),
}

impl ScoreTarget {
    /// Iterates over all fourteen targets: final, aspects, criteria.
    pub fn all() -> impl Iterator<Item = Self> {
        let aspects = Aspect::ALL.into_iter().map(Self::Aspect);
        let criteria = Criterion::ALL.into_iter().map(Self::Criterion);
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
                || normalize_name(target.title()) == name
                || target.abbreviations().contains(&name.as_str())
        })
    }

    fn title(self) -> &'static str {
        match self {
            Self::Final => "overall",
            Self::Aspect(aspect) => aspect.name(),
            Self::Criterion(criterion) => criterion.name(),
        }
    }

    fn abbreviations(self) -> &'static [&'static str] {
        match self {
            Self::Final => &["conclusion", "total"],
            Self::Aspect(Aspect::Expression) => &["exp"],
            Self::Aspect(Aspect::MedicalKnowledge) => &["mkc", "cor"],
            Self::Aspect(Aspect::PatientRelevance) => &["pqr", "rel"],
            Self::Criterion(criterion) => match criterion {
                Criterion::ClarityOfResponse => &["cr", "clar"],
                Criterion::LanguageAppropriateness => &["la", "lang"],
                Criterion::ToneAndEmpathy => &["te"],
                Criterion::ExpressionIntegrity => &["ei", "inte"],
                Criterion::FactualAccuracy => &["fa", "acc"],
                Criterion::UpToDateInformation => &["ui", "info"],
                Criterion::HandlingUncertainty => &["hu", "unc"],
                Criterion::ContextAwareness => &["ca", "cont"],
                Criterion::RelevanceToCondition => &["rpc", "cond"],
                Criterion::AddressingMultipleConcerns => &["amc", "conc"],
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
        Self::parse_name(&name)
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
            assert_eq!(ScoreTarget::parse_name(target.title()), Some(target));
            for short in target.abbreviations() {
                assert_eq!(ScoreTarget::parse_name(&short.to_uppercase()), Some(target), "{short}");
            }
        }
        assert_eq!(ScoreTarget::all().count(), 14);
        assert_eq!(
            ScoreTarget::parse_name("Up to date information"),
            ScoreTarget::parse_name("UI")
        );
        assert_eq!(ScoreTarget::parse_name("beauty"), None);
    }
}
