//! The reason why a member of a panel has no ratings.

use super::judge_job::Unscored;

/// The reason why a member has no ratings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// It could not evaluate these responses.
    Unscored(Unscored),
    /// It cannot evaluate any responses.
    Unusable(String),
}
