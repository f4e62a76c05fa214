//! Tokenised prompt pieces.

use crate::{Error, TextTokenizer};

use super::template::PromptPiece;

/// One element of a tokenised prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromptToken {
    /// Id of a text token.
    Token(u32),
    /// All image tokens of the case.
    Image,
}

/// Tokenises pieces that continue a prompt. Trusted text after an image is tokenised like the start
/// of a text.
pub fn tokenize_pieces(
    pieces: &[PromptPiece],
    tokenizer: &TextTokenizer,
) -> Result<Vec<PromptToken>, Error> {
    let mut tokens = Vec::new();
    for piece in pieces {
        let ids = match piece {
            PromptPiece::Trusted(text) if tokens.last() == Some(&PromptToken::Image) => {
                tokenizer.encode_trusted_start(text)?
            }
            PromptPiece::Trusted(text) => tokenizer.encode_trusted(text)?,
            PromptPiece::Quoted(text) => tokenizer.encode_quoted(text)?,
            PromptPiece::Image => {
                tokens.push(PromptToken::Image);
                continue;
            }
        };
        tokens.extend(ids.into_iter().map(PromptToken::Token));
    }
    Ok(tokens)
}
