//! Files of one data set, joined by id to drafts of cases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::import_file::ImportFile;
use super::imported_row::ImportedRow;
use super::join::JoinedRows;
use super::layouts::import_layout::ImportLayout;
use super::layouts::post_prompt::PostPrompts;
use super::model_names::name_models;
use super::unanswered_requests::UnansweredRequests;
use crate::data::cases::case::{Case, InputProblem, ProblemScope, UnscoredReason};
use crate::data::cases::draft::{Draft, Drafts};
use crate::data::cases::image_fields::is_ignored_image;
use crate::support::text::{escape_start, format_count};

/// Number of models that a note lists.
const LISTED_MODELS: usize = 8;

/// Number of characters of a name or line in notes.
const SHOWN_CHARS: usize = 120;

/// Joined files.
#[derive(Debug)]
pub(crate) struct ImportSet {
    files: Vec<ImportFile>,
    images: Option<PathBuf>,
    rows: Arc<JoinedRows>,
    /// Number of rows that cannot be read.
    unreadable: u64,
    /// True if a row has an image in a field that is not read.
    has_ignored_images: bool,
    /// Notes on names of models and texts that are not used.
    file_notes: Vec<String>,
}

impl ImportSet {
    /// Reads all rows except their images, and joins them. `images` is the folder of images with
    /// relative paths.
    ///
    /// # Errors
    /// A file cannot be opened, or the files do not belong together.
    pub(crate) fn open(files: Vec<ImportFile>, images: Option<PathBuf>) -> Result<Self> {
        let mut set = Self {
            file_notes: Vec::new(),
            files,
            images,
            rows: Arc::default(),
            unreadable: 0,
            has_ignored_images: false,
        };
        set.cut_post_prompts()?;
        let names = name_models(&set.files);
        let mut rows = JoinedRows::default();
        for (index, model) in names.iter().enumerate() {
            set.join_file(index, model, &mut rows)?;
        }
        rows.check(&set.files)?;
        Ok(Self { rows: Arc::new(rows), ..set })
    }

    /// Finds the instructions at the end of the questions of lmms-eval, so that they are cut off.
    fn cut_post_prompts(&mut self) -> Result<()> {
        for file in &mut self.files {
            if file.layout != ImportLayout::LmmsEval {
                continue;
            }
            let PostPrompts { cut, kept } = file.find_post_prompts()?;
            let path = file.path.display();
            self.file_notes.extend(cut.iter().map(|line| {
                format!("{path}: cut the instruction `{}` from the questions", shown(line))
            }));
            self.file_notes.extend(kept.iter().map(|line| {
                format!(
                    "{path}: all questions end with the line `{}`, which the judge will read",
                    shown(line)
                )
            }));
            file.post_prompts = cut;
        }
        Ok(())
    }

    /// Adds the rows of a file. `model` is the name of its model if the rows do not name it.
    fn join_file(&mut self, index: usize, model: &str, rows: &mut JoinedRows) -> Result<()> {
        let Some(file) = self.files.get(index) else {
            return Ok(());
        };
        let mut named: Vec<String> = Vec::new();
        let mut later: Vec<(u64, ImportedRow)> = Vec::new();
        let mut failed = UnansweredRequests::default();
        for (line, row) in file.read_rows(file.context(self.images.as_deref(), false))? {
            let row = match row {
                Ok(Some(row)) => row,
                Ok(None) => continue,
                Err(_) => {
                    self.unreadable += 1;
                    continue;
                }
            };
            failed.add(line, &row);
            self.has_ignored_images |= row.note.as_deref().is_some_and(is_ignored_image);
            for model in row.answers.iter().filter_map(|answer| answer.model.as_ref()) {
                if !named.contains(model) {
                    named.push(model.clone());
                }
            }
            if file.model.is_some() || row.answers.iter().any(|answer| answer.model.is_none()) {
                later.push((line, row));
            } else {
                rows.add((index, line), row, model, &self.files)?;
            }
        }
        self.file_notes.extend(failed.note(&file.path));
        let model = match (&file.model, named.as_slice()) {
            (Some(given), [only]) => {
                for answer in later.iter_mut().flat_map(|(_, row)| &mut row.answers) {
                    answer.model = None;
                }
                if given != only {
                    self.file_notes.push(format!(
                        "{}: the model {} is named {}",
                        file.path.display(),
                        shown(only),
                        shown(given)
                    ));
                }
                given
            }
            (Some(given), [_, _, ..]) => {
                self.file_notes.push(format!(
                    "{}: the name {} is not used, because the file names {}",
                    file.path.display(),
                    shown(given),
                    format_count(named.len() as u64, "model")
                ));
                model
            }
            // A failed request does not name its model; the other rows of its file do.
            (None, [only]) => only,
            (_, _) => model,
        };
        for (line, row) in later {
            rows.add((index, line), row, model, &self.files)?;
        }
        Ok(())
    }

