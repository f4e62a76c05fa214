//! Claims, defects and findings of responses in examples from data sets.

use acem3_experts::Criterion;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::text::defect_table::RULES;
use crate::data::phantoms::text::response_writer;
use crate::data::phantoms::text::rules::analysis_for_score;
use crate::data::phantoms::{Claim, Defect};
use crate::training::examples::example::ResponseExample;

/// Returns the claim of an answer, as the answer alone or in a sentence.
pub(crate) fn claim(answer: &str, truth: &str, is_correct: bool, rng: &mut ChaCha8Rng) -> Claim {
    let bare = answer.trim_end_matches('.');
    let sentence = match rng.random_range(0..4) {
        0 => format!("The answer is {}.", bare.to_lowercase()),
        1 => format!("It is {}.", bare.to_lowercase()),
        2 => format!("The image shows {}.", bare.to_lowercase()),
        _ => format!("{bare}."),
    };
    Claim::with_one_concern(&sentence, &answer.to_lowercase(), &truth.to_lowercase(), is_correct)
}

/// Samples at most one defect.
pub(crate) fn sample_defects(rng: &mut ChaCha8Rng) -> Vec<Defect> {
    if rng.random_bool(0.6) {
        return Vec::new();
    }
    let defects = RULES.iter().map(|rule| rule.defect);
    let defects: Vec<Defect> = defects.filter(|d| *d != Defect::Evasive).collect();
    defects.choose(rng).copied().into_iter().collect()
}

/// Replaces the finding in the factual analysis with a wrong one, which has no loss.
pub(crate) fn corrupt_finding(response: &mut ResponseExample, claimed: &str, finding: &str) {
    if let Some(rating) = response.rating_mut(Criterion::FACTUAL_ACCURACY)
        && rating.score > 0
    {
        let score = if claimed == finding { 5 } else { 1 };
        rating.analysis = response_writer::factual_analysis(claimed, finding, score);
        rating.trains_finding = false;
    }
}

/// Lowers a perfect score of tone and empathy by one point.
pub(crate) fn lower_perfect_tone(response: &mut ResponseExample) {
    if let Some(rating) = response.rating_mut(Criterion::TONE_AND_EMPATHY)
        && rating.score == 5
    {
        rating.score = 4;
        rating.analysis = String::from(analysis_for_score(Criterion::TONE_AND_EMPATHY, 4));
    }
}
