//! Outcomes and costs of one encoder.

use crate::checkpoints::hub::HubSource;
use crate::training::comparisons::encoders::panels::context_fit::ContextFit;
use crate::training::comparisons::encoders::panels::cost::EncoderCost;
use crate::training::comparisons::encoders::panels::pair_outcome::PairOutcome;

/// Outcomes of an encoder.
pub(in crate::training::comparisons::encoders::panels) struct EncoderInput {
    /// Name of the encoder.
    pub(in crate::training::comparisons::encoders::panels) name: String,
    /// Hub repository and commit, if it was downloaded.
    pub(in crate::training::comparisons::encoders::panels) hub: Option<HubSource>,
    /// Fit into the context of the base.
    pub(in crate::training::comparisons::encoders::panels) fit: ContextFit,
    /// One run per seed; empty if no pair fits the context with this encoder.
    pub(in crate::training::comparisons::encoders::panels) runs: Vec<SeedRun>,
}

/// Outcomes of an encoder with one seed of training.
pub(in crate::training::comparisons::encoders::panels) struct SeedRun {
    /// The seed.
    pub(in crate::training::comparisons::encoders::panels) seed: u64,
    /// Outcomes of the pairs.
    pub(in crate::training::comparisons::encoders::panels) outcomes: Vec<PairOutcome>,
    /// Costs.
    pub(in crate::training::comparisons::encoders::panels) cost: EncoderCost,
}
