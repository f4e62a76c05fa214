//! Where the sequences of a batch lie: short ones share a row, so that little is padding.
//!
//! Sequences in one row do not see each other, and each has its own positions: what is computed of one is what
//! would be computed of it alone.

use std::cmp::Reverse;

use candle::{Device, Tensor};

use super::given::Given;
use super::sequence::Sequence;
use crate::Error;
use crate::decoder::Sight;
use crate::ops::Visibility;

/// Rows of equal length that hold all sequences.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packing {
    /// Tokens of a row: those of the longest sequence.
    tokens: usize,
    rows: usize,
    /// The place of each sequence's first token, all rows one after the other.
    starts: Vec<usize>,
}

impl Packing {
    /// The longest first, each into the first row with room for it.
    pub(super) fn of(sequences: &[Sequence]) -> Self {
        let length = |i: &usize| sequences[*i].len();
        let mut order: Vec<usize> = (0..sequences.len()).collect();
        order.sort_by_key(|i| Reverse(length(i)));
        let tokens = order.first().map_or(0, length);
        let mut used: Vec<usize> = Vec::new();
        let mut starts = vec![0; sequences.len()];
        for i in order {
            let room = used.iter().position(|used| used + length(&i) <= tokens);
            let row = room.unwrap_or(used.len());
            if row == used.len() {
                used.push(0);
            }
            starts[i] = row * tokens + used[row];
            used[row] += length(&i);
        }
        Self {
            tokens,
            rows: used.len(),
            starts,
        }
    }

    /// Places in all rows, padding included.
    pub(super) fn places(&self) -> usize {
        self.rows * self.tokens
    }

    /// The place of a sequence's first token.
    pub(super) fn start(&self, sequence: usize) -> usize {
        self.starts[sequence]
    }

    /// The values of all sequences' tokens at their places, `padding` elsewhere.
    pub(super) fn spread<'a, T: Clone>(
        &self,
        padding: T,
        values: impl Iterator<Item = Vec<T>> + 'a,
    ) -> Vec<T> {
        let mut all = vec![padding; self.places()];
        for (start, own) in self.starts.iter().zip(values) {
            for (place, value) in all.iter_mut().skip(*start).zip(own) {
                *place = value;
            }
        }
        all
    }

    /// What the tokens see of each other.
    pub(super) fn sight(&self, sequences: &[Sequence]) -> Sight {
        // Branches are told apart by their sequence too. Padding is a branch of its own that nothing looks at.
        let numbered = |(i, s): (u32, &Sequence)| {
            let of = |branch: &u16| Visibility::branch(i, *branch);
            s.branches.iter().map(of).collect()
        };
        let branches = self.spread(u32::MAX, (0..).zip(sequences).map(numbered));
        let positions = self.spread(0, sequences.iter().map(|s| s.positions.clone()));
        Sight {
            batch: self.rows,
            positions: positions.into(),
            visibility: Visibility::Branches {
                branches: branches.into(),
                tokens: self.tokens,
            },
        }
    }

    /// Hidden states that are known already, at their places and on a device: of all sequences, or of none.
    pub(super) fn hidden(
        &self,
        sequences: &[Sequence],
        device: &Device,
    ) -> Result<Option<Tensor>, Error> {
        let known = sequences.iter().filter_map(|s| match &s.given {
            Given::Hidden(hidden) => Some(hidden),
            _ => None,
        });
        let known: Vec<&Tensor> = known.collect();
        let Some(first) = known.first() else {
            return Ok(None);
        };
        if known.len() < sequences.len() {
            let what = "some sequences of a batch are hidden states, others tokens";
            return Err(Error::Training(what.to_owned()));
        }
        let nothing = first.narrow(0, 0, 1)?.zeros_like()?;
        let mut table = vec![&nothing];
        table.extend(&known);
        let mut next = 1;
        let mut rows = |hidden: &Tensor| -> Result<Vec<u32>, Error> {
            let n = hidden.dim(0)? as u32;
            next += n;
            Ok((next - n..next).collect())
        };
        let rows: Vec<Vec<u32>> = known.iter().map(|h| rows(h)).collect::<Result<_, _>>()?;
        let source = Tensor::new(self.spread(0, rows.into_iter()), first.device())?;
        let placed = Tensor::cat(&table, 0)?.index_select(&source, 0)?;
        Ok(Some(placed.to_device(device)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[usize]) -> Packing {
        let one = |n: &usize| {
            let mut sequence = Sequence::default();
            sequence.branch((0..*n as u32).map(|token| (token, 1.0)));
            sequence
        };
        Packing::of(&lengths.iter().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn short_sequences_share_a_row() {
        let packed = of(&[3, 7, 2, 4, 5]);
        // 7; 5 and 2; 4 and 3.
        assert_eq!((packed.rows, packed.places()), (3, 21));
        assert_eq!(packed.starts, [18, 0, 12, 14, 7]);
        let lengths = [3u8, 7, 2, 4, 5].map(|n| vec![n; n.into()]);
        let row = packed.spread(0, lengths.into_iter());
        assert_eq!(row[7..], [5, 5, 5, 5, 5, 2, 2, 4, 4, 4, 4, 3, 3, 3]);
        assert_eq!((of(&[]).places(), of(&[4]).places()), (0, 4));
    }
}
