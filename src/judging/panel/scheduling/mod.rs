//! The threads that compute the members of a panel, one per device. They take new work before they
//! have finished earlier work, so that each step continues many texts.

mod group_cache;
mod group_progress;
mod job_queues;
mod job_scheduler;
mod job_thread;
mod job_window;
mod local_task;
mod member_thread;
mod messages;
mod response_pass;
mod sample_combinations;
mod shared_finding;

pub(super) use group_cache::GroupCache;
pub(super) use job_queues::JobQueues;
pub(in crate::judging) use job_window::JobWindow;
pub(super) use local_task::LocalRequest;
pub use local_task::LocalTask;
pub(super) use member_thread::MemberThread;
pub(super) use response_pass::to_unscored;
