//! Choices of a score and of the better text.

use maud::{Markup, html};

use super::field_names::PREFERENCE;
use crate::annotation::journal::Preference;

/// The choice of one score.
pub(crate) struct ScoreChoice<'a> {
    /// Name of the field.
    pub(crate) field: String,
    /// What is scored, for screen readers.
    pub(crate) subject: &'a str,
    /// The scored text, which the rater sees above the scores.
    pub(crate) text: &'a str,
    /// Lowest and highest score.
    pub(crate) range: [u8; 2],
    /// The chosen score.
    pub(crate) chosen: Option<u8>,
}

impl ScoreChoice<'_> {
    /// Returns the choice as HTML.
    pub(crate) fn render(&self) -> Markup {
        let [low, high] = self.range;
        html! {
            fieldset.scores {
                legend { span.visually-hidden { (self.subject) ", " } (self.text) }
                @for score in low..=high {
                    label {
                        input type="radio" name=(self.field) value=(score) checked[self.chosen == Some(score)];
                        span { (score) }
                    }
                }
            }
        }
    }
}

/// Returns the choice between two texts. `names`: what the rater sees of the first, none and the second.
pub(crate) fn preference_choice(
    question: &str,
    names: [&str; 3],
    chosen: Option<Preference>,
) -> Markup {
    let [first, equal, second] = names;
    let choices = [
        ("first", first, Preference::First),
        ("equal", equal, Preference::Equal),
        ("second", second, Preference::Second),
    ];
    html! {
        fieldset.preference {
            legend { (question) }
            @for (value, text, preference) in choices {
                label {
                    input type="radio" name=(PREFERENCE) value=(value) checked[chosen == Some(preference)];
                    span { (text) }
                }
            }
        }
    }
}