    /// Returns the paths of the files.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Returns the number of cases and unreadable rows.
    pub(crate) fn count(&self) -> u64 {
        self.rows.case_count() + self.unreadable
    }

    /// Returns notes on how the files are read.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.file_notes.clone();
        for file in &self.files {
            if let (ImportLayout::Table(roles), true) = (&file.layout, file.is_guessed) {
                notes.push(format!(
                    "{}: read as a table with the guessed columns {roles}\n\
                     hint: pass --columns to name other columns",
                    file.path.display()
                ));
            }
        }
        let mut layouts: Vec<(&str, u64)> = Vec::new();
        for file in &self.files {
            match layouts.iter_mut().find(|(name, _)| *name == file.layout.name()) {
                Some((_, count)) => *count += 1,
                None => layouts.push((file.layout.name(), 1)),
            }
        }
        let layouts =
            layouts.iter().map(|(name, n)| format!("{name} ({})", format_count(*n, "file")));
        let counts = self.rows.answer_counts();
        let listed = counts.iter().take(LISTED_MODELS);
        let models =
            listed.map(|(model, n)| format!("{} ({})", shown(model), format_count(*n, "answer")));
        let mut models: Vec<String> = models.collect();
        if counts.len() > LISTED_MODELS {
            models.push(format!("and {} more", counts.len() - LISTED_MODELS));
        }
        notes.push(format!(
            "{}: {}; {}",
            layouts.collect::<Vec<_>>().join(", "),
            format_count(self.rows.case_count(), "question"),
            if models.is_empty() {
                "no answers".to_owned()
            } else {
                format!("models: {}", models.join(", "))
            }
        ));
        let without_question = self.rows.without_question();
        if without_question > 0 {
            notes.push(format!(
                "{} without a question\nhint: import the file of these questions too",
                format_count(without_question, "answered id")
            ));
        }
        if let Some(first) = &self.rows.first_repeated {
            notes.push(format!(
                "{} left out, because the model answered before: first {first}",
                format_count(self.rows.repeated, "answer")
            ));
        }
        if let Some(first) = &self.rows.first_equal {
            notes.push(format!(
                "{} repeated with the same text, which counts once: first {first}",
                format_count(self.rows.equal, "answer")
            ));
        }
        // An image in a field that is not read has a note of its own.
        if !self.has_ignored_images && !self.files.iter().any(|file| file.layout.has_images()) {
            notes.push(
                "these files name no images\nhint: pass the data set with --questions to `acem3 data import`, or name a column with \
                 --columns image=COLUMN"
                    .to_owned(),
            );
        }
        notes
    }

    /// Returns the drafts of the cases, in the order of their questions.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub(crate) fn read_drafts(&self) -> Result<Drafts> {
        let mut drafts: Vec<Drafts> = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            let path: Arc<Path> = file.path.as_path().into();
            let rows = Arc::clone(&self.rows);
            let imported = file.read_rows(file.context(self.images.as_deref(), true))?;
            drafts.push(Box::new(imported.filter_map(move |(line, row)| match row {
                Ok(row) => {
                    let row = row?;
                    let id = row.id.clone().unwrap_or_default();
                    let is_question = rows.is_question_row(&id, (index, line));
                    is_question.then(|| to_draft(row, id, line, &path, &rows))
                }
                Err(message) => Some(Err(InputProblem {
                    scope: ProblemScope::Case(rows.models.clone()),
                    ..InputProblem::parse_error(&path, line, None, message)
                })),
            })));
        }
        Ok(Box::new(drafts.into_iter().flatten()))
    }
}

/// Returns the start of a name or line, for notes.
fn shown(text: &str) -> String {
    escape_start(text, SHOWN_CHARS)
}

fn to_draft(
    row: ImportedRow,
    id: String,
    line: u64,
    file: &Arc<Path>,
    rows: &JoinedRows,
) -> Result<Draft, InputProblem> {
    if let Some(problem) = row.image_problem {
        return Err(InputProblem {
            reason: UnscoredReason::Image,
            scope: ProblemScope::Case(rows.models.clone()),
            ..InputProblem::parse_error(file, line, Some(id), problem)
        });
    }
    let case = Case {
        responses: rows.responses(&id),
        image: row.image,
        question: row.question.unwrap_or_default(),
        reference: row.reference.or_else(|| rows.reference(&id)),
        labels: None,
        meta: row.meta,
        extra: serde_json::Map::new(),
        line,
        id,
    };
    Ok(Draft {
        keys: vec![case.id.clone()],
        case,
        file: Arc::clone(file),
        field_problems: row.note.into_iter().collect(),
        is_selected: true,
    })
}
