//! Claims: the assertions of a response, compared with the truth.

use super::fact::Fact;
use super::question::{Question, QuestionKind};
use super::scene::Scene;
use crate::data::phantoms::random_choice::RandomChoice;

/// Assertion of a response to a question of a phantom or of a real data set.
///
/// Example: sentence "The liver is on the left.", short "left", truth "right".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The assertion as a sentence with a full stop.
    pub sentence: String,
    /// The assertion as a bare phrase ("no, right side"), for [`super::Defect::Bare`].
    pub bare: String,
    /// The assertion in a few words, for the analysis ("right side, so no"); empty if the response
    /// asserts nothing.
    pub short: String,
    /// The right answer in a few words.
    pub truth: String,
    /// Number of concerns of the question (one or two).
    pub asked: usize,
    /// Number of concerns that the response answers.
    pub answered: usize,
    /// Number of right answers.
    pub right: usize,
    /// Name of the unanswered concern ("side"); empty if there is none or it is unknown.
    pub left_out: String,
}

impl Claim {
    /// Creates a claim for a question with one concern.
    pub fn single(sentence: &str, short: &str, truth: &str, right: bool) -> Self {
        Self {
            sentence: sentence.to_owned(),
            bare: short.to_owned(),
            short: short.to_owned(),
            truth: truth.to_owned(),
            asked: 1,
            answered: 1,
            right: usize::from(right),
            left_out: String::new(),
        }
    }

    /// Returns the score for factual accuracy, from the proportion of given answers that are right.
    pub fn accuracy(&self) -> u8 {
        match (self.answered, self.right) {
            (0, _) => 0,
            (_, 0) => 1,
            (answered, right) if right >= answered => 5,
            _ => 3,
        }
    }

    /// Returns the score for addressing multiple concerns, from the proportion of answered concerns.
    pub fn coverage(&self) -> u8 {
        match self.answered {
            0 => 0,
            answered if answered >= self.asked => 5,
            _ => 2,
        }
    }
}

/// Wrong facts of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactErrors {
    None,
    /// One of two facts, or the only fact.
    Some,
    All,
}

/// Selects the facts, right or wrong, that a response states.
pub(crate) fn facts(
    question: &Question,
    scene: &Scene,
    wrong: FactErrors,
    rng: &mut impl RandomChoice,
) -> Vec<Fact> {
    let truth = question.truth(scene);
    let alone = truth.len() == 1;
    let spared = match wrong {
        FactErrors::None => return truth,
        FactErrors::Some if !alone => Some(rng.below(truth.len())),
        FactErrors::Some | FactErrors::All => None,
    };
    if let (Some(proposed), [fact]) = (question.proposed, truth.as_slice())
        && proposed != *fact
    {
        // A wrong answer to a false proposal accepts the proposal.
        return vec![proposed];
    }
    let lie = |(i, fact): (usize, &Fact), rng: &mut _| {
        if spared == Some(i) {
            *fact
        } else {
            Fact::other(*fact, scene, alone, rng)
        }
    };
    truth
        .iter()
        .enumerate()
        .map(|entry| lie(entry, rng))
        .collect()
}

/// Builds the claim with these facts. With `partly`, one of two facts is left out at random.
pub(crate) fn claim(
    question: &Question,
    scene: &Scene,
    facts: &[Fact],
    partly: bool,
    rng: &mut impl RandomChoice,
) -> Claim {
    let truth = question.truth(scene);
    let plural = scene.count() > 1;
    let right = |fact: &Fact| truth.contains(fact);
    let mut claim = Claim {
        truth: short(question, &truth),
        asked: truth.len(),
        ..Claim::default()
    };
    let stated: Vec<Fact> = match facts {
        [first, second] if partly => {
            let (kept, lost) = if rng.chance(0.5) {
                (first, second)
            } else {
                (second, first)
            };
            lost.concern().word().clone_into(&mut claim.left_out);
            vec![*kept]
        }
        _ => facts.to_vec(),
    };
    claim.answered = stated.len();
    claim.right = stated.iter().filter(|fact| right(fact)).count();
    claim.bare = bare(question, &stated);
    claim.short = short(question, &stated);
    claim.sentence = sentence(question, &stated, plural, rng);
    claim
}

