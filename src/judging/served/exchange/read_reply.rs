//! Reads the ratings of a reply in the notation of its constraint.

use acem3_experts::prompt::EvaluationFormat;

use super::json_text::read_json_text;
use super::plain_text::read_plain_text;
use super::read_rating::ReadRating;
use super::reply::Reply;
use super::score_probabilities::TokenPlaces;
use super::text_limit::TextLimit;
use crate::judging::served::endpoint::engine::{ConstraintNotation, ServingEngine};

/// Maximum characters of a text in a message.
const MAX_QUOTED: usize = 160;

/// Reads the ratings of a reply, and where its tokens are. The text of the tokens comes first: it has
/// also the bytes that are no characters.
///
/// # Errors
///
/// The text does not have the format.
pub(in crate::judging::served) fn read_reply<'a>(
    engine: ServingEngine,
    reply: &'a Reply,
    format: &EvaluationFormat,
    limit: TextLimit,
) -> Result<(Vec<ReadRating>, TokenPlaces<'a>), String> {
    let read = |text: &[u8]| match engine.notation() {
        ConstraintNotation::Regex | ConstraintNotation::Grammar => {
            read_plain_text(format, text, limit)
        }
        ConstraintNotation::JsonSchema => read_json_text(format, text, limit),
    };
    if !reply.tokens.is_empty()
        && let Ok(ratings) = read(&reply.visible_token_bytes())
    {
        return Ok((ratings, TokenPlaces::new(&reply.tokens)));
    }
    Ok((read(reply.text.as_bytes())?, TokenPlaces::new(&[])))
}

/// Returns the start of a text on one line.
pub(in crate::judging::served) fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
