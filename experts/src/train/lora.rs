//! Low-rank adaptation (Hu et al., 2021, "Low-Rank Adaptation of Large Language Models", §4.1): the
//! trainer adds a trained product of two narrow matrices to a frozen matrix.

use std::sync::{Arc, Mutex};

use candle::{DType, Device, Result, Tensor, bail};
use serde::{Deserialize, Serialize};

use super::parameters::{Parameters, TrainableSet, Weight, init_weight};
use crate::decoder::DecoderConfig;
use crate::ops::{ADAPTER_SUFFIXES, LAYER_MATRICES, is_adapter, takes_adapter};

/// Settings of the adapters, named as in peft's `LoraConfig`. There is no dropout, so a step is a
/// function of its examples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoraConfig {
    /// Rows of `A` and columns of `B`.
    pub rank: usize,
    /// The layer adds `alpha / rank · B · A` to the matrix.
    pub alpha: f64,
    /// Adapted matrices of the decoder layers, by short name (`"q_proj"`). Default: all seven.
    #[serde(default = "all_targets")]
    pub targets: Vec<String>,
}

fn all_targets() -> Vec<String> {
    let short_name = |matrix: &&str| last_component(matrix).to_owned();
    LAYER_MATRICES.iter().map(short_name).collect()
}

/// Returns the part of a name after the last dot.
fn last_component(matrix: &str) -> &str {
    matrix.rsplit('.').next().unwrap_or(matrix)
}

impl LoraConfig {
    /// Checks that rank and alpha are in range, and that the decoder has each target in a layer
    /// that is not frozen. `frozen`: name prefixes of the frozen weights.
    ///
    /// # Errors
    /// The first invalid setting, with a hint.
    pub fn check(
        &self,
        decoder: &DecoderConfig,
        frozen: &[String],
    ) -> std::result::Result<(), String> {
        let Self { rank, alpha, targets } = self;
        let max_rank = decoder.hidden_size.max(decoder.intermediate_size);
        if *rank == 0 || *rank > max_rank {
            return Err(format!("rank is {rank}, expected 1 to {max_rank}\nhint: use 8 or 16"));
        }
        if !(alpha.is_finite() && *alpha > 0.0) {
            return Err(format!(
                "alpha is {alpha}, expected a positive number\nhint: use the rank or twice the rank"
            ));
        }
        let known_targets = all_targets().join(", ");
        if targets.is_empty() {
            return Err(format!(
                "targets is empty, expected one or more matrices\n\
                 hint: omit `targets` to adapt {known_targets}"
            ));
        }
        for target in targets {
            let Some(matrix) = LAYER_MATRICES.iter().find(|m| last_component(m) == target) else {
                return Err(format!(
                    "unknown matrix {target:?} in targets\nhint: choose from {known_targets}"
                ));
            };
            let is_trainable = |layer: usize| {
                let name = weight_name(layer, matrix);
                !frozen.iter().any(|prefix| name.starts_with(prefix))
            };
            if !(0..decoder.num_hidden_layers).any(is_trainable) {
                return Err(format!(
                    "{target:?} in targets is frozen in all {} layers of the decoder\n\
                     hint: remove it from targets, or change `frozen` or `frozen_layers`",
                    decoder.num_hidden_layers
                ));
            }
        }
        Ok(())
    }

    /// Returns true if the weight `name` gets an adapter.
    fn matches(&self, name: &str) -> bool {
        let matrix = name.strip_suffix(".weight").filter(|matrix| takes_adapter(matrix));
        matrix.is_some_and(|matrix| self.targets.iter().any(|t| t == last_component(matrix)))
    }
}

/// Returns the name of a weight of a decoder layer.
fn weight_name(layer: usize, matrix: &str) -> String {
    format!("model.layers.{layer}.{matrix}.weight")
}

/// Returns the names of the tensors `A`, `B` and `alpha` of the adapter of a weight.
fn adapter_names(weight: &str) -> Option<[String; 3]> {
    let matrix = weight.strip_suffix(".weight")?;
    Some(ADAPTER_SUFFIXES.map(|suffix| format!("{matrix}.{suffix}")))
}

