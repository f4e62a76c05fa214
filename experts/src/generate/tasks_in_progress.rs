//! The tasks whose texts are in progress.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::memory::{TaskMemory, TokenBytes, UsedMemory};
use super::text_alternative::TaskTexts;
use super::text_generation::TextGeneration;

/// A task of a queue whose texts have all ended.
pub struct FinishedTask {
    /// Its number in the queue.
    pub number: usize,
    /// Its texts, or the error that ended one of them.
    pub texts: TaskTexts,
}

/// A text in progress.
struct ActiveText {
    /// Number of its task.
    number: usize,
    text: TextGeneration,
}

/// A task whose texts are in progress.
struct OpenTask {
    /// What it takes.
    memory: TaskMemory,
    /// Number of texts in progress.
    active: usize,
    /// Finished texts, or the first error.
    finished: TaskTexts,
}

impl OpenTask {
    /// Stores a text that has ended.
    fn finish(&mut self, text: TextGeneration) {
        self.active -= 1;
        match (&mut self.finished, text.into_alternative()) {
            (Ok(finished), Ok(alternative)) => finished.push(alternative),
            (finished @ Ok(_), Err(error)) => *finished = Err(error),
            (Err(_), _) => {}
        }
    }

    /// Returns the texts in the order of their samples.
    fn into_alternatives(self) -> TaskTexts {
        let mut finished = self.finished?;
        finished.sort_by_key(|alternative| alternative.first_sample);
        Ok(finished)
    }
}

/// Tasks in progress, with their texts.
#[derive(Default)]
pub(super) struct TasksInProgress {
    texts: Vec<ActiveText>,
    open: HashMap<usize, OpenTask>,
    /// Memory of the open tasks.
    pub(super) memory: UsedMemory,
}

impl TasksInProgress {
    /// Adds a task with its first text. Its memory is already counted.
    pub(super) fn add(&mut self, number: usize, memory: TaskMemory, text: TextGeneration) {
        self.texts.push(ActiveText { number, text });
        self.open.insert(number, OpenTask { memory, active: 1, finished: Ok(Vec::new()) });
    }

    /// Returns true if no task is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the number of texts in progress.
    pub(super) fn text_count(&self) -> usize {
        self.texts.len()
    }

    /// Returns the texts, sorted by [`Self::sort`].
    pub(super) fn texts(&mut self) -> Vec<&mut TextGeneration> {
        self.texts.iter_mut().map(|active| &mut active.text).collect()
    }

    /// Sorts the texts by member, so that the rows of a head are adjacent.
    pub(super) fn sort(&mut self) {
        self.texts.sort_by_key(|active| active.text.member);
    }

    /// Adds the texts that split off in the last step, and removes finished ones. Returns the tasks
    /// that have no text in progress, with their texts.
    pub(super) fn take_finished(&mut self, token_bytes: TokenBytes) -> Vec<FinishedTask> {
        let split = |active: &mut ActiveText| {
            let number = active.number;
            active.text.take_splits().into_iter().map(move |text| ActiveText { number, text })
        };
        let splits: Vec<ActiveText> = self.texts.iter_mut().flat_map(split).collect();
        for ActiveText { number, .. } in &splits {
            if let Some(task) = self.open.get_mut(number) {
                task.active += 1;
            }
        }
        let has_new = !splits.is_empty();
        self.texts.extend(splits);
        let mut finished = Vec::new();
        for done in self.texts.extract_if(.., |active| active.text.is_done()) {
            let Entry::Occupied(mut task) = self.open.entry(done.number) else {
                continue;
            };
            task.get_mut().finish(done.text);
            if task.get().active == 0 {
                let task = task.remove();
                self.memory.remove(&task.memory, token_bytes);
                let texts = task.into_alternatives();
                finished.push(FinishedTask { number: done.number, texts });
            }
        }
        if has_new {
            self.sort();
        }
        finished
    }
}