/// Returns the short form of an answer: its facts, then yes or no to a proposal. The facts come first
/// because a judge generates tokens in order and needs the fact before the conclusion.
pub(crate) fn short(question: &Question, facts: &[Fact]) -> String {
    match agreement(question, facts) {
        Some(word) => format!("{}, so {word}", words(facts)),
        None => words(facts),
    }
}

/// Returns the bare phrase of an answer: yes or no to a proposal, then the facts.
fn bare(question: &Question, facts: &[Fact]) -> String {
    match agreement(question, facts) {
        Some(word) => format!("{word}, {}", words(facts)),
        None => words(facts),
    }
}

fn words(facts: &[Fact]) -> String {
    let words: Vec<&str> = facts.iter().map(|fact| fact.short()).collect();
    words.join(", ")
}

/// Returns "yes" or "no" to a proposal; `None` if the question proposes nothing.
fn agreement(question: &Question, facts: &[Fact]) -> Option<&'static str> {
    let proposed = question.proposed?;
    Some(if facts.contains(&proposed) {
        "yes"
    } else {
        "no"
    })
}

/// Writes one sentence with the facts.
pub(crate) fn sentence(
    question: &Question,
    facts: &[Fact],
    plural: bool,
    rng: &mut impl RandomChoice,
) -> String {
    let body = match (question.kind, facts) {
        (QuestionKind::CountAndSide, [count, side]) => {
            let noun = place(*side);
            let form = rng.below(2);
            match form {
                0 => format!("{} {noun}", exist(*count)),
                _ => format!("I see {} {noun}", count.short()),
            }
        }
        (QuestionKind::SizeAndTone, [size, tone]) => {
            format!("{} {} and {}", subject(plural), size.short(), tone.short())
        }
        (QuestionKind::PresenceAndModality, [presence, modality]) => {
            format!(
                "{}, and this is {}",
                lone(*presence, plural, rng),
                modality.noun()
            )
        }
        (_, [fact, ..]) => lone(*fact, plural, rng),
        (_, []) => return String::new(),
    };
    match agreement(question, facts) {
        Some("yes") => format!("Yes, {}.", lower(&body)),
        Some(_) => format!("No, {}.", lower(&body)),
        None => format!("{body}."),
    }
}

/// Writes one fact as a clause with a capital letter.
fn lone(fact: Fact, plural: bool, rng: &mut impl RandomChoice) -> String {
    let first = rng.chance(0.5);
    match fact {
        Fact::Modality(_) if first => format!("This is {}", fact.noun()),
        Fact::Modality(_) => format!("The picture is {}", fact.noun()),
        Fact::Presence(true) if first => "Yes, a lesion is visible".to_owned(),
        Fact::Presence(true) => "Yes, the image shows a lesion".to_owned(),
        Fact::Presence(false) if first => "No, no lesion is visible".to_owned(),
        Fact::Presence(false) => "No, the image shows no lesion".to_owned(),
        Fact::Count(_) if first => exist(fact),
        Fact::Count(_) => format!("I see {}", fact.short()),
        Fact::Side(_) if first => format!("{} {}", subject(plural), place(fact)),
        Fact::Side(_) => {
            let verb = if plural {
                "The lesions lie"
            } else {
                "The lesion lies"
            };
            format!("{verb} {}", place(fact))
        }
        Fact::Size(_) => format!("{} {}", subject(plural), fact.short()),
        Fact::Tone(_) if first => format!("{} {}", subject(plural), fact.short()),
        Fact::Tone(_) => {
            let verb = if plural {
                "The lesions look"
            } else {
                "The lesion looks"
            };
            format!("{verb} {}", fact.short())
        }
    }
}

fn subject(plural: bool) -> &'static str {
    if plural {
        "The lesions are"
    } else {
        "The lesion is"
    }
}

fn exist(count: Fact) -> String {
    let verb = if count == Fact::Count(1) {
        "There is"
    } else {
        "There are"
    };
    format!("{verb} {}", count.short())
}

fn place(side: Fact) -> String {
    match side {
        Fact::Side(super::lesion::LesionSide::Both) => "on both sides".to_owned(),
        other => format!("on the {}", other.short()),
    }
}

/// Converts the first letter to lower case, for use after "Yes,"; keeps the pronoun "I".
fn lower(text: &str) -> String {
    if text.starts_with("I ") {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |c| c.to_lowercase().chain(letters).collect())
}
