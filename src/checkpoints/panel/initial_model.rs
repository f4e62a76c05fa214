//! Initial model of a training run: a panel, or a published checkpoint for all four members.

use std::collections::BTreeSet;

use acem3_experts::ops::is_adapter;
use acem3_experts::prompt::Rubric;
use acem3_experts::prompt::{ChatTemplate, PromptLayout, RubricDetail};
use acem3_experts::train::Parameters;
use acem3_experts::{ModelConfig, TextTokenizer};
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use candle::{DType, Tensor};

use super::files::PanelFiles;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::store::weight_files::Checkpoint;
use crate::support::device::Placement;
use crate::support::digest::Digest;

/// Four members of one architecture, with tokenizer and weights.
pub struct InitialModel {
    /// Configuration of each member.
    pub model: ModelConfig,
    /// Image preprocessing; `None` for a text model.
    pub processor: Option<ImageProcessor>,
    /// Chat template of the members.
    pub chat_template: ChatTemplate,
    /// Default prompt layout.
    pub layout: PromptLayout,
    /// Default level of detail of the rubric in prompts.
    pub rubric: RubricDetail,
    /// Tokenizer of the members.
    pub tokenizer: TextTokenizer,
    /// Reward token before the text of each member; empty for none.
    pub completion_prefixes: [String; 4],
    /// Hash of all inputs that can change a verdict.
    pub sha256: Digest,
    members: Vec<Checkpoint>,
}

impl InitialModel {
    /// Reads a panel or checkpoint into CPU memory.
    ///
    /// # Errors
    /// If a file cannot be read, if members differ in more than their weights, or if members encode
    /// images in tiles or have a Gemma 3 decoder.
    pub fn read(files: &PanelFiles, downloads: HubDownloads) -> Result<Self> {
        let definition =
            PanelDefinition::read(files, &Rubric::built_in()?, &Placement::cpu(), downloads)?;
        let hashes =
            serde_json::to_vec(&definition.hashes).context("cannot serialize the hashes")?;
        let (first, others) = definition.members.split_first().context("no members")?;
        for (other, name) in others.iter().zip(&MEMBERS[1..]) {
            let is_equal = first.vision == other.vision
                && first.decoder == other.decoder
                && first.chat_template == other.chat_template
                && first.tokenizer.hash == other.tokenizer.hash;
            if !is_equal {
                bail!(
                    "members {} and {name} differ in configuration or tokenizer\n\
                     hint: use checkpoints of one model for all members",
                    MEMBERS[0]
                );
            }
        }
        if first.vision.as_ref().is_some_and(|setup| setup.tiling.is_some()) {
            bail!(
                "{}: training does not support models that encode images in tiles\n\
                 hint: start from LLaVA 1.5 or LLaVA-Med 1.5",
                first.origin
            );
        }
        if first.decoder.has_bidirectional_images() {
            bail!(
                "{}: training does not support Gemma 3, whose image tokens attend to later ones\n\
                 hint: start from LLaVA 1.5 or LLaVA-Med 1.5",
                first.origin
            );
        }
        Ok(Self {
            model: match &first.vision {
                Some(setup) => ModelConfig {
                    vision: setup.vision.clone(),
                    selection: setup.selection,
                    projector: setup.projector.clone(),
                    decoder: first.decoder.clone(),
                },
                None => ModelConfig::of_text_model(first.decoder.clone()),
            },
            processor: first.vision.as_ref().map(|setup| setup.processor.clone()),
            chat_template: first.chat_template.clone(),
            layout: definition.prompt_config.layout,
            rubric: definition.prompt_config.rubric,
            tokenizer: first.tokenizer.text.clone(),
            completion_prefixes: prefixes_of_members(definition.prompt_config.completion_prefixes),
            sha256: Digest::sha256(&hashes),
            members: definition.members.into_iter().map(|m| m.weights).collect(),
        })
    }

    /// Returns the tensor names of all members.
    pub(crate) fn weight_names(&self) -> BTreeSet<String> {
        let tensors = self.members.iter().flat_map(|member| member.tensors.keys());
        tensors.filter(|name| !is_adapter(name)).cloned().collect()
    }

    /// Returns the weights of a member by name, in f32, with its adapters merged.
    pub(crate) fn weights(&self, member: usize) -> Result<Vec<(String, Tensor)>> {
        let checkpoint = self.members.get(member).context("no such member")?;
        let tensors = checkpoint.tensors.iter();
        let f32_tensors = tensors.map(|(name, stored)| {
            let tensor = stored.values.to_dtype(DType::F32);
            Ok((name.clone(), tensor.with_context(|| name.clone())?))
        });
        let f32_tensors: Vec<(String, Tensor)> = f32_tensors.collect::<Result<_>>()?;
        if f32_tensors.iter().any(|(name, _)| is_adapter(name)) {
            return Ok(Parameters::from_tensors(f32_tensors)?.merge_adapters()?);
        }
        Ok(f32_tensors)
    }

    /// Returns true if all four members have the same weights.
    pub(crate) fn is_single_model(&self) -> bool {
        let mut digests = self.members.iter().map(Checkpoint::digest);
        let first = digests.next();
        digests.all(|other| Some(other) == first)
    }
}

/// Returns the first text of each of the four members; empty where there is none.
fn prefixes_of_members(prefixes: Vec<String>) -> [String; 4] {
    let mut prefixes = prefixes.into_iter();
    MEMBERS.map(|_| prefixes.next().unwrap_or_default())
}
