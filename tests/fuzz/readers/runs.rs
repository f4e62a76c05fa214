//! The folder of a run: reading its records and resuming it; and calibrations.

use std::path::Path;

use acem3::analysis::calibration::Calibration;
use acem3::analysis::verdicts::{self, ScoreKind};
use acem3::judging::provenance::Provenance;
use acem3::judging::run::journal::Journal;
use acem3::judging::run::manifest::{MANIFEST, Manifest};
use acem3::judging::run::record::checksum::append_checksum;
use acem3::judging::run::record::record_reader::RecordReader;
use acem3::judging::run::record::{RECORDS, Record};

use super::bundle::Bundle;

/// Start of the checksum in a line.
const CHECKSUM: &str = ",\"checksum\":";

/// Reads records, without and with valid checksums: a mutation alone never gets past these.
pub fn read_records(bytes: &[u8]) -> bool {
    let bundle = Bundle::of_parts(&[RECORDS, MANIFEST], bytes);
    let is_readable = read_folder(bundle.folder());
    let signed = std::fs::read(bundle.folder().join(RECORDS)).unwrap_or_default();
    let signed = Bundle::of_file(RECORDS, sign_lines(&signed).as_bytes());
    read_folder(signed.folder()) || is_readable
}

/// Gives each line its checksum.
fn sign_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let sign = |line: &str| match line.rsplit_once(CHECKSUM) {
        Some((fields, _)) => append_checksum(&format!("{fields}}}")),
        None => line.to_owned(),
    };
    text.lines().map(|line| sign(line) + "\n").collect()
}

/// Reads the records as the analyses do.
fn read_folder(folder: &Path) -> bool {
    let verdicts = verdicts::read(folder, ScoreKind::Expected);
    let Ok(mut reader) = RecordReader::open(folder, |record: Record, _| Ok(record)) else {
        return false;
    };
    let lines = reader.by_ref().map(|record| record.is_ok_and(|r| r.to_line().is_ok()));
    let is_any_read = lines.fold(false, |any, is_read| any | is_read);
    reader.state();
    verdicts.is_ok() || is_any_read
}

/// Resumes a run on its own records, and once more.
pub fn resume_journal(bytes: &[u8]) -> bool {
    let names = [MANIFEST, RECORDS, "records.aside.jsonl"];
    let bundle = Bundle::of_parts(&names, bytes);
    let folder = bundle.folder();
    let manifest = std::fs::read(folder.join(MANIFEST)).unwrap_or_default();
    let provenance = match serde_json::from_slice::<Manifest>(&manifest) {
        Ok(manifest) => manifest.provenance,
        Err(_) => Provenance::from([("panel".to_owned(), "p".to_owned())]),
    };
    let lines = std::fs::read(folder.join(RECORDS)).unwrap_or_default();
    let records = lines.split(|byte| *byte == b'\n');
    let records: Vec<Record> = records.filter_map(|l| serde_json::from_slice(l).ok()).collect();
    let is_resumed = resume(folder, &provenance, &records).is_ok();
    // A different input: the first record is missing.
    let rest = records.get(1..).unwrap_or_default();
    let is_resumed_again = resume(folder, &provenance, rest).is_ok();
    is_resumed && is_resumed_again
}

fn resume(folder: &Path, provenance: &Provenance, records: &[Record]) -> anyhow::Result<()> {
    let mut journal = Journal::open(folder, provenance)?;
    journal.describe_repair();
    for record in records {
        if let Some(key) = &record.subject.key {
            journal.lookup(key)?;
        }
        journal.append(record)?;
    }
    journal.finish()?;
    journal.records_digest()?;
    Ok(())
}

/// Reads a calibration.
pub fn read_calibration(bytes: &[u8]) -> bool {
    let bundle = Bundle::of_file("a.json", bytes);
    match bundle.read("a.json", Calibration::read) {
        Ok(calibration) => {
            for map in calibration.targets.values() {
                for score in [-1.0, 0.0, 2.5, 5.0, f64::NAN] {
                    map.curve.eval(score);
                }
            }
            true
        }
        Err(_) => false,
    }
}
