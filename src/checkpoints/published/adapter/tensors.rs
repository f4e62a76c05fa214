//! Tensors of an adapter, by the module that they belong to.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, bail};

use crate::checkpoints::store::tensor_store::StoredTensor;
use crate::checkpoints::store::weight_files::WeightFiles;

/// Weight files of an adapter in order of preference.
const WEIGHT_FILES: [&str; 2] = ["adapter_model.safetensors", "adapter_model.bin"];
/// File of LLaVA's own code with the weights that it trained beside the adapter: the projector.
pub(super) const LLAVA_FILE: &str = "non_lora_trainables.bin";
/// Prefix of all names.
const PREFIX: &str = "base_model.model.";

/// `A` and `B` of a module.
#[derive(Default)]
pub(super) struct Factors {
    /// `A`, `(rank, c_in)`, with its name in the file.
    pub(super) a: Option<(String, StoredTensor)>,
    /// `B`, `(c_out, rank)`, with its name in the file.
    pub(super) b: Option<(String, StoredTensor)>,
}

/// Tensors of an adapter.
#[derive(Default)]
pub(super) struct AdapterWeights {
    /// Factors by the name of the module in the base.
    pub(super) factors: BTreeMap<String, Factors>,
    /// Weights that replace those of the base, by the name in the base.
    pub(super) replaced: BTreeMap<String, StoredTensor>,
    /// Hash of each file.
    pub(super) files: HashMap<&'static str, String>,
}

/// Part of an adapter that a tensor is.
enum TensorPart {
    A,
    B,
    Replaced,
}

impl AdapterWeights {
    /// Reads the files of a folder.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or has a tensor of another kind of adapter.
    pub(super) fn read(folder: &Path, weight_files: &mut WeightFiles) -> Result<Self> {
        let found = WEIGHT_FILES.into_iter().find(|name| folder.join(name).is_file());
        let Some(main) = found else {
            bail!(
                "{}: no weights of the adapter, expected {}\n\
                 hint: copy the file that peft or TRL wrote next to adapter_config.json",
                folder.display(),
                WEIGHT_FILES.join(" or ")
            )
        };
        let mut tensors = Self::default();
        tensors.add_file(main, &folder.join(main), weight_files)?;
        let llava = folder.join(LLAVA_FILE);
        if llava.is_file() {
            tensors.add_file(LLAVA_FILE, &llava, weight_files)?;
        }
        if tensors.factors.is_empty() && tensors.replaced.is_empty() {
            bail!(
                "{}: no tensors of an adapter\nhint: save the adapter again",
                folder.join(main).display()
            );
        }
        Ok(tensors)
    }

    fn add_file(
        &mut self,
        name: &'static str,
        path: &Path,
        weight_files: &mut WeightFiles,
    ) -> Result<()> {
        let loaded = weight_files.read_checkpoint_file(path)?;
        self.files.insert(name, loaded.digest.to_string());
        for (tensor, stored) in &loaded.tensors {
            self.add(tensor, stored.clone())?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, stored: StoredTensor) -> Result<()> {
        let file = stored.file.clone();
        let Some((part, module)) = parse_name(name) else {
            bail!(
                "{file}: tensor `{name}`: expected lora_A, lora_B or a replaced weight\n\
                 hint: merge the adapter into its base with peft (`merge_and_unload`), and use the \
                 merged model"
            )
        };
        let is_new = match part {
            TensorPart::Replaced => self.replaced.insert(module, stored).is_none(),
            TensorPart::A | TensorPart::B => {
                let factors = self.factors.entry(module).or_default();
                let place = match part {
                    TensorPart::A => &mut factors.a,
                    _ => &mut factors.b,
                };
                place.replace((name.to_owned(), stored)).is_none()
            }
        };
        if !is_new {
            bail!(
                "{file}: tensor `{name}`: a second tensor of the same module\n\
                 hint: save each adapter in a folder of its own"
            );
        }
        Ok(())
    }
}

/// Returns the part of a tensor, and the name of its module or, for a replaced weight, its name in the
/// base. `None` for tensors of other kinds of adapters.
///
/// Names may contain the name of the adapter (`lora_A.default.weight`), which peft removes when it
/// saves.
fn parse_name(name: &str) -> Option<(TensorPart, String)> {
    let inner = name.strip_prefix(PREFIX).unwrap_or(name);
    for (part, infix) in [(TensorPart::A, ".lora_A."), (TensorPart::B, ".lora_B.")] {
        if let Some((module, rest)) = inner.rsplit_once(infix) {
            let end = rest.split_once('.').map_or(rest, |(_, end)| end);
            return (end == "weight").then(|| (part, module.to_owned()));
        }
    }
    if inner.contains("lora_") || inner.contains(".original_module.") {
        return None;
    }
    if let Some((module, rest)) = inner.rsplit_once(".modules_to_save.") {
        let (_, parameter) = rest.split_once('.')?;
        return Some((TensorPart::Replaced, format!("{module}.{parameter}")));
    }
    Some((TensorPart::Replaced, inner.replace(".base_layer.", ".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_versions_have_the_same_module() {
        for (name, expected) in [
            (
                "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight",
                Some(("A", "model.layers.0.mlp.up_proj")),
            ),
            ("base_model.model.lm_head.lora_B.default.weight", Some(("B", "lm_head"))),
            ("model.layers.0.mlp.up_proj.lora_B.weight", Some(("B", "model.layers.0.mlp.up_proj"))),
            (
                "base_model.model.lm_head.modules_to_save.default.weight",
                Some(("full", "lm_head.weight")),
            ),
            ("base_model.model.lm_head.base_layer.weight", Some(("full", "lm_head.weight"))),
            (
                "base_model.model.model.mm_projector.0.bias",
                Some(("full", "model.mm_projector.0.bias")),
            ),
            ("base_model.model.lm_head.lora_B.bias", None),
            ("base_model.model.lm_head.lora_magnitude_vector", None),
            ("base_model.model.model.embed_tokens.lora_embedding_A", None),
        ] {
            let found = parse_name(name).map(|(part, module)| {
                let part = match part {
                    TensorPart::A => "A",
                    TensorPart::B => "B",
                    TensorPart::Replaced => "full",
                };
                (part, module)
            });
            let found = found.as_ref().map(|(part, module)| (*part, module.as_str()));
            assert_eq!(found, expected, "{name}");
        }
    }
}
