//! Training of the vision tower alone: linear classifiers predict attributes of an image from its
//! class token, and the class of each patch from its patch token.

use std::sync::Arc;

use acem3_kernels::{cross_entropy, matmul_transposed};
use acem3_vision::{SelectFeature, Selection, VisionConfig, VisionTower};
use candle::{Device, Tensor};
use candle_nn::VarBuilder;

use super::loss::{Hits, ShardLoss};
use crate::Error;

/// An image with the known classes of its attributes and patches.
#[derive(Clone, Debug)]
pub struct AttributeExample {
    /// Pixel values, `3·s·s`.
    pub pixels: Arc<[f32]>,
    /// Class of each attribute. `None` if unknown.
    pub classes: Vec<Option<usize>>,
    /// Class of each patch in row-major order. Empty if unknown.
    pub patch_classes: Vec<usize>,
}

/// Number of patch classes: background, part of a lesion, centre of a lesion.
pub const PATCH_CLASSES: usize = 3;
/// Weight of the loss of a patch. The loss of an attribute has weight 1.
const PATCH_LOSS_WEIGHT: f32 = 0.1;

/// A vision tower with linear classifiers of attributes (on the class token) and of patch classes
/// (on the patch tokens).
pub struct AttributeClassifier {
    tower: VisionTower,
    attribute_head: (Tensor, Tensor),
    patch_head: (Tensor, Tensor),
    class_counts: Vec<usize>,
    image_size: usize,
    device: Device,
}

impl AttributeClassifier {
    /// Loads the tower from the same tensor names as [`super::TrainableModel`], and the classifiers
    /// from the tensors `observer.*`. `class_counts`: number of classes of each attribute.
    pub fn load(
        vb: &VarBuilder,
        config: &VisionConfig,
        selection: Selection,
        class_counts: Vec<usize>,
    ) -> Result<Self, Error> {
        // The class token is the input of the attribute classifiers.
        let selection = Selection { select_feature: SelectFeature::ClsPatch, ..selection };
        let classes: usize = class_counts.iter().sum();
        Ok(Self {
            tower: VisionTower::load(&vb.pp("model.vision_tower.vision_model"), config, selection)?,
            attribute_head: (
                vb.get((classes, config.hidden_size), "observer.weight")?,
                vb.get(classes, "observer.bias")?,
            ),
            patch_head: (
                vb.get((PATCH_CLASSES, config.hidden_size), "observer.marks.weight")?,
                vb.get(PATCH_CLASSES, "observer.marks.bias")?,
            ),
            class_counts,
            image_size: config.image_size,
            device: vb.device().clone(),
        })
    }

    /// Computes the features of images: the class token, then the patch tokens.
    ///
    /// # Shapes
    /// `n` images to `(n, 1 + patches, c)`.
    fn features(&self, examples: &[AttributeExample]) -> Result<Tensor, Error> {
        let values: Vec<f32> =
            examples.iter().flat_map(|example| example.pixels.iter().copied()).collect();
        let shape = (examples.len(), 3, self.image_size, self.image_size);
        Ok(self.tower.forward(&Tensor::from_vec(values, shape, &self.device)?)?)
    }

    /// Computes the logits of the classes of all attributes.
    ///
    /// # Shapes
    /// `(n, 1 + patches, c)` to `(n, Σ class_counts)`.
    fn logits(&self, features: &Tensor) -> Result<Tensor, Error> {
        let (weight, bias) = &self.attribute_head;
        let class_tokens = features.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
        Ok(matmul_transposed(&class_tokens, weight)?.broadcast_add(bias)?)
    }

    /// Computes the loss of the patch classes and the sum of its weights. Images without patch
    /// classes have weight zero.
    fn patch_loss(
        &self,
        features: &Tensor,
        examples: &[AttributeExample],
    ) -> Result<(Tensor, f64), Error> {
        let (n, tokens, c) = features.dims3()?;
        let patches = tokens - 1;
        let patch_tokens = features.narrow(1, 1, patches)?.contiguous()?;
        let patch_tokens = patch_tokens.reshape((n * patches, c))?;
        let (weight, bias) = &self.patch_head;
        let logits = matmul_transposed(&patch_tokens, weight)?.broadcast_add(bias)?;
        let has_classes = |example: &AttributeExample| example.patch_classes.len() == patches;
        let patch_class = |example: &AttributeExample, i: usize| {
            let class = example.patch_classes.get(i);
            class.map_or(0, |class| *class as u32)
        };
        let targets: Vec<u32> = examples
            .iter()
            .flat_map(|example| (0..patches).map(move |i| patch_class(example, i)))
            .collect();
        let weights: Vec<f32> = examples
            .iter()
            .flat_map(|example| {
                let weight = PATCH_LOSS_WEIGHT * f32::from(u8::from(has_classes(example)));
                std::iter::repeat_n(weight, patches)
            })
            .collect();
        let weight_sum = weights.iter().map(|w| f64::from(*w)).sum();
        Ok((cross_entropy(&logits, &targets, &weights)?, weight_sum))
    }

    /// Computes the summed loss of the known attributes and patch classes.
    pub fn loss(&self, examples: &[AttributeExample]) -> Result<ShardLoss, Error> {
        let features = self.features(examples)?;
        let logits = self.logits(&features)?;
        let (mut loss_sum, mut weight_sum) = self.patch_loss(&features, examples)?;
        let mut hits = Hits::default();
        let mut start = 0;
        for (attribute, size) in self.class_counts.iter().enumerate() {
            let logits = logits.narrow(1, start, *size)?.contiguous()?;
            start += size;
            let known_class =
                |example: &AttributeExample| example.classes.get(attribute).copied().flatten();
            let targets: Vec<u32> =
                examples.iter().map(|example| known_class(example).unwrap_or(0) as u32).collect();
            let weights: Vec<f32> = examples
                .iter()
                .map(|example| f32::from(u8::from(known_class(example).is_some())))
                .collect();
            let predictions = logits.detach().argmax(1)?.to_vec1::<u32>()?;
            for ((prediction, target), weight) in predictions.iter().zip(&targets).zip(&weights) {
                let weight = f64::from(*weight);
                hits += Hits {
                    correct: if prediction == target { weight } else { 0.0 },
                    total: weight,
                };
                weight_sum += weight;
            }
            loss_sum = (loss_sum + cross_entropy(&logits, &targets, &weights)?)?;
        }
        let tokens = (examples.len() * self.tower.token_count()) as u64;
        ShardLoss::new(loss_sum, weight_sum, hits, tokens)
    }

    /// Returns the accuracy of each attribute over the examples in which it is known; `None` if
    /// there are none.
    pub fn accuracy(&self, examples: &[AttributeExample]) -> Result<Vec<Option<f64>>, Error> {
        let logits = self.logits(&self.features(examples)?)?;
        let mut start = 0;
        let mut accuracies = Vec::with_capacity(self.class_counts.len());
        for (attribute, size) in self.class_counts.iter().enumerate() {
            let predictions =
                logits.narrow(1, start, *size)?.contiguous()?.argmax(1)?.to_vec1::<u32>()?;
            start += size;
            let known = examples.iter().zip(&predictions);
            let known = known.filter_map(|(example, prediction)| {
                let class = example.classes.get(attribute).copied().flatten()?;
                Some(class == *prediction as usize)
            });
            let (correct, total) = known.fold((0.0, 0.0), |(correct, total), is_correct| {
                (correct + f64::from(u8::from(is_correct)), total + 1.0)
            });
            accuracies.push((total > 0.0).then_some(correct / total));
        }
        Ok(accuracies)
    }
}
