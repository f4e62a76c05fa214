//! Converts the tensors of a file to acem3's names and shapes, and checks them.

use std::collections::HashMap;

use candle::Tensor;

use super::error::WeightsError;
use super::names::{Place, Renaming};
use crate::config::VisionConfig;

impl Renaming {
    /// Renames the tensors of a file and checks that they are those that the configuration asks for, no
    /// fewer and no more. Parts that patch features do not need are dropped; whoever reads the file can
    /// leave them unread with [`Renaming::place`].
    ///
    /// # Shapes
    /// As in [`VisionConfig::tensors`]; in the file a token may have dimensions of 1 before its own.
    pub fn weights(
        &self,
        config: &VisionConfig,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<HashMap<String, Tensor>, WeightsError> {
        let mut expected: HashMap<String, Vec<usize>> = config.tensors().into_iter().collect();
        let mut renamed = HashMap::new();
        let mut stored: Vec<(String, Tensor)> = tensors.into_iter().collect();
        // Deterministic: the same tensor is reported if several are invalid.
        stored.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, tensor) in stored {
            let ours = match self.place(&name) {
                Place::Encoder(ours) => ours,
                Place::Unused => continue,
                Place::Unknown => return Err(WeightsError::Surplus { name }),
            };
            let Some(shape) = expected.remove(&ours) else {
                return Err(WeightsError::Surplus { name });
            };
            let (ones, rest) = tensor
                .dims()
                .split_at(tensor.dims().len().saturating_sub(shape.len()));
            if rest != shape || ones.iter().any(|dim| *dim != 1) {
                return Err(WeightsError::Shape {
                    name,
                    expected: shape,
                    got: tensor.dims().to_vec(),
                });
            }
            let tensor = tensor
                .reshape(shape)
                .map_err(|error| WeightsError::Tensor {
                    name,
                    what: error.to_string(),
                })?;
            renamed.insert(ours, tensor);
        }
        match expected.keys().map(|ours| self.stored(ours)).min() {
            Some(name) => Err(WeightsError::MissingTensor { name }),
            None => Ok(renamed),
        }
    }
}

#[cfg(test)]
mod tests {
    use candle::{DType, Device};

    use super::super::Layout;
    use super::*;
    use crate::config::Form;
    use crate::config::tiny;

    #[test]
    fn invalid_tensors_are_named_as_in_the_file() {
        let config = VisionConfig {
            form: Form::timm(),
            ..tiny()
        };
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        let anchor = "visual.trunk.patch_embed.proj.weight";
        let renaming = Renaming::find(Layout::OpenClipTimm, [anchor]).unwrap();
        let whole: HashMap<String, Tensor> = config
            .tensors()
            .iter()
            .map(|(name, shape)| (renaming.stored(name), zeros(shape)))
            .collect();
        assert!(whole.contains_key("visual.trunk.pos_embed"));
        let renamed = renaming.weights(&config, whole.clone()).unwrap();
        assert_eq!(renamed.len(), config.tensors().len());

        let error =
            |tensors: HashMap<_, _>| renaming.weights(&config, tensors).unwrap_err().to_string();
        let mut missing = whole.clone();
        missing.remove("visual.trunk.blocks.1.norm2.bias");
        assert!(error(missing).contains("`visual.trunk.blocks.1.norm2.bias` is missing"));
        let mut surplus = whole.clone();
        surplus.insert("visual.trunk.blocks.3.norm2.bias".into(), zeros(&[8]));
        assert!(error(surplus).contains("blocks.3.norm2.bias` is unexpected"));
        let mut wrong = whole.clone();
        wrong.insert("visual.trunk.cls_token".into(), zeros(&[2, 1, 8]));
        assert!(error(wrong).contains("`visual.trunk.cls_token` has shape [2, 1, 8]"));
        let mut batched = whole;
        batched.insert("visual.trunk.pos_embed".into(), zeros(&[1, 5, 8]));
        batched.insert("text.proj.0.weight".into(), zeros(&[3]));
        assert!(renaming.weights(&config, batched).is_ok());
    }
}
