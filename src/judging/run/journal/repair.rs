//! Repairs the files of a run before it resumes.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::judging::provenance::{Provenance, judge_digest};
use crate::judging::run::journal::damaged::{DAMAGED_FILE, FileScan};
use crate::judging::run::journal::superseded::SUPERSEDED_FILE;
use crate::judging::run::manifest::{self, Manifest};
use crate::judging::run::record::RECORDS;
use crate::judging::run::record::damage::Damage;
use crate::judging::run::record::line_check::LineCheck;
use crate::judging::run::replay::Replay;
use crate::support::files::folder::free_sibling_name;
use crate::support::text::format_count;

/// The first bytes of every record.
const RECORD_PREFIX: &[u8] = b"{\"schema\":";

/// What a repair found.
#[derive(Debug)]
pub(super) struct Repair {
    /// The damaged lines, which are now in another file.
    pub(super) damage: Damage,
    /// Number of records without checksum, which could not be checked.
    pub(super) unchecked: u64,
    /// True if the last line of the records was torn, because the earlier run was killed.
    pub(super) was_torn: bool,
}

impl Repair {
    /// Checks the records of a folder and moves damaged lines to another file.
    ///
    /// # Errors
    ///
    /// The records belong to another judge or program: then no file is changed.
    pub(super) fn of(folder: &Path, provenance: &Provenance) -> Result<Self> {
        let judge = judge_digest(provenance).short_hex();
        let manifest = Manifest::read_if_exists(folder).ok().flatten();
        let promises_checksums = manifest.as_ref().is_some_and(|m| m.record_checksums);
        let is_own_folder = manifest.is_some_and(|m| m.judge_sha256.short_hex() == judge);
        let hint = format!(
            "hint: use another folder, for example --out {}",
            free_sibling_name(folder).display()
        );
        let mut repair = Self { damage: Damage::default(), unchecked: 0, was_torn: false };
        for name in [RECORDS, SUPERSEDED_FILE] {
            let path = folder.join(name);
            if !path.exists() {
                continue;
            }
            let check = LineCheck::for_file(&path, promises_checksums)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let scan = FileScan::read(&path, check, &judge, &hint)?;
            if name == RECORDS && !is_own_folder && !scan.has_own() {
                check_owner(folder, &scan, provenance, &hint)?;
            }
            repair.unchecked += scan.count_unchecked();
            scan.repair(&path, folder)?;
            repair.was_torn |= scan.is_torn && name == RECORDS;
            for mut line in scan.into_damaged() {
                if name == SUPERSEDED_FILE {
                    line.problem = format!("in {SUPERSEDED_FILE}: {}", line.problem);
                }
                repair.damage.add(line);
            }
        }
        Ok(repair)
    }

    /// Describes the repair for the user, one note per line. `path`: that of the records.
    pub(super) fn describe(&self, path: &Path) -> Vec<String> {
        let mut notes = Vec::new();
        if self.was_torn {
            let note = "the last record of an interrupted run is incomplete; judging it again";
            notes.push(note.to_owned());
        }
        if self.unchecked > 0 {
            notes.push(format!(
                "{}: {} without checksum could not be checked and {} used as found (an earlier \
                 version wrote none); to judge again, use a new folder",
                path.display(),
                format_count(self.unchecked, "record"),
                if self.unchecked == 1 { "is" } else { "are" }
            ));
        }
        if self.damage.count() > u64::from(self.was_torn) {
            let lines = format_count(self.damage.count(), "damaged line");
            notes.push(format!(
                "{}: {lines} set aside in {DAMAGED_FILE}, their cases are judged again: {}",
                path.display(),
                self.damage.describe()
            ));
        }
        notes
    }
}

/// Rejects records of another judge, or a file of another program.
fn check_owner(folder: &Path, scan: &FileScan, provenance: &Provenance, hint: &str) -> Result<()> {
    let path = folder.join(RECORDS);
    if scan.has_foreign() {
        bail!(
            "{}: contains verdicts of another judge{}\n{hint}; or use the earlier settings to \
             resume",
            path.display(),
            manifest::describe_differences(folder, provenance)
        );
    }
    let line = Replay::open(&path).with_context(|| format!("cannot read {}", path.display()))?.line;
    // The first record may be torn before or in its first field.
    let is_record = line.starts_with(RECORD_PREFIX) || RECORD_PREFIX.starts_with(&line);
    ensure!(is_record, "{} line 1: not a record\n{hint}", path.display());
    Ok(())
}
