//! Tokenizer of a GGUF file: a `SentencePiece` model, or byte-level BPE as in GPT-2
//! (llama.cpp's `llama-vocab.cpp`; transformers' `gguf_tokenizer_mapping.py`).

use anyhow::{Context, Result, anyhow, bail};
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, Tokenizer};

use super::super::sentencepiece::{CONTROL, SentencePieceModel, USER};
use crate::checkpoints::gguf::Header;

/// Longest token in bytes. The longest tokens of known vocabularies are runs of some hundred spaces.
const LONGEST: usize = 4096;
/// Most merges per token. Known vocabularies have two to three.
const PAIRS: usize = 16;

/// Pre-tokenizer pattern of Qwen2.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Pre-tokenizer pattern of Llama 3, with groups of up to three digits.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Pre-tokenizer pattern of later Mistral models.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Settings of a named pre-tokenizer.
struct PreTokenizerStyle {
    /// Pattern that splits a text into words; `None` for that of GPT-2.
    words: Option<&'static str>,
    /// Whether text is normalized to NFC.
    composes: bool,
    /// Whether a word in the vocabulary is one token, regardless of the merges.
    whole: bool,
    /// Whether texts begin with the beginning-of-sequence token by default.
    starts: bool,
}

/// Vocabulary in the metadata: text and type of each token.
struct GgufVocabulary<'a> {
    texts: Vec<&'a str>,
    kinds: Vec<u64>,
}

/// Returns the message for a missing key.
fn missing_key(key: &str) -> String {
    format!(
        "{key} is missing\n\
         hint: convert the original checkpoint again with a current version of llama.cpp"
    )
}

/// Reads the tokenizer of a file. `most`: the number of embedding rows.
pub(super) fn read(header: &Header, most: usize) -> Result<Tokenizer> {
    let kind = header.text("tokenizer.ggml.model")?;
    match kind.with_context(|| missing_key("tokenizer.ggml.model"))? {
        "llama" => pieces(header, &GgufVocabulary::read(header, most)?),
        "gpt2" => bytes(header, &GgufVocabulary::read(header, most)?),
        other => bail!(
            "tokenizer.ggml.model `{other}` is not supported\nhint: use a file with llama or gpt2"
        ),
    }
}

impl<'a> GgufVocabulary<'a> {
    fn read(header: &'a Header, most: usize) -> Result<Self> {
        let key = "tokenizer.ggml.tokens";
        let texts = header.texts(key)?.with_context(|| missing_key(key))?;
        if texts.len() > most {
            bail!(
                "{} tokens, expected at most {most}, the number of embedding rows\n\
                 hint: use another GGUF file of this model",
                texts.len()
            );
        }
        if let Some(long) = texts.iter().find(|text| text.len() > LONGEST) {
            bail!(
                "{key}: token of {} bytes, expected at most {LONGEST}",
                long.len()
            );
        }
        let key = "tokenizer.ggml.token_type";
        let kinds = header.numbers(key)?;
        let kinds = kinds.unwrap_or_else(|| vec![1.0; texts.len()]);
        if kinds.len() != texts.len() {
            bail!(
                "{key} has {} values for {} tokens",
                kinds.len(),
                texts.len()
            );
        }
        let kinds = kinds.into_iter().map(|kind| kind as u64).collect();
        Ok(Self { texts, kinds })
    }

    /// Returns the token that a key refers to.
    fn named(&self, header: &Header, key: &str) -> Result<Option<(u32, &'a str)>> {
        let Some(id) = header.number(key)? else {
            return Ok(None);
        };
        let text = usize::try_from(id).ok().and_then(|id| self.texts.get(id));
        let text = text.with_context(|| format!("{key} is {id}, not the id of a token"))?;
        Ok(Some((u32::try_from(id)?, text)))
    }
}

/// Builds the tokenizer of a `SentencePiece` model.
fn pieces(header: &Header, tokens: &GgufVocabulary) -> Result<Tokenizer> {
    let key = "tokenizer.ggml.scores";
    let scores = header.numbers(key)?.with_context(|| missing_key(key))?;
    if scores.len() != tokens.texts.len() {
        bail!(
            "{key} has {} values for {} tokens",
            scores.len(),
            tokens.texts.len()
        );
    }
    let texts = tokens.texts.iter().map(|text| (*text).to_owned());
    let pieces = texts.zip(tokens.kinds.iter().copied()).collect();
    let mut model = SentencePieceModel::of_gguf(pieces, scores);
    if let Some((id, _)) = tokens.named(header, "tokenizer.ggml.unknown_token_id")? {
        model.unknown = id as usize;
    }
    if let Some((id, _)) = tokens.named(header, "tokenizer.ggml.bos_token_id")? {
        model.start = id as usize;
    }
    model.prefix = header
        .boolean("tokenizer.ggml.add_space_prefix")?
        .unwrap_or(true);
    let start = header.boolean("tokenizer.ggml.add_bos_token")?;
    model.tokenizer(start.unwrap_or(true))
}

