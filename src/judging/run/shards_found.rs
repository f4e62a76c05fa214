//! The shards of a run that a command reads: one, several, or all.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::judging::run::manifest::Manifest;

/// Maximum number of missing shards that a message lists.
const MAX_LISTED: usize = 5;

/// Shards of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardsFound {
    /// Numbers of the shards that were read, from 1.
    pub indices: BTreeSet<u64>,
    /// Number of all shards.
    pub of: u64,
    /// Judge, source and settings: equal for shards of one run.
    #[serde(skip)]
    run: String,
}

impl ShardsFound {
    /// Returns the shard of a manifest; `None` if its run judges all cases.
    pub fn from_manifest(manifest: &Manifest) -> Option<Self> {
        let shard = manifest.shard.as_ref()?;
        let run = format!(
            "{} {:?} {} {:?} {:?}",
            manifest.judge_sha256,
            manifest.source.digest,
            shard.source_cases,
            shard.baseline,
            shard.dicom_view
        );
        Some(Self { indices: BTreeSet::from([shard.index]), of: shard.of, run })
    }

    /// Returns true if no shard is missing.
    pub fn is_all(&self) -> bool {
        self.indices.len() as u64 == self.of
    }

    /// Returns the flags that select the missing shards, for messages.
    pub fn missing_flags(&self) -> String {
        let missing = (1..=self.of).filter(|index| !self.indices.contains(index));
        let flags: Vec<String> =
            missing.map(|index| format!("--shard {index}/{}", self.of)).take(MAX_LISTED).collect();
        let others = self.of - self.indices.len() as u64 - flags.len() as u64;
        let others = if others == 0 { String::new() } else { format!(" and {others} others") };
        flags.join(", ") + &others
    }

    /// Returns true if these are other shards of the same run.
    pub fn belongs_with(&self, other: &Self) -> bool {
        self.run == other.run && self.of == other.of && self.indices.is_disjoint(&other.indices)
    }

    /// Adds other shards.
    pub fn add(&mut self, other: Self) {
        self.indices.extend(other.indices);
    }
}

impl fmt::Display for ShardsFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.indices.len() == 1 { "" } else { "s" };
        let indices: Vec<String> = self.indices.iter().map(u64::to_string).collect();
        write!(f, "shard{plural} {} of {}", indices.join(", "), self.of)
    }
}
