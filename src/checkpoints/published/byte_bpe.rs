//! Byte-level BPE tokenizer in `vocab.json` and `merges.txt`, as Qwen2's slow tokenizer of
//! transformers stores it (`tokenization_qwen2.py`). `InternVL`'s own checkpoints have these files.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use tokenizers::Tokenizer;
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

use super::config_json::read_json;

/// Pre-tokenizer pattern of Qwen2.
pub(super) const QWEN2_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// Sets a pre-tokenizer that splits a text into words by a pattern, and these into bytes.
pub(super) fn split_words(tokenizer: &mut Tokenizer, pattern: &str) -> Result<()> {
    let pattern = SplitPattern::Regex(pattern.to_owned());
    let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
    let split = split.map_err(|error| anyhow!("{error}"))?;
    let bytes = ByteLevel::new(false, true, false);
    tokenizer.with_pre_tokenizer(Some(Sequence::new(vec![split.into(), bytes.into()])));
    Ok(())
}

/// Builds the tokenizer from the contents of `vocab.json` and `merges.txt`, without added tokens.
///
/// # Errors
/// `tokenizer_config.json` names another class than Qwen2's, or a file is malformed.
pub(super) fn build(folder: &Path, vocabulary: &[u8], merges: &str) -> Result<Tokenizer> {
    check_class(folder)?;
    let vocabulary: Vocab =
        serde_json::from_slice(vocabulary).context("no map of tokens to ids")?;
    let merges: Vec<(String, String)> = merges
        .lines()
        .filter(|line| !line.starts_with("#version") && !line.is_empty())
        .map(|line| {
            let pair = line.split_once(' ');
            let (left, right) =
                pair.with_context(|| format!("merges.txt: `{line}` is not a pair of tokens"))?;
            Ok((left.to_owned(), right.to_owned()))
        })
        .collect::<Result<_>>()?;
    let to_error = |error: tokenizers::Error| anyhow!("{error}");
    let bpe = BPE::builder().vocab_and_merges(vocabulary, merges).build().map_err(to_error)?;
    let mut tokenizer = Tokenizer::new(bpe);
    tokenizer.with_normalizer(Some(NFC)).map_err(to_error)?;
    split_words(&mut tokenizer, QWEN2_PATTERN)?;
    tokenizer.with_decoder(Some(ByteLevelDecoder::new(true, true, true)));
    Ok(tokenizer)
}

/// Returns an error if the class of the tokenizer is not Qwen2's: others split texts differently.
fn check_class(folder: &Path) -> Result<()> {
    let path = folder.join(TOKENIZER_CONFIG);
    let map = read_json(&path).with_context(|| path.display().to_string())?;
    match map.get("tokenizer_class").and_then(Value::as_str) {
        Some("Qwen2Tokenizer" | "Qwen2TokenizerFast") => Ok(()),
        class => bail!(
            "tokenizer_class in {TOKENIZER_CONFIG} is `{}`, only Qwen2Tokenizer is supported without \
             tokenizer.json\n\
             hint: load the tokenizer with AutoTokenizer of transformers and save it again, which \
             writes tokenizer.json",
            class.unwrap_or("null")
        ),
    }
}
