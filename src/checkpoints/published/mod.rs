//! Published checkpoints: a folder with `config.json`, weights and tokenizer, or a GGUF file.
//!
//! This module translates the tensor names and settings of each layout into those of the crates.

mod adapter;
mod byte_bpe;
pub(crate) mod checkpoint_tower;
mod config;
pub(crate) mod config_fields;
pub(crate) mod config_json;
mod decoder;
mod gemma_decoder;
mod gguf;
mod intern_vl_names;
mod model_names;
pub(crate) mod published_tower;
mod sentencepiece;
mod shards;
mod source;
mod tensor_names;
pub mod tokenizer;
mod tower;
mod vision;
mod vision_part;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use acem3_experts::prompt::{ChatTemplate, ImageMarkers};
use anyhow::{Context, Result, bail};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::member::{Member, MemberTokenizer};
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::device::Placement;
use adapter::AdapterFolder;
use config::CheckpointConfig;
use config_fields::with_folder;
use config_json::{CONFIG_FILE, read_json};
pub(crate) use source::CheckpointSource;
use tensor_names::CheckpointLayout;

impl CheckpointSource {
    /// Reads the checkpoint and its adapter.
    pub(crate) fn load(&self, name: &str, weight_files: &mut WeightFiles) -> Result<Member> {
        let (mut member, layout) = self.load_base(name, weight_files)?;
        if let Some(folder) = &self.adapter {
            let folder = AdapterFolder {
                path: folder,
                ignore_config: &self.ignore_config,
                layout,
                text_only: member.vision.is_none(),
                ignores_images: self.text_only,
            };
            adapter::apply(folder, &mut member, weight_files)?;
        }
        Ok(member)
    }

    /// Returns the folder with the `config.json` of the model. LLaVA's own code writes that of the
    /// complete model next to an adapter of its language model.
    fn config_folder(&self) -> &Path {
        let adapter = self.adapter.as_deref();
        adapter.filter(|folder| folder.join(CONFIG_FILE).is_file()).unwrap_or(&self.path)
    }

    /// Reads the checkpoint without its adapter. Also returns the layout of its names.
    fn load_base(
        &self,
        name: &str,
        weight_files: &mut WeightFiles,
    ) -> Result<(Member, CheckpointLayout)> {
        if self.is_gguf() {
            let file = || self.path.display().to_string();
            let member = gguf::load(self, name, weight_files).with_context(file)?;
            // Adapters have the names of transformers.
            return Ok((member, CheckpointLayout::Transformers));
        }
        let path = self.config_folder().join(CONFIG_FILE);
        let file = path.display().to_string();
        let config = read_json(&path)
            .and_then(|map| CheckpointConfig::parse(map, &self.ignore_config))
            .map_err(|error| with_folder(error, &self.path))
            .with_context(|| file.clone())?;
        let tokenizer = tokenizer::read(&self.path)?;
        let id_limit = tokenizer.text.id_limit();
        if id_limit as usize > config.decoder.vocab_size {
            bail!(
                "{}: token ids up to {}, but the vocab_size of {file} is {}\n\
                 hint: use the tokenizer of this checkpoint",
                tokenizer.file,
                id_limit - 1,
                config.decoder.vocab_size
            );
        }
        if config.vision.is_some() && !self.text_only {
            check_image_markers(&config.image_markers, &tokenizer)?;
        }
        let mut files = BTreeMap::new();
        let mut weights = Checkpoint::for_member(name);
        let shards = shards::read(&self.path, weight_files, &mut files)?;
        for (tensor, stored) in shards {
            if let Some(model_name) = config.layout.rename(&tensor, self.text_only) {
                weights.add(&model_name, stored)?;
            }
        }
        tensor_names::remove_leading_dimensions(&mut weights)?;
        tensor_names::remove_tied_output(&mut weights, config.decoder.tie_word_embeddings)?;
        let vision = match &config.vision {
            Some(vision_part) if !self.text_only => {
                let setup = tower::load_vision_tower(
                    self,
                    vision_part,
                    &mut weights,
                    weight_files,
                    &mut files,
                )?;
                Some(setup)
            }
            _ => None,
        };
        let dialogue = self.chat_template.as_deref().unwrap_or(config.default_chat_template);
        let member = Member {
            origin: file,
            model_type: config.model_type,
            vision,
            decoder: config.decoder,
            tokenizer: Arc::new(tokenizer),
            chat_template: ChatTemplate {
                image_markers: config.image_markers,
                ..ChatTemplate::by_name(dialogue)?
            },
            files,
            weights,
        };
        Ok((member, config.layout))
    }
}

/// Returns an error if a text around an image has no special token in the tokenizer. The model would
/// then read the text as words.
fn check_image_markers(markers: &ImageMarkers, tokenizer: &MemberTokenizer) -> Result<()> {
    for marker in [&markers.before, &markers.after] {
        let tokens = tokenizer.text.encode_trusted(marker)?;
        if !marker.is_empty() && !tokens.iter().any(|token| tokenizer.text.is_special(*token)) {
            bail!(
                "{}: no special token `{}`, which the model reads next to an image\n\
                 hint: use the tokenizer of this checkpoint",
                tokenizer.file,
                marker.trim()
            );
        }
    }
    Ok(())
}

/// Reads the weights of a published checkpoint outside a panel.
///
/// `rename` maps the name of each tensor; `None` omits it. `name`: the checkpoint's name in
/// messages.
pub(crate) fn load_weights(
    folder: &Path,
    name: &str,
    placement: &Placement,
    rename: impl Fn(&str) -> Option<String>,
) -> Result<Checkpoint> {
    let mut weights = Checkpoint::new(name);
    let shards = shards::read(
        folder,
        &mut WeightFiles::new(placement, HubDownloads::default()),
        &mut BTreeMap::new(),
    )?;
    for (tensor, stored) in shards {
        if let Some(model_name) = rename(&tensor) {
            weights.add(&model_name, stored)?;
        }
    }
    Ok(weights)
}
