//! The evaluations of judges, and the fields to rate them or to choose between them.

use acem3_experts::prompt::Rubric;
use maud::{Markup, html};

use super::choice_fields::{ScoreChoice, preference_choice};
use super::field_names::score_field;
use super::rating_fields::{response_name, response_numbers};
use crate::annotation::journal::TaskAnswers;
use crate::annotation::study::{EVALUATION_CRITERIA, FINAL_SCORE, RatingScheme};
use crate::judging::judge::recorded_verdict::{RecordedOrder, RecordedVerdict, ResponseScores};

/// The evaluations of a task, as a rater sees them.
pub(crate) struct EvaluationFields<'a> {
    /// What the judges scored.
    pub(crate) rubric: &'a Rubric,
    /// The fields.
    pub(crate) scheme: &'a RatingScheme<'a>,
    /// The evaluations, in the order in which the rater sees them.
    pub(crate) evaluations: &'a [&'a RecordedVerdict],
    /// True if the rater sees the second response first.
    pub(crate) is_swapped: bool,
    /// The answers, in the order in which the rater sees the evaluations.
    pub(crate) answers: &'a TaskAnswers,
}

impl EvaluationFields<'_> {
    /// Returns the texts of the evaluations.
    pub(crate) fn texts(&self) -> Markup {
        html! {
            div.sides {
                @for (i, verdict) in self.evaluations.iter().enumerate() {
                    section.evaluation {
                        h2 { @if self.evaluations.len() == 1 { "Evaluation" } @else { "Evaluation " (i + 1) } }
                        // The same for all raters, so that they rate the same texts.
                        @if let Some(order) = verdict.orders.first() { (self.order(order)) }
                    }
                }
            }
        }
    }

    /// Returns the fields of the form.
    pub(crate) fn fields(&self) -> Markup {
        let [low, high] = self.scheme.range;
        html! {
            section.aspect {
                @if self.scheme.has_preference {
                    h2 { "Choice" }
                    p { "Look at these points:" }
                    ul { @for aspect in EVALUATION_CRITERIA { li { (aspect.name) ": " (aspect.definition) } } }
                    (preference_choice(
                        "Which evaluation is better?",
                        ["Evaluation 1", "Both are equally good", "Evaluation 2"],
                        self.answers.preference,
                    ))
                } @else {
                    h2 { "Your rating of the evaluation" }
                    p.hint { (low) " is the worst score and " (high) " the best. Keys " (low) " to " (high) " enter a score." }
                    @for (i, aspect) in self.scheme.scored.iter().enumerate() {
                        div.criterion {
                            h3 { (aspect.name) }
                            p { (aspect.definition) }
                            (ScoreChoice {
                                field: score_field(i, 0),
                                subject: aspect.name,
                                text: "Evaluation",
                                range: self.scheme.range,
                                chosen: self.answers.score(aspect.key, 0),
                            }.render())
                        }
                    }
                }
            }
        }
    }

    fn order(&self, order: &RecordedOrder) -> Markup {
        let count = order.scores.len();
        // The judge may have seen the responses in the other order.
        let first = usize::from(order.swapped != self.is_swapped);
        html! {
            @if count == 2 { (response_numbers(first)) }
            @for aspect in &self.rubric.aspects {
                @for criterion in &aspect.criteria {
                    @if let Some(scores) = order.aspects.get(&aspect.key).and_then(|aspect| aspect.get(&criterion.key)) {
                        (self.scores(&criterion.name, scores))
                    }
                }
            }
            (self.scores(FINAL_SCORE, &order.conclusion))
        }
    }

    /// Returns the scores of the responses on one criterion, in the order in which the rater sees the
    /// responses.
    fn scores(&self, name: &str, scores: &ResponseScores) -> Markup {
        let count = scores.scores.len();
        let of_response = |shown: usize| {
            let response = if self.is_swapped && count == 2 { 1 - shown } else { shown };
            let analyses = scores.analyses.as_ref();
            let analysis = analyses.and_then(|analyses| analyses.get(response));
            (scores.scores.get(response), analysis.map_or("", |text| text.trim()))
        };
        html! {
            section.criterion {
                h3 { (name) }
                @for shown in 0..count {
                    @let (score, analysis) = of_response(shown);
                    p.analysis {
                        strong { (response_name(count, shown)) @if let Some(score) = score { ": " (score) } }
                        @if !analysis.is_empty() { " – " (analysis) }
                    }
                }
            }
        }
    }
}
