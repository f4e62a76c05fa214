//! Tokenizer of a GGUF file: a `SentencePiece` model, or byte-level BPE as in GPT-2
//! (llama.cpp's `llama-vocab.cpp`; transformers' `gguf_tokenizer_mapping.py`).

use anyhow::{Context, Result, anyhow, bail};
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

use super::super::byte_bpe::{QWEN2_PATTERN, split_words};
use super::super::sentencepiece::{CONTROL_PIECE, SentencePieceModel, USER_PIECE};
use crate::checkpoints::gguf::GgufHeader;

/// Maximum token length in bytes. The longest tokens of known vocabularies are runs of some hundred
/// spaces.
const MAX_TOKEN_LEN: usize = 4096;
/// Maximum number of merges per token. Known vocabularies have two to three.
const MAX_MERGES_PER_TOKEN: usize = 16;

/// Pre-tokenizer pattern of Llama 3, with groups of up to three digits.
const LLAMA3_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Pre-tokenizer pattern of later Mistral models.
const TEKKEN_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Settings of a named pre-tokenizer.
struct PreTokenizerStyle {
    /// Pattern that splits a text into words; `None` for the pattern of GPT-2.
    pattern: Option<&'static str>,
    /// True if text is normalized to NFC.
    normalizes_nfc: bool,
    /// True if a word in the vocabulary is one token, regardless of the merges.
    ignores_merges: bool,
    /// True if texts start with the beginning-of-sequence token by default.
    adds_bos: bool,
}

/// Vocabulary in the metadata: text and type of each token.
struct GgufVocabulary<'a> {
    texts: Vec<&'a str>,
    token_types: Vec<u64>,
}

/// Returns the message for a missing key.
fn missing_key(key: &str) -> String {
    format!(
        "{key} is missing\n\
         hint: convert the original checkpoint again with a current version of llama.cpp"
    )
}

/// Reads the tokenizer of a file. `vocab_size`: the number of embedding rows.
pub(super) fn read(header: &GgufHeader, vocab_size: usize) -> Result<Tokenizer> {
    let kind = header.string("tokenizer.ggml.model")?;
    match kind.with_context(|| missing_key("tokenizer.ggml.model"))? {
        "llama" => build_sentencepiece(header, &GgufVocabulary::read(header, vocab_size)?),
        "gpt2" => build_byte_bpe(header, &GgufVocabulary::read(header, vocab_size)?),
        other => bail!(
            "tokenizer.ggml.model `{other}` is not supported\nhint: use a file with llama or gpt2"
        ),
    }
}

impl<'a> GgufVocabulary<'a> {
    fn read(header: &'a GgufHeader, vocab_size: usize) -> Result<Self> {
        let key = "tokenizer.ggml.tokens";
        let texts = header.strings(key)?.with_context(|| missing_key(key))?;
        if texts.len() > vocab_size {
            bail!(
                "{} tokens, expected at most {vocab_size}, the number of embedding rows\n\
                 hint: use another GGUF file of this model",
                texts.len()
            );
        }
        if let Some(long) = texts.iter().find(|text| text.len() > MAX_TOKEN_LEN) {
            bail!("{key}: token of {} bytes, expected at most {MAX_TOKEN_LEN}", long.len());
        }
        let key = "tokenizer.ggml.token_type";
        let token_types = header.numbers(key)?;
        let token_types = token_types.unwrap_or_else(|| vec![1.0; texts.len()]);
        if token_types.len() != texts.len() {
            bail!("{key} has {} values for {} tokens", token_types.len(), texts.len());
        }
        let token_types = token_types.into_iter().map(|kind| kind as u64).collect();
        Ok(Self { texts, token_types })
    }

    /// Returns the token that a key refers to.
    fn token_of_key(&self, header: &GgufHeader, key: &str) -> Result<Option<(u32, &'a str)>> {
        let Some(id) = header.number(key)? else {
            return Ok(None);
        };
        let text = usize::try_from(id).ok().and_then(|id| self.texts.get(id));
        let text = text.with_context(|| format!("{key} is {id}, not the id of a token"))?;
        Ok(Some((u32::try_from(id)?, text)))
    }
}

