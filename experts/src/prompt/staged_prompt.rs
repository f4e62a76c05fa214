//! Prompts split into prompt stages. If prompts share a stage, the prefix cache computes it once.

use super::prompt_tokens::{PromptToken, tokenize_pieces};
use super::template::PromptPiece;
use crate::{Error, TextTokenizer};

/// Number of quoted texts of a pair up to its last response: the question and two responses.
pub const PAIR_TEXTS: usize = 3;

/// A tokenised prompt in up to four prompt stages: the text before the case, the case (image and
/// question), the reference and the responses, and the rest.
///
/// The boundaries depend only on the prompt, not on other prompts. A cached prompt stage therefore
/// has exactly the values that a recomputation gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedPrompt {
    /// Tokens of each prompt stage.
    pub stages: Vec<Vec<PromptToken>>,
}

impl StagedPrompt {
    /// Splits pieces after the opening text, the question and the last response. `case_texts`: number
    /// of quoted texts up to the last response, see
    /// [`JudgeInput::text_count`](super::JudgeInput::text_count).
    pub fn new(
        pieces: &[PromptPiece],
        case_texts: usize,
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let mut stages = Vec::new();
        let mut start = 0;
        let mut quoted_count = 0;
        for (i, piece) in pieces.iter().enumerate() {
            let is_quoted = matches!(piece, PromptPiece::Quoted(_));
            quoted_count += usize::from(is_quoted);
            let is_opening = i == 0 && matches!(piece, PromptPiece::Trusted(_));
            // The first quoted text is the question.
            let ends_stage = is_quoted && (quoted_count == 1 || quoted_count == case_texts);
            if is_opening || ends_stage || i + 1 == pieces.len() {
                let stage = if start == 0 {
                    tokenize_start(&pieces[..=i], tokenizer)?
                } else {
                    tokenize_pieces(&pieces[start..=i], tokenizer)?
                };
                if !stage.is_empty() {
                    stages.push(stage);
                }
                start = i + 1;
            }
        }
        Ok(Self { stages })
    }

    /// Returns the tokens of all prompt stages, in order.
    pub fn tokens(&self) -> impl Iterator<Item = PromptToken> {
        self.stages.iter().flatten().copied()
    }

    /// Returns the number of tokens if the image has `image_tokens` tokens.
    pub fn token_count(&self, image_tokens: usize) -> usize {
        let count = |token: &PromptToken| match token {
            PromptToken::Image => image_tokens,
            PromptToken::Token(_) => 1,
        };
        self.stages.iter().flatten().map(count).sum()
    }
}

/// Returns the tokens that start every text and, after them, the tokens of the first pieces.
fn tokenize_start(
    pieces: &[PromptPiece],
    tokenizer: &TextTokenizer,
) -> Result<Vec<PromptToken>, Error> {
    let mut tokens = tokenizer.bos_tokens().to_vec();
    let mut rest = pieces;
    if let Some((PromptPiece::Trusted(text), others)) = pieces.split_first() {
        tokens.extend(tokenizer.encode_trusted_start(text)?);
        rest = others;
    }
    let start = tokens.into_iter().map(PromptToken::Token);
    Ok(start.chain(tokenize_pieces(rest, tokenizer)?).collect())
}
