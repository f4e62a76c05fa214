//! Activation recomputation (Chen et al., 2016, "Training deep nets with sublinear memory cost").
//!
//! A backward pass needs the activations of the forward pass. The tape stores only the input of
//! each layer. The backward pass runs one layer at a time again and passes the gradient of its
//! input to the layer below.

use candle::backprop::GradStore;
use candle::{Result, Tensor, Var};

use crate::decoder::{BatchLayout, DecoderLayer};

/// A forward pass through layers with the input of each layer.
pub struct RecomputeTape {
    layout: BatchLayout,
    /// Input of the lowest layer, with its graph.
    input: Tensor,
    /// Layers that are trainable or above a trainable variable, with their inputs.
    layers: Vec<(DecoderLayer, Tensor)>,
    /// Output of the highest layer, as a leaf variable.
    output: Var,
}

impl RecomputeTape {
    /// Runs the layers on `input`.
    pub(super) fn forward<'a>(
        input: Tensor,
        layers: impl Iterator<Item = &'a DecoderLayer>,
        layout: &BatchLayout,
    ) -> Result<Self> {
        let mut x = input.detach();
        let mut recomputed = Vec::new();
        let mut needs_gradient = input.track_op();
        for layer in layers {
            if needs_gradient {
                // The backward pass runs the layer on a variable, so this pass does too. Without a
                // gradient, products use another kernel, which rounds differently.
                x = Var::from_tensor(&x)?.into_inner();
            }
            let y = layer.forward_full(&x, layout)?;
            // Frozen layers without trainable variables below need no gradient.
            needs_gradient |= y.track_op();
            if needs_gradient {
                recomputed.push((layer.clone(), x));
            }
            x = y.detach();
        }
        Ok(Self {
            layout: layout.clone(),
            input,
            layers: recomputed,
            output: Var::from_tensor(&x)?,
        })
    }

    /// Returns the output of the highest layer.
    pub(super) fn output(&self) -> &Tensor {
        self.output.as_tensor()
    }

    /// Replaces the gradient of the output in `gradients` by the gradients of the layers and of the
    /// variables below them.
    pub fn backward(&self, gradients: &mut GradStore) -> Result<()> {
        let Some(mut upstream) = gradients.remove(&self.output) else {
            return Ok(());
        };
        for (layer, input) in self.layers.iter().rev() {
            let input = Var::from_tensor(input)?;
            let output = layer.forward_full(&input, &self.layout)?;
            let mut layer_gradients = (output * &upstream)?.sum_all()?.backward()?;
            let Some(input_gradient) = layer_gradients.remove(&input) else {
                return Ok(());
            };
            // `upstream` is a constant here. Drop its gradient to save memory.
            layer_gradients.remove(&upstream);
            upstream = input_gradient;
            gradients.extend(layer_gradients)?;
        }
        if self.input.track_op() {
            let lower_gradients = (&self.input * &upstream)?.sum_all()?.backward()?;
            gradients.extend(lower_gradients)?;
        }
        Ok(())
    }
}
