//! The records that were there before, compared line by line with those the input asks for.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::judging::run::record::Record;

/// The records that are there already, as far as they have been compared.
#[derive(Debug)]
pub struct Replay {
    /// The file.
    pub reader: BufReader<File>,
    /// Where `line` starts, in bytes.
    pub offset: u64,
    /// The next line with its break; empty at the end of the file.
    pub line: Vec<u8>,
    /// How many lines were kept.
    pub kept: u64,
}

impl Replay {
    /// The first line of a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let reader = BufReader::new(File::open(path)?);
        let mut replay = Self {
            reader,
            offset: 0,
            line: Vec::new(),
            kept: 0,
        };
        replay.read()?;
        Ok(replay)
    }

    /// Reads the next line; leaves `line` empty at the end of the file.
    fn read(&mut self) -> io::Result<()> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line)?;
        Ok(())
    }

    /// Goes on to the next line.
    pub fn keep(&mut self) -> io::Result<()> {
        self.offset += self.line.len() as u64;
        self.kept += 1;
        self.read()
    }

    /// The record in the line, if it is one.
    pub fn record(&self) -> Option<Record> {
        serde_json::from_slice(&self.line).ok()
    }
}
