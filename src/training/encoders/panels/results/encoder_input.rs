//! Outcomes and costs of one encoder.

use crate::checkpoints::hub::HubSource;
use crate::training::encoders::panels::context_fit::ContextFit;
use crate::training::encoders::panels::cost::EncoderCost;
use crate::training::encoders::panels::pair_outcome::PairOutcome;

/// Outcomes of an encoder.
pub(in crate::training::encoders::panels) struct EncoderInput {
    /// Name of the encoder.
    pub(in crate::training::encoders::panels) name: String,
    /// Hub repository and commit, if it was downloaded.
    pub(in crate::training::encoders::panels) hub: Option<HubSource>,
    /// Fit into the context of the base.
    pub(in crate::training::encoders::panels) fit: ContextFit,
    /// Outcomes and costs with each seed; empty if the encoder does not fit.
    pub(in crate::training::encoders::panels) runs: Vec<(u64, Vec<PairOutcome>, EncoderCost)>,
}
