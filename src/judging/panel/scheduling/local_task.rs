//! Tasks of the members that this process computes.

use acem3_experts::{BranchEvaluation, Rating};
use tokio::sync::oneshot;

use crate::judging::judge::{JudgeJob, MemberError};

/// An evaluation that a member shall write: of the responses of a job, in one presentation order.
#[derive(Clone, Debug)]
pub struct LocalTask {
    /// Index of the member in the panel.
    pub member: usize,
    /// The job.
    pub job: JudgeJob,
    /// Index of the response that is shown first.
    pub rotation: usize,
    /// The evaluations of all experts in this order, for the conclusion model; empty for an expert.
    pub evaluations: Vec<BranchEvaluation>,
}

/// A task, and where to send its ratings.
pub(in crate::judging::panel) struct LocalRequest {
    pub(in crate::judging::panel) task: LocalTask,
    pub(in crate::judging::panel) reply: oneshot::Sender<Result<Vec<Rating>, MemberError>>,
}
