//! The vision tower in training, alone: attributes of an image told from its class token.

use std::sync::Arc;

use acem3_vision::{SelectFeature, Selection, VisionConfig, VisionTower};
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::trainer::Loss;
use crate::Error;
use crate::ops::cross_entropy;

/// One image and the class of each attribute, where it is known.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Pixel values, `3·s·s`.
    pub pixels: Arc<[f32]>,
    /// One entry for each attribute.
    pub classes: Vec<Option<usize>>,
}

/// A vision tower with a linear classifier for each attribute on its first token.
pub struct Observer {
    tower: VisionTower,
    weight: Tensor,
    bias: Tensor,
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
            sizes,
            side: config.image_size,
            device: vb.device().clone(),
        })
    }

    /// Logits of all attributes' classes.
    ///
    /// # Shapes
    /// `n` images to `(n, Σ sizes)`.
    fn logits(&self, observations: &[Observation]) -> Result<Tensor, Error> {
        let values: Vec<f32> = observations
            .iter()
            .flat_map(|o| o.pixels.iter().copied())
            .collect();
        let shape = (observations.len(), 3, self.side, self.side);
        let features = self
            .tower
            .forward(&Tensor::from_vec(values, shape, &self.device)?)?;
        let first = features.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
        Ok(first.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)?)
    }

    /// The summed loss over known attributes.
    pub fn loss(&self, observations: &[Observation]) -> Result<Loss, Error> {
        let logits = self.logits(observations)?;
        let mut sum: Option<Tensor> = None;
        let (mut weight, mut hits) = (0.0, (0.0, 0.0));
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
                hits = (hits.0 + if first == target { w } else { 0.0 }, hits.1 + w);
                weight += w;
            }
            let loss = cross_entropy(&logits, &targets, &weights)?;
            sum = Some(match sum {
                Some(sum) => (sum + loss)?,
                None => loss,
            });
        }
        let sum = sum.ok_or_else(|| Error::Training("no attribute to learn".to_owned()))?;
        let tokens = (observations.len() * self.tower.tokens()) as u64;
        Ok(Loss {
            sum,
            weight,
            hits,
            tokens,
        })
    }

    /// The share of known attributes told right, attribute by attribute.
    pub fn accuracy(&self, observations: &[Observation]) -> Result<Vec<f64>, Error> {
        let logits = self.logits(observations)?;
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
