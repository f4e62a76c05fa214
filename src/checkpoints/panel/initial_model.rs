//! Initial model of a training run: a panel, or a published checkpoint for all four members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use acem3_experts::ops::is_adapter;
use acem3_experts::prompt::Rubric;
use acem3_experts::prompt::{ChatTemplate, PromptLayout, RubricDetail};
use acem3_experts::train::Parameters;
use acem3_experts::{ModelConfig, TextTokenizer};
use acem3_projector::ProjectorKind;
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use candle::{DType, Tensor};

use super::files::PanelFiles;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::published::published_tower::{PublishedTower, tensor_digest};
use crate::checkpoints::store::encoding::TensorEncoding;
use crate::checkpoints::store::tensor_store::{StoredTensor, TensorIdentity};
use crate::checkpoints::store::weight_files::Checkpoint;
use crate::support::device::Placement;
use crate::support::digest::Digest;

/// Prefixes of the tensors between pixels and image tokens.
const IMAGE_PARTS: [&str; 3] =
    ["model.vision_tower.", "model.mm_projector.", "model.image_newline"];

/// Returns true for a tensor between pixels and image tokens: of the vision tower or the projector.
pub(crate) fn is_image_part(name: &str) -> bool {
    IMAGE_PARTS.iter().any(|part| name.starts_with(part))
}

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
    /// Reward token of rejected evaluations of each member; empty if unknown.
    pub rejected_prefixes: [String; 4],
    /// Token budget of an analysis.
    pub analysis_tokens: usize,
    /// Hash of all inputs that can change a verdict.
    pub sha256: Digest,
    members: Vec<Checkpoint>,
}

impl InitialModel {
    /// Reads a panel or checkpoint into CPU memory, for a training on a rubric. `keeps_bf16`: true
    /// for a training in bf16, so that matrices that are stored in bf16 stay in bf16.
    ///
    /// # Errors
    /// A file cannot be read. The members differ in more than their weights, or have a Gemma 3
    /// decoder.
    pub fn read(
        files: &PanelFiles,
        rubric: &Rubric,
        downloads: HubDownloads,
        keeps_bf16: bool,
    ) -> Result<Self> {
        let placement = Placement { keeps_bf16, ..Placement::cpu() };
        let definition = PanelDefinition::read(files, rubric, &placement, downloads)?;
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
                    tiling: setup.tiling.clone(),
                    decoder: first.decoder.clone(),
                },
                None => ModelConfig::of_text_model(first.decoder.clone()),
            },
            processor: first.vision.as_ref().map(|setup| setup.processor.clone()),
            chat_template: first.chat_template.clone(),
            layout: definition.prompt_config.layout,
            rubric: definition.prompt_config.rubric,
            analysis_tokens: definition.prompt_config.analysis_tokens,
            tokenizer: first.tokenizer.text.clone(),
            completion_prefixes: prefixes_of_members(definition.prompt_config.completion_prefixes),
            rejected_prefixes: prefixes_of_members(definition.prompt_config.rejected_prefixes),
            sha256: Digest::sha256(&hashes),
            members: definition.members.into_iter().map(|m| m.weights).collect(),
        })
    }

    /// Replaces the vision tower and the projector. The projector has no weights yet: the training
    /// initialises them at random.
    ///
    /// # Errors
    /// A value of the tower cannot be read.
    pub(crate) fn with_vision_tower(
        self,
        tower: &PublishedTower,
        projector: ProjectorKind,
    ) -> Result<Self> {
        let file: Arc<str> = tower.file.clone().into();
        let stored = tower.tensors.iter().map(|(name, values)| {
            let identity = TensorIdentity {
                digest: tensor_digest(values)?,
                encoding: TensorEncoding::Plain(values.dtype()),
                shape: values.dims().to_vec(),
            };
            let identity = Arc::new(identity);
            let values = values.clone();
            Ok((name, StoredTensor { identity, values, blocks: None, file: file.clone() }))
        });
        let stored: Vec<(&String, StoredTensor)> = stored.collect::<Result<_>>()?;
        let mut members = self.members;
        for member in &mut members {
            member.tensors.retain(|name, _| !is_image_part(name));
            for (name, tensor) in &stored {
                member.add(name, tensor.clone())?;
            }
        }
        let digests = [self.sha256.as_bytes().as_slice(), tower.digest()?.as_bytes()].concat();
        Ok(Self {
            model: tower.put_into(self.model, projector),
            processor: Some(tower.processor().clone()),
            sha256: Digest::sha256(&digests),
            members,
            ..self
        })
    }

    /// Returns the tensor names of all members.
    pub(crate) fn weight_names(&self) -> BTreeSet<String> {
        let tensors = self.members.iter().flat_map(|member| member.tensors.keys());
        tensors.filter(|name| !is_adapter(name)).cloned().collect()
    }

    /// Returns the weights of a member by name, with its adapters merged. They share memory with the
    /// initial model.
    pub(crate) fn weights(&self, member: usize) -> Result<Vec<(String, Tensor)>> {
        let checkpoint = self.members.get(member).context("no such member")?;
        let tensors = checkpoint.tensors.iter();
        let tensors: Vec<(String, Tensor)> =
            tensors.map(|(name, stored)| (name.clone(), stored.values.clone())).collect();
        if tensors.iter().any(|(name, _)| is_adapter(name)) {
            return Ok(Parameters::from_shared(tensors)?.merge_adapters()?);
        }
        Ok(tensors)
    }

    /// Returns the weights of a member by name, without its adapters. They share memory with the initial
    /// model.
    pub(crate) fn base_weights(&self, member: usize) -> Result<Vec<(String, Tensor)>> {
        let tensors = self.members.get(member).context("no such member")?.tensors.iter();
        let base = tensors.filter(|(name, _)| !is_adapter(name));
        Ok(base.map(|(name, stored)| (name.clone(), stored.values.clone())).collect())
    }

    /// Returns the tensors of the adapters of a member by name, in f32.
    pub(crate) fn adapters(&self, member: usize) -> Result<Vec<(String, Tensor)>> {
        let tensors = self.members.get(member).context("no such member")?.tensors.iter();
        let adapters = tensors.filter(|(name, _)| is_adapter(name));
        let values =
            adapters.map(|(n, stored)| Ok((n.clone(), stored.values.to_dtype(DType::F32)?)));
        values.collect()
    }

    /// Returns the element type of a tensor of a member in its file, if it has one.
    pub(crate) fn file_dtype(&self, member: usize, name: &str) -> Option<DType> {
        match self.members.get(member)?.tensors.get(name)?.identity.encoding {
            TensorEncoding::Plain(dtype) => Some(dtype),
            TensorEncoding::Blocks(_) => None,
        }
    }

    /// Returns true if two members have the same weights, apart from their adapters.
    pub(crate) fn have_one_base(&self, first: usize, second: usize) -> bool {
        let base = |member: usize| -> Option<BTreeMap<&String, &TensorIdentity>> {
            let tensors = self.members.get(member)?.tensors.iter();
            let tensors = tensors.filter(|(name, _)| !is_adapter(name));
            Some(tensors.map(|(name, stored)| (name, &*stored.identity)).collect())
        };
        base(first) == base(second)
    }

    /// Returns a tensor of a member.
    pub(crate) fn tensor(&self, member: usize, name: &str) -> Option<&Tensor> {
        Some(&self.members.get(member)?.tensors.get(name)?.values)
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
