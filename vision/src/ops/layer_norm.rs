//! Layer normalisation (Ba, Kiros and Hinton 2016) over the last dimension.

use candle::{CpuStorage, CustomOp3, D, Layout, Result, Shape, Tensor, bail};
use candle_nn::{Init, VarBuilder};
use rayon::prelude::*;

use super::bias::sum_parts;
use super::{BLOCK, floats, fused, sum_by};

/// `(x − mean) / √(variance + eps) · weight + bias`, over the last dimension.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl LayerNorm {
    /// Loads `weight` and `bias`, both (n).
    pub fn load(vb: &VarBuilder, n: usize, eps: f64) -> Result<Self> {
        let weight = vb.get_with_hints(n, "weight", Init::Const(1.))?;
        let bias = vb.get_with_hints(n, "bias", Init::Const(0.))?;
        Ok(Self { weight, bias, eps })
    }

    /// Normalises every row, differentiable in `x`, the weight and the bias.
    ///
    /// # Shapes
    /// (…, n) → (…, n).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if !fused(x) {
            return self.composed(x);
        }
        let op = Normalise {
            eps: self.eps as f32,
        };
        x.contiguous()?
            .apply_op3(&self.weight.contiguous()?, &self.bias.contiguous()?, op)
    }

    fn composed(&self, x: &Tensor) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let normed = centred.broadcast_div(&(variance + self.eps)?.sqrt()?)?;
        normed
            .broadcast_mul(&self.weight)?
            .broadcast_add(&self.bias)
    }
}

/// The mean of a row and one over its standard deviation.
fn moments(x: &[f32], eps: f32) -> (f32, f32) {
    let n = x.len() as f32;
    let mean = sum_by(x, x, |x, _| x) / n;
    let variance = sum_by(x, x, |x, _| (x - mean) * (x - mean)) / n;
    (mean, 1. / (variance + eps).sqrt())
}

struct Normalise {
    eps: f32,
}

