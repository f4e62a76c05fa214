//! The fields of a submitted form.

use std::collections::{BTreeMap, HashMap};

use crate::annotation::journal::{DecisionAnswer, EntryAction, Preference, TaskAnswers};
use crate::annotation::pages::field_names::{
    self, OWN, accepted_number, analysis_field, limit_analysis, limit_text, score_field,
};
use crate::annotation::study::RatingScheme;
use crate::data::labels::ScoreTarget;

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
        if scheme.is_decision {
            answers.decision = match field(field_names::DECISION) {
                OWN => Some(DecisionAnswer::Own(own_analyses(scheme, field))),
                choice => accepted_number(choice).map(DecisionAnswer::Accept),
            };
        }
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

    /// Returns true if the rater wants the answers to be final.
    pub(super) fn is_submission(&self) -> bool {
        self.wish == Wish::Submit
    }

    /// Returns what is missing for the wish of the rater, in words; empty if nothing is.
    pub(super) fn missing(&self, scheme: &RatingScheme) -> Vec<String> {
        let mut missing = Vec::new();
        match self.wish {
            Wish::Skip if self.answers.reason.is_empty() => {
                missing.push("Give a reason for skipping the case.".to_owned());
            }
            Wish::Save | Wish::Skip => {}
            Wish::Submit if scheme.is_decision => missing.extend(self.missing_decision(scheme)),
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

    /// Returns what is missing in a decision.
    fn missing_decision(&self, scheme: &RatingScheme) -> Vec<String> {
        let analyses = match &self.answers.decision {
            None => return vec!["Choose a suggestion or your own evaluation.".to_owned()],
            Some(DecisionAnswer::Accept(_)) => return Vec::new(),
            Some(DecisionAnswer::Own(analyses)) => analyses,
        };
        let mut missing = Vec::new();
        for aspect in &scheme.scored {
            for (i, text) in scheme.texts.iter().enumerate() {
                // The final scores are those of the labels if the rater gives none.
                let needs_score = aspect.key != ScoreTarget::Final.key();
                if needs_score && self.answers.score(aspect.key, i).is_none() {
                    missing.push(format!("{}: no score for {text}.", aspect.name));
                }
                let other = self.answers.score(aspect.key, 1 - i);
                if !needs_score && self.answers.score(aspect.key, i).is_none() && other.is_some() {
                    missing.push(format!(
                        "{}: no score for {text}. Give both scores or none.",
                        aspect.name
                    ));
                }
                if analyses.get(aspect.key).is_none_or(|analyses| analyses[i].is_empty()) {
                    missing.push(format!("{}: no analysis of {text}.", aspect.name));
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

/// Returns the analyses of an own evaluation by target.
fn own_analyses<'f>(
    scheme: &RatingScheme,
    field: impl Fn(&str) -> &'f str,
) -> BTreeMap<String, [String; 2]> {
    let analyses = scheme.scored.iter().enumerate().map(|(i, aspect)| {
        let texts = [0, 1].map(|text| limit_analysis(field(&analysis_field(i, text))));
        (aspect.key.to_owned(), texts)
    });
    analyses.collect()
}
