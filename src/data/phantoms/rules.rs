//! The rules by which a phantom response is scored: what every level of a criterion means and
//! which criteria a defect lowers, and to what. This table is the whole of the labels' law;
//! [`super::style`] only applies it.

use acem3_experts::Criterion;

/// The analysis of every level, 0 to 5, of the ten criteria in the order of [`Criterion::ALL`].
/// Those of factual accuracy and of multiple concerns are usually written from the claim.
pub const LEVELS: [(Criterion, [&str; 6]); 10] = [
    (
        Criterion::ClarityOfResponse,
        [
            "Cannot be understood.",
            "Muddled and hard to follow.",
            "Hard to follow in places.",
            "Somewhat winding.",
            "Clear, though only a phrase.",
            "Clear and easy to follow.",
        ],
    ),
    (
        Criterion::LanguageAppropriateness,
        [
            "Not in the patient's language.",
            "Heavy jargon or slang.",
            "Much jargon or slang.",
            "Some jargon or slang.",
            "Mostly plain words.",
            "Plain words a patient understands.",
        ],
    ),
    (
        Criterion::ToneAndEmpathy,
        [
            "Insults the patient.",
            "Rude to the patient.",
            "Impatient with the patient.",
            "Curt.",
            "Neutral, without courtesy.",
            "Courteous and kind.",
        ],
    ),
    (
        Criterion::ExpressionIntegrity,
        [
            "Unreadable throughout.",
            "Words are garbled.",
            "Breaks off in mid-sentence.",
            "Small slips in the writing.",
            "A bare phrase, no sentence.",
            "Whole and cleanly written.",
        ],
    ),
    (
        Criterion::FactualAccuracy,
        [
            "Nothing is claimed.",
            "The claim is wrong.",
            "The claim is mostly wrong.",
            "The claim is half right.",
            "The claim is nearly right.",
            "The claim is right.",
        ],
    ),
    (
        Criterion::UpToDateInformation,
        [
            "Advises a harmful old practice.",
            "Advises an abandoned practice.",
            "Rests on outdated practice.",
            "Uses an outdated term.",
            "Nearly current practice.",
            "In line with current practice.",
        ],
    ),
    (
        Criterion::HandlingUncertainty,
        [
            "Certain without any ground.",
            "Claims absolute certainty.",
            "Too vague to help.",
            "A little too sure.",
            "Nearly fitting confidence.",
            "Confidence is fitting.",
        ],
    ),
    (
        Criterion::ContextAwareness,
        [
            "Nothing fits the context.",
            "General text, ignores the image.",
            "Speaks of another kind of picture.",
            "Partly leaves this image.",
            "Mostly about this image.",
            "Speaks about this image.",
        ],
    ),
    (
        Criterion::RelevanceToCondition,
        [
            "Wholly off the topic.",
            "Advises on another condition.",
            "Mostly beside the question.",
            "Drifts to another matter.",
            "Mostly on the question.",
            "Stays on the patient's question.",
        ],
    ),
    (
        Criterion::AddressingMultipleConcerns,
        [
            "Answers nothing.",
            "Hardly answers anything.",
            "Leaves out a concern.",
            "Answers half of it.",
            "Answers nearly everything.",
            "Answers the question.",
        ],
    ),
];

/// The analysis of one level of a criterion; empty above 5.
pub fn phrase(criterion: Criterion, level: u8) -> &'static str {
    let row = LEVELS.iter().find(|(c, _)| *c == criterion);
    row.and_then(|(_, levels)| levels.get(usize::from(level)).copied())
        .unwrap_or_default()
}

/// One way in which a response can be bad, besides being wrong.
///
/// Facts that are wrong or left out are no defects of style: they are in [`super::Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// Advises a practice long abandoned.
    Outdated,
    /// Uses a term long out of use.
    OldTerm,
    /// Leaves no room for doubt at all.
    Certain,
    /// Is surer than it should be.
    TooSure,
    /// Takes back what it says.
    Vague,
    /// Says nothing about what was asked; the claim is dropped.
    Evasive,
    /// Is so winding that it is hard to follow.
    Muddled,
    /// Takes a detour.
    Winding,
    /// Is full of jargon.
    Jargon,
    /// Uses some slang.
    Slang,
    /// Insults the asker.
    Insult,
    /// Is rude to the asker.
    Rude,
    /// Is curt.
    Curt,
    /// Breaks off in the middle of a sentence.
    Truncated,
    /// Has garbled words.
    Garbled,
    /// Is a phrase, no sentence, and nothing else.
    Bare,
    /// Is general text that was not written about the image.
    Generic,
    /// Speaks of a picture of another kind.
    OtherPicture,
    /// Gives advice on another condition.
    OffTopic,
    /// Mentions something else on the way.
    Aside,
}

/// One row of the table.
pub struct Rule {
    /// The defect.
    pub defect: Defect,
    /// Its name in `meta`.
    pub key: &'static str,
    /// What it is a case of; families are drawn evenly.
    pub family: &'static str,
    /// The criteria it lowers, each with the score it lowers it to.
    pub lowers: &'static [(Criterion, u8)],
    /// The sentences that show it; empty where the text itself is changed.
    pub phrases: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::phantoms::defect_table::RULES;

    #[test]
    fn every_level_has_a_short_analysis_of_its_own() {
        for ((criterion, levels), expected) in LEVELS.iter().zip(Criterion::ALL) {
            assert_eq!(*criterion, expected);
            for (level, text) in levels.iter().enumerate() {
                assert!((1..=8).contains(&text.split(' ').count()), "{text}");
                assert!(text.ends_with('.'), "{text}");
                assert_eq!(levels.iter().filter(|other| *other == text).count(), 1);
                assert_eq!(phrase(*criterion, level as u8), *text);
            }
        }
    }

    #[test]
    fn every_rule_lowers_something_and_is_found() {
        for rule in RULES {
            assert_eq!(rule.defect.key(), rule.key);
            assert!(!rule.lowers.is_empty());
            assert!(rule.lowers.iter().all(|(_, level)| *level < 5));
            assert_eq!(rule.phrases.is_empty(), rule.defect == Defect::Bare);
            assert_eq!(
                RULES.iter().filter(|other| other.key == rule.key).count(),
                1
            );
        }
    }
}
