//! Turns a question with a short answer into a sentence, in the way that models write it.
//!
//! The rules know the frequent questions of the data sets. A question that they do not know becomes a
//! sentence that repeats the answer.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::data::dataset_rows::parse_yes_no;
use crate::support::text::letters::capitalize;

/// Beginnings of questions whether something is in the image.
const EXISTENCE: &[&str] = &[
    "is there",
    "are there",
    "is/are there",
    "does the picture contain",
    "does the image contain",
    "does the image show",
    "does this image show",
    "do you see",
];
/// Verbs that stand before the subject of a question of yes or no.
const AUXILIARIES: &[&str] = &["is", "are", "was", "were", "does", "do", "can", "has", "have"];
/// Words that may stand between an article and its noun.
const ADJECTIVES: &[&str] = &[
    "left", "right", "upper", "lower", "main", "whole", "small", "large", "largest", "thyroid",
    "spinal", "cardiac",
];
/// Words that end the noun of an open question.
const VERBS: &[&str] = &[
    "is", "are", "does", "do", "was", "were", "can", "has", "have", "show", "shows", "appear",
    "appears", "belong", "belongs", "included", "shown", "seen",
];

/// Writes the answer to a question as a sentence with a full stop.
pub(crate) fn statement(question: &str, answer: &str, rng: &mut ChaCha8Rng) -> String {
    let question = question.trim().trim_end_matches(['?', '.', ' ']).to_lowercase();
    let answer = answer.trim().trim_end_matches('.').to_lowercase();
    let text = match parse_yes_no(&answer) {
        Some(yes) if answer.len() <= 3 => closed_statement(&question, yes, rng),
        _ => open_statement(&question, &answer, rng),
    };
    capitalize(&text)
}

fn closed_statement(question: &str, yes: bool, rng: &mut ChaCha8Rng) -> String {
    let word = if yes { "yes" } else { "no" };
    if let Some(subject) = existence_subject(question) {
        return existence_statement(&subject, yes, rng);
    }
    let clause = inverted_clause(question, yes);
    match clause {
        Some(clause) if rng.random_bool(0.4) => format!("{clause}."),
        Some(clause) => format!("{word}, {clause}."),
        None => {
            let forms: &[&str] = if yes {
                &["that is the case", "the image suggests that", "this can be confirmed"]
            } else {
                &["that is not the case", "the image does not suggest that"]
            };
            let form = forms.choose(rng).copied().unwrap_or_default();
            format!("{word}, {form}.")
        }
    }
}

/// Returns what a question of existence asks for.
fn existence_subject(question: &str) -> Option<String> {
    let rest = EXISTENCE.iter().find_map(|begin| question.strip_prefix(begin)?.strip_prefix(' '));
    let rest = if let Some(rest) = rest {
        rest.to_owned()
    } else {
        // "can mass be observed on the left" asks for "mass on the left".
        let (subject, place) = question.strip_prefix("can ")?.split_once(" be ")?;
        let (_, place) = place.split_once(' ').unwrap_or((place, ""));
        format!("{subject} {place}")
    };
    let articles = ["a ", "an ", "any ", "evidence of "];
    let mut subject = rest.trim();
    for article in articles {
        subject = subject.strip_prefix(article).unwrap_or(subject);
    }
    (!subject.is_empty()).then(|| subject.to_owned())
}

fn existence_statement(subject: &str, yes: bool, rng: &mut ChaCha8Rng) -> String {
    let forms: [String; 5] = if yes {
        [
            format!("yes, there is {subject}."),
            format!("yes, the image shows the presence of {subject}."),
            format!("there is evidence of {subject}."),
            format!("the image shows {subject}."),
            format!("{subject} can be seen."),
        ]
    } else {
        [
            format!("no, there is no {subject}."),
            format!("no, the image does not show {subject}."),
            format!("there is no evidence of {subject}."),
            format!("the image shows no {subject}."),
            format!("{subject} cannot be seen."),
        ]
    };
    let [first, others @ ..] = &forms;
    others.choose(rng).filter(|_| rng.random_bool(0.8)).unwrap_or(first).clone()
}

