//! Opens a path as a stream of cases.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};

use super::case::{InputProblem, ProblemScope};
use super::layout::{self, SourceLayout, detect};
use super::source_options::{CaseResult, SourceKind, SourceOptions};
use crate::data::cases::answers::answer_index::AnswerIndex;
use crate::data::cases::case::Case;
use crate::data::cases::case_assembler::CaseAssembler;
use crate::data::cases::draft::{Draft, Drafts};
use crate::data::cases::image_fields::{find_case_image_field, ignored_image_message};
use crate::data::cases::layouts::hub_parquet;
use crate::data::cases::layouts::{csv, jsonl, slake, vqa_rad};
use crate::data::cases::misspelt_fields::MisspeltFields;
use crate::data::imports::import_file::{FileSample, ImportFile};
use crate::data::imports::import_set::ImportSet;
use crate::data::imports::unknown_layout::columns_example;
use crate::support::text::format_count;

/// Maximum size in bytes of a file that is read in advance to count its cases.
const MAX_COUNTED_BYTES: u64 = 16 << 20;
/// Number of cases that are read in advance to find misspelt fields.
const MAX_AHEAD: usize = 50;
/// Size in bytes of the cases that are read in advance. The last one may exceed it.
const MAX_AHEAD_BYTES: usize = 16 << 20;

/// Cases in the order of their file.
///
/// An unreadable case is an [`InputProblem`] at its position. Problems of single responses come
/// before their case. Unusable answer lines that match no case come last.
pub struct CaseSource {
    /// The kind of layout.
    pub kind: SourceKind,
    /// Number of cases, including unreadable ones; `None` for large files.
    pub total: Option<u64>,
    /// The files of the cases, followed by the answers files.
    pub files: Vec<PathBuf>,
    /// Items to yield before the next draft is read.
    queued: VecDeque<CaseResult>,
    /// File of the last case.
    file: Arc<Path>,
    drafts: Drafts,
    /// True after the last draft.
    is_finished: bool,
    assembler: CaseAssembler,
    misspelt_fields: MisspeltFields,
    /// Notes on how the files are read, not returned yet.
    notes: Vec<String>,
}

impl CaseSource {
    /// Returns notes on how files are read and on repeated answers, and one for each ignored field whose name is
    /// near that of a field which the case lacks. Looks at the cases so far, and at the first ones
    /// of one file in advance. Each note is returned once.
    pub fn take_field_notes(&mut self) -> Vec<String> {
        if matches!(self.kind, SourceKind::Cases | SourceKind::Questions | SourceKind::Import) {
            while self.queued.len() < MAX_AHEAD
                && self.queued_bytes() < MAX_AHEAD_BYTES
                && self.read_draft()
            {}
        }
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(self.misspelt_fields.take_notes());
        notes
    }

    /// Returns the size in bytes of the cases in the queue.
    fn queued_bytes(&self) -> usize {
        self.queued.iter().flatten().map(Case::stored_bytes).sum()
    }

    /// Reads the next draft into the queue. Returns `false` after the last one.
    fn read_draft(&mut self) -> bool {
        if self.is_finished {
            return false;
        }
        match self.drafts.next() {
            Some(Ok(draft)) if !draft.is_selected => {
                self.assembler.count_unselected(&draft.keys);
            }
            Some(Ok(mut draft)) => {
                self.file = Arc::clone(&draft.file);
                self.misspelt_fields.add(&draft.case, self.kind);
                note_ignored_image(&mut draft, self.kind);
                self.queued.extend(self.assembler.assemble(draft));
            }
            Some(Err(problem)) => {
                let problem = self.add_answer_models(problem);
                self.queued.push_back(Err(problem));
            }
            None => {
                self.is_finished = true;
                let unmatched = self.assembler.take_unmatched_lines();
                self.queued.extend(unmatched.into_iter().map(Err));
            }
        }
        !self.is_finished
    }

    /// Returns true if one of the cases that were read in advance has an image.
    pub fn has_image_ahead(&self) -> bool {
        self.queued.iter().flatten().any(|case| case.image.is_some())
    }

    /// Returns true if one of the cases that were read in advance has no image.
    pub fn has_text_only_ahead(&self) -> bool {
        self.queued.iter().flatten().any(|case| case.image.is_none())
    }

    /// Returns the number of answers that match no question so far. Questions of unreadable cases
    /// and questions in other languages are matched too. A number above zero after the last case
    /// means that some question ids do not match.
    pub fn unmatched_answers(&self) -> u64 {
        self.assembler.match_counts.unmatched(self.assembler.answers())
    }

    /// Describes the first answer that matches no question so far, by question id, file and line.
    pub fn first_unmatched_answer(&self) -> Option<String> {
        self.assembler.match_counts.first_unmatched(self.assembler.answers())
    }

    /// Returns the number of answers to questions in other languages.
    pub fn unselected_answers(&self) -> u64 {
        self.assembler.match_counts.unselected
    }