impl Parameters {
    /// Freezes the weights and adds trainable adapters to the targets of `lora` that were not
    /// frozen. As in peft, `A` is random (from `seed` and its name) and `B` is zero, so the
    /// outputs of the model do not change.
    ///
    /// # Errors
    /// A target without a trainable weight.
    pub fn with_adapters(&self, lora: &LoraConfig, seed: u64) -> Result<Self> {
        let weights = self.tensors();
        let is_adapted = |name: &str| !self.is_frozen(name) && lora.matches(name);
        let adapted: Vec<_> = weights.iter().filter(|(name, _)| is_adapted(name)).collect();
        for target in &lora.targets {
            let suffix = format!(".{target}.weight");
            if !adapted.iter().any(|(name, _)| name.ends_with(&suffix)) {
                bail!(
                    "lora: no weight `{target}` to adapt\n\
                     hint: adapters need trained weights, so put a stage without `lora` first"
                );
            }
        }
        let mut weights = self.lock_weights().clone();
        for (name, matrix) in adapted {
            let (rows, columns) = matrix.dims2()?;
            let Some([lora_a, lora_b, alpha]) = adapter_names(name) else {
                continue;
            };
            let shapes = [(lora.rank, columns), (rows, lora.rank)];
            for (name, shape) in [lora_a, lora_b].into_iter().zip(shapes) {
                let initial = init_weight(&shape.into(), &name, seed, &Device::Cpu)?;
                weights.insert(name, Weight::Variable(self.to_model_dtype(&initial)?));
            }
            let value = Tensor::new(lora.alpha as f32, &Device::Cpu)?;
            weights.insert(alpha, Weight::Variable(self.to_model_dtype(&value)?));
        }
        Ok(Self {
            weights: Arc::new(Mutex::new(weights)),
            trainable_set: TrainableSet::Adapters,
            ..self.clone()
        })
    }

    /// Returns the tensors of the adapters by name: `A`, `B` and `alpha` of each adapted matrix.
    pub fn adapters(&self) -> Vec<(String, Tensor)> {
        let weights = self.lock_weights();
        let adapters = weights.iter().filter(|(name, _)| is_adapter(name));
        adapters.map(|(name, weight)| (name.clone(), weight.values())).collect()
    }

    /// Merges the adapters into their matrices (`W + alpha / rank · B · A`). Returns all weights by
    /// name, in the layout of a model without adapters.
    pub fn merge_adapters(&self) -> Result<Vec<(String, Tensor)>> {
        let weights = self.lock_weights();
        let base_weights = weights.iter().filter(|(name, _)| !is_adapter(name));
        let merged = base_weights.map(|(name, weight)| {
            let adapter = adapter_names(name).and_then(|names| {
                let [lora_a, lora_b, alpha] = &names;
                let lora_a = weights.get(lora_a)?;
                Some((lora_a, weights.get(lora_b)?, weights.get(alpha)?))
            });
            let Some((lora_a, lora_b, alpha)) = adapter else {
                return Ok((name.clone(), weight.values()));
            };
            let [lora_a, lora_b] =
                [lora_a, lora_b].map(|factor| factor.values().to_dtype(DType::F32));
            let (lora_a, lora_b) = (lora_a?, lora_b?);
            let scale = f64::from(alpha.values().to_scalar::<f32>()?) / lora_a.dim(0)? as f64;
            let product = lora_b.matmul(&lora_a)?;
            // An adapted matrix is no longer a value of bf16.
            let sum = (weight.values().to_dtype(DType::F32)? + (product * scale)?)?;
            Ok((name.clone(), sum))
        });
        merged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: [&str; 2] = ["q_proj", "down_proj"];

    fn lora_config(targets: &[&str]) -> LoraConfig {
        LoraConfig {
            rank: 4,
            alpha: 8.0,
            targets: targets.iter().map(|t| (*t).to_owned()).collect(),
        }
    }

    fn values(var: &Tensor) -> Vec<f32> {
        var.flatten_all().unwrap().to_vec1().unwrap()
    }

    /// Returns two decoder layers and an output matrix, filled with ones.
    fn two_layers() -> Parameters {
        let names =
            (0..2).flat_map(|layer| LAYER_MATRICES.map(|matrix| weight_name(layer, matrix)));
        let names = names.chain(["lm_head.weight".to_owned()]);
        let shape = (32, 64);
        Parameters::from_tensors(names.map(|name| {
            let ones = Tensor::ones(shape, DType::F32, &Device::Cpu);
            (name, ones.unwrap())
        }))
        .unwrap()
    }

    #[test]
    fn only_adapters_are_trainable_and_initialised_as_in_peft() {
        let parameters = two_layers().freeze(&["model.layers.0.".to_owned()]);
        let adapted = parameters.with_adapters(&lora_config(&TARGETS), 7).unwrap();
        let trained = adapted.trainable();
        let names: Vec<&str> = trained.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "model.layers.1.mlp.down_proj.lora_A.weight",
            "model.layers.1.mlp.down_proj.lora_B.weight",
            "model.layers.1.self_attn.q_proj.lora_A.weight",
            "model.layers.1.self_attn.q_proj.lora_B.weight",
        ];
        assert_eq!(names, expected);
        // kaiming_uniform_(a=√5) of 64 columns: √(2 / (1 + 5)) · √(3 / 64).
        let bound = 0.125f32;
        let (lora_a, other) = (values(&trained[0].1), values(&trained[2].1));
        assert!(lora_a.iter().all(|v| v.abs() <= bound) && lora_a != other);
        assert!(lora_a.iter().any(|v| *v > 0.9 * bound));
        assert!(lora_a.iter().any(|v| *v < -0.9 * bound));
        let mean = lora_a.iter().sum::<f32>() / lora_a.len() as f32;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!(values(&trained[1].1).iter().all(|v| *v == 0.0));
        let first_adapter = |seed| {
            values(
                &parameters.with_adapters(&lora_config(&TARGETS), seed).unwrap().trainable()[0].1,
            )
        };
        assert_eq!(lora_a, first_adapter(7));
        assert_ne!(lora_a, first_adapter(8));
    }

