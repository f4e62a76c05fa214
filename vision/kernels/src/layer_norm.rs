//! Layer normalisation (Ba, Kiros and Hinton 2016) over the last dimension.

use candle::{CpuStorage, CustomOp3, D, Layout, Result, Shape, Tensor, bail};
use candle_nn::{Init, VarBuilder};
use rayon::prelude::*;

use crate::elements::{ROW_BLOCK, as_f32_slice, is_cpu_f32};
use crate::gpu::layers;
use crate::reduce::{sum_blocks, sum_by};

/// A layer norm: `(x − mean) / √(variance + eps) · weight + bias` over the last dimension.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl LayerNorm {
    /// Loads `weight` and `bias`.
    ///
    /// # Shapes
    /// `weight` (n), `bias` (n).
    pub fn load(vb: &VarBuilder, n: usize, eps: f64) -> Result<Self> {
        let weight = vb.get_with_hints(n, "weight", Init::Const(1.))?;
        let bias = vb.get_with_hints(n, "bias", Init::Const(0.))?;
        Ok(Self { weight, bias, eps })
    }

    /// Normalises every row. Differentiable in `x`, the weight and the bias.
    ///
    /// # Shapes
    /// (…, n) → (…, n).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if let Some(y) = layers::layer_norm(x, &self.weight, &self.bias, self.eps)? {
            return Ok(y);
        }
        if !is_cpu_f32(x) {
            return self.forward_composed(x);
        }
        let op = LayerNormOp { eps: self.eps as f32 };
        x.contiguous()?.apply_op3(&self.weight.contiguous()?, &self.bias.contiguous()?, op)
    }

    fn forward_composed(&self, x: &Tensor) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let normed = centred.broadcast_div(&(variance + self.eps)?.sqrt()?)?;
        normed.broadcast_mul(&self.weight)?.broadcast_add(&self.bias)
    }
}

/// Returns the mean of a row and the reciprocal of its standard deviation.
fn mean_and_inverse_std(x: &[f32], eps: f32) -> (f32, f32) {
    let n = x.len() as f32;
    let mean = sum_by(x, x, |x, _| x) / n;
    let variance = sum_by(x, x, |x, _| (x - mean) * (x - mean)) / n;
    (mean, 1. / (variance + eps).sqrt())
}

struct LayerNormOp {
    eps: f32,
}

impl CustomOp3 for LayerNormOp {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let weight = as_f32_slice(weight, weight_layout, self.name())?;
        let bias = as_f32_slice(bias, bias_layout, self.name())?;
        let x = as_f32_slice(x, x_layout, self.name())?;
        let n = weight.len();
        if n == 0 || bias.len() != n || x_layout.dims().last() != Some(&n) {
            bail!(
                "layer-norm: `x` is {:?}, `weight` has {n} values and `bias` has {}, expected rows of \
                 their length",
                x_layout.dims(),
                bias.len()
            );
        }
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(ROW_BLOCK * n).zip(x.par_chunks(ROW_BLOCK * n)).for_each(|(y, x)| {
            for (y, x) in y.chunks_mut(n).zip(x.chunks(n)) {
                let (mean, scale) = mean_and_inverse_std(x, self.eps);
                for (((y, x), weight), bias) in y.iter_mut().zip(x).zip(weight).zip(bias) {
                    *y = (x - mean) * scale * weight + bias;
                }
            }
        });
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _bias: &Tensor,
        _y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let n = weight.elem_count();
        let op = LayerNormGradient { eps: self.eps };
        let all = x.apply_op3_no_bwd(weight, &grad.contiguous()?, &op)?;
        let rows = x.elem_count() / n;
        let dx = all.narrow(0, 0, rows)?.reshape(x.shape())?;
        let weight = all.narrow(0, rows, 1)?.squeeze(0)?;
        let bias = all.narrow(0, rows + 1, 1)?.squeeze(0)?;
        Ok((Some(dx), Some(weight), Some(bias)))
    }
}

/// Computes all three gradients as rows of one tensor: those of `x`, then the weight's, then the
/// bias's.
struct LayerNormGradient {
    eps: f32,
}

/// A row of the input, and the gradient of the same row of the result.
struct GradientRow<'a> {
    x: &'a [f32],
    g: &'a [f32],
}

