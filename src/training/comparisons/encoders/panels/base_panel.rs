//! Panel whose decoders judge with every encoder.

use std::collections::{BTreeSet, HashMap};

use acem3_experts::TextTokenizer;
use acem3_experts::decoder::DecoderConfig;
use acem3_experts::ops::{ADAPTER_SUFFIXES, is_adapter};
use acem3_experts::prompt::{ChatTemplate, Rubric};
use acem3_experts::train::Parameters;
use acem3_projector::ProjectorKind;
use anyhow::{Context, Result, bail};
use candle::{DType, Tensor};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::is_image_part;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::panel::prompt_config::{MEMBERS, PromptConfig};
use crate::checkpoints::store::weight_files::Checkpoint;
use crate::support::device::Placement;
use crate::support::digest::Digest;

/// Token budget of an analysis of a base that was not trained on the prompts of this program. The
/// longest analysis in the training data has fewer than forty tokens.
const ANALYSIS_TOKENS: usize = 48;
/// Panel without its vision tower and projector.
pub(super) struct BasePanel {
    /// Prompt settings, with the name.
    pub(super) prompt_config: PromptConfig,
    /// Decoder of every member.
    pub(super) decoder: DecoderConfig,
    /// Chat template of every member.
    pub(super) chat_template: ChatTemplate,
    /// Tokenizer of every member.
    pub(super) tokenizer: TextTokenizer,
    /// Architecture of its own projector; `None` for a text model.
    pub(super) projector: Option<ProjectorKind>,
    /// Hash of everything that can change a verdict.
    pub(super) sha256: Digest,
    weights: Vec<Checkpoint>,
    /// Matrices of each member with its adapters merged; empty without adapters.
    merged: Vec<HashMap<String, Tensor>>,
}

impl BasePanel {
    /// Reads the panel or checkpoint of `--panel`, or the embedded panel.
    ///
    /// # Errors
    /// A file cannot be read. The members differ in more than their weights. The decoder cannot be
    /// trained.
    pub(super) fn read(panel: Option<&str>, mut downloads: HubDownloads) -> Result<Self> {
        let files = PanelFiles::locate(panel, &mut downloads)?;
        let rubric = Rubric::built_in()?;
        let definition = PanelDefinition::read(&files, &rubric, &Placement::cpu(), downloads)?;
        let hashes =
            serde_json::to_vec(&definition.hashes).context("cannot serialize the hashes")?;
        let (first, others) = definition.members.split_first().context("no members")?;
        let differs = |other: &&Member| {
            first.decoder != other.decoder
                || first.chat_template != other.chat_template
                || first.tokenizer.hash != other.tokenizer.hash
        };
        if let Some(other) = others.iter().find(differs) {
            bail!(
                "--panel: the members {} and {} differ in configuration or tokenizer\n\
                 hint: use checkpoints of one model for all members",
                first.origin,
                other.origin
            );
        }
        if first.decoder.has_bidirectional_images() {
            bail!(
                "--panel: {}: training does not support Gemma 3, whose image tokens attend to later ones\n\
                 hint: use LLaVA 1.5, LLaVA-Med 1.5 or a panel of `acem3 train`",
                first.origin
            );
        }
        let is_quantised = |checkpoint: &Checkpoint| {
            checkpoint.tensors.values().any(|stored| stored.blocks.is_some())
        };
        if let Some(quantised) = definition.members.iter().find(|m| is_quantised(&m.weights)) {
            bail!(
                "--panel: {}: the weights are quantised, which cannot be trained\n\
                 hint: use the checkpoint in f16 or bf16",
                quantised.origin
            );
        }
        let mut prompt_config = definition.prompt_config;
        if !prompt_config.is_trained() {
            prompt_config.analysis_tokens = prompt_config.analysis_tokens.min(ANALYSIS_TOKENS);
        }
        prompt_config.completion_prefixes.resize(MEMBERS.len(), String::new());
        let base = Self {
            prompt_config,
            decoder: first.decoder.clone(),
            chat_template: first.chat_template.clone(),
            tokenizer: first.tokenizer.text.clone(),
            projector: first.vision.as_ref().map(|vision| vision.projector.kind),
            sha256: Digest::sha256(&hashes),
            merged: definition.members.iter().map(|m| merged(&m.weights)).collect::<Result<_>>()?,
            weights: definition.members.into_iter().map(|member| member.weights).collect(),
        };
        if base.weights.len() != MEMBERS.len() {
            bail!("--panel: expected {} members, found {}", MEMBERS.len(), base.weights.len());
        }
        Ok(base)
    }

    /// Returns the names of the decoder's weights of a member.
    pub(super) fn names(&self, member: usize) -> impl Iterator<Item = &String> {
        let names = self.weights.get(member).into_iter().flat_map(|w| w.tensors.keys());
        names.filter(|name| !is_image_part(name) && !is_adapter(name))
    }

    /// Returns a weight of the decoder of a member in this element type.
    pub(super) fn tensor(&self, member: usize, name: &str, dtype: DType) -> Result<Tensor> {
        let merged = self.merged.get(member).and_then(|merged| merged.get(name));
        let stored = self.weights.get(member).and_then(|weights| weights.tensors.get(name));
        let tensor = merged.or(stored.map(|stored| &stored.values));
        let tensor = tensor.with_context(|| format!("the base has no weight {name}"))?;
        tensor.to_dtype(dtype).with_context(|| name.to_owned())
    }

    /// Returns the weights of the decoder of a member in f32.
    pub(super) fn decoder_weights(&self, member: usize) -> Result<Vec<(String, Tensor)>> {
        let names = self.names(member);
        names.map(|name| Ok((name.clone(), self.tensor(member, name, DType::F32)?))).collect()
    }

    /// Returns true if all members have the same value of a weight.
    pub(super) fn is_shared(&self, name: &str) -> bool {
        let mut identities = self
            .weights
            .iter()
            .map(|weights| weights.tensors.get(name).map(|stored| stored.identity.clone()));
        let is_merged = self.merged.iter().any(|merged| merged.contains_key(name));
        let first = identities.next().flatten();
        !is_merged && first.is_some() && identities.all(|other| other == first)
    }

    /// Returns the reward token before the text of each member; empty for none.
    pub(super) fn completion_prefixes(&self) -> [String; 4] {
        let mut prefixes = self.prompt_config.completion_prefixes.iter().cloned();
        MEMBERS.map(|_| prefixes.next().unwrap_or_default())
    }
}

/// Returns the matrices of a member that have adapters, with the adapters merged.
fn merged(weights: &Checkpoint) -> Result<HashMap<String, Tensor>> {
    let matrix = |name: &str| {
        let mut suffixes = ADAPTER_SUFFIXES.iter();
        suffixes.find_map(|suffix| name.strip_suffix(suffix)).map(str::to_owned)
    };
    let adapted: BTreeSet<String> =
        weights.tensors.keys().filter_map(|name| matrix(name)).collect();
    if adapted.is_empty() {
        return Ok(HashMap::new());
    }
    let is_part = |name: &str| adapted.iter().any(|matrix| name.starts_with(matrix.as_str()));
    let tensors = weights.tensors.iter().filter(|(name, _)| is_part(name));
    let tensors = tensors.map(|(name, s)| Ok((name.clone(), s.values.to_dtype(DType::F32)?)));
    let parameters = Parameters::from_tensors(tensors.collect::<Result<Vec<_>>>()?)?;
    Ok(parameters.merge_adapters()?.into_iter().collect())
}
