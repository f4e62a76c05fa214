//! The pages on which the administrator decides between ratings, without the names of models and raters.

use maud::{Markup, html};

use super::field_names::{COMMENT, MAX_TEXT};
use super::layout::Page;
use crate::annotation::results::disagreement::Disagreement;

/// Name of the field of a decision.
pub(crate) const VALUE: &str = "value";

/// Returns the list of all disagreements.
pub(crate) fn disagreement_list(study: &str, disagreements: &[Disagreement]) -> String {
    let content = html! {
        h1 { "Disagreements" }
        p { "Scores that differ by two points or more, and opposite preferences." }
        @if disagreements.is_empty() { p { "There are none." } }
        ol.cases {
            @for disagreement in disagreements {
                li {
                    a href={ "/admin/disagreements/" (disagreement.id) } { "Case " (disagreement.item.case) ", " (disagreement.name) }
                    " – " (ratings_text(disagreement)) ", "
                    @if let Some(decided) = &disagreement.decided {
                        "decided: " (value_text(disagreement.is_preference, f64::from(decided.value)))
                    } @else { "open" }
                }
            }
        }
    };
    Page { title: "Disagreements", study, navigation: navigation(), content }.render()
}

/// Content of the page of a disagreement.
pub(crate) struct DisagreementPage<'a> {
    /// Name of the study.
    pub(crate) study: &'a str,
    /// The disagreement.
    pub(crate) disagreement: &'a Disagreement,
    /// The question.
    pub(crate) question: &'a str,
    /// The scored response, or both of a preference in the order of the values.
    pub(crate) responses: &'a [&'a str],
    /// True if the case has an image.
    pub(crate) has_image: bool,
    /// Lowest and highest score.
    pub(crate) scores: [u8; 2],
}

impl DisagreementPage<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let path = format!("/admin/disagreements/{}", self.disagreement.id);
        let [low, high] = self.scores;
        let values: Vec<i8> = if self.disagreement.is_preference {
            vec![1, 0, -1]
        } else {
            (low..=high).filter_map(|score| i8::try_from(score).ok()).collect()
        };
        let decided = self.disagreement.decided.as_ref();
        let content = html! {
            h1 { (self.disagreement.name) }
            p { "Ratings: " (ratings_text(self.disagreement)) "." }
            div.case {
                @if self.has_image {
                    figure.image { div.viewer { img src={ (path) "/image" } alt="Case image"; } }
                }
                div.texts {
                    section { h2 { "Question" } p.text dir="auto" { (self.question) } }
                    @for (i, response) in self.responses.iter().enumerate() {
                        section {
                            h2 { @if self.responses.len() == 1 { "Answer" } @else { "Answer " (i + 1) } }
                            p.text dir="auto" { (response) }
                        }
                    }
                }
            }
            form method="post" action=(path) {
                fieldset.scores {
                    legend { "Your decision" }
                    @for value in values {
                        label {
                            input type="radio" name=(VALUE) value=(value) required checked[decided.is_some_and(|entry| entry.value == value)];
                            span { (value_text(self.disagreement.is_preference, f64::from(value))) }
                        }
                    }
                }
                label.comment { "Reason (optional)" textarea dir="auto" name=(COMMENT) rows="3" maxlength=(MAX_TEXT) { (decided.map_or("", |entry| &entry.comment)) } }
                div.buttons { button.primary type="submit" { "Save the decision" } }
            }
        };
        let title = &self.disagreement.name;
        Page { title, study: self.study, navigation: navigation(), content }.render()
    }
}

fn navigation() -> Markup {
    html! {
        a href="/admin" { "Progress" }
        a href="/admin/disagreements" { "Disagreements" }
    }
}

/// Returns the ratings from the lowest to the highest, so that their order says nothing of the raters.
fn ratings_text(disagreement: &Disagreement) -> String {
    let mut values: Vec<f64> = disagreement.item.ratings.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let texts = values.into_iter().map(|value| value_text(disagreement.is_preference, value));
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