    /// Returns the number of answers with a row number after the last row of the Parquet files.
    pub fn answers_beyond_last_row(&self) -> u64 {
        match (self.kind, self.total) {
            (SourceKind::Parquet, Some(rows)) => self.assembler.answers().count_beyond_row(rows),
            _ => 0,
        }
    }

    /// Returns the file of the last case.
    pub fn case_file(&self) -> &Path {
        &self.file
    }

    /// Counts the answers to an unreadable case. If responses come from answers files, adds all
    /// models of these files to the problem: the case is missing for each of them.
    fn add_answer_models(&mut self, mut problem: InputProblem) -> InputProblem {
        let mut keys: Vec<String> = problem.id.as_deref().into_iter().map(str::to_owned).collect();
        if self.kind == SourceKind::Parquet {
            // The id of a row is its index.
            keys.push(problem.line.saturating_sub(1).to_string());
        }
        self.assembler.count_unreadable(&keys);
        if !matches!(self.kind, SourceKind::Cases | SourceKind::Import) {
            problem.scope = ProblemScope::Case(self.assembler.models());
        }
        problem
    }
}

impl Iterator for CaseSource {
    type Item = CaseResult;

    fn next(&mut self) -> Option<CaseResult> {
        while self.queued.is_empty() && self.read_draft() {}
        self.queued.pop_front()
    }
}

/// Returns the folder to which the file names in a source are relative.
pub(crate) fn base_folder(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Opens a folder or file of cases. [`SourceKind`] lists the layouts.
///
/// # Errors
/// The path or an answers file is missing, the layout is unknown, a table has no column `id`,
/// `image` or `question`, or a data set has no answers.
pub fn open(path: &Path, options: &SourceOptions) -> Result<CaseSource> {
    open_layout(path, &detect(path, options)?, options)
}

/// Opens a data set for its questions and images. In contrast to [`open`], a table needs no answers.
///
/// # Errors
/// As [`open`].
pub fn open_questions(path: &Path, options: &SourceOptions) -> Result<CaseSource> {
    match ImportFile::find_questions(path) {
        Some(file) => open_layout(path, &SourceLayout::Import(vec![file]), options),
        None => open(path, options),
    }
}

/// Opens files of other programs about one data set. A name before a path is that of its model.
///
/// # Errors
/// A file cannot be opened or has no known layout, or the files do not belong together.
pub fn open_imports(
    paths: &[(Option<String>, PathBuf)],
    options: &SourceOptions,
) -> Result<CaseSource> {
    if let [(None, path)] = paths {
        return open(path, options);
    }
    let mut files: Vec<ImportFile> = Vec::new();
    for (model, path) in paths {
        let SourceLayout::Import(found) = detect(path, options)? else {
            bail!(
                "{}: cases or a data set, expected files of one data set with answers of models\n\
                 hint: pass it alone, and answers to it with --answers",
                path.display()
            );
        };
        files.extend(found.into_iter().map(|file| ImportFile { model: model.clone(), ..file }));
    }
    let first = paths.first().map_or(Path::new(""), |(_, path)| path);
    open_layout(first, &SourceLayout::Import(files), options)
}

/// Describes where else the answers to a table of questions may be: in a folder or in columns.
fn answer_places(files: &[PathBuf]) -> String {
    let folder = ", or add them to the folder answers/ next to it";
    let sample = files.first().and_then(|file| FileSample::read(file).ok().flatten());
    match sample.as_ref().and_then(columns_example) {
        Some(roles) if roles.answers.iter().all(|answer| answer.column != "COLUMN") => {
            format!(
                "{folder}, or name the columns with answers, for example --columns '{roles}' if these are answers"
            )
        }
        _ => folder.to_owned(),
    }
}

/// Adds a problem to a case whose image is in an unknown field.
fn note_ignored_image(draft: &mut Draft, kind: SourceKind) {
    if draft.case.image.is_some() {
        return;
    }
    if let Some(field) = find_case_image_field(&draft.case, kind) {
        draft.field_problems.push(ignored_image_message(&field, kind));
    }
}

fn open_layout(path: &Path, layout: &SourceLayout, options: &SourceOptions) -> Result<CaseSource> {
    let OpenedLayout { kind, mut files, drafts, import } = open_drafts(layout, options)?;
    let mut paths = options.answers.clone();
    if !options.ignores_answers {
        paths.extend(find_answers_files(layout, path)?);
    }
    let answers = AnswerIndex::read(&paths)?;
    let has_own_answers = matches!(kind, SourceKind::Cases | SourceKind::Import);
    if paths.is_empty() && !has_own_answers && options.min_responses > 0 {
        bail!(
            "{}: no answers to judge\nhint: pass one file per model with --answers, with lines \
             of {{\"question_id\": ..., \"text\": ..., \"model_id\": ...}}{}",
            path.display(),
            if kind == SourceKind::Questions { answer_places(&files) } else { String::new() }
        );
    }
    let total = match &import {
        Some(set) => Some(set.count()),
        None => count_cases(layout, options, &files)?,
    };
    files.extend(answers.files().map(Path::to_path_buf));
    let mut notes = import.map(|set| set.notes()).unwrap_or_default();
    notes.extend(repeated_note(&answers));
    let assembler = CaseAssembler::new(answers, options);
    Ok(CaseSource {
        kind,
        total,
        file: files.first().map_or(path, PathBuf::as_path).into(),
        files,
        queued: VecDeque::new(),
        drafts,
        is_finished: false,
        assembler,
        misspelt_fields: MisspeltFields::default(),
        notes,
    })
}

/// Describes the answers that are left out because their model answered the question before.
fn repeated_note(answers: &AnswerIndex) -> Option<String> {
    let (count, first) = answers.repeated()?;
    let file = first.file.file_name().unwrap_or_default().to_string_lossy();
    let (count, line, message) = (format_count(count, "answer"), first.line, &first.message);
    Some(format!("{count} left out; first: {file} line {line}: {message}"))
}

/// The drafts of a layout.
struct OpenedLayout {
    kind: SourceKind,
    files: Vec<PathBuf>,
    drafts: Drafts,
    import: Option<ImportSet>,
}

fn open_drafts(layout: &SourceLayout, options: &SourceOptions) -> Result<OpenedLayout> {
    let (kind, files, drafts) = match layout {
        SourceLayout::Cases(file) => {
            (SourceKind::Cases, vec![file.clone()], jsonl::read_drafts(file)?)
        }
        SourceLayout::Questions(file) => {
            (SourceKind::Questions, vec![file.clone()], csv::read_drafts(file)?)
        }
        SourceLayout::VqaRad(file) => {
            (SourceKind::VqaRad, vec![file.clone()], vqa_rad::read_drafts(file)?)
        }
        SourceLayout::Slake(file) => {
            (SourceKind::Slake, vec![file.clone()], slake::read_drafts(file, options.lang)?)
        }
        SourceLayout::Hub(shards) => {
            (SourceKind::Parquet, shards.clone(), hub_parquet::read_drafts(shards)?)
        }
        SourceLayout::Import(files) => {
            let set = ImportSet::open(files.clone(), options.images.clone())?;
            return Ok(OpenedLayout {
                kind: SourceKind::Import,
                files: set.paths(),
                drafts: set.read_drafts()?,
                import: Some(set),
            });
        }
    };
    Ok(OpenedLayout { kind, files, drafts, import: None })
}

fn count_cases(
    layout: &SourceLayout,
    options: &SourceOptions,
    files: &[PathBuf],
) -> Result<Option<u64>> {
    let is_small = |file: &PathBuf| {
        file.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_COUNTED_BYTES)
    };
    Ok(Some(match layout {
        SourceLayout::Hub(shards) => hub_parquet::count_rows(shards)?,
        _ if !files.iter().all(is_small) => return Ok(None),
        SourceLayout::Cases(file) => jsonl::count_lines(file)?,
        SourceLayout::Questions(file) => csv::count_rows(file)?,
        SourceLayout::VqaRad(file) => vqa_rad::read_drafts(file)?.count() as u64,
        SourceLayout::Slake(file) => slake::read_drafts(file, options.lang)?
            .filter(|draft| draft.as_ref().map_or(true, |draft| draft.is_selected))
            .count() as u64,
        SourceLayout::Import(_) => return Ok(None),
    }))
}

