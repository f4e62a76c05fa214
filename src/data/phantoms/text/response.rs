//! The two responses of a phantom: the quality of each, and their relation.

use std::cmp::Ordering;

use super::claim::{self, FactErrors};
use super::fact::Fact;
use super::question::Question;
use super::rules::Defect;
use crate::data::phantoms::random_choice::RandomChoice;
use crate::data::phantoms::scene::Scene;
use crate::data::phantoms::text::defect_table::RULES;
use crate::data::phantoms::text::response_writer;
use crate::data::phantoms::text::response_writer::WrittenResponse;

/// Proportion of twins: pairs of two wordings with equal scores.
const TWIN_PROPORTION: f32 = 0.06;
/// Relation between the facts of two responses, as proportions of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FactMix {
    /// Proportion of pairs with the same facts, where other criteria decide.
    shared: f32,
    /// Proportion of the remaining pairs whose facts differ in correctness.
    split: f32,
}

impl FactMix {
    /// Mix for measuring judges. Most pairs are split, because only in split pairs does the order
    /// depend on the image.
    pub(crate) const MEASUREMENT: Self = Self { shared: 0.12, split: 0.90 };
    /// Mix for training judges. The correctness of one response reveals little about that of the
    /// other, so a judge cannot succeed by rating one response right and the other wrong.
    pub(crate) const TRAINING: Self = Self { shared: 0.20, split: 0.45 };
}

/// Proportion of responses with a wrong fact in pairs that are not split.
const WRONG_PROPORTION: f32 = 0.40;
/// Intended proportion of ties in pairs that are not twins.
const TIE_PROPORTION: f32 = 0.10;
/// Number of attempts to sample a pair with the intended order.
const MAX_ATTEMPTS: usize = 300;

/// Content of a response before it is written.
#[derive(Clone, Debug)]
struct ResponsePlan {
    facts: Vec<Fact>,
    /// True to leave out one of two facts.
    omits_concern: bool,
    defects: Vec<Defect>,
}

/// Generates the two responses to a question about a scene.
pub(crate) fn response_pair(
    scene: &Scene,
    question: &Question,
    mix: FactMix,
    rng: &mut impl RandomChoice,
) -> [WrittenResponse; 2] {
    let relation = rng.unit();
    let facts = if relation < TWIN_PROPORTION + mix.shared {
        let errors = random_fact_errors(rng);
        let facts = claim::choose_facts(question, scene, errors, rng);
        [facts.clone(), facts]
    } else {
        choose_two_fact_lists(scene, question, mix.split, rng)
    };
    if relation < TWIN_PROPORTION {
        let [facts, _] = facts;
        let plan = plan_response(scene, question, facts, rng);
        return equal_responses(scene, question, &plan, rng);
    }
    let truth = question.correct_facts(scene);
    // Two entirely wrong answers have equal final scores, regardless of their other defects.
    let all_wrong = facts.iter().all(|facts| facts.iter().all(|fact| !truth.contains(fact)));
    let intended_order = match rng.unit() {
        d if d < TIE_PROPORTION || all_wrong => Ordering::Equal,
        d if d < TIE_PROPORTION + (1.0 - TIE_PROPORTION) / 2.0 => Ordering::Less,
        _ => Ordering::Greater,
    };
    let mut attempts = 0;
    loop {
        // Exchange the facts in every other attempt, so that both orders can be reached.
        let [first_facts, second_facts] = &facts;
        let [first_facts, second_facts] = if attempts % 2 == 0 {
            [first_facts, second_facts]
        } else {
            [second_facts, first_facts]
        };
        let pair = [first_facts, second_facts]
            .map(|facts| plan_response(scene, question, facts.clone(), rng))
            .map(|plan| write_response(scene, question, &plan, rng));
        let [a, b] = &pair;
        attempts += 1;
        if a.conclusion.score.cmp(&b.conclusion.score) == intended_order || attempts >= MAX_ATTEMPTS
        {
            return pair;
        }
    }
}

/// Selects the facts of two responses; with probability `split`, they differ in correctness.
fn choose_two_fact_lists(
    scene: &Scene,
    question: &Question,
    split: f32,
    rng: &mut impl RandomChoice,
) -> [Vec<Fact>; 2] {
    let errors = if rng.chance(split) {
        let has_two_concerns = question.kind.concerns().len() > 1;
        match rng.unit() {
            d if has_two_concerns && d < 0.2 => [FactErrors::One, FactErrors::All],
            d if d < 0.6 => [FactErrors::None, FactErrors::One],
            _ => [FactErrors::None, FactErrors::All],
        }
    } else {
        [random_fact_errors(rng), random_fact_errors(rng)]
    };
    let [first, second] = errors.map(|errors| claim::choose_facts(question, scene, errors, rng));
    if rng.chance(0.5) { [first, second] } else { [second, first] }
}

