//! Reader that records reads past the end of the data.
//!
//! The decoders have five ways of saying that a file ended too early, some of them only words; this is one
//! way of knowing it.

use std::cell::Cell;
use std::io::{BufRead, Cursor, Read, Result, Seek, SeekFrom};

/// Bytes in memory, watched.
pub(super) struct Watched<'a> {
    bytes: Cursor<&'a [u8]>,
    exhausted: &'a Cell<bool>,
}

impl<'a> Watched<'a> {
    /// Reads `bytes`, and sets `exhausted` once a read beyond their end is tried.
    pub(super) fn new(bytes: &'a [u8], exhausted: &'a Cell<bool>) -> Self {
        Self {
            bytes: Cursor::new(bytes),
            exhausted,
        }
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let got = self.bytes.read(buffer)?;
        if got == 0 && !buffer.is_empty() {
            self.exhausted.set(true);
        }
        Ok(got)
    }
}

impl BufRead for Watched<'_> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        let rest = self.bytes.fill_buf()?;
        if rest.is_empty() {
            self.exhausted.set(true);
        }
        Ok(rest)
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.bytes.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_beyond_the_end_counts() {
        let exhausted = Cell::new(false);
        let mut reader = Watched::new(b"abc", &exhausted);
        let mut buffer = [0; 3];
        reader.read_exact(&mut buffer).unwrap();
        assert!(!exhausted.get());
        reader.seek(SeekFrom::Start(1)).unwrap();
        assert!(reader.read_exact(&mut buffer).is_err());
        assert!(exhausted.get());
    }
}
