//! Reward tokens and their role in a stage.

/// Reward tokens of a chosen and of a rejected evaluation (ACE-M³ §3.4).
pub(crate) const REWARD_TOKENS: [&str; 2] = ["[Good]", "[Bad]"];

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
