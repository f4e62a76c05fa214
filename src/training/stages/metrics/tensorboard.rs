//! `TensorBoard` event files: scalars in a file of length-prefixed, checksummed protocol buffers
//! (`tensorflow/core/lib/io/record_writer.cc`, `tensorflow/core/util/event.proto`).

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::support::terminal::clock;

/// Field numbers of `Event`, `Summary` and `Summary.Value` with their wire types.
const WALL_TIME: u8 = (1 << 3) | 1;
const STEP: u8 = 2 << 3;
const FILE_VERSION: u8 = (3 << 3) | 2;
const SUMMARY: u8 = (5 << 3) | 2;
const VALUE: u8 = (1 << 3) | 2;
const TAG: u8 = (1 << 3) | 2;
const SIMPLE_VALUE: u8 = (2 << 3) | 5;

/// Content of the first event of a file.
const VERSION: &[u8] = b"brain.Event:2";

/// An event file.
pub(crate) struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// Creates an event file in a folder, which may contain the files of earlier runs.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let name = format!(
            "events.out.tfevents.{:.0}.{}",
            clock::unix_seconds(SystemTime::now()),
            std::process::id()
        );
        let path = folder.join(name);
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut events = Self { path, file };
        events.write(&delimited(FILE_VERSION, VERSION))?;
        Ok(events)
    }

    /// Appends named values of a step.
    pub(crate) fn write_scalars<'a>(
        &mut self,
        step: u64,
        values: impl Iterator<Item = (&'a str, f64)>,
    ) -> Result<()> {
        self.write(&summary(step, values))
    }

    /// Appends an event with the current time.
    fn write(&mut self, event: &[u8]) -> Result<()> {
        let result = self.file.write_all(&record(clock::unix_seconds(SystemTime::now()), event));
        result.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Encodes a record: an event with its time, framed by lengths and checksums.
fn record(seconds: f64, event: &[u8]) -> Vec<u8> {
    let mut data = vec![WALL_TIME];
    data.extend(seconds.to_le_bytes());
    data.extend(event);
    let length = (data.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(&data);
    record.extend(masked_crc(&data).to_le_bytes());
    record
}

/// Encodes an event with scalars.
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

/// Encodes a length-delimited field.
fn delimited(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![field];
    encoded.extend(varint(bytes.len() as u64));
    encoded.extend(bytes);
    encoded
}

/// Encodes a number as a base-128 varint.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Computes the masked CRC-32C of a record. Stored checksums are masked, because a checksum of data
/// that contain their own checksum is unreliable.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TensorBoard`'s own writer wrote the golden file (`assets/golden/make_tensorboard.py`).
    #[test]
    fn file_equals_tensorboard_reference() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/tensorboard.events");
        let mut bytes = record(1.5, &delimited(FILE_VERSION, VERSION));
        let values = [("loss", 0.5), ("validation_margin", -1.25)];
        bytes.extend(record(2.25, &summary(300, values.into_iter())));
        assert_eq!(bytes, std::fs::read(golden).unwrap());
    }

    #[test]
    fn event_file_receives_scalars() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let mut events = Events::create(dir.path())?;
        let before = std::fs::read(&events.path)?.len();
        events.write_scalars(1, [("loss", 0.5)].into_iter())?;
        assert!(std::fs::read(&events.path)?.len() > before);
        Ok(())
    }
}
