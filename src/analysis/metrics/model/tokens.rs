//! Tokenizers, from `tokenizer.json` or from the vocabulary files of older repositories.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
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
use crate::analysis::metrics::words::is_space;
use crate::checkpoints::published::config_json::json;

/// Special tokens at the start and end of a text.
const BERT_MARKS: [&str; 2] = ["[CLS]", "[SEP]"];
const BART_MARKS: [&str; 2] = ["<s>", "</s>"];
/// Maximum size of a tokenizer file, in bytes.
const MOST: u64 = 64 << 20;

/// A tokenizer that adds start and end tokens.
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    /// True if a space is put before each text, as bert-score does for `RoBERTa`.
    spaced: bool,
    /// Ids of the start and end tokens, which have weight 0 in `BERTScore`.
    pub(crate) marks: [u32; 2],
    file: String,
}

/// An encoded text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    /// Token ids, with start and end tokens.
    pub(crate) ids: Vec<u32>,
    /// True if the text was truncated.
    pub(crate) cut: bool,
}

impl Tokens {
    /// Reads the tokenizer of a checkpoint. Texts are truncated to `room` tokens.
    pub(super) fn read(source: &ModelSource, room: usize, spaced: bool) -> Result<Self> {
        let settings = match source.file("tokenizer_config.json") {
            Some(path) => json(&path).with_context(|| path.display().to_string())?,
            None => Map::new(),
        };
        let (path, tokenizer) = tokenizer(source, &settings)?;
        let file = path.display().to_string();
        let mut tokenizer = tokenizer.with_context(|| file.clone())?;
        let said = settings.get("model_max_length").and_then(Value::as_u64);
        let said = said.and_then(|n| usize::try_from(n).ok());
        let truncation = TruncationParams {
            max_length: said.map_or(room, |said| said.min(room)),
            ..TruncationParams::default()
        };
        tokenizer.with_padding(None);
        let set = tokenizer.with_truncation(Some(truncation));
        set.map_err(|error| anyhow!("{file}: {error}"))?;
        let known = [BERT_MARKS, BART_MARKS].into_iter().find_map(|marks| {
            let [begin, end] = marks.map(|mark| tokenizer.token_to_id(mark));
            Some([begin?, end?])
        });
        let marks = known.with_context(|| {
            format!("{file}: no start and end tokens, expected [CLS] and [SEP] or <s> and </s>")
        })?;
        Ok(Self {
            tokenizer,
            spaced,
            marks,
            file,
        })
    }

    /// Checks that the vocabulary of the tokenizer fits the model.
    pub(super) fn check(&self, vocabulary: usize) -> Result<()> {
        let known = self.tokenizer.get_vocab_size(true);
        ensure!(
            known <= vocabulary,
            "{}: {known} tokens, expected at most {vocabulary} (vocabulary of the model)\n\
             hint: use the tokenizer of this checkpoint",
            self.file
        );
        Ok(())
    }

    /// Encodes a text without leading and trailing white space, as bert-score does.
    pub(crate) fn trimmed(&self, text: &str) -> Result<Encoded> {
        let text = text.trim_matches(is_space);
        if self.spaced && !text.is_empty() {
            return self.encode(&format!(" {text}"));
        }
        self.encode(text)
    }

    /// Encodes a text.
    pub(crate) fn encode(&self, text: &str) -> Result<Encoded> {
        let encoded = self.tokenizer.encode(text, true);
        let encoded = encoded.map_err(|error| anyhow!("{}: {error}", self.file))?;
        Ok(Encoded {
            ids: encoded.get_ids().to_vec(),
            cut: !encoded.get_overflowing().is_empty(),
        })
    }
}

/// Reads the tokenizer and returns it with the path of its file.
fn tokenizer(
    source: &ModelSource,
    settings: &Map<String, Value>,
) -> Result<(std::path::PathBuf, Result<Tokenizer>)> {
    if let Some(path) = source.file("tokenizer.json") {
        let read = read(&path).and_then(|bytes| {
            Tokenizer::from_bytes(bytes).map_err(|error| anyhow!("not a tokenizer: {error}"))
        });
        return Ok((path, read));
    }
    if let Some(path) = source.file("vocab.txt") {
        let read = word_pieces(&path, settings);
        return Ok((path, read));
    }
    if let (Some(vocabulary), Some(merges)) = (source.file("vocab.json"), source.file("merges.txt"))
    {
        let read = byte_pairs(&vocabulary, &merges);
        return Ok((vocabulary, read));
    }
    bail!(
        "{}: no tokenizer, expected tokenizer.json, vocab.txt, or vocab.json with merges.txt\n\
         hint: download the tokenizer files of the checkpoint too",
        source.folder.display()
    )
}

/// Builds BERT's WordPiece tokenizer from a vocabulary file with one token per line.
fn word_pieces(path: &Path, settings: &Map<String, Value>) -> Result<Tokenizer> {
    let model = WordPiece::from_file(&path.display().to_string()).build();
    let mut tokenizer = Tokenizer::new(model.map_err(|error| anyhow!("{error}"))?);
    let said = |name: &str| settings.get(name).and_then(Value::as_bool);
    let normalizer = BertNormalizer::new(
        true,
        said("tokenize_chinese_chars").unwrap_or(true),
        said("strip_accents"),
        said("do_lower_case").unwrap_or(true),
    );
    let set = tokenizer.with_normalizer(Some(normalizer));
    set.map_err(|error| anyhow!("{error}"))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    let [begin, end] = marks(&tokenizer, BERT_MARKS)?;
    tokenizer.with_post_processor(Some(BertProcessing::new(end, begin)));
    special(
        &mut tokenizer,
        &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    )?;
    Ok(tokenizer)
}

/// Builds the byte-pair tokenizer of `RoBERTa` and BART from its vocabulary and merges.
fn byte_pairs(vocabulary: &Path, merges: &Path) -> Result<Tokenizer> {
    let name = |path: &Path| path.display().to_string();
    let model = BPE::from_file(&name(vocabulary), &name(merges)).build();
    let mut tokenizer = Tokenizer::new(model.map_err(|error| anyhow!("{error}"))?);
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    let [begin, end] = marks(&tokenizer, BART_MARKS)?;
    tokenizer.with_post_processor(Some(
        RobertaProcessing::new(end, begin).add_prefix_space(false),
    ));
    special(&mut tokenizer, &["<s>", "<pad>", "</s>", "<unk>", "<mask>"])?;
    Ok(tokenizer)
}

/// Returns the start and end tokens with their ids.
fn marks(tokenizer: &Tokenizer, marks: [&str; 2]) -> Result<[(String, u32); 2]> {
    let find = |mark: &str| {
        let id = tokenizer.token_to_id(mark);
        Ok::<_, anyhow::Error>((
            mark.to_owned(),
            id.with_context(|| format!("no token {mark}"))?,
        ))
    };
    Ok([find(marks[0])?, find(marks[1])?])
}

/// Registers the special tokens that the vocabulary contains.
fn special(tokenizer: &mut Tokenizer, marks: &[&str]) -> Result<()> {
    let known = marks.iter().filter(|m| tokenizer.token_to_id(m).is_some());
    let known: Vec<AddedToken> = known.map(|m| AddedToken::from(*m, true)).collect();
    let added = tokenizer.add_special_tokens(known);
    added.map(drop).map_err(|error| anyhow!("{error}"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let size = std::fs::metadata(path).context("could not be read")?.len();
    ensure!(size <= MOST, "{size} bytes, expected at most {MOST}");
    std::fs::read(path).context("could not be read")
}
