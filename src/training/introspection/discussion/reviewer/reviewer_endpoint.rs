//! A model behind an endpoint that reviews suggestions.
//!
//! It reads image, question, responses and evaluation, without the labels. It decides by what the
//! physicians of AutoMedEval checked in evaluations (§3.1): the medical knowledge, what is attributed
//! to which response, and the language; and whether the scores follow from the analyses.

use std::fmt::Write as _;

use acem3_experts::prompt::{Form, PromptLayout, Rubric, RubricDetail};
use anyhow::{Result, anyhow};

use super::review_answer::{ANSWER_FORM, parse_review};
use super::suggested_pair::SuggestedPair;
use crate::judging::judge::recorded_verdict::RecordedOrder;
use crate::training::introspection::discussion::chat::chat_client::ChatClient;
use crate::training::introspection::discussion::chat::image_url::{encode_image_url, user_message};
use crate::training::introspection::discussion::chat::request_journal::RequestJournal;
use crate::training::introspection::discussion::discussion_round::SuggestionReview;
use crate::training::preferences::prompt_style::StyledPrompts;
use crate::training::preferences::recorded_evaluations::PresentedEvaluation;
use crate::training::preferences::{PromptStyle, prompt_text};

/// Returns what an acceptable evaluation is. `low`, `high`: the range of the scores.
fn conditions([low, high]: [u8; 2]) -> String {
    format!(
        "\
Accept the evaluation if all of this holds:
1. The medical knowledge in the analyses is correct, and agrees with the image if there is one.
2. Each analysis is about the response above it, and attributes to it only what it says.
3. The scores ({low} to {high}) follow from the analyses.
4. The analyses are fluent and easy to understand."
    )
}

/// Reviews suggestions with a model behind an endpoint.
pub struct ReviewerEndpoint {
    chat: ChatClient,
    rubric: Rubric,
    /// Members and formats of the evaluations.
    prompts: StyledPrompts,
}

impl ReviewerEndpoint {
    /// Creates a reviewer of evaluations by a rubric.
    ///
    /// # Errors
    /// If the built-in prompts are damaged.
    pub fn new(chat: ChatClient, rubric: Rubric) -> Result<Self> {
        let layout = PromptLayout::CaseFirst;
        let style = PromptStyle::of_layout(layout, RubricDetail::Full, rubric.clone());
        Ok(Self { chat, rubric, prompts: style.builder(Form::Pair, false)? })
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
            let text = match self.prompt(pair, order) {
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

    /// Returns the text of a request about one presentation order.
    fn prompt(&self, pair: &SuggestedPair, order: &RecordedOrder) -> Result<String> {
        let job = &pair.misjudged.job;
        let [first, second] = job.shown_pair(order.swapped);
        let mut text = format!(
            "You review an evaluation of two responses to a medical question, before a model is trained on it.\n\n\
             ### Question:\n{}\n\n### Response 1:\n{first}\n\n### Response 2:\n{second}\n",
            job.question()
        );
        for member in self.prompts.evaluated_members() {
            let evaluation = PresentedEvaluation::of_order(order, &member)
                .map_err(|missing| anyhow!("the suggestion cannot be read: {}", missing.text()))?;
            let format = self.prompts.format(member.index, order.shown_responses().len());
            let evaluation = prompt_text(&format.render_pieces(&evaluation.ratings));
            let name = match self.rubric.aspects.get(member.index) {
                Some(aspect) => aspect.name.as_str(),
                None => "Final",
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n### {name} Evaluation:\n{evaluation}\n");
        }
        let conditions = conditions(self.rubric.scores);
        let _ = write!(
            text,
            "\n### Instruction:\n{conditions}\n\n\
             Write your review in exactly this form, and nothing else:\n\n{ANSWER_FORM}"
        );
        Ok(text)
    }
}
