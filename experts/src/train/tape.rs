//! Layers computed a second time for their gradients, so that only what stands between them is remembered
//! (Chen et al., 2016, "Training deep nets with sublinear memory cost").
//!
//! A backward pass wants every value that the forward pass had. Here it has one layer's at a time: the layer is
//! computed once more from its input, and gives the gradient to the layer below.

use candle::backprop::GradStore;
use candle::{Result, Tensor, Var};

use crate::decoder::{Layer, Sight};

/// A pass through layers, of which the inputs are kept.
pub struct Tape {
    sight: Sight,
    /// What went into the lowest layer, with its own graph.
    bottom: Tensor,
    /// The layers that have a gradient or a gradient below them, and what went into each.
    layers: Vec<(Layer, Tensor)>,
    /// What came out of the uppermost, as a leaf.
    top: Var,
}

impl Tape {
    /// Passes through layers.
    pub(super) fn forward<'a>(
        bottom: Tensor,
        layers: impl Iterator<Item = &'a Layer>,
        sight: &Sight,
    ) -> Result<Self> {
        let mut x = bottom.detach();
        let mut kept = Vec::new();
        let mut tracked = bottom.track_op();
        for layer in layers {
            let y = layer.whole(&x, sight)?;
            // Frozen layers above nothing that learns need no second time.
            tracked |= y.track_op();
            if tracked {
                kept.push((layer.clone(), x));
            }
            x = y.detach();
        }
        Ok(Self {
            sight: sight.clone(),
            bottom,
            layers: kept,
            top: Var::from_tensor(&x)?,
        })
    }

    /// What came out at the top.
    pub(super) fn top(&self) -> &Tensor {
        self.top.as_tensor()
    }

    /// Adds the gradients of the layers, and of what lies below them, to those of what was computed from
    /// the top.
    pub fn backward(&self, gradients: &mut GradStore) -> Result<()> {
        let Some(mut upstream) = gradients.remove(&self.top) else {
            return Ok(());
        };
        for (layer, input) in self.layers.iter().rev() {
            let input = Var::from_tensor(input)?;
            let output = layer.whole(&input, &self.sight)?;
            let mut own = (output * &upstream)?.sum_all()?.backward()?;
            let Some(next) = own.remove(&input) else {
                return Ok(());
            };
            // A constant here, whose gradient would be kept for nothing.
            own.remove(&upstream);
            upstream = next;
            gradients.extend(own)?;
        }
        if self.bottom.track_op() {
            let below = (&self.bottom * &upstream)?.sum_all()?.backward()?;
            gradients.extend(below)?;
        }
        Ok(())
    }
}