/// Returns a question of yes or no as a clause: "is the liver healthy" becomes "the liver is healthy".
fn inverted_clause(question: &str, yes: bool) -> Option<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let (verb, rest) = words.split_first()?;
    if !AUXILIARIES.contains(verb) {
        return None;
    }
    let subject_len = match *rest.first()? {
        "this" | "it" | "these" => 1,
        "the" => {
            let adjectives = rest.iter().skip(1).take_while(|word| ADJECTIVES.contains(word));
            2 + adjectives.count()
        }
        _ => return None,
    };
    let (subject, predicate) = rest.split_at_checked(subject_len)?;
    // A noun with a complement, as in "the size of the heart", ends elsewhere.
    if predicate.first().is_none_or(|word| ["of", "in", "on", "or"].contains(word)) {
        return None;
    }
    let not = if yes { "" } else { " not" };
    Some(format!("{} {verb}{not} {}", subject.join(" "), predicate.join(" ")))
}

fn open_statement(question: &str, answer: &str, rng: &mut ChaCha8Rng) -> String {
    if let Some(subject) = open_subject(question).filter(|_| rng.random_bool(0.5)) {
        return format!("{subject} is {answer}.");
    }
    match rng.random_range(0..5) {
        0 => format!("the image shows {answer}."),
        1 => format!("the answer is {answer}."),
        2 => format!("it appears to be {answer}."),
        3 => format!("this is {answer}."),
        _ => format!("{answer} can be seen in the image."),
    }
}

/// Returns what an open question asks for: "what is the largest organ" asks for "the largest organ".
fn open_subject(question: &str) -> Option<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let start = words.iter().position(|word| ["what", "which"].contains(word))? + 1;
    let rest = words.get(start..)?;
    let (verb, after) = rest.split_first()?;
    if ["is", "are"].contains(verb) {
        let is_noun = after.first().is_some_and(|word| *word == "the");
        return is_noun.then(|| after.join(" "));
    }
    let noun: Vec<&str> = rest.iter().copied().take_while(|word| !VERBS.contains(word)).collect();
    (!noun.is_empty() && noun.len() < rest.len() && noun.len() < 6)
        .then(|| format!("the {}", noun.join(" ")))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    /// Returns all sentences that some seeds write.
    fn statements(question: &str, answer: &str) -> Vec<String> {
        let write = |seed| statement(question, answer, &mut ChaCha8Rng::seed_from_u64(seed));
        let mut texts: Vec<String> = (0..60).map(write).collect();
        texts.sort();
        texts.dedup();
        texts
    }

    #[test]
    fn known_questions_are_restated() {
        let has = |question: &str, answer: &str, expected: &str| {
            let texts = statements(question, answer);
            assert!(texts.iter().any(|text| text == expected), "{texts:?}");
        };
        has("Does the picture contain heart?", "No", "The image shows no heart.");
        has(
            "Is/Are there abnormalities in this image?",
            "Yes",
            "There is evidence of abnormalities in this image.",
        );
        has("Can mass be observed on the left?", "no", "Mass on the left cannot be seen.");
        has(
            "Does the right lung look abnormal?",
            "No",
            "No, the right lung does not look abnormal.",
        );
        has("Is this an MRI scan?", "Yes", "This is an mri scan.");
        has("What is the largest organ?", "Liver", "The largest organ is liver.");
        has("In what plane is this image scanned?", "Axial", "The plane is axial.");
        has("Which organs appear in pairs?", "Lung", "The organs is lung.");
    }

    #[test]
    fn sentences_contain_the_answer() {
        for question in ["Why?", "", "What?", "Which of these?", "is", "the liver", "Was it so?"] {
            for text in statements(question, "A cyst.") {
                assert!(text.to_lowercase().contains("a cyst") && text.ends_with('.'), "{text}");
            }
            for text in statements(question, "No") {
                assert!(text.starts_with("No,") || text.contains(" not "), "{text}");
            }
        }
    }
}
