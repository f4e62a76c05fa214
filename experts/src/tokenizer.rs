//! Text to tokens, with a wall between what the program says and what it quotes.

use std::collections::HashSet;

use tokenizers::Tokenizer;

use crate::Error;

/// A tokenizer in two readings: of the program's own text, where control tokens count, and of
/// quoted text, where they are ordinary letters. An answer that contains `Score: 5` or the text of
/// a control token can therefore never speak for the judge.
#[derive(Clone, Debug)]
pub struct TextTokenizer {
    own: Tokenizer,
    quoting: Tokenizer,
    special: HashSet<u32>,
}

impl TextTokenizer {
    /// A tokenizer from the text of a `tokenizer.json`.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        Tokenizer::from_bytes(json)
            .map(Self::new)
            .map_err(|e| Error::Tokenizer(e.to_string()))
    }

    /// Both readings of a loaded tokenizer.
    pub fn new(own: Tokenizer) -> Self {
        let mut quoting = own.clone();
        quoting.set_encode_special_tokens(true);
        let added = own.get_added_tokens_decoder();
        let special = added
            .iter()
            .filter(|(_, t)| t.special)
            .map(|(id, _)| *id)
            .collect();
        Self {
            own,
            quoting,
            special,
        }
    }

    /// Tokens of the program's own text.
    pub fn fixed(&self, text: &str) -> Result<Vec<u32>, Error> {
        encode(&self.own, text)
    }

    /// Tokens of quoted text.
    pub fn free(&self, text: &str) -> Result<Vec<u32>, Error> {
        encode(&self.quoting, text)
    }

    /// The text of tokens, control tokens left out.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        self.own
            .decode(tokens, true)
            .map_err(|e| Error::Tokenizer(e.to_string()))
    }

    /// Whether a token is a control token, which a free text never contains.
    pub fn is_special(&self, token: u32) -> bool {
        self.special.contains(&token)
    }

    /// Number of tokens, control tokens included.
    pub fn vocabulary(&self) -> usize {
        self.own.get_vocab_size(true)
    }
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, Error> {
    let encoding = tokenizer
        .encode(text, false)
        .map_err(|e| Error::Tokenizer(e.to_string()))?;
    Ok(encoding.get_ids().to_vec())
}
