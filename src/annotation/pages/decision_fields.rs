//! The suggestions about an unresolved pair, and the fields to accept one or to write an own evaluation.

use maud::{Markup, html};

use super::choice_fields::ScoreChoice;
use super::field_names::{DECISION, MAX_ANALYSIS, OWN, accept_value, analysis_field, score_field};
use super::rating_fields::{response_name, response_numbers};
use crate::annotation::journal::{DecisionAnswer, TaskAnswers};
use crate::annotation::study::StudyPlan;
use crate::data::labels::ScoreTarget;
use crate::training::introspection::decisions::pair_evaluation::{PairEvaluation, RatedPair};
use crate::training::introspection::decisions::unresolved_file::NumberedSuggestion;
use crate::training::introspection::decisions::unresolved_pair::UnresolvedPair;

/// An unresolved pair, as a rater sees it.
pub(crate) struct DecisionFields<'a> {
    /// The study.
    pub(crate) plan: &'a StudyPlan,
    /// The pair.
    pub(crate) pair: &'a UnresolvedPair,
    /// The labelled final scores.
    pub(crate) labels: Option<[f64; 2]>,
    /// Address of the page.
    pub(crate) address: String,
    /// The suggestion that fills the fields of an own evaluation.
    pub(crate) prefilled: Option<usize>,
    /// The answers.
    pub(crate) answers: &'a TaskAnswers,
}

impl DecisionFields<'_> {
    /// Returns why the pair is unresolved, and the suggestions.
    pub(crate) fn suggestions(&self) -> Markup {
        html! {
            section.aspect {
                h2 { "What is to decide" }
                p { "A judge was wrong about these answers. Decide which evaluation it should learn from." }
                @if let Some([first, second]) = self.labels {
                    p { "Known final scores: answer A " strong { (first) } ", answer B " strong { (second) } "." }
                }
                p { "Why a person decides: " (self.pair.reason()) }
            }
            div.sides {
                @for suggestion in self.pair.suggestions() { (self.suggestion(suggestion)) }
            }
        }
    }

    /// Returns the fields of the form.
    pub(crate) fn fields(&self) -> Markup {
        let chosen = self.answers.decision.as_ref();
        let is_own = matches!(chosen, Some(DecisionAnswer::Own(_))) || self.prefilled.is_some();
        let is_accepted = |number| !is_own && chosen == Some(&DecisionAnswer::Accept(number));
        let numbers = self.pair.suggestions().iter().filter(|s| !s.orders.is_empty());
        html! {
            section.aspect {
                h2 { "Decision" }
                fieldset.preference {
                    legend { "Which evaluation is right?" }
                    @for number in numbers.map(|suggestion| suggestion.number) {
                        label {
                            input type="radio" name=(DECISION) value=(accept_value(number)) checked[is_accepted(number)];
                            span { "Suggestion " (number) }
                        }
                    }
                    label {
                        input type="radio" name=(DECISION) value=(OWN) checked[is_own];
                        span { "My own evaluation" }
                    }
                }
                details open[is_own] {
                    summary { "My own evaluation" }
                    p.hint { "The texts are used with the answers in both orders, so write “this answer” and “the other answer”." }
                    @for (i, (target, name)) in self.plan.rubric_targets().into_iter().enumerate() {
                        (self.own_row(i, target, name))
                    }
                }
            }
        }
    }

    fn suggestion(&self, suggestion: &NumberedSuggestion) -> Markup {
        html! {
            section.evaluation {
                h2 { "Suggestion " (suggestion.number) }
                @if let Some(problem) = &suggestion.problem { p { "Not accepted: " (problem) } }
                @if let Some(evaluation) = shown_order(suggestion) {
                    (response_numbers(usize::from(evaluation.swapped)))
                    @for (name, rated) in self.rated_rows(evaluation) { (rated_row(name, rated)) }
                    p { a href={ (self.address) "?from=" (suggestion.number) } { "Start an own evaluation with these texts" } }
                } @else {
                    p { "The adviser gave no evaluation." }
                }
            }
        }
    }

    /// Returns the names and ratings of an evaluation in the order of the rubric.
    fn rated_rows<'e>(
        &self,
        evaluation: &'e PairEvaluation,
    ) -> impl Iterator<Item = (&str, &'e RatedPair)> {
        let targets = self.plan.rubric_targets().into_iter();
        targets.filter_map(|(target, name)| Some((name, rating_of(evaluation, target)?)))
    }

    /// Returns the fields of a criterion of an own evaluation.
    fn own_row(&self, index: usize, target: ScoreTarget, name: &str) -> Markup {
        let from = self.prefilled.and_then(|number| {
            let suggestion = self.pair.suggestions().iter().find(|s| s.number == number)?;
            rating_of(shown_order(suggestion)?, target)
        });
        let written = match &self.answers.decision {
            Some(DecisionAnswer::Own(analyses)) => analyses.get(target.key()),
            _ => None,
        };
        let analyses = from.and_then(|rated| rated.analyses.as_ref()).or(written);
        html! {
            div.criterion {
                h3 { (name) }
                div.sides {
                    @for response in 0..2 {
                        div {
                            (ScoreChoice {
                                field: score_field(index, response),
                                subject: name,
                                text: response_name(2, response),
                                range: self.plan.rubric.scores,
                                chosen: from.and_then(|rated| Some(rated.scores?[response])).or(self.answers.score(target.key(), response)),
                            }.render())
                            label {
                                "Analysis of " (["answer A", "answer B"][response])
                                textarea dir="auto" name=(analysis_field(index, response)) rows="3" maxlength=(MAX_ANALYSIS) {
                                    (analyses.map_or("", |analyses| analyses[response].trim()))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the presentation order whose texts count the responses as the page does.
fn shown_order(suggestion: &NumberedSuggestion) -> Option<&PairEvaluation> {
    suggestion.orders.iter().find(|order| !order.swapped).or(suggestion.orders.first())
}

fn rating_of(evaluation: &PairEvaluation, target: ScoreTarget) -> Option<&RatedPair> {
    match target {
        ScoreTarget::Criterion(criterion) => evaluation.criteria.get(&criterion),
        _ => Some(&evaluation.conclusion),
    }
}

fn rated_row(name: &str, rated: &RatedPair) -> Markup {
    html! {
        section.criterion {
            h3 { (name) }
            @for response in 0..2 {
                p.analysis {
                    strong { (response_name(2, response)) @if let Some(scores) = rated.scores { ": " (scores[response]) } }
                    @if let Some(analyses) = &rated.analyses { " – " (analyses[response].trim()) }
                }
            }
        }
    }
}
