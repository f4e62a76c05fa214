//! Published checkpoints: a folder with `config.json`, weights and tokenizer, or a GGUF file.
//!
//! This module translates the tensor names and settings of each layout into those of the crates.

mod config;
pub(crate) mod config_fields;
pub(crate) mod config_json;
mod decoder;
mod gguf;
mod sentencepiece;
mod shards;
mod source;
mod tensor_names;
mod tokenizer;
mod tower;
mod vision;
mod vision_part;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use acem3_experts::prompt::Dialogue;
use anyhow::{Context, Result, bail};

use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::device::Placement;
use config::CheckpointConfig;
use config_json::{CONFIG_FILE, json};
pub(crate) use source::CheckpointSource;

impl CheckpointSource {
    /// Reads the checkpoint.
    pub(crate) fn load(&self, name: &str, library: &mut WeightFiles) -> Result<Member> {
        if self.is_gguf() {
            let file = || self.folder.display().to_string();
            return gguf::load(self, name, library).with_context(file);
        }
        let path = self.folder.join(CONFIG_FILE);
        let file = path.display().to_string();
        let published = json(&path)
            .and_then(|map| CheckpointConfig::parse(map, &self.ignore_config))
            .with_context(|| file.clone())?;
        let tokenizer = tokenizer::read(&self.folder)?;
        let known = tokenizer.text.vocabulary();
        if known > published.decoder.vocab_size {
            bail!(
                "{}: {known} tokens, more than the vocab_size of {file}, {}\n\
                 hint: use the tokenizer of this checkpoint",
                tokenizer.file,
                published.decoder.vocab_size
            );
        }
        let mut files = BTreeMap::new();
        let mut weights = Checkpoint::of_member(name);
        let shards = shards::read(&self.folder, library, &mut files)?;
        for (tensor, stored) in shards {
            if let Some(ours) = published.layout.rename(&tensor, self.text_only) {
                weights.add(&ours, stored)?;
            }
        }
        crate::checkpoints::published::tensor_names::drop_tied(
            &mut weights,
            published.decoder.tie_word_embeddings,
        )?;
        let sight = match &published.eyes {
            Some(eyes) if !self.text_only => {
                let found = tower::find(self, eyes, &mut weights, library, &mut files)?;
                Some(found)
            }
            _ => None,
        };
        let dialogue = self.dialogue.as_deref().unwrap_or(published.dialogue);
        Ok(Member {
            origin: file,
            kind: published.kind,
            sight,
            decoder: published.decoder,
            tokenizer: Arc::new(tokenizer),
            dialogue: Dialogue::named(dialogue)?,
            files,
            weights,
        })
    }
}

/// Reads the weights of a published checkpoint outside a panel.
///
/// `rename` maps the name of each tensor; `None` omits it. `name`: the checkpoint's name in messages.
pub(crate) fn checkpoint(
    folder: &Path,
    name: &str,
    place: &Placement,
    rename: impl Fn(&str) -> Option<String>,
) -> Result<Checkpoint> {
    let mut weights = Checkpoint::new(name);
    let shards = shards::read(
        folder,
        &mut WeightFiles::new(place, Downloads::default()),
        &mut BTreeMap::new(),
    )?;
    for (tensor, stored) in shards {
        if let Some(ours) = rename(&tensor) {
            weights.add(&ours, stored)?;
        }
    }
    Ok(weights)
}
