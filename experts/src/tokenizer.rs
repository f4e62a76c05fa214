//! Tokenizer that never turns quoted text into special tokens.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokenizers::normalizers::{NormalizerWrapper, Sequence};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{Encoding, Tokenizer};

use crate::{Error, charsmap, text_growth};

/// Limit on token ids, which is also that on the vocabulary of a decoder.
const MAX_TOKENS: u32 = 1 << 24;

/// A tokenizer with two modes: trusted and quoted.
///
/// Trusted text is the program's own text; special tokens in it are recognised. Quoted text comes
/// from questions, responses and models; the spelling of a special token in it is ordinary text.
/// A response can therefore not imitate the judge by spelling a special token.
///
/// `SentencePiece` vocabularies add a space before a text. A prompt is tokenised in pieces, and the
/// space is added only at its start and after an image, as in `LLaVA`'s `tokenizer_image_token`.
#[derive(Clone, Debug)]
pub struct TextTokenizer {
    /// The loaded tokenizer, for text at the start of a prompt.
    initial: Tokenizer,
    bos_tokens: Vec<u32>,
    /// For trusted text in the middle of a prompt: adds no space.
    trusted: Tokenizer,
    /// For quoted text: recognises no special tokens.
    quoted: Tokenizer,
    special_tokens: HashSet<u32>,
    id_limit: u32,
}

impl TextTokenizer {
    /// Parses the text of a `tokenizer.json`.
    ///
    /// # Errors
    /// The text is no tokenizer, or a table in it has invalid offsets.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        parse_tokenizer(json).map(Self::new)
    }

    /// Derives both modes from a loaded tokenizer.
    ///
    /// Ignores the truncation and padding that a file may set, as transformers does: a prompt is
    /// never truncated or padded.
    pub fn new(mut initial: Tokenizer) -> Self {
        initial.with_padding(None);
        // Removing the truncation never fails.
        let _ = initial.with_truncation(None);
        let trusted = without_prefix_space(&initial);
        let mut quoted = trusted.clone();
        quoted.set_encode_special_tokens(true);
        let added = trusted.get_added_tokens_decoder();
        let special_tokens: HashSet<u32> =
            added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
        // An empty text is encoded to the special tokens that start and end every text.
        let empty_text = catch_tokenizer_panic(|| initial.encode("", true));
        let empty_text = empty_text.map(|e| e.get_ids().to_vec());
        let empty_text = empty_text.unwrap_or_default().into_iter();
        let bos_tokens = empty_text.take_while(|id| special_tokens.contains(id));
        let id_limit = largest_token_id(&initial).map_or(0, |id| id.saturating_add(1));
        Self {
            bos_tokens: bos_tokens.collect(),
            initial,
            trusted,
            quoted,
            special_tokens,
            id_limit,
        }
    }

    /// Returns the text of a `tokenizer.json` from which [`Self::parse`] restores this tokenizer.
    pub fn to_json(&self) -> Result<String, Error> {
        catch_tokenizer_panic(|| self.initial.to_string(false))
    }

    /// Tokenises trusted text that continues a prompt.
    pub fn encode_trusted(&self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(encode(&self.trusted, text)?.get_ids().to_vec())
    }

    /// Returns the special tokens that start every text, such as Llama's `<s>`; may be empty.
    pub fn bos_tokens(&self) -> &[u32] {
        &self.bos_tokens
    }

    /// Tokenises trusted text at the start of a prompt or after an image.
    pub fn encode_trusted_start(&self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(encode(&self.initial, text)?.get_ids().to_vec())
    }

    /// Tokenises quoted text without special tokens.
    ///
    /// # Errors
    /// [`Error::Unencodable`]: the vocabulary lacks a part of the text and has no unknown token.
    pub fn encode_quoted(&self, text: &str) -> Result<Vec<u32>, Error> {
        let encoding = self.encode_quoted_as_is(text)?;
        let mut tokens = Vec::with_capacity(encoding.len());
        for (token, (start, end)) in encoding.get_ids().iter().zip(encoding.get_offsets()) {
            let quoted = text.get(*start..*end).unwrap_or_default();
            if self.is_special(*token) || self.is_byte_token_spelling(*token, quoted) {
                self.encode_without_special(quoted, &mut tokens)?;
            } else {
                tokens.push(*token);
            }
        }
        Ok(tokens)
    }

    /// Tokenises quoted text. The result may contain special tokens.
    fn encode_quoted_as_is(&self, text: &str) -> Result<Encoding, Error> {
        encode(&self.quoted, text).map_err(|error| match error {
            Error::Tokenizer(message) => Error::Unencodable(message),
            other => other,
        })
    }

    /// Returns true if the text spells the name of a byte token, such as `<0x41>`, which would
    /// decode to `A`.
    fn is_byte_token_spelling(&self, token: u32, quoted: &str) -> bool {
        quoted.starts_with("<0x") && self.token_text(token).is_some_and(|piece| piece == quoted)
    }

    /// Tokenises a text character by character and omits special tokens.
    ///
    /// Unigram and word vocabularies may contain a special token as an ordinary piece too. If a
    /// single character still gives a special token, the vocabulary does not contain the character,
    /// and the unknown token is kept.
    fn encode_without_special(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), Error> {
        for character in text.chars() {
            let character = character.to_string();
            let is_spelled =
                |token: &u32| self.token_text(*token).is_some_and(|piece| piece == character);
            let ids = self.encode_quoted_as_is(&character)?.get_ids().to_vec();
            tokens.extend(ids.iter().filter(|id| !(self.is_special(**id) && is_spelled(id))));
        }
        Ok(())
    }

    /// Returns the text of a token in the vocabulary.
    pub fn token_text(&self, token: u32) -> Option<String> {
        self.trusted.id_to_token(token)
    }

    /// Returns the text of tokens without special tokens.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, Error> {
        catch_tokenizer_panic(|| self.trusted.decode(tokens, true))
    }

    /// Returns true for special tokens. Free text never contains them.
    pub fn is_special(&self, token: u32) -> bool {
        self.special_tokens.contains(&token)
    }

    /// Returns the number of tokens, including special tokens. Ids may be larger: a vocabulary may
    /// leave some unused (see [`Self::id_limit`]).
    pub fn vocab_size(&self) -> usize {
        self.trusted.get_vocab_size(true)
    }

    /// Returns the largest token id plus one.
    pub fn id_limit(&self) -> u32 {
        self.id_limit
    }
}

