//! One request for free text, and the text in its reply.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::text_options::TextOptions;
use super::text_server::TextServer;
use crate::data::cases::UnscoredReason;
use crate::data::cases::case::MARKED_LOCAL_ONLY;
use crate::data::images::LoadedImage;
use crate::judging::judge::MemberError;
use crate::judging::judge::text_writer::{TextRequest, WrittenText};
use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::exchange::message::content_parts;
use crate::judging::served::exchange::model_names::OtherModelNames;
use crate::judging::served::exchange::read_reply::quote;
use crate::judging::served::exchange::reply::Reply;
use crate::judging::served::exchange::request::{CHAT_PATH, render_body};
use crate::judging::served::image_urls::ImageUrls;
use crate::judging::served::member_errors::{to_member_error, unscored};
use crate::judging::served::transport::Transport;
use crate::judging::served::transport::usage::UsageCounter;

/// A tested model with its connection.
#[derive(Debug)]
pub(super) struct TextClient {
    pub(super) model: ServedModel,
    pub(super) transport: Transport,
    pub(super) server: TextServer,
    pub(super) options: TextOptions,
    pub(super) images: ImageUrls,
    pub(super) usage: UsageCounter,
    pub(super) other_models: OtherModelNames,
}

impl TextClient {
    /// Requests a text.
    pub(super) async fn write(&self, request: TextRequest) -> Result<WrittenText, MemberError> {
        if request.is_local_only && !self.model.url.is_local() {
            let host = self.model.url.host();
            return Err(unscored(
                UnscoredReason::Transport,
                format!(
                    "{MARKED_LOCAL_ONLY}, and the question would be sent to {host}\n\
                     hint: use a model on this machine"
                ),
            ));
        }
        let image = match request.image {
            Some(image) => Some(self.encode(image).await?),
            None => None,
        };
        let content = content_parts(&request.pieces, image.as_deref());
        let body = render_body(&self.model, &content, None, self.options.render(&self.model));
        let body = body.map_err(|error| MemberError::Unusable(error.to_string()))?;
        let reply = self.transport.post(CHAT_PATH, body, Reply::parse).await;
        let reply = reply.map_err(|error| to_member_error(error, "answer", &self.model))?;
        self.usage.add(&reply);
        self.other_models.add(self.server.expected_name(), &reply);
        read_text(&reply)
    }

    async fn encode(&self, image: Arc<LoadedImage>) -> Result<Arc<RawValue>, MemberError> {
        if self.server.image_tokens.is_none() {
            return Err(unscored(
                UnscoredReason::Image,
                format!(
                    "{} does not see images\n\
                     hint: serve a multimodal model, or pass --text-only to ask the questions alone",
                    self.model
                ),
            ));
        }
        let encoded = self.images.get(image).await;
        encoded.map_err(|message| unscored(UnscoredReason::Image, message))
    }
}

/// Reads the text of a reply.
fn read_text(reply: &Reply) -> Result<WrittenText, MemberError> {
    let refused = |message| Err(unscored(UnscoredReason::Refused, message));
    if let Some(refusal) = &reply.refusal {
        return refused(format!("the model refused: {}", quote(refusal)));
    }
    let reason = reply.finish_reason.as_str();
    if reason == "content_filter" {
        return refused("a filter of the server withheld the answer".to_owned());
    }
    let text = reply.text.trim();
    if text.is_empty() && reason == "length" {
        return Err(unscored(
            UnscoredReason::Truncated,
            "the token budget ended before the answer began\n\
             hint: pass a larger --max-tokens; a model that reasons first needs some thousands"
                .to_owned(),
        ));
    }
    if text.is_empty() {
        let reason = if reason.is_empty() { "no reason" } else { reason };
        return refused(format!("the model wrote nothing (it stopped with: {})", quote(reason)));
    }
    Ok(WrittenText {
        text: text.to_owned(),
        is_cut: reason == "length",
        prompt_tokens: reply.prompt_tokens,
        written_tokens: reply.written_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, finish_reason: &str) -> Result<WrittenText, MemberError> {
        read_text(&Reply {
            text: text.to_owned(),
            finish_reason: finish_reason.to_owned(),
            ..Reply::default()
        })
    }

    #[test]
    fn cut_answers_are_kept_and_missing_ones_have_a_reason() {
        let text = read(" Yes.\nIt is. \n", "stop").unwrap();
        assert_eq!((text.text.as_str(), text.is_cut), ("Yes.\nIt is.", false));
        assert!(read("Yes, it", "length").unwrap().is_cut);
        for (text, finish_reason, expected) in [
            (" \n", "stop", UnscoredReason::Refused),
            ("", "length", UnscoredReason::Truncated),
            ("text", "content_filter", UnscoredReason::Refused),
        ] {
            let Err(MemberError::Unscored(unscored)) = read(text, finish_reason) else {
                panic!("{text}: an answer");
            };
            assert_eq!(unscored.reason, expected, "{}", unscored.message);
        }
    }
}
