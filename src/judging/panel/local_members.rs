//! Members that this process computes in a panel whose other members are served.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use acem3_experts::Rating;
use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

use super::load::Panel;
use super::options::JudgeOptions;
use super::scheduling::{JobWindow, LocalRequest, LocalTask, MemberThread};
use crate::judging::judge::MemberError;
use crate::judging::provenance::Provenance;

/// The members of a panel that this process computes, with a copy on each device. A thread per device
/// computes the tasks. An evaluation does not depend on the other tasks in progress.
pub struct LocalMembers {
    panel: Arc<Panel>,
    devices: Vec<String>,
    queues: Vec<Sender<LocalRequest>>,
    batch_size: usize,
}

impl LocalMembers {
    /// Starts the threads that compute the members of a panel. `copies`: the panel on each device.
    /// `batch_size`: the maximum number of jobs in progress per device.
    ///
    /// # Errors
    ///
    /// There is no copy, the copies are not of one panel, or a thread cannot be started.
    pub fn start(copies: Vec<Panel>, batch_size: usize) -> Result<Self> {
        let copies = Panel::share_copies(copies, JudgeOptions::most_probable())?;
        let panel = Arc::clone(copies.first().context("a panel without a device")?);
        let devices = copies.iter().map(|copy| copy.device()).collect();
        let queues = copies.into_iter().map(start_thread).collect::<Result<_>>()?;
        Ok(Self { panel, devices, queues, batch_size })
    }

    /// Evaluates responses.
    ///
    /// # Errors
    ///
    /// The member cannot evaluate these responses, or cannot evaluate any.
    pub(in crate::judging) async fn evaluate(
        &self,
        task: LocalTask,
    ) -> Result<Vec<Rating>, MemberError> {
        let ended = || MemberError::Unusable("the thread of the checkpoints ended".to_owned());
        let (reply, answer) = oneshot::channel();
        let queue = self.queue_of(&task).ok_or_else(ended)?;
        queue.send(LocalRequest { task, reply }).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns the queue of the device that computes a task. All tasks of a case go to one device, which
    /// keeps their common prefix.
    fn queue_of(&self, task: &LocalTask) -> Option<&Sender<LocalRequest>> {
        let mut hasher = DefaultHasher::new();
        task.job.case.id.hash(&mut hasher);
        let index = hasher.finish() % self.queues.len().max(1) as u64;
        self.queues.get(index as usize)
    }

    /// Returns the number of jobs that may be in progress.
    pub(in crate::judging) fn window(&self) -> JobWindow {
        JobWindow::new(self.batch_size, self.devices.len())
    }

    /// Returns the devices, for the manifest.
    pub(in crate::judging) fn devices(&self) -> BTreeSet<String> {
        self.devices.iter().cloned().collect()
    }

    /// Returns everything that can change a verdict.
    pub(in crate::judging) fn provenance(&self, run: JudgeOptions) -> Provenance {
        self.panel.provenance(run)
    }

    /// Returns why no prompt can hold a text.
    pub(in crate::judging) fn reject_text(&self, text: &str) -> Result<Option<String>> {
        self.panel.reject_text(text)
    }
}

/// Starts the thread of a device. It ends when the queue is dropped.
fn start_thread(panel: Arc<Panel>) -> Result<Sender<LocalRequest>> {
    let (queue, requests) = channel();
    let members = MemberThread::new(panel, requests);
    let thread = thread::Builder::new().name("local members".to_owned());
    thread.spawn(move || members.run()).context("cannot start the thread of the checkpoints")?;
    Ok(queue)
}