/// Builds a byte-level BPE tokenizer.
fn bytes(header: &Header, tokens: &GgufVocabulary) -> Result<Tokenizer> {
    let wrong = |error: tokenizers::Error| anyhow!("{error}");
    let name = header.text("tokenizer.ggml.pre")?;
    let style = PreTokenizerStyle::named(name.with_context(|| missing_key("tokenizer.ggml.pre"))?)?;
    let ids = tokens.texts.iter().zip(0u32..);
    let vocabulary: Vocab = ids.map(|(text, id)| ((*text).to_owned(), id)).collect();
    let bpe = BPE::builder()
        .vocab_and_merges(vocabulary, merges(header, tokens.texts.len())?)
        .ignore_merges(style.whole)
        .build()
        .map_err(wrong)?;
    let mut tokenizer = Tokenizer::new(bpe);
    if style.composes {
        tokenizer.with_normalizer(Some(NFC)).map_err(wrong)?;
    }
    match style.words {
        Some(words) => {
            let pattern = SplitPattern::Regex(words.to_owned());
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
            let bytes = ByteLevel::new(false, true, false);
            let steps = vec![split.map_err(wrong)?.into(), bytes.into()];
            tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
        }
        None => {
            tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        }
    }
    tokenizer.with_decoder(Some(ByteLevelDecoder::new(true, true, true)));
    for (text, kind) in tokens.texts.iter().zip(&tokens.kinds) {
        let token = AddedToken::from((*text).to_owned(), *kind != USER).normalized(false);
        match *kind {
            CONTROL => tokenizer.add_special_tokens([token]).map_err(wrong)?,
            USER => tokenizer.add_tokens([token]).map_err(wrong)?,
            _ => 0,
        };
    }
    let starts = header.boolean("tokenizer.ggml.add_bos_token")?;
    let start = tokens.named(header, "tokenizer.ggml.bos_token_id")?;
    if let (true, Some((id, text))) = (starts.unwrap_or(style.starts), start) {
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
fn merges(header: &Header, tokens: usize) -> Result<Vec<(String, String)>> {
    let key = "tokenizer.ggml.merges";
    let pairs = header.texts(key)?.with_context(|| missing_key(key))?;
    if pairs.len() / PAIRS > tokens {
        bail!(
            "{key} has {} pairs for {tokens} tokens, expected at most {PAIRS} per token",
            pairs.len()
        );
    }
    let pairs = pairs.into_iter().map(|pair| {
        let cut = pair.split_once(' ');
        let (left, right) =
            cut.with_context(|| format!("{key}: `{pair}` is not a pair of tokens"))?;
        Ok((left.to_owned(), right.to_owned()))
    });
    pairs.collect()
}

impl PreTokenizerStyle {
    /// Returns the settings of a pre-tokenizer by its name in llama.cpp (`tokenizer_pre` in its
    /// `llama-vocab.cpp`).
    fn named(name: &str) -> Result<Self> {
        let llama3 = Self {
            words: Some(LLAMA3),
            composes: false,
            whole: true,
            starts: true,
        };
        let plain = Self {
            words: None,
            composes: false,
            whole: false,
            starts: false,
        };
        Ok(match name {
            "llama3" | "llama-v3" | "llama-bpe" => llama3,
            "smaug-bpe" => Self {
                words: Some(LLAMA3),
                ..plain
            },
            "tekken" => Self {
                words: Some(TEKKEN),
                ..llama3
            },
            "qwen2" => Self {
                words: Some(QWEN2),
                composes: true,
                ..plain
            },
            "deepseek-r1-qwen" => Self {
                words: Some(QWEN2),
                ..plain
            },
            "gpt-2" => plain,
            other => bail!(
                "tokenizer.ggml.pre `{other}` is not supported\n\
                 hint: use a file with llama-bpe, smaug-bpe, tekken, qwen2, deepseek-r1-qwen or \
                 gpt-2, or the original checkpoint"
            ),
        })
    }
}
