//! A prompt in tokens, cut where cases, pairs and branches begin to differ.

use crate::{Error, TextTokenizer};

use super::template::Piece;

/// One place of a tokenised prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// A token.
    Token(u32),
    /// All tokens of the case's image.
    Image,
}

/// The slots of pieces. The program's own text after an image is read as the beginning of a text is.
pub fn slots(pieces: &[Piece], tokenizer: &TextTokenizer) -> Result<Vec<Slot>, Error> {
    let mut slots = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Fixed(text) if slots.last() == Some(&Slot::Image) => {
                slots.extend(tokenizer.opening(text)?.into_iter().map(Slot::Token));
            }
            Piece::Fixed(text) => slots.extend(tokenizer.fixed(text)?.into_iter().map(Slot::Token)),
            Piece::Free(text) => slots.extend(tokenizer.free(text)?.into_iter().map(Slot::Token)),
            Piece::Image => slots.push(Slot::Image),
        }
    }
    Ok(slots)
}
