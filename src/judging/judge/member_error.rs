//! The reason why a member of a panel has no ratings.

use super::judge_job::Unscored;

/// The reason why a member has no ratings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// These responses cannot be evaluated; others can.
    Unscored(Unscored),
    /// The member cannot evaluate anything, so the run ends.
    Unusable(String),
}
