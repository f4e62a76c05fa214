//! Writes the finished panel.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use acem3_experts::prompt::Rubric;
use anyhow::{Context, Result};
use candle::{DType, Tensor};

use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use crate::checkpoints::panel::trained_rubrics::declare_rubric;
use crate::checkpoints::safetensors::write as write_tensors;
use crate::support::files::atomic_file;
use crate::training::config::train_config::TrainConfig;
use crate::training::stages::files::member_state::{MemberState, is_equal};

/// File of the weights that all members share.
const TRUNK: &str = "trunk.safetensors";
/// Token budget of an analysis. The longest analysis in the training data has fewer than forty
/// tokens.
const ANALYSIS_TOKENS: usize = 48;

/// Writes the panel's folder in half precision: one file with the weights that are equal in all
/// members, and one file per member with the others.
pub(crate) fn export(
    config: &TrainConfig,
    members: &[MemberState<'_>; 4],
    out: &Path,
) -> Result<()> {
    let folder = out.join("panel");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let weights = half_precision_weights(members)?;
    let trunk = shared_weights(&weights);
    write_tensors(&trunk, &folder.join(TRUNK))?;
    for (name, tensors) in MEMBERS.iter().zip(&weights) {
        let head = tensors.iter().filter(|(name, _)| !trunk.contains_key(*name));
        let head: HashMap<String, Tensor> = head.map(|(n, t)| (n.clone(), t.clone())).collect();
        write_tensors(&head, &folder.join(format!("{name}.safetensors")))?;
    }
    let tokenizer = out.join(TOKENIZER_FILE);
    let bytes = std::fs::read(&tokenizer)
        .with_context(|| format!("cannot read {}", tokenizer.display()))?;
    atomic_file::write_atomic(&folder.join(TOKENIZER_FILE), &bytes)?;
    let spec = panel_spec(config, members)?;
    let text = toml::to_string_pretty(&spec).context("cannot write the panel's file")?;
    atomic_file::write_atomic(&folder.join(PANEL_FILE), text.as_bytes())
}

/// Returns the weights of each member that belong to a panel, as f16.
fn half_precision_weights(members: &[MemberState<'_>; 4]) -> Result<Vec<BTreeMap<String, Tensor>>> {
    let weights = MEMBERS.iter().zip(members).map(|(name, member)| {
        let tensors = member.tensors()?;
        let mut tensors = tensors.with_context(|| format!("no stage trained {name}"))?;
        tensors.retain(|(name, _)| name.starts_with("model.") || name.starts_with("lm_head."));
        let half_precision = tensors.into_iter();
        let half_precision =
            half_precision.map(|(name, tensor)| Ok((name, tensor.to_dtype(DType::F16)?)));
        half_precision.collect()
    });
    weights.collect()
}

/// Returns the weights that are equal in all members.
fn shared_weights(members: &[BTreeMap<String, Tensor>]) -> HashMap<String, Tensor> {
    let Some((first, others)) = members.split_first() else {
        return HashMap::new();
    };
    let is_shared = |name: &str, tensor: &Tensor| {
        let mut others = others.iter().map(|member| member.get(name));
        others.all(|other| other.is_some_and(|t| is_equal(t, tensor)))
    };
    let shared = first.iter().filter(|(name, tensor)| is_shared(name, tensor));
    shared.map(|(n, t)| (n.clone(), t.clone())).collect()
}

/// Returns the content of `panel.toml`.
fn panel_spec(config: &TrainConfig, members: &[MemberState<'_>; 4]) -> Result<PanelSpec> {
    let prefixes = MEMBERS.iter().zip(members);
    let prefixes =
        prefixes.filter_map(|(name, m)| Some(((*name).to_owned(), m.completion_prefix.clone()?)));
    let files = |name: &str| vec![TRUNK.to_owned(), format!("{name}.safetensors")];
    Ok(PanelSpec {
        schema: PanelSpec::SCHEMA,
        name: config.name.clone(),
        layout: config.layout,
        rubric: config.rubric,
        analysis_tokens: ANALYSIS_TOKENS,
        rubrics: BTreeMap::from([declare_rubric(&Rubric::built_in()?)]),
        reward_tokens: prefixes.collect(),
        dialogue: config.dialogue.clone(),
        processor: config.processor(),
        model: config.model.clone(),
        members: MEMBERS.map(files).into(),
    })
}
