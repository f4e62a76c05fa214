//! Why a member of a panel has no ratings.

use super::judge_job::Unscored;

/// Why a member has no ratings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// This evaluation has none.
    Unscored(Unscored),
    /// No evaluation can have any.
    Unusable(String),
}
