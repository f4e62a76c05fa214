//! Answers that have nothing to do with any question about an image.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Texts that answer no question about an image.
const TEXTS: &[&str] = &[
    "Hello",
    "ok",
    "Thanks",
    "n/a",
    "null",
    "Unknown",
    "None of them",
    "See above.",
    "Answer",
    "As stated",
    "Tomorrow",
    "A blue car",
    "Pizza",
    "Monday",
    "Paris is the capital of France.",
    "I like music.",
    "The weather is nice today.",
    "Please rate this.",
];

/// Samples an answer: a text about something else, a letter, or a number.
pub(crate) fn unrelated_answer(rng: &mut ChaCha8Rng) -> String {
    let letter = char::from(rng.random_range(b'a'..=b'h'));
    match rng.random_range(0..6) {
        0 => letter.to_uppercase().to_string(),
        1 => format!("{}.", letter.to_uppercase()),
        2 => format!("({letter})"),
        3 => format!("Option {}", letter.to_uppercase()),
        4 => rng.random_range(10..100_000).to_string(),
        _ => TEXTS.choose(rng).copied().unwrap_or("ok").to_owned(),
    }
}
