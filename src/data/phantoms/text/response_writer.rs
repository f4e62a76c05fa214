//! Writes a response from a claim and defects, together with its exact evaluation. Used for
//! phantoms and for real data.

use std::ops::Range;

use acem3_experts::{Aspect, Criterion};
use rand::RngCore;

use super::claim::Claim;
use super::rules::{Defect, analysis_for_score};
use crate::data::phantoms::random_choice::RandomChoice;
use crate::support::text::letters::capitalize;

/// A response and its exact evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenResponse {
    /// Text.
    pub text: String,
    /// Ratings of the ten criteria, in the order of [`Criterion::ALL`].
    pub ratings: Vec<(Criterion, ExactRating)>,
    /// Final rating.
    pub conclusion: ExactRating,
    /// Defects of the response.
    pub defects: Vec<Defect>,
}

impl WrittenResponse {
    /// Returns the score on a criterion.
    pub fn score(&self, criterion: Criterion) -> u8 {
        let mut ratings = self.ratings.iter().filter(|(c, _)| *c == criterion);
        ratings.next().map_or(0, |(_, rating)| rating.score)
    }

    /// Returns the mean score of an aspect's criteria, 0 to 5.
    pub fn aspect_mean(&self, aspect: Aspect) -> f64 {
        let criteria = aspect.criteria();
        let sum: u32 = criteria.iter().map(|c| u32::from(self.score(*c))).sum();
        f64::from(sum) / criteria.len().max(1) as f64
    }
}

/// The right analysis and score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactRating {
    /// Analysis in a few words.
    pub analysis: String,
    /// Score from 0 to 5; higher is better.
    pub score: u8,
}

/// Sentences that express uncertainty.
const HEDGES: &[&str] = &["A radiologist should confirm this.", "Please have a doctor check this."];
/// Courteous closing sentences.
const COURTESIES: &[&str] = &["I hope this helps.", "Thank you for asking.", "I wish you well."];

/// Writes a response with this claim and these defects, and its evaluation.
///
/// `rng` chooses the wording. The scores depend only on the claim, the defects and the presence of
/// a courtesy.
pub fn write<R: RngCore>(claim: &Claim, defects: &[Defect], rng: &mut R) -> WrittenResponse {
    let (text, courteous) = compose(claim, defects, rng);
    let evasive = defects.contains(&Defect::Evasive);
    let ratings: Vec<(Criterion, ExactRating)> = Criterion::ALL
        .into_iter()
        .map(|criterion| {
            let score = criterion_score(criterion, claim, defects, courteous);
            (
                criterion,
                ExactRating {
                    analysis: criterion_analysis(criterion, score, claim, evasive),
                    score,
                },
            )
        })
        .collect();
    let conclusion = final_rating(ratings.iter().map(|(c, rating)| (*c, rating.score)));
    WrittenResponse { text, ratings, conclusion, defects: defects.to_vec() }
}

/// Returns the text, and true if it ends with a courtesy.
fn compose(claim: &Claim, defects: &[Defect], rng: &mut impl RandomChoice) -> (String, bool) {
    let has_defect = |defect| defects.contains(&defect);
    if has_defect(Defect::Bare) {
        return (capitalize(&claim.bare), false);
    }
    let (mut before, mut after, mut end): (Vec<String>, Vec<String>, Vec<String>) =
        Default::default();
    let (mut add_hedge, mut add_courtesy) = (defects.len() < 2 && rng.chance(0.5), rng.chance(0.5));
    let mut statement = claim.sentence.clone();
    for &defect in defects {
        let phrase = apply_defect(defect, rng);
        match defect {
            Defect::Evasive => statement = phrase,
            Defect::Muddled | Defect::Winding => before.push(phrase),
            Defect::Truncated => end.push(phrase),
            Defect::OtherPicture | Defect::OffTopic | Defect::Insult | Defect::Rude
                if rng.chance(0.5) =>
            {
                before.insert(0, phrase);
            }
            _ => after.push(phrase),
        }
        // Omit text that contradicts the defect.
        add_hedge &= !matches!(
            defect,
            Defect::Certain
                | Defect::TooSure
                | Defect::Truncated
                | Defect::Garbled
                | Defect::Curt
                | Defect::Evasive
        );
        add_courtesy &=
            !matches!(defect, Defect::Insult | Defect::Rude | Defect::Curt | Defect::Truncated);
    }
    let mut parts = before;
    parts.push(statement);
    parts.extend(after);
    if add_hedge {
        parts.push(rng.phrase(HEDGES).to_owned());
    }
    if add_courtesy {
        parts.push(rng.phrase(COURTESIES).to_owned());
    }
    parts.extend(end);
    parts.retain(|part| !part.is_empty());
    (parts.join(" "), add_courtesy)
}

