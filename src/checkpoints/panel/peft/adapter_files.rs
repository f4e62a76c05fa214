//! The files of an adapter: `adapter_model.safetensors` and `adapter_config.json` of PEFT
//! (`peft/utils/save_and_load.py`, `tuners/lora/config.py`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use candle::{DType, Device, Tensor};
use serde_json::{Value, json};

use super::adapted_panel::{AdaptedPanel, MatrixAdapter, MatrixAdapters};

/// Largest rank that vLLM serves.
const MAX_RANK: usize = 512;
/// Values of `--max-lora-rank` of vLLM (`vllm/config/lora.py`).
const SERVED_RANKS: [usize; 9] = [1, 8, 16, 32, 64, 128, 256, 320, MAX_RANK];
/// Prefix of the decoder in the names of an adapter's tensors.
const DECODER_PREFIX: &str = "base_model.model.model.language_model.";

/// Returns the rank for `--max-lora-rank`.
///
/// # Errors
///
/// No server takes adapters of this rank.
pub(super) fn served_rank(rank: usize) -> Result<usize> {
    match SERVED_RANKS.into_iter().find(|served| *served >= rank) {
        Some(served) => Ok(served),
        None => bail!(
            "the adapters have rank {rank}, expected at most {MAX_RANK}\n\
             hint: train with a smaller `rank` in [stages.lora], or with fewer stages"
        ),
    }
}

/// Tensors and configuration of an adapter.
pub(super) struct AdapterFiles {
    /// Tensors with the names of PEFT.
    pub(super) tensors: BTreeMap<String, Tensor>,
    /// Content of `adapter_config.json`.
    pub(super) config: Value,
}

impl AdapterFiles {
    /// Converts the adapters of a member. All get the largest rank of the member, filled with zeros,
    /// and their scale is multiplied into `B`: `lora_alpha` is the rank.
    ///
    /// A member without adapters gets adapters of zeros for the matrices that others adapt: vLLM 0.32
    /// on a CPU mixes up adapters and base in one batch.
    pub(super) fn of_member(panel: &AdaptedPanel, adapters: &MatrixAdapters) -> Result<Self> {
        let zeros;
        let adapters = if adapters.is_empty() {
            zeros = zero_adapters(panel)?;
            &zeros
        } else {
            adapters
        };
        let rank = adapters.values().map(MatrixAdapter::rank).max().unwrap_or(1);
        let mut tensors = BTreeMap::new();
        for (matrix, adapter) in adapters {
            let name = matrix.strip_prefix("model.").unwrap_or(matrix);
            let missing = rank - adapter.rank();
            let a = adapter.a.pad_with_zeros(0, 0, missing)?.contiguous()?;
            let b = (&adapter.b * adapter.scale)?.pad_with_zeros(1, 0, missing)?.contiguous()?;
            tensors.insert(format!("{DECODER_PREFIX}{name}.lora_A.weight"), a);
            tensors.insert(format!("{DECODER_PREFIX}{name}.lora_B.weight"), b);
        }
        Ok(Self { tensors, config: config(adapters, rank) })
    }
}

/// Returns adapters of rank 1 without effect, for all matrices that a member adapts.
fn zero_adapters(panel: &AdaptedPanel) -> Result<MatrixAdapters> {
    let all = panel.adapters.iter().flatten();
    let zeros = all.map(|(matrix, adapter)| {
        let (columns, rows) = (adapter.a.dim(1)?, adapter.b.dim(0)?);
        let zeros = |shape| Tensor::zeros(shape, DType::F32, &Device::Cpu);
        let (a, b) = (zeros((1, columns))?, zeros((rows, 1))?);
        Ok((matrix.clone(), MatrixAdapter { a, b, scale: 1.0 }))
    });
    zeros.collect()
}

/// Returns the content of `adapter_config.json`.
fn config(adapters: &MatrixAdapters, rank: usize) -> Value {
    json!({
        "base_model_name_or_path": "../base",
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "init_lora_weights": true,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "modules_to_save": null,
        "peft_type": "LORA",
        "r": rank,
        "target_modules": target_pattern(adapters),
        "task_type": "CAUSAL_LM",
        "use_dora": false,
        "use_rslora": false,
    })
}

/// Returns a pattern of the adapted matrices of the decoder. Plain names such as `q_proj` would also
/// match the vision tower, where PEFT would add random adapters.
fn target_pattern(adapters: &MatrixAdapters) -> String {
    let (mut layers, mut matrices) = (BTreeSet::new(), BTreeSet::new());
    for name in adapters.keys() {
        let parts = name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
        if let Some((layer, matrix)) = parts {
            layers.insert(layer.parse::<usize>().unwrap_or(0));
            matrices.insert(matrix.replace('.', r"\."));
        }
    }
    let layers: Vec<String> = layers.iter().map(ToString::to_string).collect();
    let matrices: Vec<String> = matrices.into_iter().collect();
    format!(r".*language_model.*\.layers\.({})\.({})", layers.join("|"), matrices.join("|"))
}
