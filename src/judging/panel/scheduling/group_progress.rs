//! The work of a group of members: its caches, and its tasks with what they are for.

use std::collections::HashMap;

use acem3_experts::Error;
use acem3_experts::generate::{GenerationTask, TaskQueue, TaskTexts};

use super::group_cache::GroupCache;
use crate::judging::panel::trunk_group::TrunkGroup;

/// Caches and tasks of a group. `T`: what a task is for.
pub(super) struct GroupProgress<T> {
    pub(super) cache: GroupCache,
    queue: TaskQueue,
    /// The purpose of each task, by the number of the task.
    purposes: HashMap<usize, T>,
}

impl<T> Default for GroupProgress<T> {
    fn default() -> Self {
        Self { cache: GroupCache::default(), queue: TaskQueue::default(), purposes: HashMap::new() }
    }
}

impl<T> GroupProgress<T> {
    /// Returns true if there is no task.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a task.
    pub(super) fn add(&mut self, group: &TrunkGroup, task: GenerationTask, purpose: T) {
        let number = group.engine.enqueue(&mut self.queue, task);
        self.purposes.insert(number, purpose);
    }

    /// Adds a token to each text in progress. Returns the tasks that have ended.
    ///
    /// # Errors
    ///
    /// A tensor operation fails. All tasks are lost; [`Self::cancel`] returns them.
    pub(super) fn step(&mut self, group: &TrunkGroup) -> Result<Vec<(T, TaskTexts)>, Error> {
        if self.is_idle() {
            return Ok(Vec::new());
        }
        let finished = group.engine.step(&mut self.queue, &mut self.cache.prefixes)?;
        let with_purpose = finished
            .into_iter()
            .filter_map(|task| Some((self.purposes.remove(&task.number)?, task.texts)));
        Ok(with_purpose.collect())
    }

    /// Removes all tasks and returns what they were for.
    pub(super) fn cancel(&mut self) -> Vec<T> {
        self.queue = TaskQueue::default();
        self.purposes.drain().map(|(_, purpose)| purpose).collect()
    }
}