/// Finds the answers files in the folder `answers/` next to the cases.
fn find_answers_files(layout: &SourceLayout, path: &Path) -> Result<Vec<PathBuf>> {
    let cases = match layout {
        // A file `cases.jsonl` belongs to a folder, which may contain answers. Any other JSONL file
        // contains its responses itself.
        SourceLayout::Cases(file) if path.is_dir() || file.ends_with("cases.jsonl") => file,
        SourceLayout::Questions(file) => file,
        SourceLayout::Import(files) => match files.as_slice() {
            [file] if file.is_table_of_questions() => &file.path,
            _ => return Ok(Vec::new()),
        },
        _ => return Ok(Vec::new()),
    };
    let folder = cases.parent().unwrap_or(Path::new("")).join("answers");
    if folder.is_dir() { layout::files_with_extension(&folder, "jsonl") } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::formats::parquet::tests::{ParquetCells, write_parquet};

    #[test]
    fn case_file_is_its_shard_and_answers_after_the_last_row_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let row: ParquetCells = [Some(b"jpeg"), None, Some(b"is it?"), Some(b"yes")];
        let shard = |n: usize| dir.path().join(format!("test-0000{n}-of-00002.parquet"));
        write_parquet(&shard(0), &[&[row]]);
        write_parquet(&shard(1), &[&[row]]);
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
        assert_eq!((source.answers_beyond_last_row(), source.unmatched_answers()), (3, 3));
    }
}
