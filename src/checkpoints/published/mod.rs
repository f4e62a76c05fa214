//! Checkpoints as they are published: `config.json`, weights and tokenizer in a folder.
//!
//! Names and settings of the different layouts are turned here into those that the crates know.

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

/// A checkpoint's folder, and what a panel's file says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointSource {
    /// The folder, or the GGUF file.
    pub folder: PathBuf,
    /// Leave its eyes aside.
    pub text_only: bool,
    /// How it is spoken to, where not as its kind is.
    pub dialogue: Option<String>,
    /// The folder of its vision tower, where it does not bring one.
    pub vision_tower: Option<PathBuf>,
    /// Fields of its configuration that are known to change nothing.
    pub ignore_config: Vec<String>,
}

impl CheckpointSource {
    /// A folder of which nothing is said.
    pub(crate) fn plain(folder: PathBuf) -> Self {
        Self {
            folder,
            text_only: false,
            dialogue: None,
            vision_tower: None,
            ignore_config: Vec::new(),
        }
    }

    /// Whether it is one GGUF file.
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
                "{}: it has {known} tokens, the vocab_size of {file} is {}\n\
                 hint: the tokenizer belongs to another checkpoint",
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

/// The weights of a published checkpoint that is no panel's, whole: each tensor under the name that
/// `rename` gives it, left out where it gives none. `name` is what messages call it.
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

/// Whether a file is one of GGUF by its name.
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("gguf"))
}

/// A JSON file that is one object. Files of settings are small; a larger one is none.
pub(crate) fn json(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>> {
    const MOST: u64 = 64 << 20;
    let size = std::fs::metadata(path).context("it cannot be read")?.len();
    if size > MOST {
        bail!("it takes {size} bytes, more than settings do");
    }
    let text = std::fs::read(path).context("it cannot be read")?;
    serde_json::from_slice(&text).context("it is not a JSON object")
}
