//! Work on all CPU cores, with results in order.

use std::ops::Range;

use acem3_experts::Error;
use acem3_experts::train::parallel_map;
use anyhow::Result;

/// Calls `sample` for every index.
pub(crate) fn sample_parallel<T: Send>(
    indices: Range<u64>,
    sample: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    map_parallel(&indices.collect::<Vec<_>>(), |index| sample(*index))
}

/// Calls `map` for every item.
pub(crate) fn map_parallel<S: Sync, T: Send>(
    items: &[S],
    map: impl Fn(&S) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results =
        parallel_map(items, |item| map(item).map_err(|e| Error::Training(format!("{e:#}"))));
    Ok(results.into_iter().collect::<Result<_, Error>>()?)
}
