//! Counts what is in progress.

use std::sync::atomic::{AtomicU32, Ordering};

/// Raises a count while it lives, also if its future is dropped.
pub(super) struct CountGuard<'a>(&'a AtomicU32);

impl<'a> CountGuard<'a> {
    /// Raises a count.
    pub(super) fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