/// Returns the tokenizer without the space that it adds before a text.
///
/// A `Strip` in the same sequence is removed too, because a prompt piece may start with a space.
fn without_prefix_space(tokenizer: &Tokenizer) -> Tokenizer {
    let mut modified = tokenizer.clone();
    let normalizer = match tokenizer.get_normalizer() {
        Some(NormalizerWrapper::Prepend(_)) => None,
        Some(NormalizerWrapper::Sequence(sequence)) => {
            let changes_spaces = |normalizer: &&NormalizerWrapper| {
                matches!(
                    normalizer,
                    NormalizerWrapper::Prepend(_) | NormalizerWrapper::StripNormalizer(_)
                )
            };
            let normalizers = sequence.as_ref().iter();
            let remaining = normalizers.filter(|n| !changes_spaces(n)).cloned();
            Some(NormalizerWrapper::Sequence(Sequence::new(remaining.collect())))
        }
        other => other.cloned(),
    };
    // Fails only if an added token cannot be normalised, which loading has already excluded.
    let _ = modified.with_normalizer(normalizer);
    if let Some(PreTokenizerWrapper::Metaspace(metaspace)) = tokenizer.get_pre_tokenizer() {
        let mut metaspace = metaspace.clone();
        metaspace.set_prepend_scheme(PrependScheme::Never);
        modified.with_pre_tokenizer(Some(metaspace));
    }
    modified
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Encoding, Error> {
    catch_tokenizer_panic(|| tokenizer.encode(text, false))
}

/// Parses the text of a `tokenizer.json`.
///
/// # Errors
/// As [`TextTokenizer::parse`].
pub fn parse_tokenizer(json: &[u8]) -> Result<Tokenizer, Error> {
    let value = serde_json::from_slice(json).map_err(|e| Error::Tokenizer(e.to_string()))?;
    charsmap::check_tokenizer(&value)?;
    text_growth::check_tokenizer(&value)?;
    drop(value);
    let tokenizer = catch_tokenizer_panic(|| Tokenizer::from_bytes(json))?;
    check_token_ids(&tokenizer)?;
    Ok(tokenizer)
}

/// Returns the largest token id; `None` without tokens.
pub fn largest_token_id(tokenizer: &Tokenizer) -> Option<u32> {
    tokenizer.get_vocab(true).into_values().max()
}

/// Checks the ids of all tokens. The library lists all unused ids below the largest one.
fn check_token_ids(tokenizer: &Tokenizer) -> Result<(), Error> {
    let largest = largest_token_id(tokenizer).unwrap_or(0);
    if largest >= MAX_TOKENS {
        let problem =
            format!("the token id {largest} is too large, expected less than {MAX_TOKENS}");
        return Err(Error::Tokenizer(problem));
    }
    Ok(())
}

/// Calls the tokenizer library. A malformed tokenizer can make it panic.
///
/// # Errors
/// The library returns an error or panics.
pub fn catch_tokenizer_panic<T>(call: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| Error::Tokenizer(error.to_string())),
        Err(_) => Err(Error::Tokenizer("the tokenizer file is damaged".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn padding_and_truncation_of_a_file_are_ignored() {
        let tokenizer = json!({
            "version": "1.0", "added_tokens": [],
            "pre_tokenizer": {"type": "Whitespace"},
            "truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 1},
            "padding": {"strategy": {"Fixed": 1_000_000_000_000_u64}, "direction": "Right",
                "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"},
            "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"},
        });
        let tokenizer = TextTokenizer::parse(tokenizer.to_string().as_bytes()).unwrap();
        assert!(tokenizer.bos_tokens().is_empty());
        assert_eq!(tokenizer.encode_trusted_start("b a b").unwrap(), [1, 0, 1]);
        assert_eq!(tokenizer.encode_quoted("b b").unwrap(), [1, 1]);
    }

    #[test]
    fn token_ids_are_limited() {
        let parse = |id: u32| {
            let model = json!({"type": "WordLevel", "vocab": {"a": id}, "unk_token": "a"});
            let tokenizer = json!({"version": "1.0", "added_tokens": [], "model": model});
            TextTokenizer::parse(tokenizer.to_string().as_bytes())
        };
        let tokenizer = parse(9).unwrap();
        assert_eq!((tokenizer.vocab_size(), tokenizer.id_limit()), (1, 10));
        assert!(tokenizer.to_json().is_ok());
        let error = parse(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("token id 4294967295 is too large"), "{error}");
    }

    /// The library panics when it uses such a template.
    #[test]
    fn template_of_unknown_tokens_adds_none() {
        let tokenizer = json!({
            "version": "1.0", "added_tokens": [],
            "post_processor": {
                "type": "TemplateProcessing", "pair": [], "special_tokens": {},
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}],
            },
            "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
        });
        let tokenizer = TextTokenizer::parse(tokenizer.to_string().as_bytes());
        assert!(tokenizer.is_ok_and(|tokenizer| tokenizer.bos_tokens().is_empty()));
    }
}
