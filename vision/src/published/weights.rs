//! Converts the tensors of a file to acem3's names and shapes, and checks them.

use std::collections::HashMap;

use candle::Tensor;

use super::error::WeightsError;
use super::tensor_roles::{TensorRenaming, TensorRole};
use crate::config::VisionConfig;

impl TensorRenaming {
    /// Renames the tensors of a file, and checks names and shapes against the configuration.
    ///
    /// A missing or unexpected tensor is an error. Drops tensors that patch features do not need;
    /// to avoid reading them, the caller can check [`TensorRenaming::role`] first.
    ///
    /// # Shapes
    /// As in [`VisionConfig::tensor_shapes`]. In the file, a tensor may have additional leading
    /// dimensions of 1.
    pub fn rename_tensors(
        &self,
        config: &VisionConfig,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<HashMap<String, Tensor>, WeightsError> {
        let mut expected: HashMap<String, Vec<usize>> =
            config.tensor_shapes().into_iter().collect();
        let mut renamed = HashMap::new();
        let mut in_file: Vec<(String, Tensor)> = tensors.into_iter().collect();
        // If several tensors are invalid, the error always names the same one.
        in_file.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, tensor) in in_file {
            let acem3_name = match self.role(&name) {
                TensorRole::Encoder(acem3_name) => acem3_name,
                TensorRole::Unused => continue,
                TensorRole::Unknown => return Err(WeightsError::UnexpectedTensor { name }),
            };
            let Some(shape) = expected.remove(&acem3_name) else {
                return Err(WeightsError::UnexpectedTensor { name });
            };
            let (leading, dims) =
                tensor.dims().split_at(tensor.dims().len().saturating_sub(shape.len()));
            if dims != shape || leading.iter().any(|dim| *dim != 1) {
                return Err(WeightsError::ShapeMismatch {
                    name,
                    expected: shape,
                    found: tensor.dims().to_vec(),
                });
            }
            let tensor = tensor
                .reshape(shape)
                .map_err(|error| WeightsError::Candle { name, problem: error.to_string() })?;
            renamed.insert(acem3_name, tensor);
        }
        match expected.keys().map(|name| self.name_in_file(name)).min() {
            Some(name) => Err(WeightsError::MissingTensor { name }),
            None => Ok(renamed),
        }
    }
}

#[cfg(test)]
mod tests {
    use candle::{DType, Device};

    use super::super::EncoderLayout;
    use super::*;
    use crate::config::VitVariant;
    use crate::config::tiny;

    #[test]
    fn tensor_errors_use_the_names_in_the_file() {
        let config = VisionConfig { variant: VitVariant::timm(), ..tiny() };
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        let patch_embedding = "visual.trunk.patch_embed.proj.weight";
        let renaming =
            TensorRenaming::find(EncoderLayout::OpenClipTimm, [patch_embedding]).unwrap();
        let complete: HashMap<String, Tensor> = config
            .tensor_shapes()
            .iter()
            .map(|(name, shape)| (renaming.name_in_file(name), zeros(shape)))
            .collect();
        assert!(complete.contains_key("visual.trunk.pos_embed"));
        let renamed = renaming.rename_tensors(&config, complete.clone()).unwrap();
        assert_eq!(renamed.len(), config.tensor_shapes().len());

        let error = |tensors: HashMap<_, _>| {
            renaming.rename_tensors(&config, tensors).unwrap_err().to_string()
        };
        let mut missing = complete.clone();
        missing.remove("visual.trunk.blocks.1.norm2.bias");
        assert!(error(missing).contains("`visual.trunk.blocks.1.norm2.bias` is missing"));
        let mut with_extra_block = complete.clone();
        with_extra_block.insert("visual.trunk.blocks.3.norm2.bias".into(), zeros(&[8]));
        assert!(error(with_extra_block).contains("blocks.3.norm2.bias` is unexpected"));
        let mut with_wrong_shape = complete.clone();
        with_wrong_shape.insert("visual.trunk.cls_token".into(), zeros(&[2, 1, 8]));
        assert!(error(with_wrong_shape).contains("`visual.trunk.cls_token` has shape [2, 1, 8]"));
        let mut with_batch_dimension = complete;
        with_batch_dimension.insert("visual.trunk.pos_embed".into(), zeros(&[1, 5, 8]));
        with_batch_dimension.insert("text.proj.0.weight".into(), zeros(&[3]));
        assert!(renaming.rename_tensors(&config, with_batch_dimension).is_ok());
    }
}
