//! Claims: the assertions of a response, compared with the truth.

use super::fact::Fact;
use super::question::{Question, QuestionKind};
use crate::data::phantoms::random_choice::RandomChoice;
use crate::data::phantoms::scene::Scene;
use crate::support::text::letters::lower_first_letter;

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
    pub concerns_asked: usize,
    /// Number of concerns that the response answers.
    pub concerns_answered: usize,
    /// Number of right answers.
    pub right_answers: usize,
    /// Name of the unanswered concern ("side"); empty if there is none or it is unknown.
    pub unanswered_concern: String,
}

impl Claim {
    /// Creates a claim for a question with one concern.
    pub fn with_one_concern(sentence: &str, short: &str, truth: &str, right: bool) -> Self {
        Self {
            sentence: sentence.to_owned(),
            bare: short.to_owned(),
            short: short.to_owned(),
            truth: truth.to_owned(),
            concerns_asked: 1,
            concerns_answered: 1,
            right_answers: usize::from(right),
            unanswered_concern: String::new(),
        }
    }

    /// Returns the score for factual accuracy, from the proportion of given answers that are right.
    pub fn accuracy(&self) -> u8 {
        match (self.concerns_answered, self.right_answers) {
            (0, _) => 0,
            (_, 0) => 1,
            (answered, right) if right >= answered => 5,
            _ => 3,
        }
    }

    /// Returns the score for addressing multiple concerns, from the proportion of answered
    /// concerns.
    pub fn coverage(&self) -> u8 {
        match self.concerns_answered {
            0 => 0,
            answered if answered >= self.concerns_asked => 5,
            _ => 2,
        }
    }
}

/// Number of wrong facts of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactErrors {
    /// All facts are right.
    None,
    /// One of two facts is wrong, or the only one.
    One,
    /// All facts are wrong.
    All,
}

/// Selects the facts, right or wrong, that a response states.
pub(crate) fn choose_facts(
    question: &Question,
    scene: &Scene,
    errors: FactErrors,
    rng: &mut impl RandomChoice,
) -> Vec<Fact> {
    let truth = question.correct_facts(scene);
    let is_single = truth.len() == 1;
    let right_index = match errors {
        FactErrors::None => return truth,
        FactErrors::One if !is_single => Some(rng.below(truth.len())),
        FactErrors::One | FactErrors::All => None,
    };
    if let (Some(proposed), [fact]) = (question.proposed, truth.as_slice())
        && proposed != *fact
    {
        // A wrong answer to a false proposal accepts the proposal.
        return vec![proposed];
    }
    let state_fact = |(i, fact): (usize, &Fact), rng: &mut _| {
        if right_index == Some(i) {
            *fact
        } else {
            Fact::false_alternative(*fact, scene, is_single, rng)
        }
    };
    truth.iter().enumerate().map(|entry| state_fact(entry, rng)).collect()
}

/// Builds the claim with these facts. With `omits_concern`, one of two facts is left out at random.
pub(crate) fn claim_from_facts(
    question: &Question,
    scene: &Scene,
    facts: &[Fact],
    omits_concern: bool,
    rng: &mut impl RandomChoice,
) -> Claim {
    let truth = question.correct_facts(scene);
    let plural = scene.lesion_count() > 1;
    let is_right = |fact: &Fact| truth.contains(fact);
    let mut claim = Claim {
        truth: short_form(question, &truth),
        concerns_asked: truth.len(),
        ..Claim::default()
    };
    let stated: Vec<Fact> = match facts {
        [first, second] if omits_concern => {
            let (stated, omitted) = if rng.chance(0.5) { (first, second) } else { (second, first) };
            omitted.concern().word().clone_into(&mut claim.unanswered_concern);
            vec![*stated]
        }
        _ => facts.to_vec(),
    };
    claim.concerns_answered = stated.len();
    claim.right_answers = stated.iter().filter(|fact| is_right(fact)).count();
    claim.bare = bare_phrase(question, &stated);
    claim.short = short_form(question, &stated);
    claim.sentence = write_sentence(question, &stated, plural, rng);
    claim
}

