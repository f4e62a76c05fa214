//! Tests a model that writes free text: does it exist, which options does its server take, and does it
//! see images?

use acem3_experts::prompt::PromptPiece;
use serde_json::json;

use super::detection::{DetectedServer, detect};
use super::error::{HandshakeError, request_error};
use super::image_test::count_image_tokens;
use super::prompt_counter::PromptCounter;
use crate::judging::judge::text_writer::TextSampling;
use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::exchange::message::content_parts;
use crate::judging::served::exchange::reply::Reply;
use crate::judging::served::exchange::request::{CHAT_PATH, render_body};
use crate::judging::served::free_text::text_options::{MAX_COMPLETION_TOKENS, TextOptions};
use crate::judging::served::free_text::text_server::TextServer;
use crate::judging::served::transport::{RequestError, Transport};

/// A short prompt with a short answer.
const TEST_PROMPT: &str = "Write the word: yes";
/// Token budget of the test.
const TEST_TOKENS: u32 = 16;

/// Tests a model. `tests_images`: false to skip the test of images.
///
/// # Errors
///
/// The server cannot be reached, has no such model, rejects the key, or rejects an option that the user
/// passed.
pub(in crate::judging::served) async fn test_text_model(
    model: &ServedModel,
    transport: &Transport,
    sampling: &TextSampling,
    tests_images: bool,
) -> Result<(TextServer, TextOptions), HandshakeError> {
    let DetectedServer { engine, version, context, lists_model } = detect(model, transport).await?;
    let mut options = TextOptions::new(engine, *sampling);
    let reply = send_supported(model, transport, &mut options).await?;
    let renames_max_tokens = options.renames_max_tokens;
    let counter = PromptCounter { model, transport, engine, renames_max_tokens };
    let image_tokens = if tests_images { count_image_tokens(counter).await? } else { None };
    let server = TextServer {
        url: model.url.as_str().to_owned(),
        model: model.model.clone(),
        is_model_verified: lists_model,
        states_tokens: reply.states_tokens(),
        answering_model: reply.model.filter(|name| *name != model.model),
        engine: engine.name().to_owned(),
        version,
        context,
        image_tokens,
        unsupported: options.unsupported.clone(),
    };
    Ok((server, options))
}

/// Sends a short prompt without each option that the server rejects.
async fn send_supported(
    model: &ServedModel,
    transport: &Transport,
    options: &mut TextOptions,
) -> Result<Reply, HandshakeError> {
    loop {
        let mut fields = options.render(model);
        for name in ["max_tokens", MAX_COMPLETION_TOKENS] {
            if let Some(value) = fields.get_mut(name) {
                *value = json!(TEST_TOKENS);
            }
        }
        let pieces = [PromptPiece::Trusted(TEST_PROMPT.to_owned())];
        let body = render_body(model, &content_parts(&pieces, None), None, fields);
        let body = body.map_err(|error| RequestError::Rejected(error.to_string()));
        let reply = match body {
            Ok(body) => transport.post(CHAT_PATH, body, Reply::parse).await,
            Err(error) => Err(error),
        };
        let error = match reply {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let RequestError::Rejected(message) = &error else {
            return Err(request_error(model)(error));
        };
        if message.contains(MAX_COMPLETION_TOKENS) && !options.renames_max_tokens {
            options.renames_max_tokens = true;
            continue;
        }
        let Some(name) = options.rejected(message) else {
            return Err(request_error(model)(error));
        };
        if let Some(flag) = options.flag_of(name) {
            return Err(HandshakeError::RejectedOption {
                model: model.to_string(),
                option: name,
                flag,
            });
        }
        options.unsupported.insert(name.to_owned());
    }
}
