//! The two responses of a phantom: how good each is, and how they relate.

use std::cmp::Ordering;

use super::claim::{self, FactErrors};
use super::fact::Fact;
use super::question::Question;
use super::rules::Defect;
use super::scene::Scene;
use crate::data::phantoms::defect_table::RULES;
use crate::data::phantoms::random_choice::RandomChoice;
use crate::data::phantoms::response_writer;
use crate::data::phantoms::response_writer::WrittenResponse;

/// Share of pairs of equal quality by construction.
const TWINS: f32 = 0.06;
/// How the facts of two responses relate, as shares of all pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FactMix {
    /// Pairs that state the same facts, so that other criteria decide.
    shared: f32,
    /// Of the remaining pairs, those whose facts are not equally right.
    split: f32,
}

impl FactMix {
    /// What judges are measured on. Most pairs are split, because only they show whether a judge
    /// looks: in all others the image does not matter to the order.
    pub(crate) const MEASURED: Self = Self {
        shared: 0.12,
        split: 0.90,
    };
    /// What judges learn from: one response being right tells little about the other, so that a
    /// judge cannot get by with calling one right and one wrong.
    pub(crate) const TAUGHT: Self = Self {
        shared: 0.20,
        split: 0.45,
    };
}

/// Share of responses with a wrong fact among pairs that are not split.
const WRONG: f32 = 0.40;
/// Share of ties wanted among pairs that are no twins.
const TIES: f32 = 0.10;
/// How often a pair is drawn before the wanted order is given up.
const TRIES: usize = 300;

/// What is decided about a response before it is written.
#[derive(Clone, Debug)]
struct ResponsePlan {
    facts: Vec<Fact>,
    partly: bool,
    defects: Vec<Defect>,
}

/// The two responses to a question about a scene.
pub(crate) fn pair(
    scene: &Scene,
    question: &Question,
    mix: FactMix,
    rng: &mut impl RandomChoice,
) -> [WrittenResponse; 2] {
    let relation = rng.unit();
    let facts = if relation < TWINS + mix.shared {
        let wrong = lot(rng);
        let facts = claim::facts(question, scene, wrong, rng);
        [facts.clone(), facts]
    } else {
        two_facts(scene, question, mix.split, rng)
    };
    if relation < TWINS {
        let [facts, _] = facts;
        let plan = plan(scene, question, facts, rng);
        return twins(scene, question, &plan, rng);
    }
    let truth = question.truth(scene);
    // Two wholly wrong answers are equally bad, whatever else is true of them.
    let hopeless = facts
        .iter()
        .all(|facts| facts.iter().all(|fact| !truth.contains(fact)));
    let wanted = match rng.unit() {
        d if d < TIES || hopeless => Ordering::Equal,
        d if d < TIES + (1.0 - TIES) / 2.0 => Ordering::Less,
        _ => Ordering::Greater,
    };
    let mut tries = 0;
    loop {
        // The first of the two facts belongs to either response, as the order demands.
        let [one, two] = &facts;
        let [one, two] = if tries % 2 == 0 {
            [one, two]
        } else {
            [two, one]
        };
        let pair = [one, two]
            .map(|facts| plan(scene, question, facts.clone(), rng))
            .map(|plan| respond(scene, question, &plan, rng));
        let [a, b] = &pair;
        tries += 1;
        if a.conclusion.score.cmp(&b.conclusion.score) == wanted || tries >= TRIES {
            return pair;
        }
    }
}

/// The facts of two responses, mostly not equally right.
fn two_facts(
    scene: &Scene,
    question: &Question,
    split: f32,
    rng: &mut impl RandomChoice,
) -> [Vec<Fact>; 2] {
    let wrong = if rng.chance(split) {
        let two = question.kind.concerns().len() > 1;
        match rng.unit() {
            d if two && d < 0.2 => [FactErrors::Some, FactErrors::All],
            d if d < 0.6 => [FactErrors::None, FactErrors::Some],
            _ => [FactErrors::None, FactErrors::All],
        }
    } else {
        [lot(rng), lot(rng)]
    };
    let [better, worse] = wrong.map(|wrong| claim::facts(question, scene, wrong, rng));
    if rng.chance(0.5) {
        [better, worse]
    } else {
        [worse, better]
    }
}

