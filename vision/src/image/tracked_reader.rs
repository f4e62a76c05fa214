//! Reader that records reads past the end of the data.
//!
//! Each decoder reports truncated files differently, some only in the text of the error. This
//! reader detects truncation in the same way for all decoders.

use std::cell::Cell;
use std::io::{BufRead, Cursor, Read, Result, Seek, SeekFrom};

/// Reader of bytes in memory that records reads past their end.
pub(super) struct TrackedReader<'a> {
    bytes: Cursor<&'a [u8]>,
    exhausted: &'a Cell<bool>,
}

impl<'a> TrackedReader<'a> {
    /// Creates a reader of `bytes` that sets `exhausted` at the first read past their end.
    pub(super) fn new(bytes: &'a [u8], exhausted: &'a Cell<bool>) -> Self {
        Self { bytes: Cursor::new(bytes), exhausted }
    }
}

impl Read for TrackedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.bytes.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            self.exhausted.set(true);
        }
        Ok(read)
    }
}

impl BufRead for TrackedReader<'_> {
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

impl Seek for TrackedReader<'_> {
    fn seek(&mut self, position: SeekFrom) -> Result<u64> {
        self.bytes.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_past_the_end_is_recorded() {
        let exhausted = Cell::new(false);
        let mut reader = TrackedReader::new(b"abc", &exhausted);
        let mut buffer = [0; 3];
        reader.read_exact(&mut buffer).unwrap();
        assert!(!exhausted.get());
        reader.seek(SeekFrom::Start(1)).unwrap();
        assert!(reader.read_exact(&mut buffer).is_err());
        assert!(exhausted.get());
    }
}
