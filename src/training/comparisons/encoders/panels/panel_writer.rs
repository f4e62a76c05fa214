//! Writes the panel of a base with a trained encoder.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use acem3_experts::prompt::Rubric;
use anyhow::{Context, Result};
use candle::{DType, Tensor};

use super::base_panel::BasePanel;
use crate::checkpoints::panel::member_files::MemberFiles;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::panel::spec::{
    PANEL_FILE, PanelSpec, TOKENIZER_FILE, TRUNK_FILE, trained_weight_files,
};
use crate::checkpoints::panel::trained_forms::TrainedForms;
use crate::checkpoints::panel::trained_rubrics::declare_rubric;
use crate::checkpoints::safetensors::write as write_tensors;
use crate::support::files::atomic_file;
use crate::support::files::folder::create_folder;
use crate::training::TrainConfig;

/// Tensors by name.
pub(super) type NamedTensors = HashMap<String, Tensor>;

/// Trained weights of a panel.
pub(super) struct TrainedWeights {
    /// Encoder and projector.
    pub(super) vision: NamedTensors,
    /// Weights of each member that differ from the base.
    pub(super) members: Vec<NamedTensors>,
}

/// Writes a panel in half precision: one file with the weights that all members share, and one file
/// per member. `panel.toml` is written last.
pub(super) fn write_panel(
    base: &BasePanel,
    config: &TrainConfig,
    trained: &TrainedWeights,
    folder: &Path,
) -> Result<()> {
    create_folder(folder)?;
    let is_trained = |name: &str| trained.members.iter().any(|member| member.contains_key(name));
    let is_shared = |name: &str| base.is_shared(name) && !is_trained(name);
    let mut trunk = NamedTensors::new();
    for (name, tensor) in &trained.vision {
        trunk.insert(name.clone(), tensor.to_dtype(DType::F16)?);
    }
    for name in base.names(0).filter(|name| is_shared(name)) {
        trunk.insert(name.clone(), base.tensor(0, name, DType::F16)?);
    }
    write_tensors(&trunk, &folder.join(TRUNK_FILE))?;
    drop(trunk);
    for (i, member) in MEMBERS.iter().enumerate() {
        let mut head = NamedTensors::new();
        for name in base.names(i).filter(|name| !is_shared(name)) {
            let tensor = match trained.members.get(i).and_then(|weights| weights.get(name)) {
                Some(tensor) => tensor.to_dtype(DType::F16)?,
                None => base.tensor(i, name, DType::F16)?,
            };
            head.insert(name.clone(), tensor);
        }
        write_tensors(&head, &folder.join(format!("{member}.safetensors")))?;
    }
    let tokenizer = base.tokenizer.to_json()?;
    atomic_file::write_atomic(&folder.join(TOKENIZER_FILE), tokenizer.as_bytes())?;
    let text = toml::to_string_pretty(&spec(base, config)?).context("cannot write panel.toml")?;
    atomic_file::write_atomic(&folder.join(PANEL_FILE), text.as_bytes())
}

fn spec(base: &BasePanel, config: &TrainConfig) -> Result<PanelSpec> {
    let tokens = |texts: &[String]| -> BTreeMap<String, String> {
        let texts = MEMBERS.iter().zip(texts).filter(|(_, text)| !text.is_empty());
        texts.map(|(name, text)| ((*name).to_owned(), text.clone())).collect()
    };
    Ok(PanelSpec {
        schema: PanelSpec::SCHEMA,
        name: config.name.clone(),
        layout: config.layout,
        rubric: config.rubric,
        analysis_tokens: base.prompt_config.analysis_tokens,
        samples: base.prompt_config.samples,
        finding_end: base.prompt_config.finding_end.clone(),
        rubrics: BTreeMap::from([declare_rubric(&Rubric::built_in()?)]),
        forms: TrainedForms::default().forms,
        shows_reference: false,
        experts: None,
        reward_tokens: tokens(&base.prompt_config.completion_prefixes),
        bad_reward_tokens: tokens(&base.prompt_config.rejected_prefixes),
        dialogue: config.dialogue.clone(),
        processor: config.processor(),
        model: config.model.clone(),
        members: MemberFiles::new(MEMBERS, trained_weight_files),
    })
}
