//! Configuration of a Llama-family decoder, with the names of its `config.json`.

use serde::{Deserialize, Serialize};

use super::gemma_settings::GemmaSettings;
use super::rope_scaling::RopeScaling;

/// Configuration of a Llama, Vicuna, Mistral, Qwen2 or Gemma 3 decoder.
///
/// The fields follow transformers' `configuration_llama.py`, `configuration_mistral.py`,
/// `configuration_qwen2.py` and `configuration_gemma3.py`. An unknown field is an error, because it could change the computation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecoderConfig {
    /// Vocabulary size (`v`).
    pub vocab_size: usize,
    /// Hidden size (`c`).
    pub hidden_size: usize,
    /// Inner size of the feed-forward block.
    pub intermediate_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Number of query heads (`h`).
    pub num_attention_heads: usize,
    /// Number of key and value heads (`h_kv`). Default: `num_attention_heads`.
    #[serde(default)]
    pub num_key_value_heads: Option<usize>,
    /// Size of a head (`d`). Default: `hidden_size / num_attention_heads`.
    #[serde(default)]
    pub head_dim: Option<usize>,
    /// Context length, in tokens.
    pub max_position_embeddings: usize,
    /// Epsilon of the RMS norm, added to the mean square.
    pub rms_norm_eps: f64,
    /// Base of the rotary angles.
    #[serde(default = "default_theta")]
    pub rope_theta: f64,
    /// True if the output layer uses the embedding matrix.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// True if queries, keys and values have a bias (Qwen2, and Llama with `attention_bias`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub attention_bias: bool,
    /// True if the attention output has a bias (Llama with `attention_bias`, not Qwen2).
    #[serde(default, skip_serializing_if = "is_false")]
    pub output_bias: bool,
    /// Scaling of the rotary angles for a longer context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<RopeScaling>,
    /// Number of tokens that a token attends to, including itself. Default: all earlier tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sliding_window: Option<usize>,
    /// Number of lower layers that ignore `sliding_window` (Qwen2).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_window_layers: usize,
    /// Settings that only Gemma 3 has; `None` for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gemma: Option<GemmaSettings>,
}

/// Limit on the context length, and so on the size of the rotary tables.
const MAX_CONTEXT: usize = 1 << 20;
/// Limit on the number of values of a rotary table, 268 MB: a context of 1,048,576 tokens with heads
/// of size 128.
const MAX_TABLE_SIZE: usize = MAX_CONTEXT * 64;
/// Limit on the head size, and so on the size of the rotary tables. Known models use up to 256.
const MAX_HEAD_SIZE: usize = 4096;

/// Limit on all other sizes.
const MAX_SIZE: usize = 1 << 24;
/// Limit on the base of the rotary angles. Known models use up to 10⁸.
const MAX_ROPE_THETA: f64 = 1e12;

fn default_theta() -> f64 {
    10_000.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl DecoderConfig {
    /// Returns the number of key and value heads (`h_kv`).
    pub fn kv_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    /// Returns the size of a head (`d`).
    pub fn head_size(&self) -> usize {
        self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads.max(1))
    }

    /// Returns the number of tokens that a token of a layer attends to, including itself. `None`:
    /// all earlier tokens.
    pub fn window(&self, layer: usize) -> Option<usize> {
        let is_sliding = match &self.gemma {
            Some(gemma) => gemma.is_sliding(layer),
            None => layer >= self.max_window_layers,
        };
        self.sliding_window.filter(|_| is_sliding)
    }

    /// Returns true if the tokens of an image attend to all tokens of that image, also to later ones
    /// (Gemma 3).
    pub fn has_bidirectional_images(&self) -> bool {
        self.gemma.is_some()
    }

    /// Returns the factor of the attention scores.
    pub(super) fn attention_scale(&self) -> f32 {
        let size = match &self.gemma {
            Some(gemma) => gemma.query_pre_attn_scalar,
            None => self.head_size() as f64,
        };
        (1.0 / size.sqrt()) as f32
    }

    /// Returns an error if a value is invalid.
    pub fn validate(&self) -> Result<(), String> {
        let (h, h_kv, d) = (self.num_attention_heads, self.kv_heads(), self.head_size());
        if h == 0 || h_kv == 0 || h % h_kv != 0 {
            return Err(format!(
                "num_attention_heads is {h}, expected a multiple of num_key_value_heads, {h_kv}"
            ));
        }
        if d == 0 || d % 2 != 0 || d > MAX_HEAD_SIZE {
            return Err(format!("head size {d}, expected an even size of at most {MAX_HEAD_SIZE}"));
        }
        if self.vocab_size == 0 || self.num_hidden_layers == 0 || self.max_position_embeddings == 0
        {
            return Err(
                "vocab_size, num_hidden_layers and max_position_embeddings must be positive"
                    .to_owned(),
            );
        }
        if self.max_position_embeddings > MAX_CONTEXT {
            return Err(format!(
                "max_position_embeddings is {}, expected at most {MAX_CONTEXT}",
                self.max_position_embeddings
            ));
        }
        if self.max_position_embeddings * (d / 2) > MAX_TABLE_SIZE {
            return Err(format!(
                "max_position_embeddings is {}, expected at most {} for heads of size {d}",
                self.max_position_embeddings,
                MAX_TABLE_SIZE / (d / 2)
            ));
        }
        let (eps, theta) = (self.rms_norm_eps, self.rope_theta);
        if !(eps > 0.0 && eps <= 1.0) {
            return Err(format!("rms_norm_eps is {eps}, expected a number above 0 and at most 1"));
        }
        if !(1.0..=MAX_ROPE_THETA).contains(&theta) {
            return Err(format!(
                "rope_theta is {theta}, expected a number from 1 to {MAX_ROPE_THETA}"
            ));
        }
        // Within these bounds, products of sizes do not overflow.
        for (field, size) in [
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("vocab_size", self.vocab_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", h),
        ] {
            if !(1..=MAX_SIZE).contains(&size) {
                return Err(format!("{field} is {size}, expected 1 to {MAX_SIZE}"));
            }
        }
        if self.sliding_window == Some(0) {
            return Err("sliding_window is 0, expected at least 1".to_owned());
        }
        if let Some(gemma) = &self.gemma {
            gemma.validate(MAX_ROPE_THETA)?;
        }
        match &self.rope_scaling {
            Some(scaling) => scaling.validate(d),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotary_tables_are_limited() {
        let validate = |head_dim: usize, context: usize| {
            let config: DecoderConfig = serde_json::from_value(serde_json::json!({
                "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
                "num_attention_heads": 1, "head_dim": head_dim,
                "max_position_embeddings": context, "rms_norm_eps": 1e-5,
            }))
            .unwrap();
            config.validate()
        };
        assert_eq!(validate(128, 1 << 20), Ok(()));
        assert_eq!(validate(4096, 1 << 15), Ok(()));
        let error = validate(4096, 1 << 20).unwrap_err();
        assert!(error.contains("expected at most 32768 for heads of size 4096"), "{error}");
    }
}