fn lot(rng: &mut impl RandomChoice) -> FactErrors {
    match rng.unit() {
        d if d < WRONG * 0.5 => FactErrors::Some,
        d if d < WRONG => FactErrors::All,
        _ => FactErrors::None,
    }
}

/// Two wordings of one plan, equal in every score.
fn twins(
    scene: &Scene,
    question: &Question,
    plan: &ResponsePlan,
    rng: &mut impl RandomChoice,
) -> [WrittenResponse; 2] {
    let first = respond(scene, question, plan, rng);
    // Wording may differ in the courtesy or in which concern is left out; a few tries meet it.
    for _ in 0..32 {
        let second = respond(scene, question, plan, rng);
        if second.ratings == first.ratings && second.text != first.text {
            return [first, second];
        }
    }
    [first.clone(), first]
}

fn respond(
    scene: &Scene,
    question: &Question,
    plan: &ResponsePlan,
    rng: &mut impl RandomChoice,
) -> WrittenResponse {
    let claim = claim::claim(question, scene, &plan.facts, plan.partly, rng);
    response_writer::write(&claim, &plan.defects, rng)
}

/// A fault that is drawn by lot: a family of defects, or leaving out one of two concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefectChoice {
    Partly,
    Family(&'static str),
}

/// Decides what else is wrong with a response that states these facts.
fn plan(
    scene: &Scene,
    question: &Question,
    facts: Vec<Fact>,
    rng: &mut impl RandomChoice,
) -> ResponsePlan {
    let wrong = facts != question.truth(scene);
    let dice = rng.unit();
    // Over all responses: 35 % without a defect, 45 % with one, 20 % with two.
    let faults = match (wrong, dice) {
        (true, d) if d < 0.69 => 0,
        (false, d) if d < 0.64 => 0,
        (false, d) if d >= 0.89 => 2,
        _ => 1,
    };
    let two = facts.len() > 1;
    let mut plan = ResponsePlan {
        facts,
        partly: false,
        defects: Vec::new(),
    };
    let mut taken: Vec<DefectChoice> = Vec::new();
    while taken.len() < faults {
        let pool = pool(two, wrong, faults > 1);
        let Some(fault) = rng.pick(&pool) else { break };
        if taken.contains(&fault) || !agrees(fault, &taken) {
            continue;
        }
        taken.push(fault);
        match fault {
            DefectChoice::Partly => plan.partly = true,
            DefectChoice::Family(name) => {
                let members: Vec<Defect> = RULES
                    .iter()
                    .filter(|rule| rule.family == name)
                    .map(|rule| rule.defect)
                    .collect();
                plan.defects.extend(rng.pick(&members));
            }
        }
    }
    plan
}

/// The faults a response may have. What says nothing, or only a phrase, stands alone.
fn pool(two: bool, wrong: bool, several: bool) -> Vec<DefectChoice> {
    let mut families: Vec<&'static str> = RULES.iter().map(|rule| rule.family).collect();
    families.dedup();
    families.retain(|family| match *family {
        "evasive" => !wrong && !several,
        "bare" => !several,
        _ => true,
    });
    // What can seldom be drawn is then drawn the more often.
    let partly = [DefectChoice::Partly; 3]
        .into_iter()
        .take(if two { 3 } else { 0 });
    let evasive = families.contains(&"evasive");
    families.extend(["evasive"; 2].into_iter().take(if evasive { 2 } else { 0 }));
    partly
        .chain(families.into_iter().map(DefectChoice::Family))
        .collect()
}

/// Whether a fault can stand beside those already taken.
fn agrees(fault: DefectChoice, taken: &[DefectChoice]) -> bool {
    let clash = |a: &'static str, b: &'static str| {
        let pair = (DefectChoice::Family(a), DefectChoice::Family(b));
        (fault == pair.0 && taken.contains(&pair.1)) || (fault == pair.1 && taken.contains(&pair.0))
    };
    !clash("overconfident", "vague") && !clash("rude", "curt")
}