fn random_fact_errors(rng: &mut impl RandomChoice) -> FactErrors {
    match rng.unit() {
        d if d < WRONG_PROPORTION * 0.5 => FactErrors::One,
        d if d < WRONG_PROPORTION => FactErrors::All,
        _ => FactErrors::None,
    }
}

/// Writes two wordings of one plan with equal scores.
fn equal_responses(
    scene: &Scene,
    question: &Question,
    plan: &ResponsePlan,
    rng: &mut impl RandomChoice,
) -> [WrittenResponse; 2] {
    let first = write_response(scene, question, plan, rng);
    // A second wording may differ in its courtesy or omitted concern, so several attempts are made.
    for _ in 0..32 {
        let second = write_response(scene, question, plan, rng);
        if second.ratings == first.ratings && second.text != first.text {
            return [first, second];
        }
    }
    [first.clone(), first]
}

fn write_response(
    scene: &Scene,
    question: &Question,
    plan: &ResponsePlan,
    rng: &mut impl RandomChoice,
) -> WrittenResponse {
    let claim = claim::claim_from_facts(question, scene, &plan.facts, plan.omits_concern, rng);
    response_writer::write(&claim, &plan.defects, rng)
}

/// A randomly chosen defect: a family of defects, or the omission of one of two concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefectChoice {
    OmittedConcern,
    Family(&'static str),
}

/// Chooses the defects of a response with these facts.
fn plan_response(
    scene: &Scene,
    question: &Question,
    facts: Vec<Fact>,
    rng: &mut impl RandomChoice,
) -> ResponsePlan {
    let is_wrong = facts != question.correct_facts(scene);
    let random = rng.unit();
    // If a wrong fact counts as a defect, 35 % of all responses have no defect, 45 % have one and
    // 20 % have two.
    let defect_count = match (is_wrong, random) {
        (true, d) if d < 0.69 => 0,
        (false, d) if d < 0.64 => 0,
        (false, d) if d >= 0.89 => 2,
        _ => 1,
    };
    let has_two_concerns = facts.len() > 1;
    let mut plan = ResponsePlan { facts, omits_concern: false, defects: Vec::new() };
    let mut chosen: Vec<DefectChoice> = Vec::new();
    while chosen.len() < defect_count {
        let pool = available_defects(has_two_concerns, is_wrong, defect_count > 1);
        let Some(choice) = rng.choose(&pool) else {
            break;
        };
        if chosen.contains(&choice) || !is_compatible(choice, &chosen) {
            continue;
        }
        chosen.push(choice);
        match choice {
            DefectChoice::OmittedConcern => plan.omits_concern = true,
            DefectChoice::Family(name) => {
                let members: Vec<Defect> = RULES
                    .iter()
                    .filter(|rule| rule.family == name)
                    .map(|rule| rule.defect)
                    .collect();
                plan.defects.extend(rng.choose(&members));
            }
        }
    }
    plan
}

/// Returns the defects that a response may have. Evasive and bare responses have no second defect.
fn available_defects(
    has_two_concerns: bool,
    is_wrong: bool,
    has_several_defects: bool,
) -> Vec<DefectChoice> {
    let mut families: Vec<&'static str> = RULES.iter().map(|rule| rule.family).collect();
    families.dedup();
    families.retain(|family| match *family {
        "evasive" => !is_wrong && !has_several_defects,
        "bare" => !has_several_defects,
        _ => true,
    });
    // Defects that are rarely available get a higher weight.
    let omissions =
        [DefectChoice::OmittedConcern; 3].into_iter().take(if has_two_concerns { 3 } else { 0 });
    let has_evasive = families.contains(&"evasive");
    families.extend(["evasive"; 2].into_iter().take(if has_evasive { 2 } else { 0 }));
    omissions.chain(families.into_iter().map(DefectChoice::Family)).collect()
}

/// Returns true if a defect is compatible with those already chosen.
fn is_compatible(choice: DefectChoice, chosen: &[DefectChoice]) -> bool {
    let clash = |a: &'static str, b: &'static str| {
        let pair = (DefectChoice::Family(a), DefectChoice::Family(b));
        (choice == pair.0 && chosen.contains(&pair.1))
            || (choice == pair.1 && chosen.contains(&pair.0))
    };
    !clash("overconfident", "vague") && !clash("rude", "curt")
}
