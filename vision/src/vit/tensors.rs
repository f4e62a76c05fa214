//! Names and shapes of the tensors of a configuration, to check a file before it is loaded.

use crate::config::VisionConfig;

impl VisionConfig {
    /// Returns name and shape of every tensor that [`Vit::load`](crate::Vit::load) requires. The
    /// norm after the last block is included if
    /// [`VitVariant::post_norm`](crate::config::VitVariant::post_norm) is true.
    pub fn tensor_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (c, inner, side) = (self.hidden_size, self.intermediate_size, self.patch_size);
        let variant = &self.variant;
        let mut tensors = Vec::new();
        let mut add = |name: String, shape: &[usize]| tensors.push((name, shape.to_vec()));
        if variant.class_token {
            add("embeddings.class_embedding".into(), &[c]);
        }
        let patch = "embeddings.patch_embedding";
        add(format!("{patch}.weight"), &[c, self.num_channels, side, side]);
        if variant.patch_bias {
            add(format!("{patch}.bias"), &[c]);
        }
        let position = [self.position_count(), c];
        add("embeddings.position_embedding.weight".into(), &position);
        let mut add_with_bias = |name: String, input: Option<usize>, output: usize| {
            let weight: Vec<usize> = [output].into_iter().chain(input).collect();
            add(format!("{name}.weight"), &weight);
            add(format!("{name}.bias"), &[output]);
        };
        if variant.pre_norm {
            add_with_bias("pre_layrnorm".into(), None, c);
        }
        let projections: &[(&str, usize)] = if variant.fused_qkv {
            &[("qkv_proj", 3), ("out_proj", 1)]
        } else {
            &[("q_proj", 1), ("k_proj", 1), ("v_proj", 1), ("out_proj", 1)]
        };
        for i in 0..self.num_hidden_layers {
            let block = format!("encoder.layers.{i}");
            add_with_bias(format!("{block}.layer_norm1"), None, c);
            for (name, outputs) in projections {
                add_with_bias(format!("{block}.self_attn.{name}"), Some(c), outputs * c);
            }
            add_with_bias(format!("{block}.layer_norm2"), None, c);
            add_with_bias(format!("{block}.mlp.fc1"), Some(c), inner);
            add_with_bias(format!("{block}.mlp.fc2"), Some(inner), c);
        }
        if variant.post_norm {
            add_with_bias("post_layernorm".into(), None, c);
        }
        if variant.layer_scale {
            for i in 0..self.num_hidden_layers {
                for scale in ["layer_scale1", "layer_scale2"] {
                    add(format!("encoder.layers.{i}.{scale}"), &[c]);
                }
            }
        }
        tensors
    }

    /// Returns the number of weights.
    pub fn parameter_count(&self) -> usize {
        let counts = self.tensor_shapes().into_iter().map(|(_, shape)| {
            let dims = shape.into_iter();
            dims.fold(1usize, usize::saturating_mul)
        });
        counts.fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use candle::{DType, Device};
    use candle_nn::{VarBuilder, VarMap};

    use crate::config::tiny;
    use crate::config::{VisionConfig, VitVariant};
    use crate::vit::Vit;

    #[test]
    fn tensor_shapes_equal_those_that_loading_requires() {
        let interpolated = VitVariant { position_grid: Some(5), ..VitVariant::dinov2() };
        let variants = [
            VitVariant::default(),
            VitVariant::clip(),
            VitVariant::siglip(),
            VitVariant::timm(),
            VitVariant { fused_qkv: true, ..VitVariant::intern_vit() },
            interpolated,
        ];
        for variant in variants {
            let map = VarMap::new();
            let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
            let config = VisionConfig { variant, ..tiny() };
            Vit::load(&vb, &config).unwrap();
            let requested: BTreeMap<_, _> = map
                .data()
                .lock()
                .unwrap()
                .iter()
                .map(|(name, var)| (name.clone(), var.dims().to_vec()))
                .collect();
            assert_eq!(requested, config.tensor_shapes().into_iter().collect());
            let count: usize = requested.values().map(|dims| dims.iter().product::<usize>()).sum();
            assert_eq!(config.parameter_count(), count);
        }
    }
}
