//! Sequence packing: short sequences of a batch share a row, which reduces padding.
//!
//! Sequences in one row do not attend to each other, and each has its own positions. Packing
//! therefore does not change their outputs.

use std::cmp::Reverse;

use candle::{Device, Tensor};

use super::sequence::Sequence;
use super::sequence_input::SequenceInput;
use crate::Error;
use crate::decoder::BatchLayout;
use crate::ops::AttentionMask;

/// Placement of the sequences of a batch in rows of equal length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packing {
    /// Tokens per row: the length of the longest sequence.
    row_tokens: usize,
    rows: usize,
    /// Index of the first token of each sequence in the concatenated rows.
    starts: Vec<usize>,
}

impl Packing {
    /// Packs sequences by first-fit decreasing: the longest first, each into the first row with
    /// space.
    pub(super) fn new(sequences: &[Sequence]) -> Self {
        let length = |i: &usize| sequences[*i].len();
        let mut order: Vec<usize> = (0..sequences.len()).collect();
        order.sort_by_key(|i| Reverse(length(i)));
        let row_tokens = order.first().map_or(0, length);
        let mut used: Vec<usize> = Vec::new();
        let mut starts = vec![0; sequences.len()];
        for i in order {
            let free_row = used.iter().position(|used| used + length(&i) <= row_tokens);
            let row = free_row.unwrap_or(used.len());
            if row == used.len() {
                used.push(0);
            }
            starts[i] = row * row_tokens + used[row];
            used[row] += length(&i);
        }
        Self { row_tokens, rows: used.len(), starts }
    }

    /// Returns the number of tokens of all rows, including padding.
    pub(super) fn len(&self) -> usize {
        self.rows * self.row_tokens
    }

    /// Returns the index of the first token of a sequence.
    pub(super) fn start(&self, sequence: usize) -> usize {
        self.starts[sequence]
    }

    /// Copies one value per token of each sequence to its index in the rows. Other indices get
    /// `padding`.
    pub(super) fn scatter<'a, T: Clone>(
        &self,
        padding: T,
        values: impl Iterator<Item = Vec<T>> + 'a,
    ) -> Vec<T> {
        let mut packed = vec![padding; self.len()];
        for (start, sequence_values) in self.starts.iter().zip(values) {
            for (slot, value) in packed.iter_mut().skip(*start).zip(sequence_values) {
                *slot = value;
            }
        }
        packed
    }

    /// Returns the positions and the attention mask of the packed sequences.
    pub(super) fn layout(&self, sequences: &[Sequence]) -> BatchLayout {
        // Branch ids are unique across sequences. Padding has its own id, so that no sequence
        // attends to it.
        let unique_ids = |(i, s): (u32, &Sequence)| {
            let branch_id = |branch: &u16| AttentionMask::branch_id(i, *branch);
            s.branches.iter().map(branch_id).collect()
        };
        let branch_ids = self.scatter(u32::MAX, (0..).zip(sequences).map(unique_ids));
        let positions = self.scatter(0, sequences.iter().map(|s| s.positions.clone()));
        BatchLayout {
            batch_size: self.rows,
            positions: positions.into(),
            mask: AttentionMask::Branches {
                branch_ids: branch_ids.into(),
                tokens_per_row: self.row_tokens,
            },
        }
    }

    /// Packs the hidden states of the sequences and moves them to a device. Returns `None` if no
    /// sequence has hidden states.
    ///
    /// # Errors
    /// Only some of the sequences have hidden states.
    pub(super) fn scatter_hidden(
        &self,
        sequences: &[Sequence],
        device: &Device,
    ) -> Result<Option<Tensor>, Error> {
        let hidden_states = sequences.iter().filter_map(|s| match &s.input {
            SequenceInput::Hidden(hidden) => Some(hidden),
            _ => None,
        });
        let hidden_states: Vec<&Tensor> = hidden_states.collect();
        let Some(first) = hidden_states.first() else {
            return Ok(None);
        };
        if hidden_states.len() < sequences.len() {
            let message = "a batch mixes hidden states and tokens, expected only one of them";
            return Err(Error::Training(message.to_owned()));
        }
        // Index 0 of the concatenated states is padding. The states of the sequences follow.
        let padding = first.narrow(0, 0, 1)?.zeros_like()?;
        let mut states = vec![&padding];
        states.extend(&hidden_states);
        let mut next_index = 1;
        let mut state_indices = |hidden: &Tensor| -> Result<Vec<u32>, Error> {
            let n = hidden.dim(0)? as u32;
            next_index += n;
            Ok((next_index - n..next_index).collect())
        };
        let indices: Vec<Vec<u32>> =
            hidden_states.iter().map(|hidden| state_indices(hidden)).collect::<Result<_, _>>()?;
        let indices = Tensor::new(self.scatter(0, indices.into_iter()), first.device())?;
        let packed = Tensor::cat(&states, 0)?.index_select(&indices, 0)?;
        Ok(Some(packed.to_device(device)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(lengths: &[usize]) -> Packing {
        let sequence = |n: &usize| {
            let mut sequence = Sequence::default();
            sequence.push_branch((0..*n as u32).map(|token| (token, 1.0)));
            sequence
        };
        Packing::new(&lengths.iter().map(sequence).collect::<Vec<_>>())
    }

    #[test]
    fn short_sequences_share_a_row() {
        let packed = pack(&[3, 7, 2, 4, 5]);
        // 7; 5 and 2; 4 and 3.
        assert_eq!((packed.rows, packed.len()), (3, 21));
        assert_eq!(packed.starts, [18, 0, 12, 14, 7]);
        let lengths = [3u8, 7, 2, 4, 5].map(|n| vec![n; n.into()]);
        let values = packed.scatter(0, lengths.into_iter());
        assert_eq!(values[7..], [5, 5, 5, 5, 5, 2, 2, 4, 4, 4, 4, 3, 3, 3]);
        assert_eq!((pack(&[]).len(), pack(&[4]).len()), (0, 4));
    }
}
