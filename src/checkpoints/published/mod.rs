//! Published checkpoints: a folder with `config.json`, weights and tokenizer, or a GGUF file.
//!
//! This module translates the tensor names and settings of each layout into those of the crates.

mod config;
pub(crate) mod config_fields;
mod decoder;
mod gguf;
mod sentencepiece;
mod shards;
mod tensor_names;
mod tokenizer;
mod tower;
mod vision;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_experts::prompt::Dialogue;
use anyhow::{Context, Result, bail};

use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::CONFIG_FILE;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::device::Placement;
use config::CheckpointConfig;

/// Path of a checkpoint, with the settings of the members file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointSource {
    /// The folder, or the GGUF file.
    pub folder: PathBuf,
    /// Whether to ignore its vision tower.
    pub text_only: bool,
    /// Chat template, if not the default of the model type.
    pub dialogue: Option<String>,
    /// The folder of its vision tower, if the checkpoint does not include one.
    pub vision_tower: Option<PathBuf>,
    /// Unknown fields of its configuration that do not affect the computation.
    pub ignore_config: Vec<String>,
}

impl CheckpointSource {
    /// Creates a source without further settings.
    pub(crate) fn plain(folder: PathBuf) -> Self {
        Self {
            folder,
            text_only: false,
            dialogue: None,
            vision_tower: None,
            ignore_config: Vec::new(),
        }
    }

    /// Returns true if the source is a GGUF file.
    pub(crate) fn is_gguf(&self) -> bool {
        is_gguf(&self.folder) && self.folder.is_file()
    }

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

/// Returns true if the file name has the extension `.gguf`.
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("gguf"))
}

/// Reads a JSON file that contains one object of at most 64 MiB.
pub(crate) fn json(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>> {
    const MOST: u64 = 64 << 20;
    let size = std::fs::metadata(path).context("cannot be read")?.len();
    if size > MOST {
        bail!("{size} bytes, expected at most {MOST}");
    }
    let text = std::fs::read(path).context("cannot be read")?;
    serde_json::from_slice(&text).context("not a JSON object")
}
