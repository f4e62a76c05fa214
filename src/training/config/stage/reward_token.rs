//! Role of reward tokens in a stage.

/// Role of the reward token before an evaluation in preference training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewardTokenRole {
    /// Evaluations have no reward token.
    Absent,
    /// The token is part of the completion and has a loss.
    Target,
    /// The token is part of the prompt and has no loss.
    Context,
}