impl CustomOp3 for Normalise {
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
        let (weight, bias) = (floats(weight, weight_layout)?, floats(bias, bias_layout)?);
        let x = floats(x, x_layout)?;
        let n = weight.len();
        if n == 0 || bias.len() != n || x_layout.dims().last() != Some(&n) {
            bail!("layer-norm: rows of {:?}, a weight of {n}", x_layout.dims());
        }
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(BLOCK * n)
            .zip(x.par_chunks(BLOCK * n))
            .for_each(|(y, x)| {
                for (y, x) in y.chunks_mut(n).zip(x.chunks(n)) {
                    let (mean, scale) = moments(x, self.eps);
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
        let op = Gradient { eps: self.eps };
        let all = x.apply_op3_no_bwd(weight, &grad.contiguous()?, &op)?;
        let rows = x.elem_count() / n;
        let dx = all.narrow(0, 0, rows)?.reshape(x.shape())?;
        let weight = all.narrow(0, rows, 1)?.squeeze(0)?;
        let bias = all.narrow(0, rows + 1, 1)?.squeeze(0)?;
        Ok((Some(dx), Some(weight), Some(bias)))
    }
}

/// The three gradients as the rows of one tensor: those of `x`, then that of the weight, then the bias'.
struct Gradient {
    eps: f32,
}

impl Gradient {
    /// The gradients of one row of `x`; adds to those of the weight and the bias in `sums`.
    fn row(&self, (x, g): (&[f32], &[f32]), weight: &[f32], dx: &mut [f32], sums: &mut [f32]) {
        let n = weight.len();
        let (mean, scale) = moments(x, self.eps);
        for (dx, x) in dx.iter_mut().zip(x) {
            *dx = (x - mean) * scale;
        }
        let (to_weight, to_bias) = sums.split_at_mut(n);
        for (((to_weight, to_bias), normed), g) in
            to_weight.iter_mut().zip(to_bias).zip(dx.iter()).zip(g)
        {
            *to_weight += g * normed;
            *to_bias += g;
        }
        let along = sum_by(g, weight, |g, weight| g * weight) / n as f32;
        // The product of three rows: the third is read beside the sum, in the same order.
        let turned = dx
            .iter()
            .zip(weight)
            .map(|(normed, weight)| normed * weight);
        let turned: Vec<f32> = turned.collect();
        let across = sum_by(g, &turned, |g, turned| g * turned) / n as f32;
        for ((dx, g), weight) in dx.iter_mut().zip(g).zip(weight) {
            *dx = scale * (g * weight - along - *dx * across);
        }
    }
}

impl CustomOp3 for Gradient {
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
        let (x, g) = (floats(x, x_layout)?, floats(g, g_layout)?);
        let weight = floats(weight, weight_layout)?;
        let n = weight.len();
        let mut out = vec![0f32; x.len() + 2 * n];
        let (dx, sums) = out.split_at_mut(x.len());
        let blocks = x.par_chunks(BLOCK * n).zip(g.par_chunks(BLOCK * n));
        let parts: Vec<Vec<f32>> = dx
            .par_chunks_mut(BLOCK * n)
            .zip(blocks)
            .map(|(dx, (x, g))| {
                let mut sums = vec![0f32; 2 * n];
                for ((dx, x), g) in dx.chunks_mut(n).zip(x.chunks(n)).zip(g.chunks(n)) {
                    self.row((x, g), weight, dx, &mut sums);
                }
                sums
            })
            .collect();
        sums.copy_from_slice(&sum_parts(&parts, 2 * n));
        let rows = x.len() / n + 2;
        Ok((CpuStorage::F32(out), Shape::from((rows, n))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{distance, numbers, same};
    use super::*;

    #[test]
    fn equals_the_composed_form() {
        for shape in [vec![1, 3], vec![2, 70, 5], vec![131, 24], vec![3, 2, 65, 8]] {
            let n = *shape.last().unwrap();
            let (x, weight, bias) = (numbers(&shape, 1), numbers(&[n], 2), numbers(&[n], 3));
            let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
            let norm = LayerNorm {
                weight: tensors.0,
                bias: tensors.1,
                eps: 1e-5,
            };
            let all = [x.clone(), weight, bias];
            same(&all, || norm.forward(&x), || norm.composed(&x));
        }
    }

    #[test]
    fn gradient_is_the_slope() {
        let (x, weight, bias) = (numbers(&[3, 7], 1), numbers(&[7], 2), numbers(&[7], 3));
        let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
        let norm = LayerNorm {
            weight: tensors.0,
            bias: tensors.1,
            eps: 1e-5,
        };
        let along = numbers(&[3, 7], 4);
        let loss = |x: &Tensor| norm.forward(x).unwrap().sqr().unwrap().sum_all().unwrap();
        let step = (along.as_tensor() * 1e-3).unwrap();
        let (up, down) = (
            loss(&(x.as_tensor() + &step).unwrap()),
            loss(&(x.as_tensor() - &step).unwrap()),
        );
        let slope = ((up - down).unwrap() / 2e-3).unwrap();
        let grads = loss(&x).backward().unwrap();
        let expected = (grads.get(&x).unwrap() * along.as_tensor())
            .unwrap()
            .sum_all()
            .unwrap();
        assert!(distance(&slope, &expected) < 1e-2, "{slope} {expected}");
    }

    #[test]
    fn no_result_depends_on_the_number_of_threads() {
        let (x, weight, bias) = (numbers(&[700, 24], 1), numbers(&[24], 2), numbers(&[24], 3));
        let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
        let norm = LayerNorm {
            weight: tensors.0,
            bias: tensors.1,
            eps: 1e-5,
        };
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let loss = norm.forward(&x).unwrap().sqr().unwrap().sum_all().unwrap();
                let grads = loss.backward().unwrap();
                let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                [&x, &weight, &bias].map(|var| flat(grads.get(var).unwrap()))
            })
        };
        assert_eq!(bits(1), bits(3));
    }

    #[test]
    fn a_weight_of_another_length_is_an_error() {
        let (weight, bias) = (numbers(&[4], 2), numbers(&[4], 3));
        let tensors = (weight.as_tensor().clone(), bias.as_tensor().clone());
        let norm = LayerNorm {
            weight: tensors.0,
            bias: tensors.1,
            eps: 1e-5,
        };
        assert!(norm.forward(&numbers(&[2, 3], 1)).is_err());
    }
}
