//! One layer of BERT or BART: each part is added to its input and normalised after.

use acem3_vision::HiddenAct;
use acem3_vision::ops::{LayerNorm, activate};
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::Linear;
use super::attention::Attention;

/// The sizes of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Width of the states.
    pub(super) hidden: usize,
    /// Width inside the MLP.
    pub(super) inner: usize,
    /// Heads of the attention.
    pub(super) heads: usize,
    /// What is added to variances.
    pub(super) eps: f64,
    /// The activation inside the MLP.
    pub(super) act: HiddenAct,
}

/// How a family calls the parts of a layer.
pub(super) struct Names {
    attention: [&'static str; 4],
    attention_norm: &'static str,
    /// Of the attention to the encoder, in decoders.
    cross: Option<([&'static str; 4], &'static str)>,
    up: &'static str,
    down: &'static str,
    norm: &'static str,
}

/// BERT's and `RoBERTa`'s names.
pub(super) const BERT: Names = Names {
    attention: [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
    ],
    attention_norm: "attention.output.LayerNorm",
    cross: None,
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// The names in BART's encoder.
pub(super) const BART_ENCODER: Names = Names {
    attention: [
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.out_proj",
    ],
    attention_norm: "self_attn_layer_norm",
    cross: None,
    up: "fc1",
    down: "fc2",
    norm: "final_layer_norm",
};

/// The names in BART's decoder.
pub(super) const BART_DECODER: Names = Names {
    cross: Some((
        [
            "encoder_attn.q_proj",
            "encoder_attn.k_proj",
            "encoder_attn.v_proj",
            "encoder_attn.out_proj",
        ],
        "encoder_attn_layer_norm",
    )),
    ..BART_ENCODER
};

/// A layer.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    attention: Attention,
    attention_norm: LayerNorm,
    cross: Option<(Attention, LayerNorm)>,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
    act: HiddenAct,
}

impl Layer {
    /// Loads a layer.
    pub(super) fn load(vb: &VarBuilder, names: &Names, sizes: Sizes) -> Result<Self> {
        let Sizes {
            hidden,
            inner,
            heads,
            eps,
            act,
        } = sizes;
        let norm = |name| LayerNorm::load(&vb.pp(name), hidden, eps);
        let attention = |names| Attention::load(vb, names, hidden, heads);
        let cross = match names.cross {
            Some((names, after)) => Some((attention(names)?, norm(after)?)),
            None => None,
        };
        Ok(Self {
            attention: attention(names.attention)?,
            attention_norm: norm(names.attention_norm)?,
            cross,
            up: Linear::load(&vb.pp(names.up), hidden, inner)?,
            down: Linear::load(&vb.pp(names.down), inner, hidden)?,
            norm: norm(names.norm)?,
            act,
        })
    }

    /// Runs an encoder's layer.
    ///
    /// # Shapes
    /// (b, t, c) → (b, t, c).
    pub(super) fn encode(&self, x: &Tensor) -> Result<Tensor> {
        let seen = self.attention.forward(x, x, None)?;
        self.finish(&self.attention_norm.forward(&(x + seen)?)?)
    }

    /// Runs a decoder's layer: every place sees itself and those before it, and all of `memory`.
    ///
    /// # Shapes
    /// `x` (b, t, c), `hidden` (t, t), `memory` (b, s, c) → (b, t, c).
    pub(super) fn decode(&self, x: &Tensor, hidden: &Tensor, memory: &Tensor) -> Result<Tensor> {
        let seen = self.attention.forward(x, x, Some(hidden))?;
        let mut x = self.attention_norm.forward(&(x + seen)?)?;
        if let Some((cross, norm)) = &self.cross {
            x = norm.forward(&(&x + cross.forward(&x, memory, None)?)?)?;
        }
        self.finish(&x)
    }

    fn finish(&self, x: &Tensor) -> Result<Tensor> {
        let inner = activate(&self.up.forward(x)?, self.act)?;
        self.norm.forward(&(x + self.down.forward(&inner)?)?)
    }
}
