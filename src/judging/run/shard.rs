//! A shard: a contiguous part of the cases of a source, judged by one of several runs.
//!
//! Shard I of N has the cases from position (I − 1) · cases / N up to, but not including,
//! I · cases / N. Problems of single responses belong to the case that follows them, and answer
//! lines without a case to the last shard. So the records of all shards, one after the other, are
//! those of a run over all cases, byte for byte.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::cases::{CaseHasher, CaseResult, InputProblem};
use crate::support::digest::Digest;

/// Number of a shard, from 1, and number of all shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    of: u64,
}

/// The part of a source that a run judges, in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardInfo {
    /// Number of the shard, from 1.
    pub index: u64,
    /// Number of all shards.
    pub of: u64,
    /// Position of its first case in the source, from 0.
    pub first_case: u64,
    /// Number of its cases, unreadable ones included.
    pub cases: u64,
    /// Number of cases in all shards.
    pub source_cases: u64,
    /// Model that all others are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Frame and window of DICOM images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dicom_view: Option<String>,
}

/// Size and digest of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceScan {
    /// Number of cases to judge, unreadable ones included.
    pub cases: u64,
    /// True if all input was read; false if a limit ended it.
    pub is_whole: bool,
    /// Digest of the cases and problems.
    pub digest: Digest,
}

impl Shard {
    /// Creates shard `index` of `of`; `None` if there is no such shard.
    pub fn new(index: u64, of: u64) -> Option<Self> {
        (1..=of).contains(&index).then_some(Self { index, of })
    }

    /// Returns the number of the shard, from 1.
    pub fn index(self) -> u64 {
        self.index
    }

    /// Returns the number of all shards.
    pub fn of(self) -> u64 {
        self.of
    }

    /// Returns the positions of the cases of the shard, from 0.
    pub fn positions(self, cases: u64) -> Range<u64> {
        let bound = |i: u64| (u128::from(i) * u128::from(cases) / u128::from(self.of)) as u64;
        bound(self.index - 1)..bound(self.index)
    }

    /// Describes the part of a source with this number of cases.
    pub fn to_info(self, cases: u64) -> ShardInfo {
        let positions = self.positions(cases);
        ShardInfo {
            index: self.index,
            of: self.of,
            first_case: positions.start,
            cases: positions.end - positions.start,
            source_cases: cases,
            baseline: None,
            dicom_view: None,
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {}", self.index, self.of)
    }
}

impl fmt::Display for ShardInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {}", self.index, self.of)
    }
}

impl SourceScan {
    /// Reads all cases, or those up to a limit.
    pub fn read(
        mut cases: impl Iterator<Item = CaseResult>,
        mut hasher: CaseHasher,
        limit: Option<u64>,
    ) -> Self {
        let is_before_limit = |hasher: &CaseHasher| limit.is_none_or(|n| hasher.cases() < n);
        let mut is_whole = false;
        while is_before_limit(&hasher) && !is_whole {
            match cases.next() {
                Some(entry) => hasher.add(&entry),
                None => is_whole = true,
            }
        }
        Self { cases: hasher.cases(), is_whole, digest: hasher.digest() }
    }
}

/// Iterator over the cases of a shard. It reads the source from its start, because a reader knows
/// ids and answers that it has seen.
pub struct ShardCases<I> {
    cases: I,
    first: u64,
    /// Position after the last case; `None` to read to the end of the source.
    end: Option<u64>,
    position: u64,
}

impl<I: Iterator<Item = CaseResult>> ShardCases<I> {
    /// Selects the cases of a shard from all cases of a source.
    pub fn new(cases: I, shard: &ShardInfo, scan: &SourceScan) -> Self {
        let is_last = shard.index == shard.of;
        let end = shard.first_case + shard.cases;
        let end = (!(is_last && scan.is_whole)).then_some(end);
        Self { cases, first: shard.first_case, end, position: 0 }
    }
}

impl<I: Iterator<Item = CaseResult>> Iterator for ShardCases<I> {
    type Item = CaseResult;

    fn next(&mut self) -> Option<CaseResult> {
        loop {
            if self.end.is_some_and(|end| self.position >= end) {
                return None;
            }
            let entry = self.cases.next()?;
            let position = self.position;
            let is_case = entry.as_ref().err().is_none_or(InputProblem::affects_whole_case);
            self.position += u64::from(is_case);
            if position >= self.first {
                return Some(entry);
            }
        }
    }
}

/// Iterator that hashes the cases which it returns.
pub struct HashedCases<I> {
    cases: I,
    hasher: CaseHasher,
}

impl<I> HashedCases<I> {
    /// Wraps an iterator over cases.
    pub fn new(cases: I, hasher: CaseHasher) -> Self {
        Self { cases, hasher }
    }

    /// Returns the digest of the cases so far.
    pub fn digest(&self) -> Digest {
        self.hasher.digest()
    }
}

impl<I: Iterator<Item = CaseResult>> Iterator for HashedCases<I> {
    type Item = CaseResult;

    fn next(&mut self) -> Option<CaseResult> {
        let entry = self.cases.next()?;
        self.hasher.add(&entry);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::data::cases::{AffectedPairs, ProblemScope};

    /// Returns unreadable cases. A response problem comes before every third case, and one comes after the
    /// last.
    fn source(cases: u64) -> Vec<CaseResult> {
        let problem = |line| InputProblem::parse_error(Path::new("c"), line, None, "x");
        let of_response = |line| {
            let pairs = Box::<AffectedPairs>::default();
            Err(InputProblem {
                scope: ProblemScope::Response { model: None, pairs },
                ..problem(line)
            })
        };
        let entries = (0..cases).flat_map(|i| {
            let before = (i % 3 == 0).then(|| of_response(1000 + i));
            before.into_iter().chain([Err(problem(i))])
        });
        entries.chain([of_response(9999)]).collect()
    }

    #[test]
    fn every_entry_is_in_one_shard_in_order() {
        for (cases, of, limit) in [
            (10, 1, None),
            (10, 3, None),
            (2, 7, None),
            (0, 2, None),
            (10, 3, Some(4)),
            (4, 3, Some(4)),
        ] {
            let scan =
                SourceScan::read(source(cases).into_iter(), CaseHasher::new(PathBuf::new()), limit);
            let shards = (1..=of).map(|i| Shard::new(i, of).unwrap().to_info(scan.cases));
            let parts = shards.flat_map(|s| ShardCases::new(source(cases).into_iter(), &s, &scan));
            let mut all = source(cases);
            if limit.is_some_and(|n| n <= cases) {
                let is_last =
                    |entry: &CaseResult| entry.as_ref().unwrap_err().line == scan.cases - 1;
                let last = all.iter().position(is_last).unwrap();
                all.truncate(last + 1);
            }
            assert_eq!(parts.collect::<Vec<_>>(), all, "{cases} cases, {of} shards");
        }
    }

    #[test]
    fn sizes_of_shards_differ_by_one_at_most() {
        let sizes: Vec<u64> =
            (1..=7).map(|i| Shard::new(i, 7).unwrap().to_info(30).cases).collect();
        assert_eq!(sizes.iter().sum::<u64>(), 30);
        assert!(sizes.iter().all(|n| [4, 5].contains(n)), "{sizes:?}");
        assert_eq!((Shard::new(0, 3), Shard::new(4, 3)), (None, None));
    }
}
