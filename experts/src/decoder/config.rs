//! The shape of a Llama-family decoder, by the names of its `config.json`.

use serde::{Deserialize, Serialize};

use super::rope_scaling::RopeScaling;

/// Llama, Vicuna, Mistral, Qwen2 and the like differ only in these numbers (transformers'
/// `configuration_llama.py`, `configuration_mistral.py`, `configuration_qwen2.py`). A field that is
/// not listed is an error: it might change what is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecoderConfig {
    /// Tokens in the vocabulary (`v`).
    pub vocab_size: usize,
    /// Hidden size (`c`).
    pub hidden_size: usize,
    /// Inner size of the feed-forward block.
    pub intermediate_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Query heads (`h`).
    pub num_attention_heads: usize,
    /// Key and value heads (`h_kv`); as many as query heads where absent.
    #[serde(default)]
    pub num_key_value_heads: Option<usize>,
    /// Size of a head (`d`); `hidden_size / num_attention_heads` where absent.
    #[serde(default)]
    pub head_dim: Option<usize>,
    /// Longest sequence.
    pub max_position_embeddings: usize,
    /// Added to the mean square before the root.
    pub rms_norm_eps: f64,
    /// Base of the rotary angles.
    #[serde(default = "default_theta")]
    pub rope_theta: f64,
    /// Whether the output layer is the embedding matrix.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Whether queries, keys and values add a bias (Qwen2, and Llama with `attention_bias`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub attention_bias: bool,
    /// Whether the attention's output adds a bias (Llama with `attention_bias`, not Qwen2).
    #[serde(default, skip_serializing_if = "is_false")]
    pub output_bias: bool,
    /// How the rotary angles are stretched to a longer context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<RopeScaling>,
    /// How many tokens a token sees, itself included; all before it where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sliding_window: Option<usize>,
    /// Lower layers that see everything all the same (Qwen2's `max_window_layers`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_window_layers: usize,
}

/// Longest context of which tables are made; the longest known models stay below it.
const LONGEST: usize = 1 << 20;
/// Widest head, of which tables are made; known models stay at 256.
const WIDEST: usize = 4096;

fn default_theta() -> f64 {
    10_000.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl DecoderConfig {
    /// Key and value heads (`h_kv`).
    pub fn kv_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    /// Size of a head (`d`).
    pub fn head_size(&self) -> usize {
        self.head_dim
            .unwrap_or(self.hidden_size / self.num_attention_heads.max(1))
    }

    /// How many tokens a token of this layer sees, itself included; `None` for all before it.
    pub fn window(&self, layer: usize) -> Option<usize> {
        self.sliding_window
            .filter(|_| layer >= self.max_window_layers)
    }

    /// What is wrong with these numbers, if anything is.
    pub fn check(&self) -> Result<(), String> {
        let (h, h_kv, d) = (self.num_attention_heads, self.kv_heads(), self.head_size());
        if h == 0 || h_kv == 0 || h % h_kv != 0 {
            return Err(format!(
                "num_attention_heads {h} is not a multiple of num_key_value_heads {h_kv}"
            ));
        }
        if d == 0 || d % 2 != 0 || d > WIDEST {
            return Err(format!("head size {d} is not even and at most {WIDEST}"));
        }
        if self.vocab_size == 0 || self.num_hidden_layers == 0 || self.max_position_embeddings == 0
        {
            return Err(
                "vocab_size, num_hidden_layers and max_position_embeddings must be positive"
                    .to_owned(),
            );
        }
        if self.max_position_embeddings > LONGEST {
            return Err(format!(
                "max_position_embeddings is {}, more than {LONGEST}",
                self.max_position_embeddings
            ));
        }
        if !(self.rms_norm_eps > 0.0 && self.rope_theta > 0.0 && self.rope_theta.is_finite()) {
            return Err("rms_norm_eps and rope_theta must be positive".to_owned());
        }
        if self.sliding_window == Some(0) {
            return Err("sliding_window is 0, a token sees at least itself".to_owned());
        }
        match &self.rope_scaling {
            Some(scaling) => scaling.check(d),
            None => Ok(()),
        }
    }
}
