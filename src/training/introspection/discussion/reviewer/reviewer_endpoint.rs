//! A model behind an endpoint that reviews suggestions.
//!
//! It reads image, question, responses and evaluation, without the labels. It decides by what the
//! physicians of AutoMedEval checked in evaluations (§3.1): the medical knowledge, what is attributed
//! to which response, and the language; and whether the scores follow from the analyses.

use std::fmt::Write as _;

use acem3_experts::Aspect;
use acem3_experts::prompt::EvaluationFormat;
use anyhow::{Context as _, Result};

use super::review_answer::{ANSWER_FORM, parse_review};
use super::suggested_pair::SuggestedPair;
use crate::judging::judge::recorded_verdict::RecordedOrder;
use crate::training::introspection::discussion::chat::chat_client::ChatClient;
use crate::training::introspection::discussion::chat::image_url::{encode_image_url, user_message};
use crate::training::introspection::discussion::chat::request_journal::RequestJournal;
use crate::training::introspection::discussion::discussion_round::SuggestionReview;
use crate::training::introspection::evaluations::order_ratings::{
    aspect_ratings, conclusion_ratings,
};
use crate::training::preferences::prompt_text;

/// What an acceptable evaluation is.
const CONDITIONS: &str = "\
Accept the evaluation if all of this holds:
1. The medical knowledge in the analyses is correct, and agrees with the image if there is one.
2. Each analysis is about the response above it, and attributes to it only what it says.
3. The scores (0 to 5) follow from the analyses.
4. The analyses are fluent and easy to understand.";

/// Reviews suggestions with a model behind an endpoint.
pub struct ReviewerEndpoint {
    chat: ChatClient,
}

impl ReviewerEndpoint {
    /// Creates a reviewer.
    pub fn new(chat: ChatClient) -> Self {
        Self { chat }
    }

    /// Sends a short message, to report a wrong key, URL or model before the training starts.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key, the model or the message.
    pub(crate) fn check(&self) -> Result<()> {
        self.chat.check()
    }

    /// Returns the model and its URL.
    pub(crate) fn name(&self) -> String {
        self.chat.name()
    }

    /// Reviews a suggestion: each of its presentation orders, until it rejects one.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key or the model.
    pub(crate) fn review(
        &self,
        pair: &SuggestedPair,
        journal: &mut RequestJournal,
    ) -> Result<SuggestionReview> {
        let job = &pair.misjudged.job;
        if let Err(reason) = self.chat.may_receive(job) {
            return Ok(SuggestionReview::missing(reason));
        }
        let image = encode_image_url(job)?;
        let mut review = SuggestionReview::missing("the suggestion has no evaluation".to_owned());
        for order in &pair.suggestion.orders {
            let text = match prompt(pair, order) {
                Ok(text) => text,
                Err(error) => return Ok(SuggestionReview::missing(format!("{error:#}"))),
            };
            let message = user_message(&text, image.as_deref());
            review = match journal.ask(&self.chat, &message, pair.attempt)? {
                Ok(answer) => parse_review(&answer),
                Err(reason) => SuggestionReview::missing(reason),
            };
            if review.accepts != Some(true) {
                break;
            }
        }
        Ok(review)
    }
}

/// Returns the text of a request about one presentation order.
fn prompt(pair: &SuggestedPair, order: &RecordedOrder) -> Result<String> {
    let job = &pair.misjudged.job;
    let mut responses = job.pair_texts();
    if order.swapped {
        responses.reverse();
    }
    let [first, second] = responses;
    let mut text = format!(
        "You review an evaluation of two responses to a medical question, before a model is trained on it.\n\n\
         ### Question:\n{}\n\n### Response 1:\n{first}\n\n### Response 2:\n{second}\n",
        job.question()
    );
    for aspect in Aspect::ALL {
        let ratings = aspect_ratings(order, aspect).context("the suggestion cannot be read")?;
        let evaluation = EvaluationFormat::for_aspect(aspect).render_pieces(&ratings);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n### {} Evaluation:\n{}\n", aspect.name(), prompt_text(&evaluation));
    }
    let ratings = conclusion_ratings(order).context("the suggestion cannot be read")?;
    let conclusion = EvaluationFormat::for_conclusion().render_pieces(&ratings);
    let _ = write!(
        text,
        "\n### Final Evaluation:\n{}\n\n### Instruction:\n{CONDITIONS}\n\n\
         Write your review in exactly this form, and nothing else:\n\n{ANSWER_FORM}",
        prompt_text(&conclusion)
    );
    Ok(text)
}