    #[test]
    fn merge_adds_scaled_product_to_a_copy() {
        let start = two_layers();
        let adapted = start.with_adapters(&lora_config(&TARGETS), 7).unwrap();
        for (_, var) in adapted.trainable() {
            var.set(&Tensor::full(0.5f32, var.shape(), &Device::Cpu).unwrap()).unwrap();
        }
        let merged = adapted.merge_adapters().unwrap();
        assert_eq!(merged.len(), start.all().len());
        for ((name, var), (_, before)) in merged.iter().zip(start.all()) {
            let targets = ["q_proj.weight", "down_proj.weight"];
            // 1 + 8 / 4 · (4 · ½ · ½).
            let expected = if targets.iter().any(|t| name.ends_with(t)) { 3.0 } else { 1.0 };
            assert_eq!(values(var), vec![expected; 32 * 64], "{name}");
            assert_eq!(values(&before), vec![1.0; 32 * 64], "{name}");
        }
    }

    #[test]
    fn factors_in_bf16_are_merged_in_f32() {
        let name = weight_name(0, LAYER_MATRICES[0]);
        let [lora_a, lora_b, alpha] = adapter_names(&name).unwrap();
        let full = |value: f32, shape: (usize, usize)| {
            Tensor::full(value, shape, &Device::Cpu).unwrap().to_dtype(DType::BF16).unwrap()
        };
        let tensors = [
            (name.clone(), full(1.0, (3, 4))),
            (lora_a, full(0.5, (2, 4))),
            (lora_b, full(1.0 / 256.0, (3, 2))),
            (alpha, Tensor::new(2f32, &Device::Cpu).unwrap()),
        ];
        let merged = Parameters::from_shared(tensors).unwrap().merge_adapters().unwrap();
        // In bf16 the sum would be 1.
        assert_eq!(merged.len(), 1);
        assert_eq!(values(&merged[0].1), vec![1.0 + 1.0 / 256.0; 12]);
    }

    #[test]
    fn target_without_trainable_weight_is_rejected() {
        let parameters =
            two_layers().freeze(&["model.layers.0.".to_owned(), weight_name(1, LAYER_MATRICES[0])]);
        let error = parameters.with_adapters(&lora_config(&TARGETS), 7).err().unwrap().to_string();
        assert!(error.contains("no weight `q_proj`") && error.contains("\nhint: "));
        assert!(parameters.with_adapters(&lora_config(&["down_proj"]), 7).is_ok());
        assert!(Parameters::uninitialized(1).with_adapters(&lora_config(&TARGETS), 7).is_err());
    }
}
