//! Adds the tensors of an adapter to a member that was read from its base.

use std::path::Path;
use std::sync::Arc;

use acem3_experts::ops::{ADAPTER_SUFFIXES, takes_adapter};
use anyhow::{Context, Result, bail};
use candle::{DType, Device, Tensor};

use super::adapter_config::AdapterConfig;
use super::outside_decoder::MergedAdapter;
use super::tensors::{AdapterWeights, Factors};
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::published::config_json::{ADAPTER_CONFIG_FILE, CONFIG_FILE};
use crate::checkpoints::published::model_names::{
    EMBEDDING_TENSOR, OUTPUT_TENSOR, is_image_tensor,
};
use crate::checkpoints::published::tensor_names::CheckpointLayout;
use crate::checkpoints::store::encoding::TensorEncoding;
use crate::checkpoints::store::tensor_store::{StoredTensor, TensorIdentity};
use crate::checkpoints::store::weight_files::WeightFiles;
use crate::support::digest::Digest;
use crate::support::files::regular_file;

/// What to do with an adapter of another base.
const BASE_HINT: &str = "hint: use the base that the adapter was trained on, `base_model_name_or_path` in \
                         adapter_config.json";

/// An adapter, and how the base names its tensors.
#[derive(Clone, Copy, Debug)]
pub(in crate::checkpoints::published) struct AdapterFolder<'a> {
    /// The folder.
    pub(in crate::checkpoints::published) path: &'a Path,
    /// Unknown fields of its configuration that do not affect the computation.
    pub(in crate::checkpoints::published) ignore_config: &'a [String],
    /// Layout of the names in the base.
    pub(in crate::checkpoints::published) layout: CheckpointLayout,
    /// True if the member has no vision tower.
    pub(in crate::checkpoints::published) text_only: bool,
    /// True if the panel file leaves out the vision tower.
    pub(in crate::checkpoints::published) ignores_images: bool,
}

/// Reads an adapter and adds it to a member with the weights of its base. Adapters of the
/// decoder layers stay apart from the matrices, which members of the same base share. Others are merged.
///
/// # Errors
///
/// The adapter has a feature that acem3 does not compute, or does not fit the base. Messages name the file
/// and the tensor.
pub(in crate::checkpoints::published) fn apply(
    adapter: AdapterFolder,
    member: &mut Member,
    weight_files: &mut WeightFiles,
) -> Result<()> {
    let folder = adapter.path;
    let config = AdapterConfig::read(folder, adapter.ignore_config)?;
    let tensors = AdapterWeights::read(folder, weight_files)?;
    check_replaced_modules(folder, &config, &tensors)?;
    let has_own_config = folder.join(CONFIG_FILE).is_file();
    let mut adapted = AdaptedMember { adapter, has_own_config, member };
    // Replaced weights first: some of them get an adapter too. Of these the output layer last, because a
    // tied one is compared with the embedding.
    let (outputs, others): (Vec<_>, Vec<_>) =
        tensors.replaced.into_iter().partition(|(name, _)| name.ends_with(OUTPUT_TENSOR));
    for (name, stored) in others.into_iter().chain(outputs) {
        adapted.replace(&name, stored)?;
    }
    for (module, factors) in tensors.factors {
        adapted.add_factors(&config, &module, factors)?;
    }
    let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
    let config_bytes = regular_file::read(&folder.join(ADAPTER_CONFIG_FILE))?;
    let config_hash = Digest::sha256(&config_bytes).to_string();
    for (file, hash) in tensors.files.into_iter().chain([(ADAPTER_CONFIG_FILE, config_hash)]) {
        member.files.insert(format!("{folder_name}/{file}"), hash);
    }
    member.origin = format!("{} with adapter {}", member.origin, folder.display());
    Ok(())
}

/// Checks that the file has the weights of all modules that the configuration says it replaces.
fn check_replaced_modules(
    folder: &Path,
    config: &AdapterConfig,
    tensors: &AdapterWeights,
) -> Result<()> {
    let is_replaced = |module: &&String| {
        let part = format!(".{module}.");
        tensors.replaced.keys().any(|name| format!(".{name}.").contains(&part))
    };
    match config.replaced_modules.iter().find(|module| !is_replaced(module)) {
        Some(module) => bail!(
            "{}: modules_to_save contains `{module}`, and the weights of the adapter have no tensor of \
             it\nhint: the file is incomplete; save the adapter again, or copy the complete file",
            folder.join(ADAPTER_CONFIG_FILE).display()
        ),
        None => Ok(()),
    }
}

/// A member that gets an adapter.
struct AdaptedMember<'a> {
    adapter: AdapterFolder<'a>,
    /// True if the configuration is that of the adapter, which may add an image part to the base.
    has_own_config: bool,
    member: &'a mut Member,
}