impl LayerNormGradient {
    /// Writes the gradient of one row of `x` to `dx`. Adds the row's gradients of weight and bias
    /// to `sums`.
    fn backward_row(
        &self,
        row: &GradientRow<'_>,
        weight: &[f32],
        dx: &mut [f32],
        sums: &mut [f32],
    ) {
        let GradientRow { x, g } = *row;
        let n = weight.len();
        let (x_mean, scale) = mean_and_inverse_std(x, self.eps);
        for (dx, x) in dx.iter_mut().zip(x) {
            *dx = (x - x_mean) * scale;
        }
        let (weight_sums, bias_sums) = sums.split_at_mut(n);
        for (((dweight, dbias), normed), g) in
            weight_sums.iter_mut().zip(bias_sums).zip(dx.iter()).zip(g)
        {
            *dweight += g * normed;
            *dbias += g;
        }
        let mean = sum_by(g, weight, |g, weight| g * weight) / n as f32;
        // `sum_by` accepts two rows, so two of the three factors are multiplied first.
        let weighted = dx.iter().zip(weight).map(|(normed, weight)| normed * weight);
        let weighted: Vec<f32> = weighted.collect();
        let normed_mean = sum_by(g, &weighted, |g, weighted| g * weighted) / n as f32;
        for ((dx, g), weight) in dx.iter_mut().zip(g).zip(weight) {
            *dx = scale * (g * weight - mean - *dx * normed_mean);
        }
    }
}

impl CustomOp3 for LayerNormGradient {
    fn name(&self) -> &'static str {
        "layer-norm-gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        g: &CpuStorage,
        g_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(x, x_layout, self.name())?;
        let g = as_f32_slice(g, g_layout, self.name())?;
        let weight = as_f32_slice(weight, weight_layout, self.name())?;
        let n = weight.len();
        let mut out = vec![0f32; x.len() + 2 * n];
        let (dx, sums) = out.split_at_mut(x.len());
        let blocks = x.par_chunks(ROW_BLOCK * n).zip(g.par_chunks(ROW_BLOCK * n));
        let block_sums: Vec<Vec<f32>> = dx
            .par_chunks_mut(ROW_BLOCK * n)
            .zip(blocks)
            .map(|(dx, (x, g))| {
                let mut sums = vec![0f32; 2 * n];
                for ((dx, x), g) in dx.chunks_mut(n).zip(x.chunks(n)).zip(g.chunks(n)) {
                    self.backward_row(&GradientRow { x, g }, weight, dx, &mut sums);
                }
                sums
            })
            .collect();
        sums.copy_from_slice(&sum_blocks(&block_sums, 2 * n));
        let rows = x.len() / n + 2;
        Ok((CpuStorage::F32(out), Shape::from((rows, n))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_equivalent, random_var, relative_error};

    #[test]
    fn fused_and_composed_layer_norm_agree() {
        for shape in [vec![1, 3], vec![2, 70, 5], vec![131, 24], vec![3, 2, 65, 8]] {
            let n = *shape.last().unwrap();
            let (x, weight, bias) =
                (random_var(&shape, 1), random_var(&[n], 2), random_var(&[n], 3));
            let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
            let norm = LayerNorm { weight: tensors.0, bias: tensors.1, eps: 1e-5 };
            let all = [x.clone(), weight, bias];
            assert_equivalent(&all, || norm.forward(&x), || norm.forward_composed(&x));
        }
    }

    #[test]
    fn gradient_matches_finite_differences() {
        let (x, weight, bias) = (random_var(&[3, 7], 1), random_var(&[7], 2), random_var(&[7], 3));
        let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
        let norm = LayerNorm { weight: tensors.0, bias: tensors.1, eps: 1e-5 };
        let direction = random_var(&[3, 7], 4);
        let loss = |x: &Tensor| norm.forward(x).unwrap().sqr().unwrap().sum_all().unwrap();
        let step = (direction.as_tensor() * 1e-3).unwrap();
        let (up, down) =
            (loss(&(x.as_tensor() + &step).unwrap()), loss(&(x.as_tensor() - &step).unwrap()));
        let slope = ((up - down).unwrap() / 2e-3).unwrap();
        let grads = loss(&x).backward().unwrap();
        let expected = (grads.get(&x).unwrap() * direction.as_tensor()).unwrap().sum_all().unwrap();
        assert!(relative_error(&slope, &expected) < 1e-2, "{slope} {expected}");
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let (x, weight, bias) =
            (random_var(&[700, 24], 1), random_var(&[24], 2), random_var(&[24], 3));
        let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
        let norm = LayerNorm { weight: tensors.0, bias: tensors.1, eps: 1e-5 };
        let gradients = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let loss = norm.forward(&x).unwrap().sqr().unwrap().sum_all().unwrap();
                let grads = loss.backward().unwrap();
                let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                [&x, &weight, &bias].map(|var| flat(grads.get(var).unwrap()))
            })
        };
        assert_eq!(gradients(1), gradients(3));
    }

    #[test]
    fn weight_of_wrong_length_is_an_error() {
        let (weight, bias) = (random_var(&[4], 2), random_var(&[4], 3));
        let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
        let norm = LayerNorm { weight: tensors.0, bias: tensors.1, eps: 1e-5 };
        assert!(norm.forward(&random_var(&[2, 3], 1)).is_err());
    }
}
