//! Scoring rules of phantom responses: the analysis for each score of a criterion, and the defects
//! that lower scores. [`super::response_writer`] applies the rules.

use acem3_experts::Criterion;

/// Analyses for the scores 0 to 5 of the ten criteria, in the order of [`Criterion::ALL`].
/// The analyses for factual accuracy and multiple concerns are usually written from the claim.
pub const LEVELS: [(Criterion, [&str; 6]); 10] = [
    (
        Criterion::CLARITY_OF_RESPONSE,
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
        Criterion::LANGUAGE_APPROPRIATENESS,
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
        Criterion::TONE_AND_EMPATHY,
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
        Criterion::EXPRESSION_INTEGRITY,
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
        Criterion::FACTUAL_ACCURACY,
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
        Criterion::UP_TO_DATE_INFORMATION,
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
        Criterion::HANDLING_UNCERTAINTY,
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
        Criterion::CONTEXT_AWARENESS,
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
        Criterion::RELEVANCE_TO_CONDITION,
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
        Criterion::ADDRESSING_MULTIPLE_CONCERNS,
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

/// Returns the analysis for a score of a criterion; empty above 5.
pub fn analysis_for_score(criterion: Criterion, level: u8) -> &'static str {
    let row = LEVELS.iter().find(|(c, _)| *c == criterion);
    row.and_then(|(_, levels)| levels.get(usize::from(level)).copied()).unwrap_or_default()
}

/// Defect of a response other than a wrong fact.
///
/// Wrong and missing facts are part of [`super::Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// Recommends an abandoned practice.
    Outdated,
    /// Uses an obsolete term.
    OldTerm,
    /// Excludes any doubt.
    Certain,
    /// Is overconfident.
    TooSure,
    /// Retracts its statement.
    Vague,
    /// Evades the question; the claim is omitted.
    Evasive,
    /// Is hard to follow.
    Muddled,
    /// Is wordy.
    Winding,
    /// Is full of jargon.
    Jargon,
    /// Uses some slang.
    Slang,
    /// Insults the user.
    Insult,
    /// Is rude to the user.
    Rude,
    /// Is curt.
    Curt,
    /// Ends in the middle of a sentence.
    Truncated,
    /// Contains garbled words.
    Garbled,
    /// Is only a phrase instead of a sentence.
    Bare,
    /// Is generic text that ignores the image.
    Generic,
    /// Refers to an image of another modality.
    OtherPicture,
    /// Gives advice about another condition.
    OffTopic,
    /// Adds an unrelated remark.
    Aside,
}

/// Rule for one defect.
pub struct Rule {
    /// Defect.
    pub defect: Defect,
    /// Name in `meta`.
    pub key: &'static str,
    /// Family of the defect. Families are sampled with equal probability.
    pub family: &'static str,
    /// Criteria that the defect lowers, each with the lowered score.
    pub lowers: &'static [(Criterion, u8)],
    /// Phrases that show the defect; empty if the writer changes the text itself.
    pub phrases: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::phantoms::text::defect_table::RULES;

    #[test]
    fn every_score_has_a_unique_short_analysis() {
        for ((criterion, levels), expected) in LEVELS.iter().zip(Criterion::ALL) {
            assert_eq!(*criterion, expected);
            for (level, text) in levels.iter().enumerate() {
                assert!((1..=8).contains(&text.split(' ').count()), "{text}");
                assert!(text.ends_with('.'), "{text}");
                assert_eq!(levels.iter().filter(|other| *other == text).count(), 1);
                assert_eq!(analysis_for_score(*criterion, level as u8), *text);
            }
        }
    }

    #[test]
    fn every_rule_is_unique_and_lowers_a_score() {
        for rule in RULES {
            assert_eq!(rule.defect.key(), rule.key);
            assert!(!rule.lowers.is_empty());
            assert!(rule.lowers.iter().all(|(_, level)| *level < 5));
            assert_eq!(rule.phrases.is_empty(), rule.defect == Defect::Bare);
            assert_eq!(RULES.iter().filter(|other| other.key == rule.key).count(), 1);
        }
    }
}
