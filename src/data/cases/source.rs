//! Opening a path as a stream of cases.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_vision::View;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::case::{Case, InputProblem, ProblemScope};
use super::layout::{self, SourceLayout, recognise};
use super::{csv, jsonl, slake, vqa_rad};
use crate::data::cases::answer_index::AnswerIndex;
use crate::data::cases::case_assembler::{CaseAssembler, Drafts};
use crate::data::cases::hub_parquet;

/// A case, or why there is none.
pub type CaseResult = Result<Case, InputProblem>;

/// Up to this size a file is read once more beforehand, to count its cases. Bytes.
const COUNTED: u64 = 16 << 20;

/// How to read a source.
#[derive(Clone, Debug)]
pub struct SourceOptions {
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

impl Default for SourceOptions {
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

/// Where cases come from and how they are read.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// A folder, a file or a data set.
    pub path: PathBuf,
    /// How to read it.
    pub options: SourceOptions,
    /// How DICOM images are viewed.
    pub view: View,
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
/// A case that cannot be read is a [`InputProblem`] in its place; responses that are left out of a case
/// are problems before it. Lines of answers files that no case misses are problems behind the last
/// one.
pub struct CaseSource {
    /// The layout.
    pub kind: SourceKind,
    /// The number of cases, readable or not, where it is cheaply known.
    pub total: Option<u64>,
    /// The files that are read: those of the cases, then those of the answers.
    pub files: Vec<PathBuf>,
    /// What comes next, before the next draft.
    ready: VecDeque<CaseResult>,
    /// The file of the case that came last.
    file: Arc<Path>,
    drafts: Drafts,
    assembly: CaseAssembler,
}

impl CaseSource {
    /// How many answers in the answers files belong to no case seen so far, be it a broken one, nor to a
    /// question in a language that is not asked for. After the last case, more than none means that question ids
    /// do not match.
    pub fn unused_answers(&self) -> u64 {
        self.assembly.met.left(self.assembly.answers())
    }

    /// How many answers belong to questions in a language that is not asked for.
    pub fn passed_over_answers(&self) -> u64 {
        self.assembly.met.passed_over
    }

    /// How many answers name a row of Parquet files that is beyond the last one.
    pub fn answers_beyond(&self) -> u64 {
        match (self.kind, self.total) {
            (SourceKind::Parquet, Some(rows)) => self.assembly.answers().beyond(rows),
            _ => 0,
        }
    }

    /// The file of the case that came last.
    pub fn case_file(&self) -> &Path {
        &self.file
    }

    /// A row that could not be read costs every model that would have answered it.
    fn lost(&mut self, mut problem: InputProblem) -> InputProblem {
        let mut keys: Vec<String> = problem.id.iter().cloned().collect();
        if self.kind == SourceKind::Parquet {
            keys.push(problem.line.saturating_sub(1).to_string());
        }
        self.assembly.lose(&keys);
        if self.kind != SourceKind::Cases {
            problem.loss = ProblemScope::Case(self.assembly.models());
        }
        problem
    }
}

impl Iterator for CaseSource {
    type Item = CaseResult;

