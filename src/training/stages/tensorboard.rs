//! Scalars as `TensorBoard` reads them: an event file of length-prefixed, checksummed protocol buffers
//! (`tensorflow/core/lib/io/record_writer.cc`, `tensorflow/core/util/event.proto`).

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::support::terminal::clock;

/// Fields of `Event`, `Summary` and `Summary.Value` with their wire types.
const WALL_TIME: u8 = (1 << 3) | 1;
const STEP: u8 = 2 << 3;
const FILE_VERSION: u8 = (3 << 3) | 2;
const SUMMARY: u8 = (5 << 3) | 2;
const VALUE: u8 = (1 << 3) | 2;
const TAG: u8 = (1 << 3) | 2;
const SIMPLE_VALUE: u8 = (2 << 3) | 5;

/// What an event file begins with.
const VERSION: &[u8] = b"brain.Event:2";

/// An event file.
pub(crate) struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// A new event file in a folder, which may hold those of earlier runs.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let name = format!(
            "events.out.tfevents.{:.0}.{}",
            clock::unix(SystemTime::now()),
            std::process::id()
        );
        let path = folder.join(name);
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut events = Self { path, file };
        events.write(&delimited(FILE_VERSION, VERSION))?;
        Ok(events)
    }

    /// Values at a step, by their names.
    pub(crate) fn scalars<'a>(
        &mut self,
        step: u64,
        values: impl Iterator<Item = (&'a str, f64)>,
    ) -> Result<()> {
        self.write(&summary(step, values))
    }

    fn write(&mut self, event: &[u8]) -> Result<()> {
        let written = self
            .file
            .write_all(&record(clock::unix(SystemTime::now()), event));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The fields of an event with its time, framed.
fn record(seconds: f64, event: &[u8]) -> Vec<u8> {
    let mut data = vec![WALL_TIME];
    data.extend(seconds.to_le_bytes());
    data.extend(event);
    let length = (data.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked(&length).to_le_bytes());
    record.extend(&data);
    record.extend(masked(&data).to_le_bytes());
    record
}

/// The fields of an event with scalars.
fn summary<'a>(step: u64, values: impl Iterator<Item = (&'a str, f64)>) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut entry = delimited(TAG, tag.as_bytes());
        entry.push(SIMPLE_VALUE);
        entry.extend((value as f32).to_le_bytes());
        summary.extend(delimited(VALUE, &entry));
    }
    let mut event = vec![STEP];
    event.extend(varint(step));
    event.extend(delimited(SUMMARY, &summary));
    event
}

fn delimited(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut coded = vec![field];
    coded.extend(varint(bytes.len() as u64));
    coded.extend(bytes);
    coded
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The checksum of a record: CRC-32C, rotated and shifted so that a checksum of checksums is none.
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `TensorBoard`'s own writer: `assets/golden/make_tensorboard.py`.
    #[test]
    fn a_file_is_to_the_byte_what_tensorboard_writes() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/tensorboard.events");
        let mut bytes = record(1.5, &delimited(FILE_VERSION, VERSION));
        let values = [("loss", 0.5), ("validation_margin", -1.25)];
        bytes.extend(record(2.25, &summary(300, values.into_iter())));
        assert_eq!(bytes, std::fs::read(golden).unwrap());
    }

    #[test]
    fn every_run_has_a_file_of_its_own() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let mut events = Events::create(dir.path())?;
        let before = std::fs::read(&events.path)?.len();
        events.scalars(1, [("loss", 0.5)].into_iter())?;
        assert!(std::fs::read(&events.path)?.len() > before);
        Ok(())
    }
}
