//! What a score or preference is about: a criterion, an aspect, or the response as a whole.

use acem3_experts::{Aspect, Criterion};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// What is scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScoreTarget {
    /// The response as a whole: the conclusion.
    Final,
    /// One of the three aspects.
    Aspect(Aspect),
    /// One of the ten criteria.
    Criterion(Criterion),
}

impl ScoreTarget {
    /// All fourteen: the whole, then the aspects, then the criteria.
    pub fn all() -> impl Iterator<Item = Self> {
        let aspects = Aspect::ALL.into_iter().map(Self::Aspect);
        let criteria = Criterion::ALL.into_iter().map(Self::Criterion);
        std::iter::once(Self::Final).chain(aspects).chain(criteria)
    }

    /// The name in files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Aspect(aspect) => aspect.key(),
            Self::Criterion(criterion) => criterion.key(),
        }
    }

    /// What a file or a person may call it: its name in files, the papers' name, and the short forms
    /// of ACE-M³ and HDCEval, in any case and with spaces, hyphens or underscores.
    pub fn named(name: &str) -> Option<Self> {
        let name = plain(name);
        Self::all().find(|target| {
            plain(target.key()) == name
                || plain(target.title()) == name
                || target.short().contains(&name.as_str())
        })
    }

    fn title(self) -> &'static str {
        match self {
            Self::Final => "overall",
            Self::Aspect(aspect) => aspect.name(),
            Self::Criterion(criterion) => criterion.name(),
        }
    }

    fn short(self) -> &'static [&'static str] {
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

/// A name without what people write differently.
pub(super) fn plain(name: &str) -> String {
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
        Self::named(&name).ok_or_else(|| D::Error::custom(format!("unknown criterion `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_target_s() {
        for target in ScoreTarget::all() {
            assert_eq!(ScoreTarget::named(target.key()), Some(target));
            assert_eq!(ScoreTarget::named(target.title()), Some(target));
            for short in target.short() {
                assert_eq!(
                    ScoreTarget::named(&short.to_uppercase()),
                    Some(target),
                    "{short}"
                );
            }
        }
        assert_eq!(ScoreTarget::all().count(), 14);
        assert_eq!(
            ScoreTarget::named("Up to date information"),
            ScoreTarget::named("UI")
        );
        assert_eq!(ScoreTarget::named("beauty"), None);
    }
}
