//! Conversion of prompts to plain text.

use acem3_experts::prompt::PromptPiece;

/// Marker of the image in the text of a prompt.
pub(crate) const IMAGE_MARKER: &str = "<image>";

/// Joins the pieces of a prompt or an evaluation into one text.
pub(crate) fn prompt_text(pieces: &[PromptPiece]) -> String {
    let text = pieces.iter().map(|piece| match piece {
        PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text.as_str(),
        PromptPiece::Image => IMAGE_MARKER,
    });
    text.collect()
}
