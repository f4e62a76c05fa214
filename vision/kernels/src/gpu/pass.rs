//! Description of the sequences of a forward pass for the kernels.

use std::ops::Range;
use std::sync::Arc;

use candle::{DType, Result, Tensor, bail};

use super::device_cache::{CacheShape, DeviceBlock, DeviceCache};
use super::launch::address;
use super::tasks::{Combination, RowTask, SequenceLength, Tasks};

/// New tokens of one sequence.
pub struct PassSequence<'a> {
    /// Keys and values of the earlier tokens. The pass adds the new ones.
    pub cache: &'a mut DeviceCache,
    /// Number of new tokens.
    pub new_tokens: usize,
    /// Position of the first new token.
    pub first_position: usize,
    /// Ranges of positions that attend to all tokens of their range.
    pub bidirectional: &'a [Range<usize>],
}

/// Keys and values of the new tokens of a pass in one layer, before the rotation.
pub struct NewHeads<'a> {
    /// (n, `h_kv`, d).
    pub k: &'a Tensor,
    /// (n, `h_kv`, d).
    pub v: &'a Tensor,
    /// Cosines and sines of the rotation in f32, each (positions, d / 2).
    pub tables: &'a [Tensor; 2],
}

/// A forward pass of a stack of layers over new tokens of several sequences.
///
/// The pass keeps the blocks of its sequences alive, because the kernels read them by address.
pub struct AttentionPass {
    pub(super) shape: CacheShape,
    /// Query heads per key head.
    pub(super) group: usize,
    /// Number of new tokens.
    pub(super) tokens: usize,
    /// Number of positions up to the last new token.
    pub(super) positions: usize,
    /// The records that `cache.cuh` describes.
    pub(super) records: Tensor,
    pub(super) layout: RecordLayout,
    _blocks: Vec<Arc<DeviceBlock>>,
}

/// Index of the first number of each kind of record, and the numbers of tasks.
#[derive(Debug, Default)]
pub(super) struct RecordLayout {
    pub(super) sequences: usize,
    pub(super) rows: usize,
    pub(super) single_rows: TaskRecords,
    pub(super) few_rows: TaskRecords,
    pub(super) tiles: TaskRecords,
    pub(super) combinations: TaskRecords,
    /// Number of partial results.
    pub(super) partial_rows: usize,
}

/// The tasks of one kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskRecords {
    pub(super) start: usize,
    pub(super) count: usize,
}

/// Records of the sequences of a pass, before they are joined.
#[derive(Default)]
struct SequenceRecords {
    parts: Vec<i64>,
    sequences: Vec<i64>,
    rows: Vec<i64>,
    lengths: Vec<SequenceLength>,
    blocks: Vec<Arc<DeviceBlock>>,
}

impl SequenceRecords {
    /// Makes room for the new tokens of a sequence and adds its records.
    fn add(&mut self, sequence: &mut PassSequence, shape: &CacheShape) -> Result<()> {
        let PassSequence { cache, new_tokens, first_position, bidirectional } = sequence;
        cache.check(*first_position, shape)?;
        let slots = cache.reserve(*new_tokens, shape)?;
        self.sequences.extend([self.blocks.len(), cache.blocks.len()].map(to_record));
        let mut addresses = Vec::new();
        for block in &cache.blocks {
            let address = address(&block.memory)?;
            addresses.push(address);
            self.parts.push(address);
            self.parts.extend([block.capacity, block.len].map(to_record));
        }
        for (i, slot) in slots.iter().enumerate() {
            let position = *first_position + i;
            let range = bidirectional.iter().find(|range| range.contains(&position));
            let end = range.map_or(position + 1, |range| range.end);
            let capacity = cache.blocks[slot.block].capacity;
            self.rows.push(addresses[slot.block]);
            self.rows.extend([capacity, slot.slot, position, end].map(to_record));
        }
        self.blocks.extend(cache.blocks.iter().cloned());
        let tokens = *first_position + *new_tokens;
        self.lengths.push(SequenceLength { new_tokens: *new_tokens, tokens });
        Ok(())
    }
}

