//! Tokenizer of a checkpoint: `tokenizer.json`, or `tokenizer.model` if that is missing.

use std::collections::BTreeMap;
use std::path::Path;

use acem3_experts::TextTokenizer;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use tokenizers::{AddedToken, Tokenizer};

use super::config_json::json;
use super::sentencepiece;
use crate::checkpoints::panel::member::MemberTokenizer;
use crate::support::digest::Digest;

const JSON: &str = "tokenizer.json";
const MODEL: &str = "tokenizer.model";
const CONFIG: &str = "tokenizer_config.json";
const ADDED: &str = "added_tokens.json";
/// Size limit of a tokenizer file in bytes.
const MOST: u64 = 256 << 20;

/// Reads the tokenizer of a folder.
pub(super) fn read(folder: &Path) -> Result<MemberTokenizer> {
    let path = folder.join(JSON);
    if path.is_file() {
        let file = path.display().to_string();
        let bytes = bytes(&path).with_context(|| file.clone())?;
        return Ok(MemberTokenizer {
            text: TextTokenizer::parse(&bytes).with_context(|| file.clone())?,
            hash: Digest::of(&bytes).to_string(),
            file,
        });
    }
    let path = folder.join(MODEL);
    if !path.is_file() {
        bail!(
            "{}: no tokenizer, expected {JSON} or {MODEL}\n\
             hint: download the tokenizer of the checkpoint too",
            folder.display()
        );
    }
    let file = path.display().to_string();
    let read = || {
        let model = bytes(&path)?;
        let start = starts(folder)?;
        let mut tokenizer = sentencepiece::convert(&model, start)?;
        let added = added(folder)?;
        for token in added.values() {
            add(&mut tokenizer, token.clone())?;
        }
        let known = tokenizer.get_vocab(true);
        for (id, token) in &added {
            if known.get(&token.content) != Some(id) {
                bail!("added token `{}`: wrong id, expected {id}", token.content);
            }
        }
        let mut all = model;
        all.push(u8::from(start));
        all.extend(serde_json::to_vec(&added)?);
        Ok((tokenizer, Digest::of(&all).to_string()))
    };
    let (tokenizer, hash) = read().with_context(|| file.clone())?;
    Ok(MemberTokenizer {
        text: TextTokenizer::new(tokenizer),
        file,
        hash,
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    let size = std::fs::metadata(path).context("cannot be read")?.len();
    if size > MOST {
        bail!("{size} bytes, expected at most {MOST}");
    }
    std::fs::read(path).context("cannot be read")
}

/// Returns true if texts begin with the beginning-of-sequence token (the default).
fn starts(folder: &Path) -> Result<bool> {
    let path = folder.join(CONFIG);
    if !path.is_file() {
        return Ok(true);
    }
    let map = json(&path).with_context(|| path.display().to_string())?;
    Ok(map.get("add_bos_token").and_then(Value::as_bool) != Some(false))
}

/// Reads the added tokens, by id.
fn added(folder: &Path) -> Result<BTreeMap<u32, AddedToken>> {
    let mut added = BTreeMap::new();
    let path = folder.join(ADDED);
    if path.is_file() {
        let map = json(&path).with_context(|| path.display().to_string())?;
        for (content, id) in map {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
            let id = id.with_context(|| format!("{ADDED}: `{content}` has no id"))?;
            added.insert(id, AddedToken::from(content, true));
        }
    }
    let path = folder.join(CONFIG);
    if path.is_file() {
        let mut map = json(&path).with_context(|| path.display().to_string())?;
        let decoder = map.remove("added_tokens_decoder").unwrap_or_default();
        for (id, token) in decoder.as_object().into_iter().flatten() {
            let id = id.parse().with_context(|| format!("{CONFIG}: id `{id}`"))?;
            let token = serde_json::from_value(token.clone());
            added.insert(id, token.with_context(|| format!("{CONFIG}: token {id}"))?);
        }
    }
    Ok(added)
}

fn add(tokenizer: &mut Tokenizer, token: AddedToken) -> Result<()> {
    let added = if token.special {
        tokenizer.add_special_tokens([token])
    } else {
        tokenizer.add_tokens([token])
    };
    added.map(drop).map_err(|error| anyhow!("{error}"))
}
