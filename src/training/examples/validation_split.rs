//! Validation split of the items of a file.

use crate::training::config::validation_indices::VALIDATION_EXAMPLES;

/// Training items of a file, followed by its validation split.
pub(crate) struct SplitItems<T> {
    /// All items; the validation split is at the end.
    pub(crate) items: Vec<T>,
    /// Number of training items.
    pub(crate) training_count: usize,
}

impl<T> SplitItems<T> {
    /// Splits off a tenth of the items, at most [`VALIDATION_EXAMPLES`], for validation. The
    /// validation items are evenly spaced over the file, because a file may be sorted by member,
    /// length or quality.
    pub(crate) fn new(items: Vec<T>) -> Self {
        let n = (items.len() / 10).clamp(1, VALIDATION_EXAMPLES as usize);
        let stride = items.len().checked_div(n).unwrap_or_default().max(1);
        let mut position = 0;
        let is_validation = |_: &T| {
            position += 1;
            position % stride == 0 && position / stride <= n
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

    #[test]
    fn validation_items_are_evenly_spaced() {
        let split = SplitItems::new((1..=40).collect());
        assert_eq!(split.training_count, 36);
        assert_eq!(split.items[36..], [10, 20, 30, 40]);
        assert_eq!(split.items[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
        let split = SplitItems::new((0..10_000).collect());
        let validation = &split.items[split.training_count..];
        assert_eq!(validation.len(), VALIDATION_EXAMPLES as usize);
        assert!(validation.windows(2).all(|pair| pair[1] - pair[0] == 208));
        let single = SplitItems::new(vec![7]);
        assert_eq!((single.items, single.training_count), (vec![7], 0));
        let empty = SplitItems::<u8>::new(Vec::new());
        assert_eq!((empty.items.len(), empty.training_count), (0, 0));
    }
}
