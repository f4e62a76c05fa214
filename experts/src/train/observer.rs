//! The vision tower in training, alone: attributes of an image told from its class token, and marks
//! told from the patch they lie in.

use std::sync::Arc;

use acem3_kernels::{cross_entropy, matmul_transposed};
use acem3_vision::{SelectFeature, Selection, VisionConfig, VisionTower};
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::loss::{Hits, Loss};
use crate::Error;

/// One image and the class of each attribute, where it is known.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Pixel values, `3·s·s`.
    pub pixels: Arc<[f32]>,
    /// One entry for each attribute.
    pub classes: Vec<Option<usize>>,
    /// The mark of each patch, row by row; empty where they are not known.
    pub marks: Vec<usize>,
}

/// Classes of marks: nothing, part of a lesion, the middle of a lesion.
pub const MARKS: usize = 3;
/// What an error at a patch's mark costs; at an attribute it costs one.
const MARK_WEIGHT: f32 = 0.1;

/// A vision tower with a linear classifier for each attribute on its first token, and one for the
/// marks on all others.
pub struct Observer {
    tower: VisionTower,
    weight: Tensor,
    bias: Tensor,
    marks: (Tensor, Tensor),
    sizes: Vec<usize>,
    side: usize,
    device: Device,
}

impl Observer {
    /// The tower where [`super::Student`] has it, the classifiers under `observer`. `sizes`: the
    /// number of classes of each attribute.
    pub fn load(
        vb: &VarBuilder,
        config: &VisionConfig,
        selection: Selection,
        sizes: Vec<usize>,
    ) -> Result<Self, Error> {
        let selection = Selection {
            select_feature: SelectFeature::ClsPatch,
            ..selection
        };
        let classes: usize = sizes.iter().sum();
        Ok(Self {
            tower: VisionTower::load(&vb.pp("model.vision_tower.vision_model"), config, selection)?,
            weight: vb.get((classes, config.hidden_size), "observer.weight")?,
            bias: vb.get(classes, "observer.bias")?,
            marks: (
                vb.get((MARKS, config.hidden_size), "observer.marks.weight")?,
                vb.get(MARKS, "observer.marks.bias")?,
            ),
            sizes,
            side: config.image_size,
            device: vb.device().clone(),
        })
    }

    /// Features of images: the class token, then the patches.
    ///
    /// # Shapes
    /// `n` images to `(n, 1 + patches, c)`.
    fn features(&self, observations: &[Observation]) -> Result<Tensor, Error> {
        let values: Vec<f32> = observations
            .iter()
            .flat_map(|o| o.pixels.iter().copied())
            .collect();
        let shape = (observations.len(), 3, self.side, self.side);
        Ok(self
            .tower
            .forward(&Tensor::from_vec(values, shape, &self.device)?)?)
    }

    /// Logits of all attributes' classes.
    ///
    /// # Shapes
    /// `(n, 1 + patches, c)` to `(n, Σ sizes)`.
    fn logits(&self, features: &Tensor) -> Result<Tensor, Error> {
        let first = features.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
        Ok(matmul_transposed(&first, &self.weight)?.broadcast_add(&self.bias)?)
    }

    /// The loss at the patches' marks, zero for images whose marks are not known, and its weight.
    fn mark_loss(
        &self,
        features: &Tensor,
        observations: &[Observation],
    ) -> Result<(Tensor, f64), Error> {
        let (n, places, c) = features.dims3()?;
        let patches = places - 1;
        let rest = features.narrow(1, 1, patches)?.contiguous()?;
        let rest = rest.reshape((n * patches, c))?;
        let logits = matmul_transposed(&rest, &self.marks.0)?.broadcast_add(&self.marks.1)?;
        let known = |o: &Observation| o.marks.len() == patches;
        let mark = |o: &Observation, i: usize| o.marks.get(i).map_or(0, |m| *m as u32);
        let targets: Vec<u32> = observations
            .iter()
            .flat_map(|o| (0..patches).map(move |i| mark(o, i)))
            .collect();
        let weights: Vec<f32> = observations
            .iter()
            .flat_map(|o| std::iter::repeat_n(MARK_WEIGHT * f32::from(u8::from(known(o))), patches))
            .collect();
        let weight = weights.iter().map(|w| f64::from(*w)).sum();
        Ok((cross_entropy(&logits, &targets, &weights)?, weight))
    }

    /// The summed loss over known attributes.
    pub fn loss(&self, observations: &[Observation]) -> Result<Loss, Error> {
        let features = self.features(observations)?;
        let logits = self.logits(&features)?;
        let (mut sum, mut weight) = self.mark_loss(&features, observations)?;
        let mut hits = Hits::default();
        let mut start = 0;
        for (attribute, size) in self.sizes.iter().enumerate() {
            let logits = logits.narrow(1, start, *size)?.contiguous()?;
            start += size;
            let known = |o: &Observation| o.classes.get(attribute).copied().flatten();
            let targets: Vec<u32> = observations
                .iter()
                .map(|o| known(o).unwrap_or(0) as u32)
                .collect();
            let weights: Vec<f32> = observations
                .iter()
                .map(|o| f32::from(u8::from(known(o).is_some())))
                .collect();
            let first = logits.detach().argmax(1)?.to_vec1::<u32>()?;
            for ((first, target), w) in first.iter().zip(&targets).zip(&weights) {
                let w = f64::from(*w);
                hits += Hits {
                    correct: if first == target { w } else { 0.0 },
                    total: w,
                };
                weight += w;
            }
            sum = (sum + cross_entropy(&logits, &targets, &weights)?)?;
        }
        let tokens = (observations.len() * self.tower.tokens()) as u64;
        Loss::new(sum, weight, hits, tokens)
    }

    /// The share of known attributes told right, attribute by attribute.
    pub fn accuracy(&self, observations: &[Observation]) -> Result<Vec<f64>, Error> {
        let logits = self.logits(&self.features(observations)?)?;
        let mut start = 0;
        let mut shares = Vec::with_capacity(self.sizes.len());
        for (attribute, size) in self.sizes.iter().enumerate() {
            let first = logits
                .narrow(1, start, *size)?
                .contiguous()?
                .argmax(1)?
                .to_vec1::<u32>()?;
            start += size;
            let known = observations.iter().zip(&first).filter_map(|(o, first)| {
                let class = o.classes.get(attribute).copied().flatten()?;
                Some(class == *first as usize)
            });
            let (right, all) = known.fold((0.0, 0.0), |(r, n), ok| {
                (r + f64::from(u8::from(ok)), n + 1.0)
            });
            shares.push(right / f64::max(all, 1.0));
        }
        Ok(shares)
    }
}
