//! Prompts as plain text.

use acem3_experts::prompt::Piece;

/// Stands for the image in a prompt's text.
pub(crate) const IMAGE: &str = "<image>";

/// Joins the pieces of a prompt or an evaluation to one text.
pub(crate) fn prompt_text(pieces: &[Piece]) -> String {
    let text = pieces.iter().map(|piece| match piece {
        Piece::Fixed(text) | Piece::Free(text) => text.as_str(),
        Piece::Image => IMAGE,
    });
    text.collect()
}
