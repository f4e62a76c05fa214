//! Limits the bytes that a table reader reads for one row.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reader that fails after a number of bytes, until [`RowBudget::renew`].
pub(crate) struct RowLimitedReader<R> {
    reader: R,
    budget: RowBudget,
}

/// Bytes that may be read for the current row.
#[derive(Clone)]
pub(crate) struct RowBudget {
    left: Arc<AtomicUsize>,
    max_bytes: usize,
}

impl RowBudget {
    /// Creates a budget of `max_bytes` for each row.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(max_bytes)), max_bytes }
    }

    /// Starts a new row.
    pub(crate) fn renew(&self) {
        self.left.store(self.max_bytes, Ordering::Relaxed);
    }

    /// Returns true if the row is longer than allowed.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Limits a reader.
    pub(crate) fn limit<R>(&self, reader: R) -> RowLimitedReader<R> {
        RowLimitedReader { reader, budget: self.clone() }
    }
}

impl<R: Read> Read for RowLimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.budget.left.load(Ordering::Relaxed);
        let length = buffer.len().min(left);
        if length == 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the row is too long"));
        }
        let read = self.reader.read(&mut buffer[..length])?;
        self.budget.left.store(left - read, Ordering::Relaxed);
        Ok(read)
    }
}
