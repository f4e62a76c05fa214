//! The two responses of a phantom: quality of each, and their relation.

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

/// Proportion of pairs with equal scores by construction.
const TWINS: f32 = 0.06;
/// Relation between the facts of two responses, as proportions of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FactMix {
    /// Proportion of pairs with the same facts, where other criteria decide.
    shared: f32,
    /// Proportion of the remaining pairs whose facts differ in correctness.
    split: f32,
}

impl FactMix {
    /// Mix for measuring judges. Most pairs are split, because the order depends on the image only in
    /// split pairs.
    pub(crate) const MEASURED: Self = Self {
        shared: 0.12,
        split: 0.90,
    };
    /// Mix for training judges. The correctness of one response reveals little about that of the other,
    /// so a judge cannot succeed by rating one response right and the other wrong.
    pub(crate) const TAUGHT: Self = Self {
        shared: 0.20,
        split: 0.45,
    };
}

/// Proportion of responses with a wrong fact in pairs that are not split.
const WRONG: f32 = 0.40;
/// Intended proportion of ties in pairs that are not twins.
const TIES: f32 = 0.10;
/// Number of attempts to sample a pair with the intended order.
const TRIES: usize = 300;

/// Content of a response before it is written.
#[derive(Clone, Debug)]
struct ResponsePlan {
    facts: Vec<Fact>,
    partly: bool,
    defects: Vec<Defect>,
}

/// Generates the two responses to a question about a scene.
pub(crate) fn pair(
    scene: &Scene,
    question: &Question,
    mix: FactMix,
    rng: &mut impl RandomChoice,
) -> [WrittenResponse; 2] {
    let relation = rng.unit();
    let facts = if relation < TWINS + mix.shared {
        let wrong = random_fact_errors(rng);
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
    // Two entirely wrong answers have equal final scores, whatever their other defects.
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
        // Attempts alternate which response gets the first facts, so that both orders can be reached.
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

/// Selects the facts of two responses; with probability `split`, they differ in correctness.
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
        [random_fact_errors(rng), random_fact_errors(rng)]
    };
    let [better, worse] = wrong.map(|wrong| claim::facts(question, scene, wrong, rng));
    if rng.chance(0.5) {
        [better, worse]
    } else {
        [worse, better]
    }
}

fn random_fact_errors(rng: &mut impl RandomChoice) -> FactErrors {
    match rng.unit() {
        d if d < WRONG * 0.5 => FactErrors::Some,
        d if d < WRONG => FactErrors::All,
        _ => FactErrors::None,
    }
}

/// Writes two wordings of one plan with equal scores.
fn twins(
    scene: &Scene,
    question: &Question,
    plan: &ResponsePlan,
    rng: &mut impl RandomChoice,
) -> [WrittenResponse; 2] {
    let first = respond(scene, question, plan, rng);
    // A second wording may differ in its courtesy or omitted concern, so several attempts are made.
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

/// A randomly chosen defect: a family of defects, or the omission of one of two concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefectChoice {
    Partly,
    Family(&'static str),
}

/// Chooses the defects of a response with these facts.
fn plan(
    scene: &Scene,
    question: &Question,
    facts: Vec<Fact>,
    rng: &mut impl RandomChoice,
) -> ResponsePlan {
    let wrong = facts != question.truth(scene);
    let dice = rng.unit();
    // Over all responses: 35 % without a defect, 45 % with one, 20 % with two.
    let defect_count = match (wrong, dice) {
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
    while taken.len() < defect_count {
        let pool = pool(two, wrong, defect_count > 1);
        let Some(choice) = rng.pick(&pool) else { break };
        if taken.contains(&choice) || !is_compatible(choice, &taken) {
            continue;
        }
        taken.push(choice);
        match choice {
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

/// Returns the defects that a response may have. Evasive and bare responses have no second defect.
fn pool(two: bool, wrong: bool, several: bool) -> Vec<DefectChoice> {
    let mut families: Vec<&'static str> = RULES.iter().map(|rule| rule.family).collect();
    families.dedup();
    families.retain(|family| match *family {
        "evasive" => !wrong && !several,
        "bare" => !several,
        _ => true,
    });
    // Defects that are rarely available get a higher weight.
    let partly = [DefectChoice::Partly; 3]
        .into_iter()
        .take(if two { 3 } else { 0 });
    let evasive = families.contains(&"evasive");
    families.extend(["evasive"; 2].into_iter().take(if evasive { 2 } else { 0 }));
    partly
        .chain(families.into_iter().map(DefectChoice::Family))
        .collect()
}

/// Returns true if a defect is compatible with those already chosen.
fn is_compatible(choice: DefectChoice, taken: &[DefectChoice]) -> bool {
    let clash = |a: &'static str, b: &'static str| {
        let pair = (DefectChoice::Family(a), DefectChoice::Family(b));
        (choice == pair.0 && taken.contains(&pair.1))
            || (choice == pair.1 && taken.contains(&pair.0))
    };
    !clash("overconfident", "vague") && !clash("rude", "curt")
}
