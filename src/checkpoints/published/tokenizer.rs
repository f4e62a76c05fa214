//! Tokenizer of a checkpoint: `tokenizer.json`, otherwise `tokenizer.model`, otherwise `vocab.json`
//! and `merges.txt`.

use std::collections::BTreeMap;
use std::path::Path;

use acem3_experts::TextTokenizer;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use tokenizers::{AddedToken, Tokenizer};

use super::config_json::read_json;
use super::{byte_bpe, sentencepiece};
use crate::checkpoints::panel::member::MemberTokenizer;
use crate::support::digest::Digest;
use crate::support::files::regular_file;

const TOKENIZER_JSON: &str = "tokenizer.json";
const TOKENIZER_MODEL: &str = "tokenizer.model";
const VOCABULARY: &str = "vocab.json";
const MERGES: &str = "merges.txt";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const ADDED_TOKENS: &str = "added_tokens.json";
/// Size limit of a tokenizer file in bytes.
const MAX_SIZE: u64 = 256 << 20;

/// Reads the tokenizer of a folder.
///
/// # Errors
/// The folder has no tokenizer, or a file of it is malformed. The message names the file.
pub fn read(folder: &Path) -> Result<MemberTokenizer> {
    let path = folder.join(TOKENIZER_JSON);
    if path.is_file() {
        let file = path.display().to_string();
        let bytes = read_bytes(&path).with_context(|| file.clone())?;
        return Ok(MemberTokenizer {
            text: TextTokenizer::parse(&bytes).with_context(|| file.clone())?,
            hash: Digest::sha256(&bytes).to_string(),
            file,
        });
    }
    let path = folder.join(TOKENIZER_MODEL);
    if path.is_file() {
        return read_sentencepiece(folder, &path).with_context(|| path.display().to_string());
    }
    let path = folder.join(VOCABULARY);
    if path.is_file() {
        return read_byte_bpe(folder, &path).with_context(|| path.display().to_string());
    }
    bail!(
        "{}: no tokenizer, expected {TOKENIZER_JSON}, {TOKENIZER_MODEL}, or {VOCABULARY} and {MERGES}\n\
         hint: download the tokenizer of the checkpoint too",
        folder.display()
    )
}

/// Reads a tokenizer of `SentencePiece`.
fn read_sentencepiece(folder: &Path, path: &Path) -> Result<MemberTokenizer> {
    let model = read_bytes(path)?;
    let adds_bos_token = adds_bos(folder)?;
    let tokenizer = sentencepiece::convert(&model, adds_bos_token)?;
    let mut hashed_bytes = model;
    hashed_bytes.push(u8::from(adds_bos_token));
    with_added_tokens(folder, path, tokenizer, hashed_bytes)
}

/// Reads a byte-level BPE tokenizer.
fn read_byte_bpe(folder: &Path, path: &Path) -> Result<MemberTokenizer> {
    let vocabulary = read_bytes(path)?;
    let merges = read_bytes(&folder.join(MERGES)).context(MERGES)?;
    let merges = String::from_utf8(merges).with_context(|| format!("{MERGES} is not UTF-8"))?;
    let tokenizer = byte_bpe::build(folder, &vocabulary, &merges)?;
    with_added_tokens(folder, path, tokenizer, [vocabulary, merges.into_bytes()].concat())
}

/// Adds the added tokens of a folder, and checks that they get their ids.
fn with_added_tokens(
    folder: &Path,
    path: &Path,
    mut tokenizer: Tokenizer,
    mut hashed_bytes: Vec<u8>,
) -> Result<MemberTokenizer> {
    let added = read_added_tokens(folder)?;
    for token in added.values() {
        add_token(&mut tokenizer, token.clone())?;
    }
    let vocabulary = tokenizer.get_vocab(true);
    for (id, token) in &added {
        if vocabulary.get(&token.content) != Some(id) {
            bail!("added token `{}`: wrong id, expected {id}", token.content);
        }
    }
    hashed_bytes.extend(serde_json::to_vec(&added)?);
    Ok(MemberTokenizer {
        text: TextTokenizer::new(tokenizer),
        file: path.display().to_string(),
        hash: Digest::sha256(&hashed_bytes).to_string(),
    })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let size = std::fs::metadata(path).context("cannot be read")?.len();
    if size > MAX_SIZE {
        bail!("{size} bytes, expected at most {MAX_SIZE}");
    }
    regular_file::read(path).context("cannot be read")
}

/// Returns true if texts begin with the beginning-of-sequence token (the default).
fn adds_bos(folder: &Path) -> Result<bool> {
    let path = folder.join(TOKENIZER_CONFIG);
    if !path.is_file() {
        return Ok(true);
    }
    let map = read_json(&path).with_context(|| path.display().to_string())?;
    Ok(map.get("add_bos_token").and_then(Value::as_bool) != Some(false))
}

/// Reads the added tokens, by id.
fn read_added_tokens(folder: &Path) -> Result<BTreeMap<u32, AddedToken>> {
    let mut added = BTreeMap::new();
    let path = folder.join(ADDED_TOKENS);
    if path.is_file() {
        let map = read_json(&path).with_context(|| path.display().to_string())?;
        for (content, id) in map {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
            let id = id.with_context(|| format!("{ADDED_TOKENS}: `{content}` has no id"))?;
            added.insert(id, AddedToken::from(content, true));
        }
    }
    let path = folder.join(TOKENIZER_CONFIG);
    if path.is_file() {
        let mut map = read_json(&path).with_context(|| path.display().to_string())?;
        let decoder = map.remove("added_tokens_decoder").unwrap_or_default();
        for (id, token) in decoder.as_object().into_iter().flatten() {
            let id = id.parse().with_context(|| format!("{TOKENIZER_CONFIG}: id `{id}`"))?;
            let token = serde_json::from_value(token.clone());
            added.insert(id, token.with_context(|| format!("{TOKENIZER_CONFIG}: token {id}"))?);
        }
    }
    Ok(added)
}

fn add_token(tokenizer: &mut Tokenizer, token: AddedToken) -> Result<()> {
    let added = if token.special {
        tokenizer.add_special_tokens([token])
    } else {
        tokenizer.add_tokens([token])
    };
    added.map(drop).map_err(|error| anyhow!("{error}"))
}
