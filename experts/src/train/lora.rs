//! Low-rank adaptation (Hu et al., 2021, "Low-Rank Adaptation of Large Language Models", §4.1): a matrix
//! stays as it is, and a product of two narrow ones, which are learned, is added to it.

use std::sync::{Arc, Mutex};

use candle::{Device, Result, Tensor, bail};
use serde::{Deserialize, Serialize};

use super::parameters::{Parameters, Trained, draw};
use crate::decoder::DecoderConfig;
use crate::ops::ADAPTER;

/// The matrices of a decoder layer.
const MATRICES: [&str; 7] = [
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
];

/// Which matrices are adapted, and how; in the words of peft's `LoraConfig`. There is no dropout: a step
/// is a function of its examples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// Rows of `A` and columns of `B`.
    pub rank: usize,
    /// The product is scaled by `alpha / rank`.
    pub alpha: f64,
    /// Matrices of the decoder's layers by their own names (`"q_proj"`); all seven where nothing is said.
    #[serde(default = "every")]
    pub targets: Vec<String>,
}

fn every() -> Vec<String> {
    let own = |matrix: &&str| own_name(matrix).to_owned();
    MATRICES.iter().map(own).collect()
}

/// The last word of a name.
fn own_name(matrix: &str) -> &str {
    matrix.rsplit('.').next().unwrap_or(matrix)
}

impl Lora {
    /// Whether it adapts anything of a decoder, in which weights whose names begin with one of `frozen`
    /// stay as they are.
    ///
    /// # Errors
    /// What is wrong, with a hint.
    pub fn check(
        &self,
        decoder: &DecoderConfig,
        frozen: &[String],
    ) -> std::result::Result<(), String> {
        let Self {
            rank,
            alpha,
            targets,
        } = self;
        let most = decoder.hidden_size.max(decoder.intermediate_size);
        if *rank == 0 || *rank > most {
            return Err(format!(
                "rank is {rank}, expected 1 to {most}\nhint: 8 or 16 is usual"
            ));
        }
        if !(alpha.is_finite() && *alpha > 0.0) {
            return Err(format!(
                "alpha is {alpha}, expected a positive number\nhint: the rank, or twice it, is usual"
            ));
        }
        let known = every().join(", ");
        if targets.is_empty() {
            return Err(format!(
                "targets is empty, nothing would be learned\nhint: leave it out for all of {known}"
            ));
        }
        for target in targets {
            let Some(matrix) = MATRICES.iter().find(|m| own_name(m) == target) else {
                return Err(format!(
                    "targets names {target:?}, which no layer of the decoder has\nhint: they are {known}"
                ));
            };
            let is_open = |layer: usize| {
                let name = weight(layer, matrix);
                !frozen.iter().any(|beginning| name.starts_with(beginning))
            };
            if !(0..decoder.num_hidden_layers).any(is_open) {
                return Err(format!(
                    "targets names {target:?}, which is frozen in all {} layers of the decoder\n\
                     hint: adapted are the matrices that `frozen` and `frozen_layers` leave",
                    decoder.num_hidden_layers
                ));
            }
        }
        Ok(())
    }

    /// Whether a weight of this name is adapted.
    fn adapts(&self, name: &str) -> bool {
        let matrix = name
            .strip_prefix("model.layers.")
            .and_then(|rest| rest.split_once('.'))
            .and_then(|(_, rest)| rest.strip_suffix(".weight"));
        let Some(matrix) = matrix.filter(|matrix| MATRICES.contains(matrix)) else {
            return false;
        };
        self.targets.iter().any(|t| t == own_name(matrix))
    }
}

fn weight(layer: usize, matrix: &str) -> String {
    format!("model.layers.{layer}.{matrix}.weight")
}

/// The names of the adapter of a weight: of `A`, `B` and `alpha`.
fn adapter(weight: &str) -> Option<[String; 3]> {
    let matrix = weight.strip_suffix(".weight")?;
    Some(ADAPTER.map(|ending| format!("{matrix}.{ending}")))
}

impl Parameters {
    /// The same weights as constants, and adapters beside those that `lora` names and that were not
    /// frozen: they alone are trained. As peft begins, `A` is drawn, by `seed` and its name, and `B` is
    /// zero, so that the model is what it was.
    ///
    /// # Errors
    /// A target that no weight here has.
    pub fn adapt(&self, lora: &Lora, seed: u64) -> Result<Self> {
        let open = self.trainable();
        let open: Vec<_> = open.iter().filter(|(name, _)| lora.adapts(name)).collect();
        for target in &lora.targets {
            let tail = format!(".{target}.weight");
            if !open.iter().any(|(name, _)| name.ends_with(&tail)) {
                bail!(
                    "lora: there is no weight `{target}` to adapt\n\
                     hint: an adapter changes what was learned before it; let a stage without one come first"
                );
            }
        }
        let mut store = self.lock().clone();
        for (name, var) in open {
            let (rows, columns) = var.dims2()?;
            let Some([down, up, alpha]) = adapter(name) else {
                continue;
            };
            let shapes = [(lora.rank, columns), (rows, lora.rank)];
            for (name, shape) in [down, up].into_iter().zip(shapes) {
                let drawn = draw(&shape.into(), &name, seed, &Device::Cpu)?;
                store.insert(name, self.rounded(&drawn)?);
            }
            let value = Tensor::new(lora.alpha as f32, &Device::Cpu)?;
            store.insert(alpha, self.rounded(&value)?);
        }
        Ok(Self {
            store: Arc::new(Mutex::new(store)),
            trained: Trained::Adapters,
            ..self.clone()
        })
    }

