//! Opening a path as a stream of cases.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::answers::{self, Answers};
use super::case::{Case, Problem};
use super::draft::{Assembly, Drafts};
use super::layout::{Layout, recognise};
use super::{csv, hub, jsonl, slake, vqa_rad};

/// A case, or why there is none.
pub type Entry = Result<Case, Problem>;

/// Up to this size a file is read once more beforehand, to count its cases. Bytes.
const COUNTED: u64 = 16 << 20;

/// How to read a source.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Answers files, or folders of them, in LLaVA's form.
    pub answers: Vec<PathBuf>,
    /// The languages of SLAKE to take.
    pub lang: Lang,
    /// Which of several splits in a folder to take.
    pub split: Option<String>,
    /// Whether the reference answer joins as the response of a model named `reference`, behind the
    /// others. Labels do not cover it.
    pub with_reference: bool,
    /// A case with fewer responses is a problem. Two make a pair.
    pub min_responses: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            lang: Lang::default(),
            split: None,
            with_reference: false,
            min_responses: 2,
        }
    }
}

/// Languages of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
    /// Both.
    All,
}

impl Lang {
    /// Whether a question with this language code is wanted.
    pub(super) fn includes(self, code: &str) -> bool {
        match self {
            Self::En => code == "en",
            Self::Zh => code == "zh",
            Self::All => true,
        }
    }
}

/// The layout of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// JSONL of cases, alone or in a folder.
    Cases,
    /// A table of questions.
    Questions,
    /// VQA-RAD as released.
    VqaRad,
    /// SLAKE as released.
    Slake,
    /// Parquet files of the hub.
    Parquet,
}

/// Cases in the order of their file.
///
/// The first entries are the problems of the answers files, if there are any; the others are the
/// cases, of which one that cannot be read is a [`Problem`] in its place.
pub struct Source {
    /// The layout.
    pub kind: SourceKind,
    /// The number of cases, readable or not, where it is cheaply known.
    pub total: Option<u64>,
    /// The files that are read: those of the cases, then those of the answers.
    pub files: Vec<PathBuf>,
    problems: std::vec::IntoIter<Problem>,
    drafts: Drafts,
    assembly: Assembly,
}

impl Source {
    /// How many answers in the answers files belong to no case seen so far. After the last case,
    /// more than none means that question ids do not match.
    pub fn unused_answers(&self) -> u64 {
        self.assembly
            .answers()
            .saturating_sub(self.assembly.attached)
    }
}

impl Iterator for Source {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some(problem) = self.problems.next() {
            return Some(Err(problem));
        }
        Some(match self.drafts.next()? {
            Ok(draft) => self.assembly.finish(draft),
            Err(problem) => Err(problem),
        })
    }
}

/// Opens a folder or file of cases: see the module for the layouts.
///
/// # Errors
/// Only when nothing can be read: the path or an answers file is missing, the layout is not known,
/// a table has no such columns, or a data set is given without answers.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Source> {
    let layout = recognise(path, options.split.as_deref())?;
    let (kind, mut files, drafts) = drafts(&layout, options)?;
    let mut paths = options.answers.clone();
    paths.extend(answers_beside(&layout, path)?);
    let mut answers = Answers::read(&paths)?;
    if paths.is_empty() && kind != SourceKind::Cases && options.min_responses > 0 {
        bail!(
            "{}: there are no answers to judge\nhint: give a file per model with --answers, lines \
             of {{\"question_id\": ..., \"text\": ..., \"model_id\": ...}}{}",
            path.display(),
            if kind == SourceKind::Questions {
                ", or put them into answers/ beside it"
            } else {
                ""
            }
        );
    }
    let total = count(&layout, options, &files)?;
    files.extend(answers.files().map(Path::to_path_buf));
    let problems = std::mem::take(&mut answers.problems).into_iter();
    let assembly = Assembly::new(answers, options);
    Ok(Source {
        kind,
        total,
        files,
        problems,
        drafts,
        assembly,
    })
}

fn drafts(layout: &Layout, options: &OpenOptions) -> Result<(SourceKind, Vec<PathBuf>, Drafts)> {
    Ok(match layout {
        Layout::Cases(file) => (SourceKind::Cases, vec![file.clone()], jsonl::drafts(file)?),
        Layout::Questions(file) => (
            SourceKind::Questions,
            vec![file.clone()],
            csv::drafts(file)?,
        ),
        Layout::VqaRad(file) => (
            SourceKind::VqaRad,
            vec![file.clone()],
            vqa_rad::drafts(file)?,
        ),
        Layout::Slake(file) => (
            SourceKind::Slake,
            vec![file.clone()],
            slake::drafts(file, options.lang)?,
        ),
        Layout::Hub(shards) => (SourceKind::Parquet, shards.clone(), hub::drafts(shards)?),
    })
}

fn count(layout: &Layout, options: &OpenOptions, files: &[PathBuf]) -> Result<Option<u64>> {
    if let Layout::Hub(shards) = layout {
        return hub::count(shards).map(Some);
    }
    let small = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|data| data.is_file() && data.len() <= COUNTED)
    };
    if !files.iter().all(small) {
        return Ok(None);
    }
    Ok(Some(match layout {
        Layout::Cases(file) => jsonl::count(file)?,
        Layout::Questions(file) => csv::count(file)?,
        Layout::VqaRad(file) => vqa_rad::drafts(file)?.count() as u64,
        Layout::Slake(file) => slake::drafts(file, options.lang)?.count() as u64,
        Layout::Hub(shards) => hub::count(shards)?,
    }))
}

/// The answers in `answers/` beside the cases or the table of a folder.
fn answers_beside(layout: &Layout, path: &Path) -> Result<Vec<PathBuf>> {
    let beside = match layout {
        // A JSONL file given by itself is complete, unless it bears the name it has in a folder.
        Layout::Cases(file) if path.is_dir() || file.ends_with("cases.jsonl") => file,
        Layout::Questions(file) => file,
        _ => return Ok(Vec::new()),
    };
    let folder = beside.parent().unwrap_or(Path::new("")).join("answers");
    if folder.is_dir() {
        answers::folder(&folder)
    } else {
        Ok(Vec::new())
    }
}
