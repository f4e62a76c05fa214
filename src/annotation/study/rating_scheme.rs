//! What a rater enters about a task in a part of the study.

use super::part::Part;
use super::study_config::Stage;
use super::study_plan::StudyPlan;

/// Lowest and highest score of an evaluation (AutoMedEval, appendix D).
const EVALUATION_SCORES: [u8; 2] = [0, 5];

/// What the evaluation of a judge is rated on (AutoMedEval, appendix D).
pub const EVALUATION_CRITERIA: [RatedAspect<'static>; 3] = [
    RatedAspect {
        key: "knowledge_correctness",
        name: "Knowledge",
        definition: "Is the medical knowledge in the evaluation correct?",
    },
    RatedAspect {
        key: "reference_correctness",
        name: "Reference",
        definition: "Does the evaluation speak of what each answer really says? It should not mix up the answers or invent statements.",
    },
    RatedAspect {
        key: "fluency",
        name: "Fluency",
        definition: "Is the evaluation well written and easy to understand?",
    },
];

/// Something that gets a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatedAspect<'a> {
    /// Key in results.
    pub key: &'a str,
    /// Name that raters see.
    pub name: &'a str,
    /// What the score is about; empty if the rubric defines it.
    pub definition: &'a str,
}

/// The fields of a task.
#[derive(Clone, Debug)]
pub struct RatingScheme<'a> {
    /// What gets a score.
    pub scored: Vec<RatedAspect<'a>>,
    /// Names of the rated texts, as the rater sees them.
    pub texts: Vec<&'static str>,
    /// Lowest and highest score.
    pub range: [u8; 2],
    /// True if the rater says which of two texts is better.
    pub has_preference: bool,
    /// True if the rater decides about an unresolved pair; scores then belong to an own evaluation.
    pub is_decision: bool,
}

impl StudyPlan {
    /// Returns the fields of a task with this number of responses.
    pub fn scheme(&self, part: Part, responses: usize) -> RatingScheme<'_> {
        match part {
            Part::Responses => {
                let targets = self.scored_targets().into_iter();
                let scored = targets.map(|(target, name)| RatedAspect {
                    key: target.key(),
                    name,
                    definition: "",
                });
                RatingScheme {
                    scored: scored.collect(),
                    texts: text_names(responses, "the answer", ["answer A", "answer B"]),
                    range: self.rubric.scores,
                    has_preference: responses == 2 && self.config.has_stage(Stage::Preference),
                    is_decision: self.config.decides_pairs(),
                }
            }
            Part::Evaluations => {
                let is_choice = self.compares_judges();
                let names = ["evaluation 1", "evaluation 2"];
                RatingScheme {
                    scored: if is_choice { Vec::new() } else { EVALUATION_CRITERIA.to_vec() },
                    texts: text_names(self.judges.len(), "the evaluation", names),
                    range: EVALUATION_SCORES,
                    has_preference: is_choice,
                    is_decision: false,
                }
            }
        }
    }
}

fn text_names(count: usize, single: &'static str, pair: [&'static str; 2]) -> Vec<&'static str> {
    if count == 1 { vec![single] } else { pair.to_vec() }
}
