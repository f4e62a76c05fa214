//! Tokenizers, from `tokenizer.json` or from the vocabulary files of older repositories.

use std::path::Path;

use acem3_experts::{catch_tokenizer_panic, largest_token_id, parse_tokenizer};
use anyhow::{Context, Result, anyhow, bail, ensure};
use candle::{Device, Tensor};
use serde_json::{Map, Value};
use tokenizers::models::bpe::BPE;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::processors::roberta::RobertaProcessing;
use tokenizers::{AddedToken, Tokenizer, TruncationParams};

use super::source::ModelSource;
use crate::analysis::metrics::lexical::words::is_space;
use crate::checkpoints::published::config_json::read_json;
use crate::support::files::regular_file;

/// Special tokens at the start and end of a text.
const BERT_BOUNDARY_TOKENS: [&str; 2] = ["[CLS]", "[SEP]"];
const BART_BOUNDARY_TOKENS: [&str; 2] = ["<s>", "</s>"];
/// Minimum number of tokens of a truncated text: one between the start and end tokens.
const MIN_TOKENS: usize = 3;
/// Maximum size of a tokenizer file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A tokenizer that adds start and end tokens.
pub(crate) struct MetricTokenizer {
    tokenizer: Tokenizer,
    /// True if a space is put before each text, as bert-score does for `RoBERTa`.
    has_leading_space: bool,
    /// Ids of the start and end tokens, which have weight 0 in `BERTScore`.
    pub(crate) boundary_tokens: [u32; 2],
    /// Number of tokens to which texts are truncated, start and end tokens included.
    pub(crate) max_tokens: usize,
    file: String,
}

/// An encoded text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedText {
    /// Token ids, with start and end tokens.
    pub(crate) ids: Vec<u32>,
    /// True if the text was truncated.
    pub(crate) is_truncated: bool,
}

impl MetricTokenizer {
    /// Reads the tokenizer of a checkpoint. Texts are truncated to `max_tokens` tokens.
    pub(super) fn read(
        source: &ModelSource,
        max_tokens: usize,
        has_leading_space: bool,
    ) -> Result<Self> {
        let settings = match source.find_file("tokenizer_config.json") {
            Some(path) => read_json(&path).with_context(|| path.display().to_string())?,
            None => Map::new(),
        };
        let (path, tokenizer) = load_tokenizer(source, &settings)?;
        let file = path.display().to_string();
        let mut tokenizer = tokenizer.with_context(|| file.clone())?;
        let own_limit = settings.get("model_max_length").and_then(Value::as_u64);
        let own_limit = own_limit.and_then(|n| usize::try_from(n).ok());
        let max_length = own_limit.map_or(max_tokens, |limit| limit.min(max_tokens));
        ensure!(
            max_length >= MIN_TOKENS,
            "{file}: texts are truncated to {max_length} tokens, expected at least {MIN_TOKENS}\n\
             hint: correct model_max_length in tokenizer_config.json, or max_position_embeddings in \
             config.json"
        );
        let truncation = TruncationParams { max_length, ..TruncationParams::default() };
        tokenizer.with_padding(None);
        let result =
            catch_tokenizer_panic(|| tokenizer.with_truncation(Some(truncation)).map(drop));
        result.map_err(|error| anyhow!("{file}: {error}"))?;
        let ids = [BERT_BOUNDARY_TOKENS, BART_BOUNDARY_TOKENS].into_iter().find_map(|tokens| {
            let [begin, end] = tokens.map(|token| tokenizer.token_to_id(token));
            Some([begin?, end?])
        });
        let boundary_tokens = ids.with_context(|| {
            format!("{file}: no start and end tokens, expected [CLS] and [SEP] or <s> and </s>")
        })?;
        Ok(Self { tokenizer, has_leading_space, boundary_tokens, max_tokens: max_length, file })
    }

    /// Checks that the vocabulary of the tokenizer fits the model.
    pub(super) fn check_vocabulary(&self, vocabulary: usize) -> Result<()> {
        let largest = largest_token_id(&self.tokenizer).unwrap_or(0);
        ensure!(
            (largest as usize) < vocabulary,
            "{}: token ids up to {largest}, expected less than {vocabulary} (vocabulary of the model)\n\
             hint: use the tokenizer of this checkpoint",
            self.file
        );
        Ok(())
    }

    /// Encodes a text without leading and trailing white space, as bert-score does.
    pub(crate) fn encode_trimmed(&self, text: &str) -> Result<EncodedText> {
        let text = text.trim_matches(is_space);
        if self.has_leading_space && !text.is_empty() {
            return self.encode(&format!(" {text}"));
        }
        self.encode(text)
    }

    /// Encodes a text.
    pub(crate) fn encode(&self, text: &str) -> Result<EncodedText> {
        let encoded = catch_tokenizer_panic(|| self.tokenizer.encode(text, true));
        let encoded = encoded.map_err(|error| anyhow!("{}: {error}", self.file))?;
        Ok(EncodedText {
            ids: encoded.get_ids().to_vec(),
            is_truncated: !encoded.get_overflowing().is_empty(),
        })
    }
}