impl AdaptedMember<'_> {
    /// Adds the factors of a module.
    fn add_factors(
        &mut self,
        config: &AdapterConfig,
        module: &str,
        factors: Factors,
    ) -> Result<()> {
        let (name, a, b) = match factors {
            Factors { a: Some((name, a)), b: Some((_, b)) } => (name, a, b),
            Factors { a: Some((name, stored)), .. } | Factors { b: Some((name, stored)), .. } => {
                bail!(
                    "{}: tensor `{name}` is alone, expected lora_A and lora_B of `{module}`\n\
                     hint: the file is incomplete; save the adapter again",
                    stored.file
                )
            }
            Factors { a: None, b: None } => return Ok(()),
        };
        let AdapterFolder { layout, text_only, .. } = self.adapter;
        let weight = format!("{module}.weight");
        let Some(weight) = layout.rename(&weight, text_only) else {
            return self.check_unused(&name, &a.file);
        };
        let weights = &mut self.member.weights;
        let base = weights.tensors.get(&weight).with_context(|| {
            format!(
                "{}: tensor `{name}`: the base {} has no matrix `{weight}`\n{BASE_HINT}",
                a.file, self.member.origin
            )
        })?;
        let rank = config.rank(module);
        check_shapes(&name, &base.identity.shape, rank, [&a, &b])?;
        let alpha = config.alpha(module);
        let file = a.file.clone();
        let matrix = weight.strip_suffix(".weight").unwrap_or(&weight);
        if takes_adapter(matrix) {
            let alpha = scalar(alpha as f32, &file)?;
            for (suffix, stored) in ADAPTER_SUFFIXES.iter().zip([a, b, alpha]) {
                weights.add(&format!("{matrix}.{suffix}"), stored)?;
            }
            return Ok(());
        }
        let adapter = MergedAdapter { a: &a, b: &b, scale: alpha / rank as f64 };
        let merged = adapter.merge(base).with_context(|| file.to_string())?;
        weights.tensors.insert(weight, merged);
        Ok(())
    }

    /// Checks that a tensor between pixels and image tokens is left out because the panel file says so.
    fn check_unused(&self, name: &str, file: &str) -> Result<()> {
        if self.adapter.ignores_images {
            return Ok(());
        }
        bail!(
            "{file}: tensor `{name}` belongs to a model that sees images, and the base {} is a text model\n\
             hint: use the base that the adapter was trained on; an adapter of LLaVA's own code needs its \
             config.json beside it; or set `text_only = true` for the member",
            self.member.origin
        )
    }

    /// Replaces a weight of the base.
    fn replace(&mut self, name: &str, stored: StoredTensor) -> Result<()> {
        let AdapterFolder { layout, text_only, .. } = self.adapter;
        let Some(weight) = layout.rename(name, text_only) else {
            return self.check_unused(name, &stored.file);
        };
        let weights = &mut self.member.weights;
        let is_tied = self.member.decoder.tie_word_embeddings && weight == OUTPUT_TENSOR;
        let Some(base) = weights.tensors.get(if is_tied { EMBEDDING_TENSOR } else { &weight })
        else {
            if self.has_own_config && is_image_tensor(&weight) {
                return weights.add(&weight, stored);
            }
            bail!(
                "{}: tensor `{name}`: the base {} has no weight `{weight}`\n{BASE_HINT}",
                stored.file,
                self.member.origin
            )
        };
        let (found, expected) = (&stored.identity.shape, &base.identity.shape);
        if found != expected {
            let is_table = [EMBEDDING_TENSOR, OUTPUT_TENSOR].contains(&weight.as_str());
            let hint = if is_table {
                "hint: the vocabulary was changed; merge the adapter into its base with peft \
                 (`merge_and_unload`), and use the merged model with its tokenizer"
            } else {
                BASE_HINT
            };
            bail!(
                "{}: tensor `{name}` has shape {found:?}, expected {expected:?}\n{hint}",
                stored.file
            );
        }
        if is_tied {
            return check_equal(&stored, base, name);
        }
        weights.tensors.insert(weight, stored);
        Ok(())
    }
}

/// Checks the shapes of `A` and `B` for a matrix of shape `(c_out, c_in)`.
fn check_shapes(
    name: &str,
    matrix: &[usize],
    rank: usize,
    [a, b]: [&StoredTensor; 2],
) -> Result<()> {
    let file = &a.file;
    let &[rows, columns] = matrix else {
        bail!(
            "{file}: tensor `{name}` adapts a tensor of shape {matrix:?}, expected a matrix\n\
             hint: merge the adapter into its base with peft (`merge_and_unload`), and use the merged \
             model"
        )
    };
    for (factor, stored, expected) in [("A", a, [rank, columns]), ("B", b, [rows, rank])] {
        let found = &stored.identity.shape;
        if found.as_slice() != expected {
            bail!(
                "{file}: the {factor} of `{name}` has shape {found:?}, expected {expected:?} (rank \
                 {rank} in {ADAPTER_CONFIG_FILE}, a matrix of {rows} x {columns} in the base)\n{BASE_HINT}"
            );
        }
    }
    Ok(())
}

/// Checks that the saved output layer of a tied model equals the embedding.
fn check_equal(output: &StoredTensor, embedding: &StoredTensor, name: &str) -> Result<()> {
    let [a, b] = [output, embedding].map(|stored| stored.values.to_dtype(DType::F32));
    let is_equal = output.blocks == embedding.blocks
        && (a? - b?)?.abs()?.max_all()?.to_scalar::<f32>()? == 0.0;
    if is_equal {
        return Ok(());
    }
    bail!(
        "{}: tensor `{name}` differs from the embedding, but the base sets tie_word_embeddings\n\
         hint: merge the adapter into its base with peft (`merge_and_unload`), and use the merged model",
        output.file
    )
}

/// Returns the `alpha` of an adapter as a tensor of the file.
fn scalar(value: f32, file: &Arc<str>) -> Result<StoredTensor> {
    let identity = TensorIdentity {
        digest: Digest::sha256(&value.to_le_bytes()),
        encoding: TensorEncoding::Plain(DType::F32),
        shape: Vec::new(),
    };
    Ok(StoredTensor {
        identity: Arc::new(identity),
        values: Tensor::new(value, &Device::Cpu)?,
        blocks: None,
        file: file.clone(),
    })
}
