//! The fields of a submitted form.

use std::collections::HashMap;

use crate::annotation::journal::{EntryAction, Preference, TaskAnswers};
use crate::annotation::pages::field_names::{self, limit_text, score_field};
use crate::annotation::study::RatingScheme;

/// Longest time on a page that counts, in seconds: a page that was left open overnight says nothing.
const MAX_SECONDS: f64 = 3600.0;

/// What the rater wants after the answers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Stay on the page.
    Save,
    /// Lock the answers and go to the next case.
    Submit,
    /// Go to the next case without rating this one.
    Skip,
}

/// A form that a rater submitted, in the order in which the rater saw the responses.
#[derive(Clone, Debug)]
pub(super) struct SubmittedForm {
    /// What the rater wants.
    wish: Wish,
    /// The answers.
    pub(super) answers: TaskAnswers,
    /// Seconds since the page was opened.
    pub(super) seconds: f64,
}

impl SubmittedForm {
    /// Reads the fields of a form. Fields that no page has are ignored.
    pub(super) fn new(scheme: &RatingScheme, fields: &[(String, String)], now: f64) -> Self {
        let fields: HashMap<&str, &str> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let field = |name: &str| fields.get(name).copied().unwrap_or_default();
        let mut answers = TaskAnswers {
            comment: limit_text(field(field_names::COMMENT)),
            reason: limit_text(field(field_names::REASON)),
            preference: match field(field_names::PREFERENCE) {
                "first" if scheme.has_preference => Some(Preference::First),
                "second" if scheme.has_preference => Some(Preference::Second),
                "equal" if scheme.has_preference => Some(Preference::Equal),
                _ => None,
            },
            ..TaskAnswers::default()
        };
        let ([low, high], texts) = (scheme.range, scheme.texts.len());
        for (i, aspect) in scheme.scored.iter().enumerate() {
            for text in 0..texts {
                let score = field(&score_field(i, text)).parse::<u8>().ok();
                if let Some(score) = score.filter(|score| (low..=high).contains(score)) {
                    answers.set_score(aspect.key, text, texts, score);
                }
            }
        }
        let opened = field(field_names::OPENED).parse::<f64>().ok().filter(|time| time.is_finite());
        Self {
            wish: match field(field_names::ACTION) {
                "submit" => Wish::Submit,
                "skip" => Wish::Skip,
                _ => Wish::Save,
            },
            answers,
            seconds: opened.map_or(0.0, |opened| (now - opened).clamp(0.0, MAX_SECONDS)),
        }
    }

    /// Returns what is missing for the wish of the rater, in words; empty if nothing is.
    pub(super) fn missing(&self, scheme: &RatingScheme) -> Vec<String> {
        let mut missing = Vec::new();
        match self.wish {
            Wish::Skip if self.answers.reason.is_empty() => {
                missing.push("Give a reason for skipping the case.".to_owned());
            }
            Wish::Save | Wish::Skip => {}
            Wish::Submit => {
                for aspect in &scheme.scored {
                    for (i, text) in scheme.texts.iter().enumerate() {
                        if self.answers.score(aspect.key, i).is_none() {
                            missing.push(format!("{}: no score for {text}.", aspect.name));
                        }
                    }
                }
                if scheme.has_preference && self.answers.preference.is_none() {
                    missing.push(format!("Say whether {} is better.", scheme.texts.join(" or ")));
                }
            }
        }
        missing
    }

    /// Returns the entry that stores the form: what the rater wants, or a draft if something is missing.
    pub(super) fn action(&self, is_complete: bool) -> EntryAction {
        match self.wish {
            Wish::Submit if is_complete => EntryAction::Submit,
            Wish::Skip if is_complete => EntryAction::Skip,
            _ => EntryAction::Save,
        }
    }
}
