//! Where a member stands in its training.

use std::path::PathBuf;

use acem3_experts::train::{Parameters, load_checkpoint};
use anyhow::Result;
use candle::Tensor;

use crate::checkpoints::panel::definition::MEMBERS;
use crate::checkpoints::panel::initial_model::InitialModel;

/// A member between two stages.
#[derive(Clone, Default)]
pub(crate) struct MemberState<'a> {
    /// Where its weights are.
    pub(crate) weights: MemberWeights<'a>,
    /// What its texts begin with since.
    pub(crate) lead: Option<String>,
}

/// The weights of a member.
#[derive(Clone, Default)]
pub(crate) enum MemberWeights<'a> {
    /// There are none yet: they are drawn when they are asked for.
    #[default]
    Drawn,
    /// Those of a member of what the training begins with.
    Start(&'a InitialModel, usize),
    /// Those that a stage left.
    Stage(PathBuf),
}

impl<'a> MemberState<'a> {
    /// The four members before the first stage.
    pub(crate) fn members(start: Option<&'a InitialModel>) -> [Self; 4] {
        std::array::from_fn(|i| match start {
            None => Self::default(),
            Some(start) => Self {
                weights: MemberWeights::Start(start, i),
                lead: Some(start.leads[i].clone()).filter(|lead| !lead.is_empty()),
            },
        })
    }

    /// Its weights by name; `None` before the first stage of a training from nothing.
    pub(crate) fn tensors(&self) -> Result<Option<Vec<(String, Tensor)>>> {
        match &self.weights {
            MemberWeights::Drawn => Ok(None),
            MemberWeights::Start(start, member) => start.weights(*member).map(Some),
            MemberWeights::Stage(path) => {
                Ok(Some(load_checkpoint(path, None)?.into_iter().collect()))
            }
        }
    }

    /// Its weights, to be trained.
    pub(crate) fn parameters(&self, seed: u64) -> Result<Parameters> {
        match self.tensors()? {
            Some(tensors) => Ok(Parameters::from_tensors(tensors)?),
            None => Ok(Parameters::fresh(seed)),
        }
    }

    /// Whether both have their weights from the same place.
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        match (&self.weights, &other.weights) {
            (MemberWeights::Drawn, MemberWeights::Drawn) => true,
            (MemberWeights::Start(start, a), MemberWeights::Start(_, b)) => {
                a == b || start.is_uniform()
            }
            (MemberWeights::Stage(a), MemberWeights::Stage(b)) => a == b,
            _ => false,
        }
    }
}

/// The name of the first member whose weights are another place's than the first one's.
pub(crate) fn first_apart(members: &[MemberState; 4]) -> Option<&'static str> {
    let apart = |(_, member): &(&&str, &MemberState)| !member.same_place(&members[0]);
    let found = MEMBERS.iter().zip(members).find(apart);
    found.map(|(name, _)| *name)
}
