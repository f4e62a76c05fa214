//! The tasks into which a pass is split for the attention kernels.

use candle::DType;

use super::device_cache::CacheShape;

/// Query rows per thread block of `attend_rows`.
pub(super) const ROWS: usize = 8;
/// Query rows per thread block of `attend_tiles`.
const TILE_ROWS: usize = 64;
/// Most keys of a task of `attend_rows`. A longer sequence is split into several tasks, so that a few
/// sequences keep the GPU busy.
const SPLIT_KEYS: usize = 512;
/// Most new tokens of a sequence whose keys are split.
const MAX_SPLIT_TOKENS: usize = 16;

/// The work of one thread block: some rows of a sequence, and a range of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowTask {
    pub(super) sequence: usize,
    /// Index among the new tokens of the pass.
    pub(super) first_row: usize,
    pub(super) rows: usize,
    pub(super) first_key: usize,
    pub(super) end_key: usize,
    /// Index of the first row among the partial results; `None` if the task covers all keys.
    pub(super) partial: Option<usize>,
}

/// A row whose keys are split over several tasks. Its partial results have the indices `first`, `first + step`,
/// and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Combination {
    pub(super) row: usize,
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) step: usize,
}

/// The tasks of a pass for each kernel.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// For `attend_rows` with one row per thread block.
    pub(super) single_rows: Vec<RowTask>,
    /// For `attend_rows` with [`ROWS`] rows per thread block.
    pub(super) few_rows: Vec<RowTask>,
    /// For `attend_tiles`.
    pub(super) tiles: Vec<RowTask>,
    /// Rows with partial results.
    pub(super) combinations: Vec<Combination>,
    /// Number of partial results.
    pub(super) partial_rows: usize,
}

/// Length of a sequence of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceLength {
    pub(super) new_tokens: usize,
    /// Number of tokens with the new ones.
    pub(super) tokens: usize,
}

impl Tasks {
    /// Splits each sequence into tasks, independently of the others. `group` is the number of query
    /// heads per key head.
    pub(super) fn new(sequences: &[SequenceLength], group: usize, shape: &CacheShape) -> Self {
        let has_tiles =
            matches!(shape.dtype, DType::F16 | DType::BF16) && matches!(shape.head_size, 64 | 128);
        let mut tasks = Self::default();
        let mut row = 0;
        for (sequence, SequenceLength { new_tokens, tokens }) in sequences.iter().enumerate() {
            let is_tiled = has_tiles && *new_tokens > 1;
            let is_single = group == 1 && *new_tokens == 1;
            let step = if is_tiled { TILE_ROWS } else { (ROWS / group.max(1)).max(1) };
            for start in (0..*new_tokens).step_by(step) {
                let rows = step.min(new_tokens - start);
                let (first_row, end_key) = (row + start, *tokens);
                let task =
                    RowTask { sequence, first_row, rows, first_key: 0, end_key, partial: None };
                if is_tiled {
                    tasks.tiles.push(task);
                    continue;
                }
                let parts = if *new_tokens > MAX_SPLIT_TOKENS || *tokens <= SPLIT_KEYS {
                    vec![task]
                } else {
                    tasks.split(task)
                };
                let list = if is_single { &mut tasks.single_rows } else { &mut tasks.few_rows };
                list.extend(parts);
            }
            row += new_tokens;
        }
        tasks
    }

    /// Splits the keys of a task.
    fn split(&mut self, task: RowTask) -> Vec<RowTask> {
        let count = task.end_key.div_ceil(SPLIT_KEYS);
        let (first, step) = (self.partial_rows, task.rows);
        let parts = (0..count).map(|i| RowTask {
            first_key: i * SPLIT_KEYS,
            end_key: ((i + 1) * SPLIT_KEYS).min(task.end_key),
            partial: Some(first + i * step),
            ..task
        });
        let rows = 0..task.rows;
        self.combinations.extend(rows.map(|i| Combination {
            row: task.first_row + i,
            first: first + i,
            count,
            step,
        }));
        self.partial_rows += count * step;
        parts.collect()
    }
}

#[cfg(test)]
mod tests {
    use candle::Device;

    use super::*;

    #[test]
    fn each_key_of_each_new_token_is_in_one_task() {
        let sequences = [(1, 30), (130, 700), (3, 1100), (1, 1024)];
        let sequences = sequences.map(|(new_tokens, tokens)| SequenceLength { new_tokens, tokens });
        for (dtype, head_size, group) in [(DType::BF16, 128, 1), (DType::F32, 128, 3)] {
            let device = Device::Cpu;
            let shape = CacheShape { layers: 1, kv_heads: 2, head_size, dtype, device };
            let tasks = Tasks::new(&sequences, group, &shape);
            assert_eq!(tasks.tiles.is_empty(), dtype == DType::F32);
            let (mut row, mut partial) = (0, vec![0; tasks.partial_rows]);
            for (i, length) in sequences.iter().enumerate() {
                for row in row..row + length.new_tokens {
                    let has_row = |task: &&RowTask| {
                        task.sequence == i
                            && (task.first_row..task.first_row + task.rows).contains(&row)
                    };
                    let found = tasks.few_rows.iter().chain(&tasks.single_rows).chain(&tasks.tiles);
                    let found = found.filter(has_row);
                    let mut end = 0;
                    for task in found {
                        assert_eq!(task.first_key, end);
                        end = task.end_key;
                        if let Some(first) = task.partial {
                            partial[first + row - task.first_row] += 1;
                        }
                    }
                    assert_eq!(end, length.tokens);
                }
                row += length.new_tokens;
            }
            assert!(partial.iter().all(|count| *count == 1));
            for Combination { first, count, step, .. } in tasks.combinations {
                (0..count).for_each(|i| partial[first + i * step] += 1);
            }
            assert!(partial.iter().all(|count| *count == 2));
            assert!(tasks.few_rows.iter().all(|task| task.rows * group <= ROWS));
        }
    }
}