/// Returns the phrase that shows a defect, truncated or garbled if the defect requires it.
fn apply_defect(defect: Defect, rng: &mut impl RandomChoice) -> String {
    let phrase = rng.phrase(defect.rule().map_or(&[], |rule| rule.phrases));
    match defect {
        Defect::Truncated => {
            let parts: Vec<&str> = phrase.split(' ').collect();
            // Keep at least two words and remove at least two.
            let length = 2 + rng.below(parts.len().saturating_sub(3));
            parts.get(..length).map_or_else(String::new, |parts| parts.join(" "))
        }
        Defect::Garbled => phrase
            .split(' ')
            .map(|word| scramble_letters(word, rng))
            .collect::<Vec<String>>()
            .join(" "),
        _ => phrase.to_owned(),
    }
}

/// Swaps letters within a word; short words stay unchanged.
fn scramble_letters(word: &str, rng: &mut impl RandomChoice) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    if letters.len() > 3 {
        let index = rng.below(letters.len() - 2);
        letters.swap(index, index + 1);
        letters.swap(0, 2);
    }
    letters.into_iter().collect()
}

fn criterion_score(criterion: Criterion, claim: &Claim, defects: &[Defect], courteous: bool) -> u8 {
    let best = match criterion {
        Criterion::FACTUAL_ACCURACY => claim.accuracy(),
        Criterion::ADDRESSING_MULTIPLE_CONCERNS => claim.coverage(),
        Criterion::TONE_AND_EMPATHY if !courteous => 4,
        _ => 5,
    };
    let rules = defects.iter().filter_map(|defect| defect.rule());
    let lowered = rules.flat_map(|rule| rule.lowers).filter(|(c, _)| *c == criterion);
    lowered.map(|(_, level)| *level).fold(best, u8::min)
}

fn criterion_analysis(criterion: Criterion, score: u8, claim: &Claim, evasive: bool) -> String {
    match criterion {
        Criterion::FACTUAL_ACCURACY => {
            let silent = evasive || claim.short.is_empty() || claim.concerns_answered == 0;
            let claimed = if silent { "nothing" } else { &claim.short };
            factual_analysis(claimed, &claim.truth, score)
        }
        Criterion::ADDRESSING_MULTIPLE_CONCERNS
            if score == 2 && !claim.unanswered_concern.is_empty() =>
        {
            format!("Leaves out the {}.", claim.unanswered_concern)
        }
        Criterion::ADDRESSING_MULTIPLE_CONCERNS if score == 5 && claim.concerns_asked > 1 => {
            "Answers both concerns.".to_owned()
        }
        _ => analysis_for_score(criterion, score).to_owned(),
    }
}

/// Returns the analysis for factual accuracy: the content of the image, the claim, and their
/// agreement according to `score`.
///
/// The finding comes first. If the claim comes first, an unsure panel often states another answer as the finding,
/// and the findings of the two presentation orders differ.
pub fn factual_analysis(claimed: &str, shown: &str, score: u8) -> String {
    let agreement = match score {
        0 => "nothing to compare",
        1 => "they differ",
        5 => "they agree",
        _ => "they agree in part",
    };
    format!("The {FINDING_HEADING} {shown}{CLAIM_SEPARATOR} {claimed}: {agreement}.")
}

/// Beginning of an analysis of factual accuracy, after its article. The finding follows it.
const FINDING_HEADING: &str = "image shows";

/// Separator between the finding and the claim in an analysis of factual accuracy.
const CLAIM_SEPARATOR: &str = "; the response claims";

/// Returns the range of the finding (the content of the image) in an analysis of factual accuracy.
pub fn finding_range(analysis: &str) -> Option<Range<usize>> {
    let start = analysis.find(FINDING_HEADING)? + FINDING_HEADING.len();
    Some(start..start + analysis.get(start..)?.find(CLAIM_SEPARATOR)?)
}

/// Returns the range of the claim in an analysis of factual accuracy.
pub fn claim_range(analysis: &str) -> Option<Range<usize>> {
    let start = finding_range(analysis)?.end + CLAIM_SEPARATOR.len();
    Some(start..start + analysis.get(start..)?.rfind(':')?)
}

/// Returns an analysis of factual accuracy without its finding: "The response claims left side: they
/// differ."
pub fn without_finding(analysis: &str) -> Option<String> {
    analysis.get(finding_range(analysis)?.end..)?.strip_prefix("; ").map(capitalize)
}

