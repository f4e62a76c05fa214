//! Reading records back, many lines at once.

use std::collections::{BTreeSet, HashMap};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use rayon::prelude::*;
use serde::de::DeserializeOwned;

use super::slim::{ExpectedCriteria, Skipped, SlimRecord, SlimStatus};
use super::verdict::{PairVerdict, ScoreKind, TargetScoreMap, chosen, expected};
use crate::data::cases::Lines;
use crate::data::labels::{LabelEntry, own};
use crate::judging::run::journal::RECORDS;
use crate::judging::run::manifest::Manifest;
use crate::judging::run::record::{Record, SCHEMA};
use crate::support::files::regular_file;

/// So many lines are held at once.
const BATCH: usize = 2048;

/// The verdicts of one judge.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// The file they are from.
    pub path: PathBuf,
    /// The judge's hash, as records have it.
    pub judge: String,
    /// The judge's name, where the manifest lies beside the records; else its hash.
    pub name: String,
    /// The pairs.
    pub pairs: Vec<PairVerdict>,
    /// The labels that the records carry.
    pub labels: Vec<LabelEntry>,
    /// Records that are about no pair: cases that could not be read.
    pub without_pair: usize,
    /// Whether the last record was not whole, and left out: a run is writing it, or was ended as it did.
    pub torn: bool,
}

/// Reads the records of a file, or of the folder that `acem3 judge` wrote.
///
/// # Errors
///
/// If it cannot be read, holds a line that is no record, verdicts of several judges, or two on one pair.
pub fn read(path: &Path, kind: ScoreKind) -> Result<Verdicts> {
    let path = if path.is_dir() {
        path.join(RECORDS)
    } else {
        path.to_owned()
    };
    let place = || format!("records {} cannot be opened", path.display());
    let hint = "hint: expected the folder that `acem3 judge --out` wrote, or its records.jsonl";
    let file = regular_file::open(&path).with_context(|| format!("{}\n{hint}", place()))?;
    let mut lines = Lines::new(BufReader::with_capacity(1 << 20, file));
    let (mut judges, mut verdicts) = (BTreeSet::new(), Verdicts::empty(&path));
    loop {
        let batch: Vec<_> = lines.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        let parsed: Vec<Result<ParsedRecord>> = batch
            .par_iter()
            .map(|(number, line)| {
                let text = line.as_deref().map_err(String::as_str);
                parse(&path, *number, text, kind)
            })
            .collect();
        for ((number, _), read) in batch.iter().zip(parsed) {
            if read.is_err() && lines.is_torn(*number) {
                verdicts.torn = true;
                continue;
            }
            let read = read?;
            judges.insert(read.judge);
            verdicts.labels.extend(read.labels);
            verdicts.without_pair += usize::from(read.verdict.is_none() && !read.noted);
            verdicts.pairs.extend(read.verdict);
        }
    }
    verdicts.check(&judges)?;
    verdicts.judge = judges.into_iter().next().unwrap_or_default();
    verdicts.name = name(&path, &verdicts.judge);
    Ok(verdicts)
}

/// The verdicts of records that were made just now, read as those of a file are; `path` is what they are
/// about.
///
/// # Errors
///
/// If there is no pair in them, or two verdicts on one.
pub fn of_records(
    path: &Path,
    judge: &str,
    records: impl Iterator<Item = Record>,
) -> Result<Verdicts> {
    let mut verdicts = Verdicts::empty(path);
    judge.clone_into(&mut verdicts.name);
    for (record, number) in records.zip(1..) {
        let line = record.line()?;
        let read = parse(path, number, Ok(&line), ScoreKind::Chosen)?;
        verdicts.judge = read.judge;
        verdicts.labels.extend(read.labels);
        verdicts.pairs.extend(read.verdict);
    }
    verdicts.check(&BTreeSet::new())?;
    Ok(verdicts)
}

/// What a record tells.
struct ParsedRecord {
    judge: String,
    /// Where there was a pair.
    verdict: Option<PairVerdict>,
    /// The labels it carries.
    labels: Vec<LabelEntry>,
    /// Whether it tells of a fault that cost no verdict.
    noted: bool,
}

