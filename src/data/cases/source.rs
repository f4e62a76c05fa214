//! Opens a path as a stream of cases.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};

use super::case::{InputProblem, ProblemScope};
use super::layout::{self, SourceLayout, recognise};
use super::source_options::{CaseResult, SourceKind, SourceOptions};
use super::{csv, jsonl, slake, vqa_rad};
use crate::data::cases::answer_index::AnswerIndex;
use crate::data::cases::case_assembler::{CaseAssembler, Drafts};
use crate::data::cases::hub_parquet;

/// Maximum size in bytes of files that are read once to count their cases.
const COUNTED: u64 = 16 << 20;

/// Cases in the order of their file.
///
/// An unreadable case is an [`InputProblem`] in its position. Problems of single responses come before their case.
/// Unusable answer lines that match no case come last.
pub struct CaseSource {
    /// The layout.
    pub kind: SourceKind,
    /// Number of cases, including unreadable ones, if cheaply known.
    pub total: Option<u64>,
    /// The files of the cases, followed by the answers files.
    pub files: Vec<PathBuf>,
    /// Items to yield before the next draft.
    ready: VecDeque<CaseResult>,
    /// File of the last case.
    file: Arc<Path>,
    drafts: Drafts,
    assembly: CaseAssembler,
}

impl CaseSource {
    /// Number of answers that match no case so far (readable or not) and no question in another language. After the last
    /// case, a number above zero means that question ids do not match.
    pub fn unused_answers(&self) -> u64 {
        self.assembly.met.left(self.assembly.answers())
    }

    /// Number of answers to questions in other languages.
    pub fn unselected_answers(&self) -> u64 {
        self.assembly.met.passed_over
    }

    /// Number of answers with a row number beyond the last row of the Parquet files.
    pub fn answers_beyond(&self) -> u64 {
        match (self.kind, self.total) {
            (SourceKind::Parquet, Some(rows)) => self.assembly.answers().beyond(rows),
            _ => 0,
        }
    }

    /// File of the last case.
    pub fn case_file(&self) -> &Path {
        &self.file
    }

    /// Adds the models of the answers files to an unreadable row.
    fn lost(&mut self, mut problem: InputProblem) -> InputProblem {
        let mut keys: Vec<String> = problem.id.iter().cloned().collect();
        if self.kind == SourceKind::Parquet {
            keys.push(problem.line.saturating_sub(1).to_string());
        }
        self.assembly.count_unreadable(&keys);
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
                Some(Ok(draft)) if !draft.wanted => self.assembly.count_unselected(&draft.keys),
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

/// Base folder for the names of files of a source.
pub(crate) fn root(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Opens a folder or file of cases. The module lists the layouts.
///
/// # Errors
/// Nothing can be read: the path or an answers file is missing, the layout is unknown, a table lacks columns, or a data
/// set has no answers.
pub fn open(path: &Path, options: &SourceOptions) -> Result<CaseSource> {
    let layout = recognise(path, options.split.as_deref())?;
    let (kind, mut files, drafts) = drafts(&layout, options)?;
    let mut paths = options.answers.clone();
    paths.extend(answers_beside(&layout, path)?);
    let answers = AnswerIndex::read(&paths)?;
    if paths.is_empty() && kind != SourceKind::Cases && options.min_responses > 0 {
        bail!(
            "{}: no answers to judge\nhint: pass one file per model with --answers, with lines \
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

/// The answers files in `answers/` of a folder.
fn answers_beside(layout: &SourceLayout, path: &Path) -> Result<Vec<PathBuf>> {
    let beside = match layout {
        // A single JSONL file is complete, unless it has the file name of a case folder.
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
    fn cases_know_their_shard_and_answers_beyond_the_rows_are_counted() {
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
