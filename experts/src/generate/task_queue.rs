//! Tasks that wait for an engine, and those in progress.

use std::collections::VecDeque;

use super::memory::CacheMemory;
use super::task::GenerationTask;
use super::task_tokens::TaskTokens;
use super::tasks_in_progress::{FinishedTask, TasksInProgress};
use crate::Error;

/// Waiting tasks start together when there is one for this many texts in progress. Prompts that are
/// processed together read the weights once.
const TEXTS_PER_START: usize = 4;

/// Tasks that wait, and tasks in progress. A task may be added while others are in progress.
#[derive(Default)]
pub struct TaskQueue {
    /// Number of tasks so far.
    count: usize,
    waiting: VecDeque<WaitingTask>,
    /// Tasks that cannot start.
    rejected: Vec<FinishedTask>,
    pub(super) active: TasksInProgress,
}

/// A task whose text has not started.
pub(super) struct WaitingTask {
    pub(super) number: usize,
    pub(super) tokens: TaskTokens,
    pub(super) task: GenerationTask,
}

impl TaskQueue {
    /// Returns true if no task waits or is in progress.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.rejected.is_empty() && self.active.is_empty()
    }

    /// Adds a task and returns its number. `tokens`: what the task may take, or why it cannot start.
    pub(super) fn push(
        &mut self,
        task: GenerationTask,
        tokens: Result<TaskTokens, Error>,
    ) -> usize {
        let number = self.count;
        self.count += 1;
        match tokens {
            Ok(tokens) => self.waiting.push_back(WaitingTask { number, tokens, task }),
            Err(error) => self.rejected.push(FinishedTask { number, texts: Err(error) }),
        }
        number
    }

    /// Removes and returns the tasks that cannot start.
    pub(super) fn take_rejected(&mut self) -> Vec<FinishedTask> {
        std::mem::take(&mut self.rejected)
    }

    /// Removes and returns the first waiting tasks that the memory has room for, or none if too few wait
    /// for the texts in progress.
    pub(super) fn take_startable(&mut self, memory: CacheMemory) -> Vec<WaitingTask> {
        if !starts_texts(self.waiting.len(), self.active.text_count()) {
            return Vec::new();
        }
        let used = &mut self.active.memory;
        used.take_fitting(&mut self.waiting, |next| &next.tokens.memory, memory)
    }
}

/// Returns true if enough texts wait to start them together.
pub(super) fn starts_texts(waiting: usize, active: usize) -> bool {
    waiting * TEXTS_PER_START >= active
}
