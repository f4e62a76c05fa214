//! Batches of items of equal size, so that no padding is needed.

use std::collections::BTreeMap;

/// Returns the indices of `items` in batches of equal `size`, with at most `most` items each.
pub(super) fn batches<T, K: Ord>(
    items: &[T],
    size: impl Fn(&T) -> K,
    most: impl Fn(&K) -> usize,
) -> Vec<Vec<usize>> {
    let mut equal: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        equal.entry(size(item)).or_default().push(i);
    }
    let cut = |(size, places): (&K, &Vec<usize>)| -> Vec<Vec<usize>> {
        places
            .chunks(most(size).max(1))
            .map(<[usize]>::to_vec)
            .collect()
    };
    equal.iter().flat_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_in_one_batch_of_equal_sizes() {
        let items = ["a", "bb", "c", "dd", "e"];
        let found = batches(&items, |text| text.len(), |_| 2);
        assert_eq!(found, [vec![0, 2], vec![4], vec![1, 3]]);
    }
}
