//! Language models in a GGUF file: configuration, tokenizer and weights.

mod config;
mod tensor_names;
mod tokenizer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::ChatTemplate;
use anyhow::{Context, Result, bail};

use super::source::CheckpointSource;
use crate::checkpoints::gguf;
use crate::checkpoints::gguf::{GgufHeader, TensorMapping};
use crate::checkpoints::panel::member::{Member, MemberTokenizer};
use crate::checkpoints::published::tensor_names::remove_tied_output;
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::digest::Digest;

/// Default chat template, as for other checkpoints of language models.
const DEFAULT_CHAT_TEMPLATE: &str = "plain";

/// Reads the GGUF file of a source.
pub(super) fn load(
    source: &CheckpointSource,
    name: &str,
    weight_files: &mut WeightFiles,
) -> Result<Member> {
    let path = source.path.as_path();
    let header = gguf::read_header(path)?;
    let architecture = config::read_architecture(&header)?;
    let mut decoder = config::read_decoder(&header, architecture, &source.ignore_config)?;
    let file = path.display().to_string();
    let tokenizer = read_tokenizer(&header, decoder.vocab_size, file.clone())?;
    let loaded = weight_files.read_gguf_file(path, |info| {
        Ok(TensorMapping {
            name: tensor_names::model_tensor_name(&info.name),
            permuted_heads: tensor_names::permuted_heads(&info.name, architecture, &decoder),
        })
    })?;
    let mut weights = Checkpoint::for_member(name);
    let mut rope_factors = None;
    for (tensor, stored) in &loaded.tensors {
        if tensor == tensor_names::ROPE_FACTORS {
            rope_factors = Some(stored.values.clone());
        } else {
            weights.add(tensor, stored.clone())?;
        }
    }
    if let Some(rope_factors) = rope_factors {
        config::apply_rope_factors(&mut decoder, &rope_factors)?;
    }
    remove_tied_output(&mut weights, decoder.tie_word_embeddings)?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let dialogue = source.chat_template.as_deref().unwrap_or(DEFAULT_CHAT_TEMPLATE);
    Ok(Member {
        origin: file,
        model_type: architecture.to_owned(),
        vision: None,
        decoder,
        tokenizer: Arc::new(tokenizer),
        chat_template: ChatTemplate::by_name(dialogue)?,
        files: BTreeMap::from([(file_name.into_owned(), loaded.digest.to_string())]),
        weights,
    })
}

fn read_tokenizer(header: &GgufHeader, vocab_size: usize, file: String) -> Result<MemberTokenizer> {
    let tokenizer = tokenizer::read(header, vocab_size).context("tokenizer")?;
    let Ok(text) = tokenizer.to_string(false) else { bail!("cannot serialize the tokenizer") };
    Ok(MemberTokenizer {
        text: TextTokenizer::new(tokenizer),
        hash: Digest::sha256(text.as_bytes()).to_string(),
        file,
    })
}