    /// All weights, by name, as a model without adapters has them: `W + alpha / rank · B · A`.
    pub fn merged(&self) -> Result<Vec<(String, Tensor)>> {
        let store = self.lock();
        let plain = store
            .iter()
            .filter(|(name, _)| !ADAPTER.iter().any(|ending| name.ends_with(ending)));
        let merged = plain.map(|(name, var)| {
            let names = adapter(name);
            let parts = names.and_then(|names| {
                let [down, up, alpha] = &names;
                Some((store.get(down)?, store.get(up)?, store.get(alpha)?))
            });
            let Some((down, up, alpha)) = parts else {
                return Ok((name.clone(), var.as_detached_tensor()));
            };
            let scale = f64::from(alpha.to_scalar::<f32>()?) / down.dim(0)? as f64;
            let change = up.as_detached_tensor().matmul(&down.as_detached_tensor())?;
            let whole = (var.as_detached_tensor() + (change * scale)?)?;
            Ok((name.clone(), whole))
        });
        merged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::DType;

    const TWO: [&str; 2] = ["q_proj", "down_proj"];

    fn lora(targets: &[&str]) -> Lora {
        Lora {
            rank: 4,
            alpha: 8.0,
            targets: targets.iter().map(|t| (*t).to_owned()).collect(),
        }
    }

    fn values(var: &Tensor) -> Vec<f32> {
        var.flatten_all().unwrap().to_vec1().unwrap()
    }

    /// Two layers with an output matrix above them.
    fn weights() -> Parameters {
        let names = (0..2).flat_map(|layer| MATRICES.map(|matrix| weight(layer, matrix)));
        let names = names.chain(["lm_head.weight".to_owned()]);
        let shape = (32, 64);
        Parameters::from_tensors(names.map(|name| {
            let ones = Tensor::ones(shape, DType::F32, &Device::Cpu);
            (name, ones.unwrap())
        }))
        .unwrap()
    }

    #[test]
    fn adapters_begin_as_those_of_peft_and_are_trained_alone() {
        let below = weights().freeze(&["model.layers.0.".to_owned()]);
        let adapted = below.adapt(&lora(&TWO), 7).unwrap();
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
        let most = 0.125f32;
        let (down, other) = (values(&trained[0].1), values(&trained[2].1));
        assert!(down.iter().all(|v| v.abs() <= most) && down != other);
        assert!(down.iter().any(|v| *v > 0.9 * most) && down.iter().any(|v| *v < -0.9 * most));
        let mean = down.iter().sum::<f32>() / down.len() as f32;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!(values(&trained[1].1).iter().all(|v| *v == 0.0));
        let drawn = |seed| values(&below.adapt(&lora(&TWO), seed).unwrap().trainable()[0].1);
        assert_eq!(down, drawn(7));
        assert_ne!(down, drawn(8));
    }

    #[test]
    fn what_is_merged_is_the_scaled_product_and_leaves_the_start_alone() {
        let start = weights();
        let adapted = start.adapt(&lora(&TWO), 7).unwrap();
        for (_, var) in adapted.trainable() {
            var.set(&Tensor::full(0.5f32, var.shape(), &Device::Cpu).unwrap())
                .unwrap();
        }
        let merged = adapted.merged().unwrap();
        assert_eq!(merged.len(), start.all().len());
        for ((name, var), (_, before)) in merged.iter().zip(start.all()) {
            let targets = ["q_proj.weight", "down_proj.weight"];
            // 8 / 4 · (4 · ½ · ½) beside the ones.
            let want = if targets.iter().any(|t| name.ends_with(t)) {
                3.0
            } else {
                1.0
            };
            assert_eq!(values(var), vec![want; 32 * 64], "{name}");
            assert_eq!(values(&before), vec![1.0; 32 * 64], "{name}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_an_error() {
        let only = weights().freeze(&["model.layers.0.".to_owned(), weight(1, MATRICES[0])]);
        let error = only.adapt(&lora(&TWO), 7).err().unwrap().to_string();
        assert!(error.contains("no weight `q_proj`") && error.contains("\nhint: "));
        assert!(only.adapt(&lora(&["down_proj"]), 7).is_ok());
        assert!(Parameters::fresh(1).adapt(&lora(&TWO), 7).is_err());
    }
}