/// Returns the short form of an answer: its facts, then yes or no to a proposal. The facts come
/// first because a judge generates tokens in order and needs the fact before the conclusion.
pub(crate) fn short_form(question: &Question, facts: &[Fact]) -> String {
    match yes_or_no(question, facts) {
        Some(word) => format!("{}, so {word}", join_facts(facts)),
        None => join_facts(facts),
    }
}

/// Returns the bare phrase of an answer: yes or no to a proposal, then the facts.
fn bare_phrase(question: &Question, facts: &[Fact]) -> String {
    match yes_or_no(question, facts) {
        Some(word) => format!("{word}, {}", join_facts(facts)),
        None => join_facts(facts),
    }
}

fn join_facts(facts: &[Fact]) -> String {
    let texts: Vec<&str> = facts.iter().map(|fact| fact.short_text()).collect();
    texts.join(", ")
}

/// Returns "yes" or "no" to a proposal; `None` if the question proposes nothing.
fn yes_or_no(question: &Question, facts: &[Fact]) -> Option<&'static str> {
    let proposed = question.proposed?;
    Some(if facts.contains(&proposed) { "yes" } else { "no" })
}

/// Writes one sentence with the facts.
pub(crate) fn write_sentence(
    question: &Question,
    facts: &[Fact],
    plural: bool,
    rng: &mut impl RandomChoice,
) -> String {
    let body = match (question.kind, facts) {
        (QuestionKind::CountAndSide, [count, side]) => {
            let noun = side_phrase(*side);
            let form = rng.below(2);
            match form {
                0 => format!("{} {noun}", count_clause(*count)),
                _ => format!("I see {} {noun}", count.short_text()),
            }
        }
        (QuestionKind::SizeAndTone, [size, tone]) => {
            format!("{} {} and {}", lesion_subject(plural), size.short_text(), tone.short_text())
        }
        (QuestionKind::PresenceAndModality, [presence, modality]) => {
            format!(
                "{}, and this is {}",
                capitalized_clause(*presence, plural, rng),
                modality.with_article()
            )
        }
        (_, [fact, ..]) => capitalized_clause(*fact, plural, rng),
        (_, []) => return String::new(),
    };
    match yes_or_no(question, facts) {
        Some("yes") => format!("Yes, {}.", lower_first_letter(&body)),
        Some(_) => format!("No, {}.", lower_first_letter(&body)),
        None => format!("{body}."),
    }
}

/// Writes one fact as a clause with a capital letter.
fn capitalized_clause(fact: Fact, plural: bool, rng: &mut impl RandomChoice) -> String {
    let first = rng.chance(0.5);
    match fact {
        Fact::Modality(_) if first => format!("This is {}", fact.with_article()),
        Fact::Modality(_) => format!("The picture is {}", fact.with_article()),
        Fact::Presence(true) if first => "Yes, a lesion is visible".to_owned(),
        Fact::Presence(true) => "Yes, the image shows a lesion".to_owned(),
        Fact::Presence(false) if first => "No, no lesion is visible".to_owned(),
        Fact::Presence(false) => "No, the image shows no lesion".to_owned(),
        Fact::Count(_) if first => count_clause(fact),
        Fact::Count(_) => format!("I see {}", fact.short_text()),
        Fact::Side(_) if first => format!("{} {}", lesion_subject(plural), side_phrase(fact)),
        Fact::Side(_) => {
            let verb = if plural { "The lesions lie" } else { "The lesion lies" };
            format!("{verb} {}", side_phrase(fact))
        }
        Fact::Size(_) => format!("{} {}", lesion_subject(plural), fact.short_text()),
        Fact::Tone(_) if first => format!("{} {}", lesion_subject(plural), fact.short_text()),
        Fact::Tone(_) => {
            let verb = if plural { "The lesions look" } else { "The lesion looks" };
            format!("{verb} {}", fact.short_text())
        }
    }
}

fn lesion_subject(plural: bool) -> &'static str {
    if plural { "The lesions are" } else { "The lesion is" }
}

fn count_clause(count: Fact) -> String {
    let verb = if count == Fact::Count(1) { "There is" } else { "There are" };
    format!("{verb} {}", count.short_text())
}

fn side_phrase(side: Fact) -> String {
    match side {
        Fact::Side(crate::data::phantoms::scene::lesion::LesionSide::Both) => {
            "on both sides".to_owned()
        }
        other => format!("on the {}", other.short_text()),
    }
}