/// Builds the tokenizer of a `SentencePiece` model.
fn build_sentencepiece(header: &GgufHeader, tokens: &GgufVocabulary) -> Result<Tokenizer> {
    let key = "tokenizer.ggml.scores";
    let scores = header.numbers(key)?.with_context(|| missing_key(key))?;
    if scores.len() != tokens.texts.len() {
        bail!("{key} has {} values for {} tokens", scores.len(), tokens.texts.len());
    }
    let texts = tokens.texts.iter().map(|text| (*text).to_owned());
    let pieces = texts.zip(tokens.token_types.iter().copied()).collect();
    let mut model = SentencePieceModel::from_gguf(pieces, scores);
    if let Some((id, _)) = tokens.token_of_key(header, "tokenizer.ggml.unknown_token_id")? {
        model.unk_id = id as usize;
    }
    if let Some((id, _)) = tokens.token_of_key(header, "tokenizer.ggml.bos_token_id")? {
        model.bos_id = id as usize;
    }
    model.adds_space_prefix = header.boolean("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let adds_bos = header.boolean("tokenizer.ggml.add_bos_token")?;
    model.to_tokenizer(adds_bos.unwrap_or(true))
}

/// Builds a byte-level BPE tokenizer.
fn build_byte_bpe(header: &GgufHeader, tokens: &GgufVocabulary) -> Result<Tokenizer> {
    let to_error = |error: tokenizers::Error| anyhow!("{error}");
    let name = header.string("tokenizer.ggml.pre")?;
    let style =
        PreTokenizerStyle::by_name(name.with_context(|| missing_key("tokenizer.ggml.pre"))?)?;
    let ids = tokens.texts.iter().zip(0u32..);
    let vocabulary: Vocab = ids.map(|(text, id)| ((*text).to_owned(), id)).collect();
    let bpe = BPE::builder()
        .vocab_and_merges(vocabulary, read_merges(header, tokens.texts.len())?)
        .ignore_merges(style.ignores_merges)
        .build()
        .map_err(to_error)?;
    let mut tokenizer = Tokenizer::new(bpe);
    if style.normalizes_nfc {
        tokenizer.with_normalizer(Some(NFC)).map_err(to_error)?;
    }
    match style.pattern {
        Some(pattern) => split_words(&mut tokenizer, pattern)?,
        None => {
            tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        }
    }
    tokenizer.with_decoder(Some(ByteLevelDecoder::new(true, true, true)));
    for (text, kind) in tokens.texts.iter().zip(&tokens.token_types) {
        let token = AddedToken::from((*text).to_owned(), *kind != USER_PIECE).normalized(false);
        match *kind {
            CONTROL_PIECE => tokenizer.add_special_tokens([token]).map_err(to_error)?,
            USER_PIECE => tokenizer.add_tokens([token]).map_err(to_error)?,
            _ => 0,
        };
    }
    let adds_bos = header.boolean("tokenizer.ggml.add_bos_token")?;
    let bos_token = tokens.token_of_key(header, "tokenizer.ggml.bos_token_id")?;
    if let (true, Some((id, text))) = (adds_bos.unwrap_or(style.adds_bos), bos_token) {
        let template = TemplateProcessing::builder()
            .try_single(vec![text.to_owned(), "$A".to_owned()])
            .map_err(|error| anyhow!("{error}"))?
            .special_tokens(vec![(text.to_owned(), id)])
            .build()?;
        tokenizer.with_post_processor(Some(template));
    }
    Ok(tokenizer)
}

/// Reads the merges in order of priority.
fn read_merges(header: &GgufHeader, tokens: usize) -> Result<Vec<(String, String)>> {
    let key = "tokenizer.ggml.merges";
    let pairs = header.strings(key)?.with_context(|| missing_key(key))?;
    if pairs.len() / MAX_MERGES_PER_TOKEN > tokens {
        bail!(
            "{key} has {} pairs for {tokens} tokens, expected at most {MAX_MERGES_PER_TOKEN} \
             per token",
            pairs.len()
        );
    }
    let pairs = pairs.into_iter().map(|pair| {
        let split = pair.split_once(' ');
        let (left, right) =
            split.with_context(|| format!("{key}: `{pair}` is not a pair of tokens"))?;
        Ok((left.to_owned(), right.to_owned()))
    });
    pairs.collect()
}

impl PreTokenizerStyle {
    /// Returns the settings of a pre-tokenizer by its name in llama.cpp (`tokenizer_pre` in its
    /// `llama-vocab.cpp`).
    fn by_name(name: &str) -> Result<Self> {
        let llama3 = Self {
            pattern: Some(LLAMA3_PATTERN),
            normalizes_nfc: false,
            ignores_merges: true,
            adds_bos: true,
        };
        let plain =
            Self { pattern: None, normalizes_nfc: false, ignores_merges: false, adds_bos: false };
        Ok(match name {
            "llama3" | "llama-v3" | "llama-bpe" => llama3,
            "smaug-bpe" => Self { pattern: Some(LLAMA3_PATTERN), ..plain },
            "tekken" => Self { pattern: Some(TEKKEN_PATTERN), ..llama3 },
            "qwen2" => Self { pattern: Some(QWEN2_PATTERN), normalizes_nfc: true, ..plain },
            "deepseek-r1-qwen" => Self { pattern: Some(QWEN2_PATTERN), ..plain },
            "gpt-2" => plain,
            other => bail!(
                "tokenizer.ggml.pre `{other}` is not supported\n\
                 hint: use a file with llama-bpe, smaug-bpe, tekken, qwen2, deepseek-r1-qwen or \
                 gpt-2, or the original checkpoint"
            ),
        })
    }
}
