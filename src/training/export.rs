//! From the checkpoints of a training to a panel's folder.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use acem3_experts::train::load_checkpoint;
use anyhow::{Context, Result};
use candle::{DType, Tensor};

use super::config::TrainConfig;
use crate::panel::{MEMBERS, PANEL_FILE, PanelSpec, TOKENIZER_FILE};

/// The file of what all members share.
const TRUNK: &str = "trunk.safetensors";
/// Most tokens of an analysis; the longest that is taught takes fewer than forty.
const ANALYSIS_TOKENS: usize = 48;

/// Writes the panel whose members are these checkpoints: what is equal in all goes into one file,
/// the rest of each member into its own, in half precision.
pub(super) fn export(
    config: &TrainConfig,
    checkpoints: &[std::path::PathBuf; 4],
    out: &Path,
) -> Result<()> {
    let folder = out.join("panel");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut members: Vec<BTreeMap<String, Tensor>> = Vec::new();
    for path in checkpoints {
        let tensors = load_checkpoint(path, None)?.into_iter();
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
    candle::safetensors::save(&trunk, folder.join(TRUNK))?;
    for (name, tensors) in MEMBERS.iter().zip(&members) {
        let own = tensors
            .iter()
            .filter(|(name, _)| !trunk.contains_key(*name));
        let own: HashMap<String, Tensor> = own.map(|(n, t)| (n.clone(), t.clone())).collect();
        candle::safetensors::save(&own, folder.join(format!("{name}.safetensors")))?;
    }
    let tokenizer = out.join(TOKENIZER_FILE);
    std::fs::copy(&tokenizer, folder.join(TOKENIZER_FILE))
        .with_context(|| format!("cannot copy {}", tokenizer.display()))?;
    let text = toml::to_string_pretty(&spec(config)).context("cannot write the panel's file")?;
    let path = folder.join(PANEL_FILE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn equal(a: &Tensor, b: &Tensor) -> bool {
    let values = |t: &Tensor| t.flatten_all().and_then(|t| t.to_vec1::<half::f16>());
    match (values(a), values(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn spec(config: &TrainConfig) -> PanelSpec {
    let files = |name: &str| vec![TRUNK.to_owned(), format!("{name}.safetensors")];
    PanelSpec {
        schema: PanelSpec::SCHEMA,
        name: config.name.clone(),
        layout: config.layout,
        rubric: config.rubric,
        analysis_tokens: ANALYSIS_TOKENS,
        processor: config.processor(),
        model: config.model.clone(),
        members: MEMBERS.map(files).into(),
    }
}
