//! Language models in a GGUF file: configuration, tokenizer and weights.

mod config;
mod tensor_names;
mod tokenizer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::Dialogue;
use anyhow::{Context, Result, bail};

use super::source::CheckpointSource;
use crate::checkpoints::gguf;
use crate::checkpoints::gguf::{Header, TensorPlacement};
use crate::checkpoints::panel::member::{Member, MemberTokenizer};
use crate::checkpoints::published::tensor_names as published;
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::digest::Digest;

/// Default chat template, as for other checkpoints of language models.
const DIALOGUE: &str = "plain";

/// Reads the GGUF file of a source.
pub(super) fn load(
    source: &CheckpointSource,
    name: &str,
    library: &mut WeightFiles,
) -> Result<Member> {
    let path = source.folder.as_path();
    let header = gguf::header(path)?;
    let architecture = config::architecture(&header)?;
    let mut decoder = config::decoder(&header, architecture, &source.ignore_config)?;
    let file = path.display().to_string();
    let tokenizer = member_tokenizer(&header, decoder.vocab_size, file.clone())?;
    let opened = library.of_gguf(path, |info| {
        Ok(TensorPlacement {
            name: crate::checkpoints::published::gguf::tensor_names::ours(&info.name),
            heads: crate::checkpoints::published::gguf::tensor_names::rearranged(
                &info.name,
                architecture,
                &decoder,
            ),
        })
    })?;
    let mut weights = Checkpoint::of_member(name);
    let mut factors = None;
    for (tensor, stored) in &opened.1 {
        if tensor == crate::checkpoints::published::gguf::tensor_names::ROPE_FACTORS {
            factors = Some(stored.values.clone());
        } else {
            weights.add(tensor, stored.clone())?;
        }
    }
    if let Some(factors) = factors {
        config::stretch(&mut decoder, &factors)?;
    }
    published::drop_tied(&mut weights, decoder.tie_word_embeddings)?;
    let last = path.file_name().unwrap_or_default().to_string_lossy();
    let dialogue = source.dialogue.as_deref().unwrap_or(DIALOGUE);
    Ok(Member {
        origin: file,
        kind: architecture.to_owned(),
        sight: None,
        decoder,
        tokenizer: Arc::new(tokenizer),
        dialogue: Dialogue::named(dialogue)?,
        files: BTreeMap::from([(last.into_owned(), opened.0.to_string())]),
        weights,
    })
}

fn member_tokenizer(header: &Header, most: usize, file: String) -> Result<MemberTokenizer> {
    let tokenizer = tokenizer::read(header, most).context("tokenizer")?;
    let Ok(text) = tokenizer.to_string(false) else {
        bail!("cannot serialize the tokenizer")
    };
    Ok(MemberTokenizer {
        text: TextTokenizer::new(tokenizer),
        hash: Digest::of(text.as_bytes()).to_string(),
        file,
    })
}
