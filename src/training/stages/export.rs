//! From the checkpoints of a training to a panel's folder.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use candle::{DType, Tensor};

use crate::checkpoints::panel::definition::MEMBERS;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use crate::checkpoints::safetensors::write as write_tensors;
use crate::support::files::atomic_file;
use crate::training::config::train_config::TrainConfig;
use crate::training::stages::member_state::MemberState;

/// The file of what all members share.
const TRUNK: &str = "trunk.safetensors";
/// Most tokens of an analysis; the longest that is taught takes fewer than forty.
const ANALYSIS_TOKENS: usize = 48;

/// Writes the panel whose members are these checkpoints: what is equal in all goes into one file,
/// the rest of each member into its own, in half precision.
pub(crate) fn export(
    config: &TrainConfig,
    trained: &[MemberState<'_>; 4],
    out: &Path,
) -> Result<()> {
    let folder = out.join("panel");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut members: Vec<BTreeMap<String, Tensor>> = Vec::new();
    for (name, trained) in MEMBERS.iter().zip(trained) {
        let tensors = trained.tensors()?;
        let tensors = tensors.with_context(|| format!("no stage trained {name}"))?;
        let tensors = tensors.into_iter();
        let own =
            tensors.filter(|(name, _)| name.starts_with("model.") || name.starts_with("lm_head."));
        let half = own.map(|(name, tensor)| Ok((name, tensor.to_dtype(DType::F16)?)));
        members.push(half.collect::<candle::Result<_>>()?);
    }
    let mut trunk: HashMap<String, Tensor> = HashMap::new();
    if let Some((first, others)) = members.split_first() {
        for (name, tensor) in first {
            if others
                .iter()
                .all(|m| m.get(name).is_some_and(|t| equal(t, tensor)))
            {
                trunk.insert(name.clone(), tensor.clone());
            }
        }
    }
    write_tensors(&trunk, &folder.join(TRUNK))?;
    for (name, tensors) in MEMBERS.iter().zip(&members) {
        let own = tensors
            .iter()
            .filter(|(name, _)| !trunk.contains_key(*name));
        let own: HashMap<String, Tensor> = own.map(|(n, t)| (n.clone(), t.clone())).collect();
        write_tensors(&own, &folder.join(format!("{name}.safetensors")))?;
    }
    let tokenizer = out.join(TOKENIZER_FILE);
    std::fs::copy(&tokenizer, folder.join(TOKENIZER_FILE))
        .with_context(|| format!("cannot copy {}", tokenizer.display()))?;
    let text =
        toml::to_string_pretty(&spec(config, trained)).context("cannot write the panel's file")?;
    let path = folder.join(PANEL_FILE);
    atomic_file::write(&path, text.as_bytes())
}

/// Whether two tensors are the same in shape, type and every value.
pub(crate) fn equal(a: &Tensor, b: &Tensor) -> bool {
    let same = || {
        let differing = a.ne(b)?.to_dtype(DType::U32)?.sum_all()?;
        differing.to_scalar::<u32>()
    };
    a.shape() == b.shape() && a.dtype() == b.dtype() && same().is_ok_and(|differing| differing == 0)
}

fn spec(config: &TrainConfig, trained: &[MemberState<'_>; 4]) -> PanelSpec {
    let leads = MEMBERS.iter().zip(trained);
    let leads = leads.filter_map(|(name, t)| Some(((*name).to_owned(), t.lead.clone()?)));
    let files = |name: &str| vec![TRUNK.to_owned(), format!("{name}.safetensors")];
    PanelSpec {
        schema: PanelSpec::SCHEMA,
        name: config.name.clone(),
        layout: config.layout,
        rubric: config.rubric,
        analysis_tokens: ANALYSIS_TOKENS,
        reward_tokens: leads.collect(),
        dialogue: config.dialogue.clone(),
        processor: config.processor(),
        model: config.model.clone(),
        members: MEMBERS.map(files).into(),
    }
}
