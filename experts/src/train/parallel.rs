//! Parallel processing of independent items on all processors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use candle::Device;

use crate::Error;

/// Runs `work` on every item and returns the results in the order of the items. Uses
/// [`parallel_map`] on the CPU. On other devices it runs one item at a time, so that only the
/// values of one item are in device memory.
pub fn map_on_device<S: Sync, T: Send>(
    device: &Device,
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    if device.is_cpu() { parallel_map(items, work) } else { items.iter().map(work).collect() }
}

/// Runs `work` on every item, with one worker per processor, and returns the results in the order
/// of the items.
///
/// Each worker has a rayon pool of one thread. The items already use all processors, and kernels
/// with more threads would compete for them.
pub fn parallel_map<S: Sync, T: Send>(
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let mut results = Vec::with_capacity(items.len());
    let outcome = parallel_for_each_in_order(items, work, |result| {
        results.push(result);
        Ok(())
    });
    results.extend(outcome.err().map(Err));
    results
}

/// Runs `work` on every item in parallel and passes the results to `consume` in the order of the
/// items, each as soon as possible. If `consume` only accumulates results, few of them are in
/// memory at the same time. The first error of `consume` stops the work.
pub(super) fn parallel_for_each_in_order<S: Sync, T: Send>(
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
    mut consume: impl FnMut(Result<T, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next_item = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    let run_worker = |sender: mpsc::Sender<(usize, Result<T, Error>)>| {
        while let Some((i, item)) =
            Some(next_item.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            if sender.send((i, work(item))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let spawn = |_| {
            let sender = sender.clone();
            let run_worker = &run_worker;
            scope.spawn(move || run_single_threaded(|| run_worker(sender)))
        };
        let handles: Vec<_> = (0..workers).map(spawn).collect();
        drop(sender);
        let outcome = for_each_in_order(results, items.len(), &mut consume);
        // Ignore panics: the missing result of a panicked worker is already an error.
        for handle in handles {
            drop(handle.join());
        }
        outcome
    })
}

/// Receives `n` numbered results and passes them to `consume` in order.
fn for_each_in_order<T>(
    results: mpsc::Receiver<(usize, Result<T, Error>)>,
    n: usize,
    consume: &mut impl FnMut(Result<T, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut pending, mut next) = (BTreeMap::new(), 0);
    for (i, result) in results {
        pending.insert(i, result);
        while let Some(result) = pending.remove(&next) {
            consume(result)?;
            next += 1;
        }
    }
    if next < n {
        return Err(Error::Training(
            "a worker thread stopped before it returned a result".to_owned(),
        ));
    }
    Ok(())
}

/// Runs `work` in a rayon pool of one thread.
fn run_single_threaded<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
