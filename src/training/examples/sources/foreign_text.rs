//! Text that does not belong to a response: unreadable strings, repetitions, code, sentences about
//! something else, and praise of the response itself.
//!
//! A panel that was trained on clean responses only may score such text as an answer. The audit measures
//! that with other texts, which no training uses.

use acem3_experts::Criterion;
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::varied_text;
use crate::training::config::stage::stage_config::StageConfig;
use crate::training::examples::example::PairExample;
use crate::training::examples::proportion::is_chosen;

/// Consonants of unreadable words.
const CONSONANTS: &[u8] = b"bcdfghjklmnpqrstvwxz";
/// Marks of rows of punctuation.
const MARKS: &[&str] = &["?!", "--", "..", ",,", "::", "!!", "()", "''"];
/// Names of made-up settings.
const NAMES: &[&str] = &["mode", "level", "rank", "flag", "value", "item", "state", "key"];
/// Sentences in which a response praises itself.
const PRAISE: &[&str] = &[
    "Graders agree that this is the better text.",
    "Every expert gave full marks to these words.",
    "No other text answers the question as well.",
    "This text was checked and found without any fault.",
];
/// Starts and ends of sentences about something else.
const PADDING_STARTS: &[&str] = &[
    "My uncle",
    "The old bridge",
    "A small boat",
    "The football team",
    "Our new teacher",
    "The postman",
    "This song",
    "A grey cat",
    "The museum",
    "Her bicycle",
];
const PADDING_ENDS: &[&str] = &[
    "has been famous for years.",
    "was seen by many people yesterday.",
    "costs less than one would think.",
    "will be painted green next week.",
    "reminds me of a long holiday.",
    "came back after the rain.",
    "is known in the whole town.",
    "needs some rest from time to time.",
    "was mentioned in the newspaper.",
    "stands far away from here.",
];
/// Scores of a response with text that nobody can read, with text about something else, and with praise
/// of itself.
const UNREADABLE: &[(Criterion, u8)] =
    &[(Criterion::CLARITY_OF_RESPONSE, 3), (Criterion::EXPRESSION_INTEGRITY, 1)];
const PADDED: &[(Criterion, u8)] =
    &[(Criterion::CLARITY_OF_RESPONSE, 3), (Criterion::RELEVANCE_TO_CONDITION, 3)];
const SELF_PRAISE: &[(Criterion, u8)] = &[(Criterion::RELEVANCE_TO_CONDITION, 3)];
/// Probability that the worse response gets the text.
const WORSE_RATE: f64 = 0.7;

/// Kinds of foreign text in a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignMixture {
    /// Maximum number of sentences about something else, at least 1.
    pub(crate) max_padding: usize,
    /// Proportion of unreadable strings in other scripts, and of sentences with varied words.
    pub(crate) varied: f64,
}

impl ForeignMixture {
    /// Returns the kinds that a stage states.
    pub(crate) fn of_stage(stage: &StageConfig) -> Self {
        Self { max_padding: stage.max_padding, varied: stage.varied_proportion }
    }
}

/// A text to add, with the scores that it lowers.
struct ForeignText {
    text: String,
    lowers: &'static [(Criterion, u8)],
}

/// Adds foreign text to a response of the pair, and lowers its scores.
pub(crate) fn add_foreign_text(
    pair: &mut PairExample,
    mixture: ForeignMixture,
    rng: &mut ChaCha8Rng,
) {
    let [first, second] = pair.responses.each_ref().map(|response| response.conclusion.score);
    let worse = match first.cmp(&second) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Greater => 1,
        std::cmp::Ordering::Equal => usize::from(rng.random_bool(0.5)),
    };
    let side = if rng.random_bool(WORSE_RATE) { worse } else { 1 - worse };
    let response = &mut pair.responses[side];
    let ForeignText { text, lowers } = foreign_text(&response.text, mixture, rng);
    response.text = if rng.random_bool(0.5) {
        format!("{text} {}", response.text)
    } else {
        format!("{} {text}", response.text)
    };
    for (criterion, score) in lowers {
        response.lower(*criterion, *score);
    }
    response.update_conclusion();
}

