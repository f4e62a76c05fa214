//! Runs independent work on all processors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use candle::Device;

use crate::Error;

/// Runs a device's work on every item, results in the items' order: as [`in_parallel`] on the CPU, and elsewhere one
/// after the other, so that the device holds the values of one item alone.
pub fn on_device<S: Sync, T: Send>(
    device: &Device,
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    if device.is_cpu() {
        in_parallel(items, work)
    } else {
        items.iter().map(work).collect()
    }
}

/// Runs work on every item, as many at once as there are processors, results in the items' order.
///
/// Each worker has a pool of one thread: the items are the parallelism, and a kernel that spread
/// itself over the processors as well would only make them wait for each other.
pub fn in_parallel<S: Sync, T: Send>(
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let mut results = Vec::with_capacity(items.len());
    let ended = in_order(items, work, |result| {
        results.push(result);
        Ok(())
    });
    results.extend(ended.err().map(Err));
    results
}

/// The same, each result being taken as soon as all before it are: of results that are only added up, those of a few
/// items are in memory at a time. What `take` refuses ends the work.
pub(super) fn in_order<S: Sync, T: Send>(
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
    mut take: impl FnMut(Result<T, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(items.len());
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::channel();
    let run = |done: mpsc::Sender<(usize, Result<T, Error>)>| {
        while let Some((i, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            if done.send((i, work(item))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let spawn = |_| {
            let done = done.clone();
            let run = &run;
            scope.spawn(move || single_threaded(|| run(done)))
        };
        let handles: Vec<_> = (0..workers).map(spawn).collect();
        drop(done);
        let ended = taken(results, items.len(), &mut take);
        // A worker that has panicked has sent nothing, which is an error already.
        for handle in handles {
            drop(handle.join());
        }
        ended
    })
}

/// Takes results in the order of their numbers, of which there are so many.
fn taken<T>(
    results: mpsc::Receiver<(usize, Result<T, Error>)>,
    n: usize,
    take: &mut impl FnMut(Result<T, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut early, mut next) = (BTreeMap::new(), 0);
    for (i, result) in results {
        early.insert(i, result);
        while let Some(result) = early.remove(&next) {
            take(result)?;
            next += 1;
        }
    }
    if next < n {
        return Err(Error::Training("a worker stopped".to_owned()));
    }
    Ok(())
}

fn single_threaded<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
