//! Objective and trained part of a stage.

use serde::{Deserialize, Serialize};

use super::reward_token::RewardTokenRole;

/// Objective and trained part of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// The vision tower alone, on attributes of images.
    Encoder,
    /// Projector and decoder, on question answering.
    Align,
    /// One model for all members, on evaluations and conclusions.
    Sft,
    /// The head of each member, with the trunk frozen.
    Heads,
    /// Direct preference optimization (Rafailov et al., 2023).
    Dpo,
    /// DPO with a reward token that is part of each completion (ACE-M³ §3.4).
    Rtdpo,
    /// DPO with a reward token that is part of each prompt (`HDCEval` §3.3).
    Adto,
    /// No training: the mean of the weights of two stages.
    Mean,
}

impl StageKind {
    /// Returns true if the stage trains on preference pairs.
    pub fn learns_preferences(self) -> bool {
        matches!(self, Self::Dpo | Self::Rtdpo | Self::Adto)
    }

    /// Returns the role of reward tokens in the stage's preference pairs.
    pub(crate) fn reward_token_role(self) -> RewardTokenRole {
        match self {
            Self::Rtdpo => RewardTokenRole::Target,
            Self::Adto => RewardTokenRole::Context,
            _ => RewardTokenRole::Absent,
        }
    }
}
