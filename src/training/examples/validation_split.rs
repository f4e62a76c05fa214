//! Validation split of the items of a file.

use std::collections::HashMap;
use std::hash::Hash;

use crate::support::digest::fnv1a;
use crate::training::config::validation_indices::VALIDATION_EXAMPLES;

/// Version of the choice of validation items. The hash of a training's data covers it, so that a
/// training that was started with another choice is not resumed.
pub(crate) const SPLIT_VERSION: &str = "validation split 2";

/// Training items of a file, followed by its validation split.
pub(crate) struct SplitItems<T> {
    /// All items; the validation split is at the end.
    pub(crate) items: Vec<T>,
    /// Number of training items.
    pub(crate) training_count: usize,
}

/// Block of consecutive items of a group, one of which validates.
#[derive(Clone, Copy)]
struct Blocks {
    /// Number of items of a block.
    length: usize,
    /// Number of blocks.
    count: usize,
}

impl Blocks {
    /// Divides a group with this number of items.
    fn of(items: usize) -> Self {
        let count = (items / 10).clamp(1, VALIDATION_EXAMPLES as usize);
        Self { length: (items / count).max(1), count }
    }

    /// Returns true if the item at this position of its group validates.
    fn is_validation(self, position: usize) -> bool {
        let block = position / self.length;
        let chosen = fnv1a(&block.to_string()) % self.length as u64;
        block < self.count && (position % self.length) as u64 == chosen
    }
}

impl<T> SplitItems<T> {
    /// Splits off a tenth of the items of each group, at least one and at most
    /// [`VALIDATION_EXAMPLES`], for validation. `group` returns the group of an item, such as the
    /// member that trains on it.
    ///
    /// The validation items of a group are spread over the file, because a file may be sorted by
    /// length or quality: the group is cut into blocks of equal length, and one item of each block
    /// validates. Its place in the block differs from block to block, because items of several kinds
    /// may take turns in a file. The choice depends on nothing but the order of the items. A group of
    /// one item trains, unless there is no other group.
    pub(crate) fn by_group<G: Eq + Hash>(items: Vec<T>, group: impl Fn(&T) -> G) -> Self {
        let mut sizes: HashMap<G, usize> = HashMap::new();
        for item in &items {
            *sizes.entry(group(item)).or_default() += 1;
        }
        let mut positions: HashMap<G, usize> = HashMap::new();
        let is_validation = |item: &T| {
            let key = group(item);
            let size = sizes.get(&key).copied().unwrap_or_default();
            let next = positions.entry(key).or_default();
            let position = *next;
            *next += 1;
            (size > 1 || sizes.len() == 1) && Blocks::of(size).is_validation(position)
        };
        let (validation, mut items): (Vec<T>, Vec<T>) = items.into_iter().partition(is_validation);
        let training_count = items.len();
        items.extend(validation);
        Self { items, training_count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<T>(items: Vec<T>) -> SplitItems<T> {
        SplitItems::by_group(items, |_| ())
    }

    #[test]
    fn one_item_of_each_block_validates() {
        let split_items = split((0..40).collect());
        assert_eq!(split_items.training_count, 36);
        let blocks: Vec<usize> = split_items.items[36..].iter().map(|item| item / 10).collect();
        assert_eq!(blocks, [0, 1, 2, 3]);
        let large = split((0..10_000).collect());
        let validation: Vec<usize> = large.items[large.training_count..].to_vec();
        assert_eq!(validation.len(), VALIDATION_EXAMPLES as usize);
        let blocks: Vec<usize> = validation.iter().map(|item| item / 208).collect();
        assert_eq!(blocks, (0..48).collect::<Vec<_>>());
        // Items of several kinds in turn are all among them.
        for period in [2, 3, 4, 8, 10] {
            let kinds: std::collections::HashSet<usize> =
                validation.iter().map(|item| item % period).collect();
            assert_eq!(kinds.len(), period, "{period}");
        }
        let single = split(vec![7]);
        assert_eq!((single.items, single.training_count), (vec![7], 0));
        let empty = split(Vec::<u8>::new());
        assert_eq!((empty.items.len(), empty.training_count), (0, 0));
    }

    #[test]
    fn every_group_has_validation_items() {
        // Four members in turn, of which the third is left out now and then.
        let items: Vec<usize> = (0..396).map(|i| i % 4).filter(|i| *i != 2).collect();
        let items: Vec<usize> = items.into_iter().chain([2; 99]).chain([9]).collect();
        let split = SplitItems::by_group(items, |item| *item);
        let (training, validation) = split.items.split_at(split.training_count);
        let count = |items: &[usize], group| items.iter().filter(|item| **item == group).count();
        for group in 0..4 {
            assert_eq!((count(training, group), count(validation, group)), (90, 9));
        }
        // A single item of a group trains.
        assert_eq!((count(training, 9), count(validation, 9)), (1, 0));
    }
}