/// Reads the tokenizer and returns it with the path of its file.
fn load_tokenizer(
    source: &ModelSource,
    settings: &Map<String, Value>,
) -> Result<(std::path::PathBuf, Result<Tokenizer>)> {
    if let Some(path) = source.find_file("tokenizer.json") {
        let tokenizer = read_limited(&path).and_then(|bytes| {
            parse_tokenizer(&bytes).map_err(|error| anyhow!("not a tokenizer: {error}"))
        });
        return Ok((path, tokenizer));
    }
    if let Some(path) = source.find_file("vocab.txt") {
        let tokenizer = build_word_piece(&path, settings);
        return Ok((path, tokenizer));
    }
    if let (Some(vocabulary), Some(merges)) =
        (source.find_file("vocab.json"), source.find_file("merges.txt"))
    {
        let tokenizer = build_byte_pair(&vocabulary, &merges);
        return Ok((vocabulary, tokenizer));
    }
    bail!(
        "{}: no tokenizer, expected tokenizer.json, vocab.txt, or vocab.json with merges.txt\n\
         hint: download the tokenizer files of the checkpoint too",
        source.folder.display()
    )
}

/// Builds BERT's WordPiece tokenizer from a vocabulary file with one token per line.
fn build_word_piece(path: &Path, settings: &Map<String, Value>) -> Result<Tokenizer> {
    let model = WordPiece::from_file(&path.display().to_string()).build();
    let mut tokenizer = Tokenizer::new(model.map_err(|error| anyhow!("{error}"))?);
    let flag = |name: &str| settings.get(name).and_then(Value::as_bool);
    let normalizer = BertNormalizer::new(
        true,
        flag("tokenize_chinese_chars").unwrap_or(true),
        flag("strip_accents"),
        flag("do_lower_case").unwrap_or(true),
    );
    let result = tokenizer.with_normalizer(Some(normalizer));
    result.map_err(|error| anyhow!("{error}"))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    let [begin, end] = find_boundary_tokens(&tokenizer, BERT_BOUNDARY_TOKENS)?;
    tokenizer.with_post_processor(Some(BertProcessing::new(end, begin)));
    register_special_tokens(&mut tokenizer, &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])?;
    Ok(tokenizer)
}

/// Builds the byte-pair tokenizer of `RoBERTa` and BART from its vocabulary and merges.
fn build_byte_pair(vocabulary: &Path, merges: &Path) -> Result<Tokenizer> {
    let name = |path: &Path| path.display().to_string();
    let model = BPE::from_file(&name(vocabulary), &name(merges)).build();
    let mut tokenizer = Tokenizer::new(model.map_err(|error| anyhow!("{error}"))?);
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    let [begin, end] = find_boundary_tokens(&tokenizer, BART_BOUNDARY_TOKENS)?;
    tokenizer.with_post_processor(Some(RobertaProcessing::new(end, begin).add_prefix_space(false)));
    register_special_tokens(&mut tokenizer, &["<s>", "<pad>", "</s>", "<unk>", "<mask>"])?;
    Ok(tokenizer)
}

/// Returns the start and end tokens with their ids.
fn find_boundary_tokens(tokenizer: &Tokenizer, tokens: [&str; 2]) -> Result<[(String, u32); 2]> {
    let find = |token: &str| {
        let id = tokenizer.token_to_id(token);
        Ok::<_, anyhow::Error>((token.to_owned(), id.with_context(|| format!("no token {token}"))?))
    };
    Ok([find(tokens[0])?, find(tokens[1])?])
}

/// Registers the special tokens that the vocabulary contains.
fn register_special_tokens(tokenizer: &mut Tokenizer, tokens: &[&str]) -> Result<()> {
    let known = tokens.iter().filter(|token| tokenizer.token_to_id(token).is_some());
    let known: Vec<AddedToken> = known.map(|token| AddedToken::from(*token, true)).collect();
    let added = tokenizer.add_special_tokens(known);
    added.map(drop).map_err(|error| anyhow!("{error}"))
}

fn read_limited(path: &Path) -> Result<Vec<u8>> {
    let size = std::fs::metadata(path).context("could not be read")?.len();
    ensure!(size <= MAX_FILE_BYTES, "{size} bytes, expected at most {MAX_FILE_BYTES}");
    regular_file::read(path).context("could not be read")
}

/// Returns the token ids of sequences of equal length as a tensor.
///
/// # Shapes
/// b sequences of t → (b, t).
pub(super) fn id_tensor(sequences: &[&[u32]], device: &Device) -> candle::Result<Tensor> {
    let t = sequences.first().map_or(0, |first| first.len());
    Tensor::new(sequences.concat(), device)?.reshape((sequences.len(), t))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reads a tokenizer from a folder with these files.
    fn read(files: &[(&str, &str)]) -> Result<MetricTokenizer> {
        let dir = tempfile::tempdir()?;
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text)?;
        }
        let folder = dir.path().to_owned();
        let source = ModelSource { name: "bert".to_owned(), folder, hub: None };
        MetricTokenizer::read(&source, 16, false)
    }

    #[test]
    fn too_short_limit_is_rejected() {
        let limit = |limit: u64| {
            let vocabulary = ("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
            let settings = json!({"model_max_length": limit}).to_string();
            read(&[vocabulary, ("tokenizer_config.json", &settings)])
        };
        assert_eq!(limit(3).unwrap().encode("a a a").unwrap().ids, [2, 4, 3]);
        for n in [0, 1, 2] {
            let error = limit(n).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(&format!("truncated to {n} tokens")), "{error}");
        }
    }

    /// The library panics when it uses such a template.
    #[test]
    fn template_of_unknown_tokens_is_an_error() {
        let tokenizer = json!({
            "version": "1.0", "added_tokens": [],
            "post_processor": {
                "type": "TemplateProcessing", "pair": [], "special_tokens": {},
                "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
            },
            "model": {"type": "WordLevel", "vocab": {"[CLS]": 0, "[SEP]": 1, "a": 2}, "unk_token": "a"},
        });
        let tokenizer = read(&[("tokenizer.json", &tokenizer.to_string())]);
        assert!(tokenizer.and_then(|tokenizer| tokenizer.encode("a")).is_err());
    }
}