    fn next(&mut self) -> Option<CaseResult> {
        while self.ready.is_empty() {
            match self.drafts.next() {
                Some(Ok(draft)) if !draft.wanted => self.assembly.pass_over(&draft.keys),
                Some(Ok(draft)) => {
                    self.file = Arc::clone(&draft.file);
                    self.ready.extend(self.assembly.finish(draft));
                }
                Some(Err(problem)) => {
                    let problem = self.lost(problem);
                    self.ready.push_back(Err(problem));
                }
                None => {
                    let left = self.assembly.leftover();
                    self.ready.extend(left.into_iter().map(Err));
                    return self.ready.pop_front();
                }
            }
        }
        self.ready.pop_front()
    }
}

/// The folder of a source, from which its files are named.
pub(crate) fn root(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Opens a folder or file of cases: see the module for the layouts.
///
/// # Errors
/// Only when nothing can be read: the path or an answers file is missing, the layout is not known,
/// a table has no such columns, or a data set is given without answers.
pub fn open(path: &Path, options: &SourceOptions) -> Result<CaseSource> {
    let layout = recognise(path, options.split.as_deref())?;
    let (kind, mut files, drafts) = drafts(&layout, options)?;
    let mut paths = options.answers.clone();
    paths.extend(answers_beside(&layout, path)?);
    let answers = AnswerIndex::read(&paths)?;
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
    let assembly = CaseAssembler::new(answers, options);
    Ok(CaseSource {
        kind,
        total,
        file: files.first().map_or(path, PathBuf::as_path).into(),
        files,
        ready: VecDeque::new(),
        drafts,
        assembly,
    })
}

fn drafts(
    layout: &SourceLayout,
    options: &SourceOptions,
) -> Result<(SourceKind, Vec<PathBuf>, Drafts)> {
    Ok(match layout {
        SourceLayout::Cases(file) => (SourceKind::Cases, vec![file.clone()], jsonl::drafts(file)?),
        SourceLayout::Questions(file) => (
            SourceKind::Questions,
            vec![file.clone()],
            csv::drafts(file)?,
        ),
        SourceLayout::VqaRad(file) => (
            SourceKind::VqaRad,
            vec![file.clone()],
            vqa_rad::drafts(file)?,
        ),
        SourceLayout::Slake(file) => (
            SourceKind::Slake,
            vec![file.clone()],
            slake::drafts(file, options.lang)?,
        ),
        SourceLayout::Hub(shards) => (
            SourceKind::Parquet,
            shards.clone(),
            hub_parquet::drafts(shards)?,
        ),
    })
}

fn count(layout: &SourceLayout, options: &SourceOptions, files: &[PathBuf]) -> Result<Option<u64>> {
    if let SourceLayout::Hub(shards) = layout {
        return hub_parquet::count(shards).map(Some);
    }
    let small = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|data| data.is_file() && data.len() <= COUNTED)
    };
    if !files.iter().all(small) {
        return Ok(None);
    }
    Ok(Some(match layout {
        SourceLayout::Cases(file) => jsonl::count(file)?,
        SourceLayout::Questions(file) => csv::count(file)?,
        SourceLayout::VqaRad(file) => vqa_rad::drafts(file)?.count() as u64,
        SourceLayout::Slake(file) => slake::drafts(file, options.lang)?
            .filter(|draft| draft.as_ref().map_or(true, |draft| draft.wanted))
            .count() as u64,
        SourceLayout::Hub(shards) => hub_parquet::count(shards)?,
    }))
}

/// The answers in `answers/` beside the cases or the table of a folder.
fn answers_beside(layout: &SourceLayout, path: &Path) -> Result<Vec<PathBuf>> {
    let beside = match layout {
        // A JSONL file given by itself is complete, unless it bears the name it has in a folder.
        SourceLayout::Cases(file) if path.is_dir() || file.ends_with("cases.jsonl") => file,
        SourceLayout::Questions(file) => file,
        _ => return Ok(Vec::new()),
    };
    let folder = beside.parent().unwrap_or(Path::new("")).join("answers");
    if folder.is_dir() {
        layout::files(&folder, "jsonl")
    } else {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::parquet::tests::{ParquetCells, write};
    use super::*;

    #[test]
    fn each_case_has_the_file_of_its_shard_and_answers_beyond_the_rows_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let row: ParquetCells = [Some(b"jpeg"), None, Some(b"is it?"), Some(b"yes")];
        let shard = |n: usize| dir.path().join(format!("test-0000{n}-of-00002.parquet"));
        write(&shard(0), &[&[row]]);
        write(&shard(1), &[&[row]]);
        let answers = dir.path().join("a.jsonl");
        let line = |id| format!("{{\"question_id\": {id}, \"text\": \"yes\"}}\n");
        std::fs::write(&answers, (0..5).map(line).collect::<String>()).unwrap();
        let options = SourceOptions {
            answers: vec![answers],
            with_reference: true,
            ..SourceOptions::default()
        };
        let mut source = open(dir.path(), &options).unwrap();
        let mut files = Vec::new();
        while let Some(entry) = source.next() {
            assert!(entry.is_ok(), "{entry:?}");
            files.push(source.case_file().to_path_buf());
        }
        assert_eq!(files, [shard(0), shard(1)]);
        assert_eq!((source.answers_beyond(), source.unused_answers()), (3, 3));
    }
}
