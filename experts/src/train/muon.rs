//! Muon: momentum whose update is orthogonalised (Jordan et al., 2024, "Muon: An optimizer for hidden
//! layers in neural networks"; PyTorch's `torch.optim.Muon` with `adjust_lr_fn="match_rms_adamw"`).
//!
//! All singular values of an update are near 1, so directions in which the gradient is small
//! are learned as fast as the others.

use candle::{Device, Result, Tensor};

use super::optimizer_config::OptimizerConfig;

/// Coefficients of one Newton–Schulz iteration: `X` becomes `aX + (bA + cA²)X` with `A = XXᵀ`.
const COEFFICIENTS: [f64; 3] = [3.4445, -4.7750, 2.0315];
/// Number of Newton–Schulz iterations.
const ITERATIONS: usize = 5;
/// Smallest norm by which an update is divided.
const MIN_NORM: f64 = 1e-7;
/// Root mean square of an update at learning rate 1, which is about that of AdamW (Liu et al., 2025,
/// "Muon is scalable for LLM training", §2.2).
const UPDATE_RMS: f64 = 0.2;

/// Returns true if Muon updates a parameter of this name and rank: the matrices of layers and of the
/// projector. AdamW updates embeddings, norms, biases, classifiers and adapters.
pub(super) fn is_hidden_matrix(name: &str, rank: usize) -> bool {
    let is_hidden = name.contains(".layers.") || name.contains("mm_projector");
    rank == 2 && is_hidden && name.ends_with(".weight") && !name.contains("lora_")
}

/// Updates `momentum` with the gradient of a matrix, and returns the update. The caller multiplies the
/// update by the learning rate and subtracts it.
///
/// # Shapes
/// `shape` is `(rows, columns)`; all values are in row-major order.
pub(super) fn muon_update(
    gradient: impl Iterator<Item = f32>,
    momentum: &mut [f32],
    shape: (usize, usize),
    config: &OptimizerConfig,
) -> Result<Vec<f32>> {
    let decay_rate = config.momentum as f32;
    let lerp = |from: f32, to: f32, weight: f32| from + weight * (to - from);
    // Nesterov momentum: one more step of the mean.
    let updates = gradient.zip(momentum.iter_mut()).map(|(gradient, momentum)| {
        *momentum = lerp(*momentum, gradient, 1.0 - decay_rate);
        lerp(gradient, *momentum, decay_rate)
    });
    let update = Tensor::from_vec(updates.collect::<Vec<f32>>(), shape, &Device::Cpu)?;
    let scale = UPDATE_RMS * (shape.0.max(shape.1) as f64).sqrt();
    (orthogonalise(&update)? * scale)?.flatten_all()?.to_vec1()
}

/// Replaces the singular values of a matrix by values near 1, and keeps its singular vectors.
fn orthogonalise(matrix: &Tensor) -> Result<Tensor> {
    let (rows, columns) = matrix.dims2()?;
    let is_tall = rows > columns;
    // The product of the shorter side with itself is the smaller one.
    let mut x = if is_tall { matrix.t()?.contiguous()? } else { matrix.clone() };
    let norm = f64::from(x.sqr()?.sum_all()?.sqrt()?.to_scalar::<f32>()?);
    x = (x / norm.max(MIN_NORM))?;
    let [a, b, c] = COEFFICIENTS;
    for _ in 0..ITERATIONS {
        let gram = x.matmul(&x.t()?)?;
        let polynomial = ((&gram * b)? + (gram.matmul(&gram)? * c)?)?;
        x = ((&x * a)? + polynomial.matmul(&x)?)?;
    }
    if is_tall { x.t()?.contiguous() } else { Ok(x) }
}

#[cfg(test)]
mod tests {
    use candle::{Tensor, Var};
    use serde::Deserialize;

    use super::*;
    use crate::train::{MatrixRule, Optimizer};

    #[derive(Deserialize)]
    struct Golden {
        shape: (usize, usize),
        start: Vec<f32>,
        steps: Vec<GoldenStep>,
    }

    #[derive(Deserialize)]
    struct GoldenStep {
        gradient: Vec<f32>,
        values: Vec<f32>,
    }

    #[test]
    fn steps_match_torch() -> Result<()> {
        let golden = include_str!("../../../assets/golden/muon.json");
        let golden: Vec<Golden> = serde_json::from_str(golden).unwrap();
        assert_eq!(golden.len(), 2);
        for Golden { shape, start, steps } in golden {
            let var = Var::from_tensor(&Tensor::from_vec(start, shape, &Device::Cpu)?)?;
            let config = OptimizerConfig { matrices: MatrixRule::Muon, ..Default::default() };
            let parameters = vec![("model.layers.0.mlp.up_proj.weight".to_owned(), var.clone())];
            let mut optimizer = Optimizer::new(parameters, config);
            for GoldenStep { gradient, values } in steps {
                // The trainer passes sums and their scale.
                let sum = gradient.iter().map(|gradient| gradient * 4.0).collect();
                optimizer.update(&[sum], 0.25, 0.05)?;
                let found = var.flatten_all()?.to_vec1::<f32>()?;
                for (found, expected) in found.iter().zip(values) {
                    assert!((found - expected).abs() < 2e-5, "{found} {expected}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn only_matrices_of_layers_and_projector_are_hidden() {
        for name in [
            "model.layers.5.self_attn.k_proj.weight",
            "model.vision_tower.vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight",
            "model.mm_projector.0.weight",
        ] {
            assert!(is_hidden_matrix(name, 2), "{name}");
        }
        for (name, rank) in [
            ("model.embed_tokens.weight", 2),
            (
                "model.vision_tower.vision_tower.vision_model.embeddings.position_embedding.weight",
                2,
            ),
            ("observer.0.weight", 2),
            ("model.layers.0.self_attn.q_proj.lora_A.weight", 2),
            ("model.layers.0.input_layernorm.weight", 1),
            ("model.vision_tower.vision_tower.vision_model.encoder.layers.0.mlp.fc1.bias", 1),
        ] {
            assert!(!is_hidden_matrix(name, rank), "{name}");
        }
    }
}
