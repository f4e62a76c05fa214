//! Files of one data set, joined by id to drafts of cases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::import_file::ImportFile;
use super::imported_row::ImportedRow;
use super::join::JoinedRows;
use super::layouts::import_layout::ImportLayout;
use super::model_names::name_models;
use crate::data::cases::case::{Case, InputProblem, ProblemScope, UnscoredReason};
use crate::data::cases::draft::{Draft, Drafts};
use crate::support::text::format_count;

/// Number of models that a note lists.
const LISTED_MODELS: usize = 8;

/// Joined files.
#[derive(Debug)]
pub(crate) struct ImportSet {
    files: Vec<ImportFile>,
    images: Option<PathBuf>,
    rows: Arc<JoinedRows>,
    /// Number of rows that cannot be read.
    unreadable: u64,
}

impl ImportSet {
    /// Reads all rows except their images, and joins them. `images` is the folder of images with
    /// relative paths.
    ///
    /// # Errors
    /// A file cannot be opened, or the files do not belong together.
    pub(crate) fn open(files: Vec<ImportFile>, images: Option<PathBuf>) -> Result<Self> {
        let names = name_models(&files);
        let mut rows = JoinedRows::default();
        let mut unreadable = 0;
        for (index, (file, model)) in files.iter().zip(&names).enumerate() {
            let mut named: Vec<String> = Vec::new();
            let mut unnamed: Vec<(u64, ImportedRow)> = Vec::new();
            for (line, row) in file.read_rows(file.context(images.as_deref(), false))? {
                match row {
                    Ok(Some(row)) if row.answers.iter().any(|answer| answer.model.is_none()) => {
                        unnamed.push((line, row));
                    }
                    Ok(Some(row)) => {
                        let models = row.answers.iter().filter_map(|answer| answer.model.as_ref());
                        models.for_each(|model| {
                            if !named.contains(model) {
                                named.push(model.clone());
                            }
                        });
                        rows.add((index, line), row, model, &files)?;
                    }
                    Ok(None) => {}
                    Err(_) => unreadable += 1,
                }
            }
            // A failed request does not name its model; the other rows of its file do.
            let model = if let [only] = named.as_slice() { only } else { model };
            for (line, row) in unnamed {
                rows.add((index, line), row, model, &files)?;
            }
        }
        rows.check(&files)?;
        Ok(Self { files, images, rows: Arc::new(rows), unreadable })
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
        let mut notes = Vec::new();
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
        let shown = counts.iter().take(LISTED_MODELS);
        let models = shown.map(|(model, n)| format!("{model} ({})", format_count(*n, "answer")));
        let mut models: Vec<String> = models.collect();
        if counts.len() > LISTED_MODELS {
            models.push(format!("and {} more", counts.len() - LISTED_MODELS));
        }
        notes.push(format!(
            "{}: {}; models: {}",
            layouts.collect::<Vec<_>>().join(", "),
            format_count(self.rows.case_count(), "question"),
            models.join(", ")
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
        if !self.files.iter().any(|file| file.layout.has_images()) {
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