/// Returns the final rating: the lowest score, with one point added to scores of expression
/// criteria.
pub fn final_rating(scores: impl Iterator<Item = (Criterion, u8)>) -> ExactRating {
    let mut weakest: Option<(u8, Criterion, u8)> = None;
    for (criterion, score) in scores {
        let adjusted = score + u8::from(criterion.aspect() == Some(Aspect::EXPRESSION));
        if weakest.is_none_or(|(least, _, _)| adjusted < least) {
            weakest = Some((adjusted, criterion, score));
        }
    }
    match weakest {
        Some((adjusted, criterion, score)) if adjusted < 5 => ExactRating {
            analysis: format!("Weakest: {} {score}.", criterion.name()),
            score: adjusted,
        },
        _ => ExactRating { analysis: "No weakness.".to_owned(), score: 5 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::phantoms::random_choice::stream_rng;

    fn wrong_claim() -> Claim {
        Claim::with_one_concern("The liver is on the left.", "left", "right", false)
    }

    #[test]
    fn wrong_answer_is_scored_by_its_claim() {
        let written = write(&wrong_claim(), &[], &mut stream_rng(1, 2, 3));
        assert!(written.text.starts_with("The liver is on the left."));
        assert_eq!(written.score(Criterion::FACTUAL_ACCURACY), 1);
        assert_eq!(
            written.ratings[4].1.analysis,
            "The image shows right; the response claims left: they differ."
        );
        assert_eq!(written.conclusion.analysis, "Weakest: Factual Accuracy 1.");
        assert_eq!(written.conclusion.score, 1);
    }

    #[test]
    fn bare_phrase_does_not_lower_final_score() {
        let claim = Claim::with_one_concern("The liver is on the right.", "right", "right", true);
        let written = write(&claim, &[Defect::Bare], &mut stream_rng(1, 2, 3));
        assert_eq!(written.text, "Right");
        assert_eq!(written.score(Criterion::EXPRESSION_INTEGRITY), 4);
        assert_eq!(written.conclusion.analysis, "No weakness.");
        assert_eq!(written.conclusion.score, 5);
    }

    #[test]
    fn evasive_answer_has_no_claim() {
        let written = write(&wrong_claim(), &[Defect::Evasive], &mut stream_rng(1, 2, 3));
        assert!(!written.text.contains("liver"));
        assert_eq!(
            written.ratings[4].1.analysis,
            "The image shows right; the response claims nothing: nothing to compare."
        );
        assert_eq!(written.score(Criterion::ADDRESSING_MULTIPLE_CONCERNS), 0);
        assert_eq!(written.conclusion.score, 0);
    }

    #[test]
    fn defects_lower_only_scores_of_their_rule() {
        let claim = Claim::with_one_concern("It is a lung.", "lung", "lung", true);
        for rule in crate::data::phantoms::text::defect_table::RULES {
            for index in 0..8 {
                let written = write(&claim, &[rule.defect], &mut stream_rng(4, index, 3));
                for (criterion, rating) in &written.ratings {
                    let row = rule.lowers.iter().find(|(c, _)| c == criterion);
                    match (row, *criterion) {
                        (Some((_, level)), _) => assert_eq!(rating.score, *level, "{}", rule.key),
                        (None, Criterion::TONE_AND_EMPATHY) => assert!(rating.score >= 4),
                        (None, _) => assert_eq!(rating.score, 5, "{}", rule.key),
                    }
                }
            }
        }
    }

    #[test]
    fn truncated_answer_keeps_claim_and_has_no_final_full_stop() {
        for index in 0..50 {
            let written = write(&wrong_claim(), &[Defect::Truncated], &mut stream_rng(7, index, 3));
            assert!(written.text.starts_with("The liver is on the left. "), "{}", written.text);
            assert!(!written.text.ends_with('.'), "{}", written.text);
        }
    }

    #[test]
    fn expression_defects_lower_final_score_less() {
        let claim = Claim::with_one_concern("It is a lung.", "lung", "lung", true);
        let written = write(&claim, &[Defect::Slang, Defect::TooSure], &mut stream_rng(1, 2, 3));
        assert_eq!(written.conclusion.analysis, "Weakest: Handling Uncertainty 3.");
        let written = write(&claim, &[Defect::Slang], &mut stream_rng(1, 2, 3));
        assert_eq!(written.conclusion.analysis, "Weakest: Language Appropriateness 3.");
        assert_eq!(written.conclusion.score, 4);
    }
}