fn parse(
    path: &Path,
    number: u64,
    line: Result<&str, &str>,
    kind: ScoreKind,
) -> Result<ParsedRecord> {
    let place = || format!("{} line {number}", path.display());
    let text = line.map_err(|fault| anyhow!("{}: {fault}", place()))?;
    let read = match kind {
        ScoreKind::Chosen => of::<Skipped>(text, number, chosen),
        ScoreKind::Expected => of::<ExpectedCriteria>(text, number, expected),
    };
    let (schema, read) = read.with_context(|| {
        let hint = "hint: expected the records.jsonl that `acem3 judge --out` wrote";
        format!("{}: not a record\n{hint}", place())
    })?;
    if schema > SCHEMA {
        bail!(
            "{}: written by a newer program (schema {schema}, this one knows {SCHEMA})\n\
             hint: update this program",
            place()
        );
    }
    if let Some(score) = read.verdict.as_ref().and_then(PairVerdict::beyond) {
        bail!(
            "{}: a score of {score}, expected 0 to 5\n\
             hint: the line was changed since `acem3 judge` wrote it; delete it, and the same command makes it anew",
            place()
        );
    }
    Ok(read)
}

/// A line of this form, with the version it is written in.
fn of<A: DeserializeOwned>(
    text: &str,
    number: u64,
    scores: fn(&SlimRecord<A>) -> Option<TargetScoreMap>,
) -> serde_json::Result<(u32, ParsedRecord)> {
    let mut line: SlimRecord<A> = serde_json::from_str(text)?;
    let labels = own(
        line.case.as_deref(),
        line.pair.as_ref(),
        line.labels.as_ref(),
        line.line,
    );
    let (schema, judge) = (line.schema, std::mem::take(&mut line.judge));
    let (scores, noted) = (scores(&line), line.status == SlimStatus::Noted);
    let read = ParsedRecord {
        judge,
        verdict: PairVerdict::of(line, scores, number),
        labels,
        noted,
    };
    Ok((schema, read))
}

/// What the manifest beside the records calls the judge.
fn name(path: &Path, judge: &str) -> String {
    let manifest = path.parent().and_then(|folder| Manifest::read(folder).ok());
    let same = manifest.filter(|m| m.judge_sha256.short() == judge);
    same.map_or_else(|| judge.to_owned(), |m| m.judge)
}

impl Verdicts {
    fn empty(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            judge: String::new(),
            name: String::new(),
            pairs: Vec::new(),
            labels: Vec::new(),
            without_pair: 0,
            torn: false,
        }
    }

    fn check(&self, judges: &BTreeSet<String>) -> Result<()> {
        let path = self.path.display();
        if self.pairs.is_empty() {
            bail!(
                "{path}: no pair of responses in it\n\
                 hint: expected the records.jsonl that `acem3 judge --out` wrote"
            );
        }
        if judges.len() > 1 {
            let names: Vec<&str> = judges.iter().map(String::as_str).collect();
            bail!(
                "{path}: verdicts of {} judges ({})\nhint: give the records of one judge; \
                 `acem3 agree --against` compares two",
                names.len(),
                names.join(", ")
            );
        }
        let mut seen: HashMap<(&str, [&str; 2]), u64> = HashMap::new();
        for verdict in &self.pairs {
            let mut pair = verdict.pair.each_ref().map(String::as_str);
            pair.sort_unstable();
            if let Some(before) = seen.insert((&verdict.case, pair), verdict.line) {
                bail!(
                    "{path} lines {before} and {}: two verdicts on case {}, {} and {}\n\
                     hint: leave one of the two lines out",
                    verdict.line,
                    verdict.case,
                    pair[0],
                    pair[1]
                );
            }
        }
        Ok(())
    }

    /// Rounds all scores to whole points, halves up.
    pub fn round(&mut self) {
        for scores in self
            .pairs
            .iter_mut()
            .filter_map(|pair| pair.scores.as_mut())
        {
            for pair in scores.values_mut() {
                *pair = pair.map(|score| (score + 0.5).floor());
            }
        }
    }

    /// Draws cases with the same value of a field as a whole; a case without it is drawn alone.
    ///
    /// # Errors
    ///
    /// If no case has the field.
    pub fn cluster_by(&mut self, field: &str) -> Result<()> {
        if !self.pairs.iter().any(|pair| pair.field(field).is_some()) {
            bail!(
                "--cluster-by {field}: no case of {} has this field in `meta`",
                self.path.display()
            );
        }
        for pair in &mut self.pairs {
            let case = format!("case {}", pair.case);
            pair.cluster = pair.field(field).unwrap_or(case);
        }
        Ok(())
    }

    /// How many pairs have no score.
    pub fn unscored(&self) -> usize {
        self.pairs
            .iter()
            .filter(|pair| pair.scores.is_none())
            .count()
    }
}
