//! The pages on which the administrator decides between ratings, without the names of models and raters.

use acem3_experts::prompt::RubricCriterion;
use maud::{Markup, html};

use super::field_names::{COMMENT, MAX_TEXT};
use super::image_view::ImageView;
use super::layout::Page;
use super::rating_fields::response_name;
use crate::annotation::results::disagreement::Disagreement;
use crate::annotation::results::rater_comments::RaterComment;

/// Address of the pages, without the id.
pub(crate) const PATH: &str = "/admin/disagreements/";
/// Name of the field of a decision.
pub(crate) const VALUE: &str = "value";

/// Returns the list of all disagreements, by case.
pub(crate) fn disagreement_list(study: &str, disagreements: &[Disagreement]) -> String {
    let by_case = disagreements.chunk_by(|one, other| one.item.case == other.item.case);
    let content = html! {
        h1 { "Disagreements" }
        p { "Scores that differ by two points or more, and opposite preferences." }
        @if disagreements.is_empty() { p { "There are none." } }
        @for disagreements in by_case {
            h2 { "Case " (disagreements[0].item.case) }
            ul.cases { @for disagreement in disagreements { (list_item(disagreement)) } }
        }
    };
    Page { title: "Disagreements", study, navigation: navigation(), content }.render()
}

fn list_item(disagreement: &Disagreement) -> Markup {
    html! {
        li {
            a href={ (PATH) (disagreement.id) } { (disagreement.name) }
            " – " (ratings_text(disagreement)) ", "
            @if let Some(decided) = disagreement.seen_decision() {
                "decided: " (value_text(disagreement.is_preference, decided))
            } @else { "open" }
        }
    }
}

/// Content of the page of a disagreement.
pub(crate) struct DisagreementPage<'a> {
    /// Name of the study.
    pub(crate) study: &'a str,
    /// The disagreement.
    pub(crate) disagreement: &'a Disagreement,
    /// What is scored; `None` for a preference and the final score.
    pub(crate) criterion: Option<&'a RubricCriterion>,
    /// The question.
    pub(crate) question: &'a str,
    /// The scored response, or both of a preference, in the order in which the page shows them.
    pub(crate) responses: &'a [AdjudicatedResponse<'a>],
    /// What the raters remarked.
    pub(crate) comments: &'a [RaterComment],
    /// The image, if the case has one.
    pub(crate) image: Option<ImageView>,
    /// Lowest and highest score.
    pub(crate) scores: [u8; 2],
}

/// A response on the page.
pub(crate) struct AdjudicatedResponse<'a> {
    /// The model, which the page does not show.
    pub(crate) model: &'a str,
    /// The text.
    pub(crate) text: &'a str,
}

impl DisagreementPage<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let content = html! {
            h1 { (self.disagreement.name) }
            @if let Some(criterion) = self.criterion { (definition(criterion, self.scores[0])) }
            p { "Ratings: " (ratings_text(self.disagreement)) "." }
            div.case {
                @if let Some(image) = &self.image { (image.render()) }
                div.texts {
                    section { h2 { "Question" } p.text dir="auto" { (self.question) } }
                    @for (i, response) in self.responses.iter().enumerate() {
                        section { h2 { (self.response_name(i)) } p.text dir="auto" { (response.text) } }
                    }
                    @if !self.comments.is_empty() { (self.comments()) }
                }
            }
            (self.form())
        };
        let title = &self.disagreement.name;
        Page { title, study: self.study, navigation: navigation(), content }.render()
    }

    fn form(&self) -> Markup {
        let [low, high] = self.scores;
        let values: Vec<i8> = if self.disagreement.is_preference {
            vec![1, 0, -1]
        } else {
            (low..=high).filter_map(|score| i8::try_from(score).ok()).collect()
        };
        let chosen = self.disagreement.seen_decision();
        let comment = self.disagreement.decided.as_ref().map_or("", |entry| &entry.comment);
        html! {
            form method="post" action={ (PATH) (self.disagreement.id) } {
                fieldset.scores {
                    legend { "Your decision" }
                    @for value in values.into_iter().map(f64::from) {
                        label {
                            input type="radio" name=(VALUE) value=(value) required checked[chosen.is_some_and(|chosen| chosen.total_cmp(&value).is_eq())];
                            span { (value_text(self.disagreement.is_preference, value)) }
                        }
                    }
                }
                label.comment { "Reason (optional)" textarea dir="auto" name=(COMMENT) rows="3" maxlength=(MAX_TEXT) { (comment) } }
                div.buttons { button.primary type="submit" { "Save the decision" } }
            }
        }
    }

    fn response_name(&self, index: usize) -> String {
        if self.responses.len() == 1 {
            "Answer".to_owned()
        } else {
            format!("Answer {}", index + 1)
        }
    }

    fn comments(&self) -> Markup {
        html! {
            section {
                h2 { "Comments of the raters" }
                @for comment in self.comments {
                    p.text dir="auto" { (comment.text) }
                    p.hint { (self.names_in(comment)) }
                }
            }
        }
    }

    /// Returns which answer of the page a comment calls answer A and answer B.
    fn names_in(&self, comment: &RaterComment) -> String {
        if comment.shown.len() < 2 {
            return String::new();
        }
        let name = |(i, response): (usize, &AdjudicatedResponse)| {
            let place = comment.shown.iter().position(|model| model == response.model)?;
            let name = if self.responses.len() == 1 {
                "the answer above".to_owned()
            } else {
                self.response_name(i).to_lowercase()
            };
            Some(format!("{name} was {}", response_name(2, place)))
        };
        let names: Vec<String> = self.responses.iter().enumerate().filter_map(name).collect();
        format!("For this rater, {}.", names.join(" and "))
    }
}

/// Returns the meaning of a criterion and of its scores.
fn definition(criterion: &RubricCriterion, lowest: u8) -> Markup {
    html! {
        p { (criterion.definition) }
        @if !criterion.anchors.is_empty() {
            details {
                summary { "Meaning of the scores" }
                ol start=(lowest) { @for anchor in &criterion.anchors { li { (anchor) } } }
            }
        }
    }
}

fn navigation() -> Markup {
    html! {
        a href="/admin" { "Progress" }
        a href="/admin/disagreements" { "Disagreements" }
    }
}

fn ratings_text(disagreement: &Disagreement) -> String {
    let values = disagreement.seen_ratings().into_iter();
    let texts = values.map(|value| value_text(disagreement.is_preference, value));
    texts.collect::<Vec<_>>().join(", ")
}

fn value_text(is_preference: bool, value: f64) -> String {
    match (is_preference, value) {
        (false, _) => value.to_string(),
        (true, value) if value > 0.0 => "answer 1 is better".to_owned(),
        (true, value) if value < 0.0 => "answer 2 is better".to_owned(),
        (true, _) => "equally good".to_owned(),
    }
}
