//! Batches of items of equal size, so that no padding is needed.

use std::collections::BTreeMap;

/// Returns the indices of `items` in batches of equal `size`, with at most `max_items(size)` items
/// each.
pub(crate) fn equal_size_batches<T, K: Ord>(
    items: &[T],
    size: impl Fn(&T) -> K,
    max_items: impl Fn(&K) -> usize,
) -> Vec<Vec<usize>> {
    let mut by_size: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        by_size.entry(size(item)).or_default().push(i);
    }
    let chunks = |(size, indices): (&K, &Vec<usize>)| -> Vec<Vec<usize>> {
        indices.chunks(max_items(size).max(1)).map(<[usize]>::to_vec).collect()
    };
    by_size.iter().flat_map(chunks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_in_one_batch_of_equal_sizes() {
        let items = ["a", "bb", "c", "dd", "e"];
        let batches = equal_size_batches(&items, |text| text.len(), |_| 2);
        assert_eq!(batches, [vec![0, 2], vec![4], vec![1, 3]]);
    }
}
