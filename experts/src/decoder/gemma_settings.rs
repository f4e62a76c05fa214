//! Settings of a Gemma 3 decoder that other decoders do not have.

use serde::{Deserialize, Serialize};

/// Settings of a Gemma 3 decoder (transformers' `configuration_gemma3.py`).
///
/// A decoder with these settings computes like `modeling_gemma3.py`: embeddings are multiplied by
/// `sqrt(c)`, norms multiply by `1 + weight`, each head of queries and keys is normalised, the outputs
/// of attention and MLP are normalised too, the MLP has the tanh approximation of GELU, and the tokens
/// of an image attend to all tokens of that image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GemmaSettings {
    /// Layers that attend to all earlier tokens, in order. The others have the sliding window.
    pub full_attention_layers: Vec<usize>,
    /// Base of the rotary angles in layers with the sliding window. They have no rotary scaling.
    pub rope_local_base_freq: f64,
    /// Attention scores are divided by the square root of this number.
    pub query_pre_attn_scalar: f64,
}

impl GemmaSettings {
    /// Returns true if a layer has the sliding window.
    pub(super) fn is_sliding(&self, layer: usize) -> bool {
        !self.full_attention_layers.contains(&layer)
    }

    /// Returns an error if a value is invalid. `max_theta`: largest base of rotary angles.
    pub(super) fn validate(&self, max_theta: f64) -> Result<(), String> {
        let (theta, scalar) = (self.rope_local_base_freq, self.query_pre_attn_scalar);
        if !(1.0..=max_theta).contains(&theta) {
            return Err(format!(
                "rope_local_base_freq is {theta}, expected a number from 1 to {max_theta}"
            ));
        }
        if !(scalar > 0.0 && scalar.is_finite()) {
            return Err(format!("query_pre_attn_scalar is {scalar}, expected a positive number"));
        }
        Ok(())
    }
}
