//! Reads existing records line by line, for comparison with those of the current input.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::judging::run::record::Record;
use crate::judging::run::record::checksum::{FileChecksum, LineState, check_line};
use crate::support::digest::Digest;

/// Read position in the existing records.
#[derive(Debug)]
pub struct Replay {
    /// Reader of the file.
    pub reader: BufReader<File>,
    /// Byte offset of `line`.
    pub offset: u64,
    /// The next line including its line break; empty at the end of the file.
    pub line: Vec<u8>,
    /// Number of lines that matched the current input.
    pub matched_lines: u64,
}

impl Replay {
    /// Opens a file and reads its first line.
    pub fn open(path: &Path) -> io::Result<Self> {
        let reader = BufReader::new(File::open(path)?);
        let mut replay = Self { reader, offset: 0, line: Vec::new(), matched_lines: 0 };
        replay.read_line()?;
        Ok(replay)
    }

    /// Reads the next line; leaves `line` empty at the end of the file.
    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line)?;
        Ok(())
    }

    /// Advances to the next line.
    pub fn advance(&mut self) -> io::Result<()> {
        self.offset += self.line.len() as u64;
        self.matched_lines += 1;
        self.read_line()
    }

    /// Parses the current line as a record.
    pub fn parse_record(&self) -> Option<Record> {
        serde_json::from_slice(&self.line).ok()
    }
}

/// Returns the digest of a records file: the hash of the checksums of its intact lines.
pub fn records_digest(path: &Path) -> io::Result<Digest> {
    let mut checksum = FileChecksum::default();
    let mut replay = Replay::open(path)?;
    while !replay.line.is_empty() {
        if let LineState::Intact(line) = check_line(&replay.line) {
            checksum.add(line);
        }
        replay.advance()?;
    }
    Ok(checksum.digest())
}
