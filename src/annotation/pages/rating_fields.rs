//! The fields of scores and of the preference.

use maud::{Markup, html};

use super::choice_fields::{ScoreChoice, preference_choice};
use super::field_names::score_field;
use crate::annotation::journal::TaskAnswers;
use crate::annotation::study::{FINAL_SCORE, Stage, StudyPlan};
use crate::data::labels::ScoreTarget;

/// What the fields show.
pub(crate) struct RatingFields<'a> {
    /// The study.
    pub(crate) plan: &'a StudyPlan,
    /// The answers, in the order in which the rater sees the responses.
    pub(crate) answers: &'a TaskAnswers,
    /// Number of responses: one or two.
    pub(crate) responses: usize,
    /// True if the case has an image.
    pub(crate) has_image: bool,
}

/// One criterion, or the final score.
struct ScoredRow<'a> {
    index: usize,
    key: &'a str,
    name: &'a str,
    definition: &'a str,
    anchors: &'a [String],
}

impl RatingFields<'_> {
    /// Returns the fields of all stages.
    pub(crate) fn render(&self) -> Markup {
        html! {
            @if self.plan.config.has_stage(Stage::Ratings) { (self.scores()) }
            @if self.plan.config.has_stage(Stage::Preference) && self.responses == 2 { (self.preference()) }
        }
    }

    fn scores(&self) -> Markup {
        let mut index = 0;
        let [low, high] = self.plan.rubric.scores;
        html! {
            p.hint { (low) " is the worst score and " (high) " the best. Keys " (low) " to " (high) " enter a score." }
            @for aspect in &self.plan.rubric.aspects {
                section.aspect {
                    h2 { (aspect.name) }
                    @for criterion in &aspect.criteria {
                        ({
                            index += 1;
                            let fitted = criterion.fitted(self.has_image).unwrap_or_else(|_| criterion.clone());
                            self.row(&ScoredRow {
                                index: index - 1,
                                key: criterion.key.key(),
                                name: &criterion.name,
                                definition: &fitted.definition,
                                anchors: &fitted.anchors,
                            })
                        })
                    }
                }
            }
            section.aspect {
                h2 { "Altogether" }
                (self.row(&ScoredRow { index, key: ScoreTarget::Final.key(), name: FINAL_SCORE, definition: "How good is the answer altogether?", anchors: &[] }))
            }
        }
    }

    fn row(&self, row: &ScoredRow) -> Markup {
        html! {
            div.criterion {
                h3 { (row.name) }
                p { (row.definition) }
                @if !row.anchors.is_empty() {
                    details {
                        summary { "Meaning of the scores" }
                        ol start=(self.plan.rubric.scores[0]) { @for anchor in row.anchors { li { (anchor) } } }
                    }
                }
                div.sides {
                    @for response in 0..self.responses { (self.score(row, response)) }
                }
            }
        }
    }

    fn score(&self, row: &ScoredRow, response: usize) -> Markup {
        ScoreChoice {
            field: score_field(row.index, response),
            subject: row.name,
            text: response_name(self.responses, response),
            range: self.plan.rubric.scores,
            chosen: self.answers.score(row.key, response),
        }
        .render()
    }

    fn preference(&self) -> Markup {
        html! {
            section.aspect {
                h2 { "Preference" }
                (preference_choice(
                    "Which answer is better?",
                    ["Answer A", "Both are equally good", "Answer B"],
                    self.answers.preference,
                ))
            }
        }
    }
}

/// Returns which answers a judge calls "Response 1" and "Response 2". `first`: index of the answer that the
/// judge saw first.
pub(crate) fn response_numbers(first: usize) -> Markup {
    html! {
        p.hint {
            "“Response 1” in the texts is " (response_name(2, first)) ", and “Response 2” is " (response_name(2, 1 - first)) "."
        }
    }
}

/// Returns the name of a response, as the rater sees it.
pub(crate) fn response_name(responses: usize, response: usize) -> &'static str {
    match (responses, response) {
        (1, _) => "Answer",
        (_, 0) => "Answer A",
        _ => "Answer B",
    }
}
