//! Members that this process computes in a panel whose other members are served.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use acem3_experts::Rating;
use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

use super::engine_thread::EngineThread;
use super::load::Panel;
use super::local_task::{LocalRequest, LocalTask};
use super::options::JudgeOptions;
use crate::judging::judge::MemberError;
use crate::judging::provenance::Provenance;

/// The members of a panel that this process computes. A separate thread computes the waiting tasks in
/// batches. An evaluation does not depend on the rest of its batch.
pub struct LocalMembers {
    panel: Arc<Panel>,
    requests: Sender<LocalRequest>,
    batch_size: usize,
}

impl LocalMembers {
    /// Starts the thread that computes the members of a panel. `batch_size`: the maximum number of jobs in
    /// progress.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(panel: Panel, batch_size: usize) -> Result<Self> {
        let panel = Arc::new(panel);
        let (requests, receiver) = channel();
        let engine = EngineThread::new(Arc::clone(&panel), receiver);
        // The thread ends when this value is dropped, after the texts in progress.
        let thread = thread::Builder::new().name("local members".to_owned());
        thread.spawn(move || engine.run()).context("cannot start the thread of the checkpoints")?;
        Ok(Self { panel, requests, batch_size })
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
        self.requests.send(LocalRequest { task, reply }).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns the maximum number of jobs in progress.
    pub(in crate::judging) fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Returns the device, for the manifest.
    pub(in crate::judging) fn device(&self) -> String {
        self.panel.device()
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
