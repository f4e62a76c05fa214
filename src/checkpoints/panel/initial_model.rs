//! Initial model of a training run: a panel, or a published checkpoint for all four members.

use std::collections::BTreeSet;

use acem3_experts::prompt::{Detail, Dialogue, Layout};
use acem3_experts::{ModelConfig, TextTokenizer};
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use candle::{DType, Tensor};

use super::files::PanelFiles;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::store::weight_files::Checkpoint;
use crate::support::device::Placement;
use crate::support::digest::Digest;

/// Four multimodal members of one architecture, with tokenizer and weights.
pub struct InitialModel {
    /// Configuration of each member.
    pub model: ModelConfig,
    /// Image preprocessing.
    pub processor: ImageProcessor,
    /// Chat template of the members.
    pub dialogue: Dialogue,
    /// Default prompt layout.
    pub layout: Layout,
    /// Default level of detail of the rubric in prompts.
    pub rubric: Detail,
    /// Tokenizer of the members.
    pub tokenizer: TextTokenizer,
    /// Reward token before the text of each member; empty for none.
    pub leads: [String; 4],
    /// Hash of everything in it that can change a verdict.
    pub sha256: Digest,
    members: Vec<Checkpoint>,
}

impl InitialModel {
    /// Reads a panel or checkpoint into CPU memory.
    ///
    /// # Errors
    /// If a file cannot be read, if members differ in more than their weights, or if members have no
    /// vision tower or encode images in tiles.
    pub fn read(files: &PanelFiles, downloads: Downloads) -> Result<Self> {
        let recipe = PanelDefinition::read(files, &Placement::cpu(), downloads)?;
        let hashes = serde_json::to_vec(&recipe.hashes).context("cannot serialize the hashes")?;
        let (first, others) = recipe.members.split_first().context("no members")?;
        for (other, name) in others.iter().zip(&MEMBERS[1..]) {
            let alike = first.sight == other.sight
                && first.decoder == other.decoder
                && first.dialogue == other.dialogue
                && first.tokenizer.hash == other.tokenizer.hash;
            if !alike {
                bail!(
                    "members {} and {name} differ in configuration or tokenizer\n\
                     hint: use checkpoints of one model for all members",
                    MEMBERS[0]
                );
            }
        }
        let Some(sight) = &first.sight else {
            bail!(
                "{}: text-only model, expected one with a vision tower\nhint: start from a multimodal model such as LLaVA 1.5",
                first.origin
            );
        };
        if sight.pinpoints.is_some() {
            bail!(
                "{}: training does not support models that encode images in tiles\n\
                 hint: start from LLaVA 1.5 or LLaVA-Med 1.5",
                first.origin
            );
        }
        Ok(Self {
            model: ModelConfig {
                vision: sight.vision.clone(),
                selection: sight.selection,
                projector: sight.projector.clone(),
                decoder: first.decoder.clone(),
            },
            processor: sight.processor.clone(),
            dialogue: first.dialogue.clone(),
            layout: recipe.asking.layout,
            rubric: recipe.asking.rubric,
            tokenizer: first.tokenizer.text.clone(),
            leads: recipe.asking.leads,
            sha256: Digest::of(&hashes),
            members: recipe.members.into_iter().map(|m| m.weights).collect(),
        })
    }

    /// Returns the tensor names of all members.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let tensors = self.members.iter().flat_map(|member| member.tensors.keys());
        tensors.cloned().collect()
    }

    /// Returns the weights of a member by name, in f32.
    pub(crate) fn weights(&self, member: usize) -> Result<Vec<(String, Tensor)>> {
        let all = self.members.get(member).context("no such member")?;
        let tensors = all.tensors.iter();
        let single = tensors.map(|(name, stored)| {
            let tensor = stored.values.to_dtype(DType::F32);
            Ok((name.clone(), tensor.with_context(|| name.clone())?))
        });
        single.collect()
    }

    /// Returns true if all four members have the same weights.
    pub(crate) fn is_uniform(&self) -> bool {
        let mut digests = self.members.iter().map(Checkpoint::digest);
        let first = digests.next();
        digests.all(|other| Some(other) == first)
    }
}