impl AttentionPass {
    /// Makes room for the new tokens in all caches. `heads` is the number of query heads.
    ///
    /// # Errors
    /// A cache has another shape or number of tokens, or the GPU has no memory left.
    pub fn new(
        sequences: &mut [PassSequence<'_>],
        heads: usize,
        shape: CacheShape,
    ) -> Result<Self> {
        if shape.kv_heads == 0 || !heads.is_multiple_of(shape.kv_heads) {
            bail!("attention: {heads} query heads for {} key heads", shape.kv_heads);
        }
        let group = heads / shape.kv_heads;
        let mut all = SequenceRecords::default();
        for sequence in sequences.iter_mut() {
            all.add(sequence, &shape)?;
        }
        let SequenceRecords { parts, sequences, rows, lengths, blocks } = all;
        let Tasks { single_rows, few_rows, tiles, combinations, partial_rows } =
            Tasks::new(&lengths, group, &shape);
        let mut layout =
            RecordLayout { sequences: parts.len(), partial_rows, ..RecordLayout::default() };
        let mut records = parts;
        records.extend(sequences);
        layout.rows = records.len();
        records.extend(rows);
        layout.single_rows = add_tasks(&single_rows, &mut records);
        layout.few_rows = add_tasks(&few_rows, &mut records);
        layout.tiles = add_tasks(&tiles, &mut records);
        layout.combinations = TaskRecords { start: records.len(), count: combinations.len() };
        for Combination { row, first, count, step } in combinations {
            records.extend([row, first, count, step].map(to_record));
        }
        let count = records.len();
        let records = Tensor::from_vec(records, count, &shape.device)?;
        let tokens = lengths.iter().map(|length| length.new_tokens).sum();
        let positions = lengths.iter().map(|length| length.tokens).max().unwrap_or(0);
        Ok(Self { shape, group, tokens, positions, records, layout, _blocks: blocks })
    }

    /// Returns the type of queries, keys and values.
    pub fn dtype(&self) -> DType {
        self.shape.dtype
    }

    /// Checks keys, values and rotary tables.
    pub(super) fn check_new_heads(&self, layer: usize, heads: &NewHeads) -> Result<()> {
        self.check_layer(layer)?;
        let (kv_heads, d) = (self.shape.kv_heads, self.shape.head_size);
        self.check_heads(heads.k, kv_heads)?;
        self.check_heads(heads.v, kv_heads)?;
        for table in heads.tables {
            let (rows, half) = table.dims2()?;
            if half * 2 != d || table.dtype() != DType::F32 {
                bail!("attention: rotary table {:?} for heads of {d} values", table.shape());
            }
            if rows < self.positions {
                let last = self.positions - 1;
                bail!("position {last} exceeds the model's context of {rows} tokens");
            }
        }
        Ok(())
    }

    /// Checks queries.
    pub(super) fn check_queries(&self, layer: usize, q: &Tensor) -> Result<()> {
        self.check_layer(layer)?;
        self.check_heads(q, self.group * self.shape.kv_heads)
    }

    fn check_layer(&self, layer: usize) -> Result<()> {
        if layer >= self.shape.layers {
            bail!("attention: layer {layer} in a cache of {} layers", self.shape.layers);
        }
        Ok(())
    }

    /// Checks a tensor with this number of heads for each new token.
    fn check_heads(&self, x: &Tensor, heads: usize) -> Result<()> {
        let expected = [self.tokens, heads, self.shape.head_size];
        if x.dims() != expected || x.dtype() != self.shape.dtype {
            let dtype = self.shape.dtype;
            bail!("attention: expected {expected:?} in {dtype:?}, found {:?} {:?}", x, x.dtype());
        }
        Ok(())
    }
}

/// Appends the records of tasks.
fn add_tasks(tasks: &[RowTask], records: &mut Vec<i64>) -> TaskRecords {
    let start = records.len();
    for task in tasks {
        let RowTask { sequence, first_row, rows, first_key, end_key, partial } = *task;
        let numbers = [sequence, first_row, rows, first_key, end_key];
        records.extend(numbers.map(to_record));
        records.push(partial.map_or(-1, to_record));
    }
    TaskRecords { start, count: tasks.len() }
}

/// Converts a size to a number of a record.
fn to_record(size: usize) -> i64 {
    size.cast_signed() as i64
}
