//! Memory that the tasks in progress take.

use std::collections::{HashMap, VecDeque};

use super::cache_memory::CacheMemory;
use super::task_memory::TaskMemory;
use super::token_bytes::TokenBytes;

/// Key of a prompt stage in a cache: that of the trunk, or that of a member's head.
type StageKey = (Option<usize>, u64);

/// Memory of the tasks in progress. Tasks share the prompt stages that they have in common.
#[derive(Debug, Default)]
pub(in crate::generate) struct UsedMemory {
    /// Number of tasks that use each prompt stage.
    stages: HashMap<StageKey, usize>,
    bytes: u64,
    tasks: usize,
}

impl UsedMemory {
    /// Removes and returns the first waiting tasks that there is room for, and counts their memory. If no
    /// task is in progress, the first one starts whatever it takes.
    pub(in crate::generate) fn take_fitting<T>(
        &mut self,
        waiting: &mut VecDeque<T>,
        memory_of: impl Fn(&T) -> &TaskMemory,
        cache: CacheMemory,
    ) -> Vec<T> {
        let mut fitting = Vec::new();
        while waiting.front().is_some_and(|next| self.has_room(memory_of(next), cache)) {
            let Some(next) = waiting.pop_front() else {
                break;
            };
            self.add(memory_of(&next), cache.token);
            fitting.push(next);
        }
        fitting
    }

    fn has_room(&self, task: &TaskMemory, cache: CacheMemory) -> bool {
        let new = stages(task, cache.token).filter(|(key, _)| !self.stages.contains_key(key));
        let new = new.map(|(_, bytes)| bytes).sum::<u64>() + own_bytes(task, cache.token);
        self.tasks == 0 || self.bytes.saturating_add(new) <= cache.for_tasks()
    }

    /// Adds a task that starts.
    fn add(&mut self, task: &TaskMemory, token: TokenBytes) {
        self.tasks += 1;
        self.bytes += own_bytes(task, token);
        for (key, bytes) in stages(task, token) {
            let uses = self.stages.entry(key).or_insert(0);
            if *uses == 0 {
                self.bytes += bytes;
            }
            *uses += 1;
        }
    }

    /// Removes a task that has ended.
    pub(in crate::generate) fn remove(&mut self, task: &TaskMemory, token: TokenBytes) {
        self.tasks -= 1;
        self.bytes -= own_bytes(task, token);
        for (key, bytes) in stages(task, token) {
            if let Some(uses) = self.stages.get_mut(&key) {
                *uses -= 1;
                if *uses == 0 {
                    self.stages.remove(&key);
                    self.bytes -= bytes;
                }
            }
        }
    }
}

/// Returns the prompt stages of a task in the trunk and in the head of its member, with their bytes.
fn stages(task: &TaskMemory, token: TokenBytes) -> impl Iterator<Item = (StageKey, u64)> {
    task.stages.iter().flat_map(move |stage| {
        let bytes = |token: u64| stage.tokens as u64 * token;
        let head = ((Some(task.member), stage.key), bytes(token.head));
        [((None, stage.key), bytes(token.trunk)), head]
    })
}

/// Returns the bytes that only this task uses.
fn own_bytes(task: &TaskMemory, token: TokenBytes) -> u64 {
    task.own_tokens as u64 * token.all()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::decoder::block_capacity;
    use crate::generate::task::GenerationTask;
    use crate::prompt::{PromptToken, StagedPrompt};

    const TOKEN: TokenBytes = TokenBytes { trunk: 3, head: 1 };

    /// Returns the memory of a task whose prompt has these stages, each a token that is repeated.
    fn memory(member: usize, stages: &[(u32, usize)]) -> TaskMemory {
        let stages = stages.iter().map(|(id, count)| vec![PromptToken::Token(*id); *count]);
        let prompt = StagedPrompt { stages: stages.collect() };
        let task = GenerationTask {
            member,
            prompt,
            image: None,
            format: Arc::from([]),
            samples: 1,
            opening: None,
        };
        TaskMemory::new(&task, 0, 10)
    }

    fn tokens(count: usize) -> u64 {
        block_capacity(count) as u64
    }

    #[test]
    fn tasks_share_stages_and_free_them_when_the_last_one_ends() {
        let mut used = UsedMemory::default();
        let (first, second) = (memory(0, &[(7, 128), (8, 1)]), memory(1, &[(7, 128), (9, 1)]));
        used.add(&first, TOKEN);
        let (long, short, text) = (tokens(128), tokens(1), tokens(10));
        assert_eq!(used.bytes, (long + short + text) * 4);
        used.add(&second, TOKEN);
        // The trunk shares the first stage; the heads are others.
        assert_eq!(used.bytes, 2 * (long + short + text) * 4 - long * 3);
        used.remove(&first, TOKEN);
        assert_eq!(used.bytes, (long + short + text) * 4);
        used.remove(&second, TOKEN);
        assert_eq!((used.bytes, used.stages.len()), (0, 0));
    }

    #[test]
    fn a_stage_after_other_stages_is_another_one() {
        let mut used = UsedMemory::default();
        used.add(&memory(0, &[(7, 64), (8, 64)]), TOKEN);
        let before = used.bytes;
        used.add(&memory(0, &[(6, 64), (8, 64)]), TOKEN);
        assert_eq!(used.bytes, 2 * before);
    }

    #[test]
    fn the_limit_counts_only_what_is_new() {
        let task = memory(0, &[(7, 640)]);
        let mut used = UsedMemory::default();
        // One prompt and two texts fit; the limit for tasks is three quarters.
        let limit = (tokens(640) + 2 * tokens(10)) * 4 * 4 / 3 + 4;
        let cache = CacheMemory { limit, token: TOKEN };
        assert!(used.has_room(&memory(0, &[(1, 10_000)]), cache));
        used.add(&task, TOKEN);
        assert!(used.has_room(&task, cache));
        assert!(!used.has_room(&memory(0, &[(8, 640)]), cache));
        used.add(&task, TOKEN);
        assert!(!used.has_room(&task, cache));
    }
}
