//! The tensors that a configuration asks for, so that a file can be checked before anything is computed.

use crate::config::VisionConfig;

impl VisionConfig {
    /// Name and shape of every tensor of the encoder, in the names that [`Vit::load`](crate::Vit::load) takes.
    /// The norm after the last block is among them where [`Form::post_norm`](crate::config::Form) asks for it.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (c, inner, side) = (self.hidden_size, self.intermediate_size, self.patch_size);
        let form = &self.form;
        let mut all = Vec::new();
        let mut add = |name: String, shape: &[usize]| all.push((name, shape.to_vec()));
        if form.class_token {
            add("embeddings.class_embedding".into(), &[c]);
        }
        let patch = "embeddings.patch_embedding";
        add(
            format!("{patch}.weight"),
            &[c, self.num_channels, side, side],
        );
        if form.patch_bias {
            add(format!("{patch}.bias"), &[c]);
        }
        let position = [self.positions(), c];
        add("embeddings.position_embedding.weight".into(), &position);
        let mut linear = |name: String, input: Option<usize>, output: usize| {
            let weight: Vec<usize> = [output].into_iter().chain(input).collect();
            add(format!("{name}.weight"), &weight);
            add(format!("{name}.bias"), &[output]);
        };
        if form.pre_norm {
            linear("pre_layrnorm".into(), None, c);
        }
        let projections: &[(&str, usize)] = if form.fused_qkv {
            &[("qkv_proj", 3), ("out_proj", 1)]
        } else {
            &[("q_proj", 1), ("k_proj", 1), ("v_proj", 1), ("out_proj", 1)]
        };
        for i in 0..self.num_hidden_layers {
            let block = format!("encoder.layers.{i}");
            linear(format!("{block}.layer_norm1"), None, c);
            for (name, times) in projections {
                linear(format!("{block}.self_attn.{name}"), Some(c), times * c);
            }
            linear(format!("{block}.layer_norm2"), None, c);
            linear(format!("{block}.mlp.fc1"), Some(c), inner);
            linear(format!("{block}.mlp.fc2"), Some(inner), c);
        }
        if form.post_norm {
            linear("post_layernorm".into(), None, c);
        }
        if form.layer_scale {
            for i in 0..self.num_hidden_layers {
                for scale in ["layer_scale1", "layer_scale2"] {
                    add(format!("encoder.layers.{i}.{scale}"), &[c]);
                }
            }
        }
        all
    }

    /// Number of weights.
    pub fn parameters(&self) -> usize {
        let counts = self.tensors().into_iter().map(|(_, shape)| {
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
    use crate::config::{Form, VisionConfig};
    use crate::vit::Vit;

    #[test]
    fn they_are_those_that_loading_asks_for() {
        let interpolated = Form {
            position_grid: Some(5),
            ..Form::dinov2()
        };
        let forms = [
            Form::default(),
            Form::clip(),
            Form::siglip(),
            Form::timm(),
            interpolated,
        ];
        for form in forms {
            let map = VarMap::new();
            let vb = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
            let config = VisionConfig { form, ..tiny() };
            Vit::load(&vb, &config).unwrap();
            let asked: BTreeMap<_, _> = map
                .data()
                .lock()
                .unwrap()
                .iter()
                .map(|(name, var)| (name.clone(), var.dims().to_vec()))
                .collect();
            assert_eq!(asked, config.tensors().into_iter().collect());
            let count: usize = asked
                .values()
                .map(|dims| dims.iter().product::<usize>())
                .sum();
            assert_eq!(config.parameters(), count);
        }
    }
}
