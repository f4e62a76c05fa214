//! The tokenizer inside a GGUF file: a `SentencePiece` model, or pairs of bytes as GPT-2 joins them
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

/// Longest token in bytes; the longest of known vocabularies are runs of some hundred spaces.
const LONGEST: usize = 4096;
/// Pairs for each token; known vocabularies have two to three.
const PAIRS: usize = 16;

/// How Qwen2 cuts a text into words.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// How Llama 3 does, which takes up to three digits together.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// How Mistral's later models do.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What the name of a way to cut texts stands for.
struct PreTokenizerStyle {
    /// How a text is cut into words; as GPT-2 does where absent.
    words: Option<&'static str>,
    /// Whether composed letters are made of those that are not.
    composes: bool,
    /// Whether a word that is a token stays whole, however its pairs are joined.
    whole: bool,
    /// Whether a text begins with the beginning-of-sequence token where the file does not say it.
    starts: bool,
}

/// What the metadata says of the vocabulary.
struct GgufVocabulary<'a> {
    texts: Vec<&'a str>,
    kinds: Vec<u64>,
}

/// What a file leaves out.
fn unsaid(key: &str) -> String {
    format!(
        "the file does not say {key}\n\
         hint: convert the original checkpoint again with today's llama.cpp"
    )
}

/// The tokenizer of a file whose embedding has `most` rows.
pub(super) fn read(header: &Header, most: usize) -> Result<Tokenizer> {
    let kind = header.text("tokenizer.ggml.model")?;
    match kind.with_context(|| unsaid("tokenizer.ggml.model"))? {
        "llama" => pieces(header, &GgufVocabulary::read(header, most)?),
        "gpt2" => bytes(header, &GgufVocabulary::read(header, most)?),
        other => bail!(
            "tokenizer.ggml.model is `{other}`, which is not supported\nhint: llama and gpt2 are"
        ),
    }
}

impl<'a> GgufVocabulary<'a> {
    fn read(header: &'a Header, most: usize) -> Result<Self> {
        let key = "tokenizer.ggml.tokens";
        let texts = header.texts(key)?.with_context(|| unsaid(key))?;
        if texts.len() > most {
            bail!(
                "it has {} tokens, the embedding has {most} rows\n\
                 hint: the file was put together wrongly; take another of this model",
                texts.len()
            );
        }
        if let Some(long) = texts.iter().find(|text| text.len() > LONGEST) {
            bail!("{key}: a token takes {} bytes", long.len());
        }
        let key = "tokenizer.ggml.token_type";
        let kinds = header.numbers(key)?;
        let kinds = kinds.unwrap_or_else(|| vec![1.0; texts.len()]);
        if kinds.len() != texts.len() {
            bail!("{key} says {} of {} tokens", kinds.len(), texts.len());
        }
        let kinds = kinds.into_iter().map(|kind| kind as u64).collect();
        Ok(Self { texts, kinds })
    }

    /// The token that a key names.
    fn named(&self, header: &Header, key: &str) -> Result<Option<(u32, &'a str)>> {
        let Some(id) = header.number(key)? else {
            return Ok(None);
        };
        let text = usize::try_from(id).ok().and_then(|id| self.texts.get(id));
        let text = text.with_context(|| format!("{key} is {id}, which is no token"))?;
        Ok(Some((u32::try_from(id)?, text)))
    }
}

/// A `SentencePiece` model.
fn pieces(header: &Header, tokens: &GgufVocabulary) -> Result<Tokenizer> {
    let key = "tokenizer.ggml.scores";
    let scores = header.numbers(key)?.with_context(|| unsaid(key))?;
    if scores.len() != tokens.texts.len() {
        bail!(
            "{key} says {} of {} tokens",
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

/// Pairs of bytes.
fn bytes(header: &Header, tokens: &GgufVocabulary) -> Result<Tokenizer> {
    let wrong = |error: tokenizers::Error| anyhow!("{error}");
    let name = header.text("tokenizer.ggml.pre")?;
    let manner = PreTokenizerStyle::named(name.with_context(|| unsaid("tokenizer.ggml.pre"))?)?;
    let ids = tokens.texts.iter().zip(0u32..);
    let vocabulary: Vocab = ids.map(|(text, id)| ((*text).to_owned(), id)).collect();
    let bpe = BPE::builder()
        .vocab_and_merges(vocabulary, merges(header, tokens.texts.len())?)
        .ignore_merges(manner.whole)
        .build()
        .map_err(wrong)?;
    let mut tokenizer = Tokenizer::new(bpe);
    if manner.composes {
        tokenizer.with_normalizer(Some(NFC)).map_err(wrong)?;
    }
    match manner.words {
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
    if let (true, Some((id, text))) = (starts.unwrap_or(manner.starts), start) {
        let template = TemplateProcessing::builder()
            .try_single(vec![text.to_owned(), "$A".to_owned()])
            .map_err(|error| anyhow!("{error}"))?
            .special_tokens(vec![(text.to_owned(), id)])
            .build()?;
        tokenizer.with_post_processor(Some(template));
    }
    Ok(tokenizer)
}

/// The pairs that are joined, the first first.
fn merges(header: &Header, tokens: usize) -> Result<Vec<(String, String)>> {
    let key = "tokenizer.ggml.merges";
    let pairs = header.texts(key)?.with_context(|| unsaid(key))?;
    if pairs.len() / PAIRS > tokens {
        bail!("{key} has {} pairs for {tokens} tokens", pairs.len());
    }
    let pairs = pairs.into_iter().map(|pair| {
        let cut = pair.split_once(' ');
        let (left, right) = cut.with_context(|| format!("{key}: `{pair}` is no pair"))?;
        Ok((left.to_owned(), right.to_owned()))
    });
    pairs.collect()
}

impl PreTokenizerStyle {
    /// The manner of a name that llama.cpp gives (`tokenizer_pre` in its `llama-vocab.cpp`).
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
                "tokenizer.ggml.pre is `{other}`, which is not supported\n\
                 hint: llama-bpe, smaug-bpe, tekken, qwen2, deepseek-r1-qwen and gpt-2 are; or use \
                 the original checkpoint"
            ),
        })
    }
}
