//! What a training may begin with: a panel, or a published checkpoint for all four members.

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

/// Four members of one shape that see, with their words and weights.
pub struct InitialModel {
    /// The shape of a member.
    pub model: ModelConfig,
    /// How images are prepared.
    pub processor: ImageProcessor,
    /// How members are spoken to.
    pub dialogue: Dialogue,
    /// The prompt layout they are asked in where nothing else is said.
    pub layout: Layout,
    /// How much of the rubric prompts spell out where nothing else is said.
    pub rubric: Detail,
    /// Their words.
    pub tokenizer: TextTokenizer,
    /// What the text of each begins with; empty for nothing.
    pub leads: [String; 4],
    /// The hash of everything of it that can move a verdict.
    pub sha256: Digest,
    members: Vec<Checkpoint>,
}

impl InitialModel {
    /// Reads a panel or checkpoint to the CPU.
    ///
    /// # Errors
    /// Files that cannot be read, members that differ in anything but their weights, and members that do
    /// not see or see images in tiles.
    pub fn read(files: &PanelFiles, downloads: Downloads) -> Result<Self> {
        let recipe = PanelDefinition::read(files, &Placement::cpu(), downloads)?;
        let hashes = serde_json::to_vec(&recipe.hashes).context("cannot write hashes")?;
        let (first, others) = recipe.members.split_first().context("no members")?;
        for (other, name) in others.iter().zip(&MEMBERS[1..]) {
            let alike = first.sight == other.sight
                && first.decoder == other.decoder
                && first.dialogue == other.dialogue
                && first.tokenizer.hash == other.tokenizer.hash;
            if !alike {
                bail!(
                    "members {} and {name} differ in shape or words\n\
                     hint: a panel is trained from members of one model",
                    MEMBERS[0]
                );
            }
        }
        let Some(sight) = &first.sight else {
            bail!(
                "{}: it reads text alone\nhint: a panel is trained from a model that sees images",
                first.origin
            );
        };
        if sight.pinpoints.is_some() {
            bail!(
                "{}: it sees images in tiles, which this program judges with and does not train\n\
                 hint: begin with a LLaVA 1.5 or a LLaVA-Med 1.5",
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

    /// The names of all members' weights.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let tensors = self.members.iter().flat_map(|member| member.tensors.keys());
        tensors.cloned().collect()
    }

    /// The weights of a member by name, in single precision.
    pub(crate) fn weights(&self, member: usize) -> Result<Vec<(String, Tensor)>> {
        let all = self.members.get(member).context("no such member")?;
        let tensors = all.tensors.iter();
        let single = tensors.map(|(name, stored)| {
            let tensor = stored.values.to_dtype(DType::F32);
            Ok((name.clone(), tensor.with_context(|| name.clone())?))
        });
        single.collect()
    }

    /// Whether all four members have the same weights.
    pub(crate) fn is_uniform(&self) -> bool {
        let mut digests = self.members.iter().map(Checkpoint::digest);
        let first = digests.next();
        digests.all(|other| Some(other) == first)
    }
}
