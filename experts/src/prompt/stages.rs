//! Where a prompt is cut, so that what cases, pairs and branches share is computed once.

use super::slots::{Slot, slots};
use super::template::Piece;
use crate::{Error, TextTokenizer};

/// A prompt in tokens, in up to four stages: what stands before the case, the case (image and
/// question), the pair (both responses), and the rest.
///
/// The cuts depend on the prompt alone, never on what it happens to share with others: sharing a
/// stage then gives the same numbers as computing it anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedPrompt(pub Vec<Vec<Slot>>);

impl StagedPrompt {
    /// Cuts pieces after the opening text, the question and the second response.
    pub fn new(pieces: &[Piece], tokenizer: &TextTokenizer) -> Result<Self, Error> {
        let mut stages = Vec::new();
        let mut start = 0;
        let mut quoted = 0;
        for (i, piece) in pieces.iter().enumerate() {
            quoted += usize::from(matches!(piece, Piece::Free(_)));
            let opening = i == 0 && matches!(piece, Piece::Fixed(_));
            let closing = matches!(piece, Piece::Free(_)) && (quoted == 1 || quoted == 3);
            if opening || closing || i + 1 == pieces.len() {
                let stage = if start == 0 {
                    first(&pieces[..=i], tokenizer)?
                } else {
                    slots(&pieces[start..=i], tokenizer)?
                };
                if !stage.is_empty() {
                    stages.push(stage);
                }
                start = i + 1;
            }
        }
        Ok(Self(stages))
    }

    /// The tokens in order, for those who compare them with other programs'.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().flatten().copied()
    }

    /// Places the prompt takes when its image takes `image_tokens`.
    pub fn len(&self, image_tokens: usize) -> usize {
        let places = |slot: &Slot| {
            if *slot == Slot::Image {
                image_tokens
            } else {
                1
            }
        };
        self.0.iter().flatten().map(places).sum()
    }
}

/// The slots of the pieces that a prompt begins with: the tokens that begin every text, then its own.
fn first(pieces: &[Piece], tokenizer: &TextTokenizer) -> Result<Vec<Slot>, Error> {
    let mut tokens = tokenizer.start().to_vec();
    let mut rest = pieces;
    if let Some((Piece::Fixed(text), others)) = pieces.split_first() {
        tokens.extend(tokenizer.opening(text)?);
        rest = others;
    }
    let opened = tokens.into_iter().map(Slot::Token);
    Ok(opened.chain(slots(rest, tokenizer)?).collect())
}