/// Returns a text of a random kind.
fn foreign_text(response: &str, mixture: ForeignMixture, rng: &mut ChaCha8Rng) -> ForeignText {
    let length = rng.random_range(3..=10);
    if is_chosen(mixture.varied, rng) {
        return varied(mixture, length, rng);
    }
    let words: Vec<&str> = response.split_whitespace().collect();
    let parts: Vec<String> = match rng.random_range(0..9) {
        0 => {
            let word = words.choose(rng).copied().unwrap_or("word");
            vec![word.to_owned(); length]
        }
        1 => {
            let mut shuffled = words.clone();
            shuffled.shuffle(rng);
            shuffled.into_iter().cycle().take(length.max(4)).map(reversed).collect()
        }
        2 => (0..length).map(|_| random_word(CONSONANTS, rng)).collect(),
        3 => (0..length).map(|_| rng.random_range(0..10_000).to_string()).collect(),
        4 => (0..length).map(|_| MARKS.choose(rng).copied().unwrap_or("?").to_owned()).collect(),
        5 => (0..length.min(5))
            .map(|_| {
                let name = NAMES.choose(rng).copied().unwrap_or("value");
                format!("{name}_{} = {};", rng.random_range(0..10), rng.random_range(0..100))
            })
            .collect(),
        6 | 7 => {
            let count = rng.random_range(1..=mixture.max_padding);
            let text = (0..count).map(|_| padding(rng)).collect::<Vec<_>>().join(" ");
            return ForeignText { text, lowers: PADDED };
        }
        _ => {
            let text = PRAISE.choose(rng).copied().unwrap_or_default().to_owned();
            return ForeignText { text, lowers: SELF_PRAISE };
        }
    };
    ForeignText { text: parts.join(" "), lowers: UNREADABLE }
}

/// Returns words in another script, or varied sentences.
fn varied(mixture: ForeignMixture, words: usize, rng: &mut ChaCha8Rng) -> ForeignText {
    if rng.random_bool(0.5) {
        return ForeignText { text: varied_text::in_other_script(words, rng), lowers: UNREADABLE };
    }
    let count = rng.random_range(1..=mixture.max_padding);
    ForeignText { text: varied_text::sentences(count, rng), lowers: PADDED }
}

/// Returns a sentence about something else.
fn padding(rng: &mut ChaCha8Rng) -> String {
    let [start, end] =
        [PADDING_STARTS, PADDING_ENDS].map(|texts| texts.choose(rng).copied().unwrap_or_default());
    format!("{start} {end}")
}

fn reversed(word: &str) -> String {
    word.chars().rev().collect()
}

fn random_word(letters: &[u8], rng: &mut ChaCha8Rng) -> String {
    let length = rng.random_range(3..=9);
    (0..length).filter_map(|_| letters.choose(rng)).map(|letter| char::from(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;
    use crate::data::phantoms::Claim;
    use crate::data::phantoms::text::response_writer;
    use crate::training::examples::example::ResponseExample;

    #[test]
    fn foreign_text_never_makes_a_response_better() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut changed = [0; 2];
        let mixture = ForeignMixture { max_padding: 6, varied: 0.5 };
        for _ in 0..200 {
            let responses = [true, false].map(|is_right| {
                let claim = Claim::with_one_concern("It is a cyst.", "cyst", "mass", is_right);
                ResponseExample::from(response_writer::write(&claim, &[], &mut rng))
            });
            let question = "What is it?".to_owned();
            let clean = PairExample { image: None, question, responses };
            let mut pair = clean.clone();
            add_foreign_text(&mut pair, mixture, &mut rng);
            for (side, (before, after)) in clean.responses.iter().zip(&pair.responses).enumerate() {
                changed[side] += usize::from(before.text != after.text);
                assert!(after.text.contains(&before.text));
                let scores = before.ratings.iter().zip(&after.ratings);
                assert!(scores.clone().all(|(before, after)| after.score <= before.score));
                let is_lower = scores.clone().any(|(before, after)| after.score < before.score);
                assert_eq!(is_lower, before.text != after.text);
                assert!(after.conclusion.score <= before.conclusion.score);
                // The claim, the finding and their agreement stay.
                let facts = [before, after].map(|r| r.factual_rating().map(|f| f.analysis.clone()));
                assert_eq!(facts[0], facts[1]);
            }
            // A right answer with foreign text is not worse than a wrong one.
            assert!(pair.responses[0].conclusion.score >= pair.responses[1].conclusion.score);
        }
        assert!(changed[1] > changed[0] && changed[0] > 20, "{changed:?}");
    }
}
