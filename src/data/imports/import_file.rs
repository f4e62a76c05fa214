//! A file of another program: its format and layout, and its rows.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::columns::column_guess::guess_roles;
use super::columns::column_roles::ColumnRoles;
use super::image_value::ImageFolders;
use super::imported_row::ImportedRow;
use super::layouts::import_layout::ImportLayout;
use super::layouts::post_prompt::PostPrompts;
use super::layouts::row_context::RowContext;
use super::rows::row_format::{RowFormat, detect_format, open_rows};
use super::rows::table_row::{TableRow, text_of};
use crate::data::cases::image_fields::find_image_field;

/// Number of rows that decide the layout of a file.
const SAMPLE_ROWS: usize = 20;
/// Maximum number of files of a folder that are examined.
const MAX_FILES: usize = 2000;
/// Maximum depth of folders that are searched.
const MAX_DEPTH: usize = 4;

/// A file to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportFile {
    /// Its path.
    pub(crate) path: PathBuf,
    /// Its file format.
    pub(crate) format: RowFormat,
    /// Its layout.
    pub(crate) layout: ImportLayout,
    /// True if the roles of the columns were guessed.
    pub(crate) is_guessed: bool,
    /// The model that the user named.
    pub(crate) model: Option<String>,
    /// Instructions at the end of questions that are cut off.
    pub(crate) post_prompts: Vec<String>,
}

/// The first rows of a file.
pub(crate) struct FileSample {
    format: RowFormat,
    rows: Vec<TableRow>,
}

impl FileSample {
    /// Reads the first rows; `None` if the file is no table, or none of the rows can be read.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        let Some(format) = detect_format(path)? else {
            return Ok(None);
        };
        let rows = open_rows(path, &format)?.take(SAMPLE_ROWS);
        let rows: Vec<TableRow> = rows.filter_map(|(_, row)| row.ok()).collect();
        Ok((!rows.is_empty()).then_some(Self { format, rows }))
    }

    /// Returns the first row that cannot be read, with the reason; `None` if all can be read, or if the file
    /// is no table.
    pub(crate) fn first_unreadable(path: &Path) -> Option<(u64, String)> {
        let format = detect_format(path).ok()??;
        let mut rows = open_rows(path, &format).ok()?.take(SAMPLE_ROWS);
        rows.find_map(|(line, row)| Some((line, row.err()?)))
    }

    /// Returns the names of the fields, in order.
    pub(crate) fn columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        for name in self.rows.iter().flat_map(TableRow::names) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        columns
    }

    /// Returns true if a column has another whole number in each row.
    pub(crate) fn has_distinct_numbers(&self, name: &str) -> bool {
        let number = |row: &TableRow| row.field(name).and_then(text_of)?.trim().parse::<i64>().ok();
        let mut known = HashSet::new();
        self.rows.iter().all(|row| number(row).is_some_and(|number| known.insert(number)))
    }

    /// Returns true if a column has texts that are no numbers.
    pub(crate) fn has_texts(&self, name: &str) -> bool {
        let is_text = |value: &Value| match value {
            Value::String(text) => !text.trim().is_empty() && text.trim().parse::<f64>().is_err(),
            _ => false,
        };
        self.rows.iter().filter_map(|row| row.field(name)).any(is_text)
    }

    /// Returns a column without a role whose values look like images.
    pub(crate) fn image_column(&self, roles: &ColumnRoles) -> Option<String> {
        let is_free = |name: &str| !roles.columns().any(|known| known == name);
        let found = self
            .rows
            .iter()
            .find_map(|row| find_image_field(row.fields.iter().filter(|(name, _)| is_free(name))));
        found.map(str::to_owned)
    }

    /// Returns true if a row has all of these fields.
    pub(crate) fn has_fields(&self, names: &[&str]) -> bool {
        self.rows.iter().any(|row| names.iter().all(|name| row.fields.contains_key(*name)))
    }

    /// Returns true if a row is a case of this program: it has `responses`, or it is a question with
    /// an id and no answer.
    pub(crate) fn has_cases(&self) -> bool {
        let has_responses =
            |row: &TableRow| row.fields.get("responses").is_some_and(Value::is_array);
        let is_question = self.has_fields(&["id", "question"]);
        self.rows.iter().any(has_responses) || is_question && !self.has_answers()
    }

    /// Returns true if the name of a column says that it has answers of a model.
    pub(crate) fn has_answers(&self) -> bool {
        !guess_roles(&self.columns()).answers.is_empty()
    }

    /// Returns true for the columns of Path-VQA and VQA-RAD as Parquet files, or of SLAKE and VQA-RAD
    /// as released, without answers of models.
    pub(crate) fn has_own_columns(&self, path: &Path) -> bool {
        let columns = self.columns();
        let has = |name: &str| columns.iter().any(|column| column == name);
        let is_own = if path.extension().is_some_and(|e| e == "parquet") {
            (has("image.bytes") || has("image")) && has("question")
        } else {
            has("img_name") || has("image_name")
        };
        is_own && !self.has_answers()
    }

    /// Returns true if a row has the column, also as a struct with the bytes of an image.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        let nested = format!("{name}.bytes");
        let is_in = |row: &TableRow| {
            row.field(name).is_some() || row.bytes(name).is_some() || row.bytes(&nested).is_some()
        };
        self.rows.iter().any(is_in)
    }

    /// Returns the layout: the columns that the user named, that of another program, or a table
    /// whose columns can be guessed. The flag is true for a guess.
    pub(crate) fn layout(&self, columns: Option<&ColumnRoles>) -> Option<(ImportLayout, bool)> {
        if let Some(roles) = columns {
            let all = roles.columns().all(|name| self.has_column(name));
            return all.then(|| (ImportLayout::Table(roles.clone()), false));
        }
        if let Some(layout) = self.rows.iter().find_map(ImportLayout::recognise) {
            return Some((layout, false));
        }
        let columns = self.columns();
        // Verdicts of another judge are no answers.
        let mut roles = guess_roles(&columns);
        if roles.image.is_none() {
            roles.image = self.image_column(&roles);
        }
        let is_complete = roles.question.is_some() && !roles.answers.is_empty();
        let are_verdicts = columns.iter().any(|name| name == "hit" || name == "log");
        (is_complete && !are_verdicts).then_some((ImportLayout::Table(roles), true))
    }
}

impl ImportFile {
    /// Recognises a file; `None` if it has no layout that can be imported.
    pub(crate) fn recognise(path: &Path, columns: Option<&ColumnRoles>) -> Result<Option<Self>> {
        let sample = FileSample::read(path)?;
        Ok(sample.and_then(|sample| Self::from_sample(path, &sample, columns)))
    }

    /// Recognises a file by its first rows.
    pub(crate) fn from_sample(
        path: &Path,
        sample: &FileSample,
        columns: Option<&ColumnRoles>,
    ) -> Option<Self> {
        let (layout, is_guessed) = sample.layout(columns)?;
        Some(Self::new(path, sample.format.clone(), layout, is_guessed))
    }

    /// Recognises a table of questions without answers that is no source of cases: a data set of
    /// VLMEvalKit, or columns that can be guessed.
    pub(crate) fn find_questions(path: &Path) -> Option<Self> {
        let sample = FileSample::read(path).ok()??;
        if sample.has_answers() || sample.layout(None).is_some() {
            return None;
        }
        let roles = guess_roles(&sample.columns());
        let is_own = sample.has_cases() || sample.has_own_columns(path);
        let layout = if sample.has_fields(&["index", "question", "image"]) {
            ImportLayout::VlmQuestions
        } else if roles.question.is_some() && !is_own {
            ImportLayout::Table(roles)
        } else {
            return None;
        };
        Some(Self::new(path, sample.format, layout, true))
    }

    fn new(path: &Path, format: RowFormat, layout: ImportLayout, is_guessed: bool) -> Self {
        let path = path.to_owned();
        Self { path, format, layout, is_guessed, model: None, post_prompts: Vec::new() }
    }

    /// Returns true for a table with the columns `id`, `image` and `question`, which may have answers
    /// in files too.
    pub(crate) fn is_table_of_questions(&self) -> bool {
        let ImportLayout::Table(roles) = &self.layout else {
            return false;
        };
        let known = [(&roles.id, "id"), (&roles.image, "image"), (&roles.question, "question")];
        self.format == RowFormat::Csv
            && self.is_guessed
            && known.iter().all(|(column, name)| column.as_deref() == Some(name))
    }

    /// Finds the files of a folder and its subfolders, sorted by path.
    pub(crate) fn find_in_folder(
        folder: &Path,
        columns: Option<&ColumnRoles>,
    ) -> Result<Vec<Self>> {
        let mut paths = Vec::new();
        list_files(folder, MAX_DEPTH, &mut paths)?;
        paths.sort();
        let found = paths.iter().filter_map(|path| Self::recognise(path, columns).ok().flatten());
        Ok(remove_copies(found.collect()))
    }

    /// Returns the context of its rows. Without `with_images`, images are not looked up.
    pub(crate) fn context(&self, images: Option<&Path>, with_images: bool) -> RowContext {
        let own = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let named = images.map(Path::to_owned);
        let folders = ImageFolders { named, own, is_skipped: !with_images };
        let task = self.layout.task(&self.path);
        let mut context = match self.layout {
            ImportLayout::VlmEval => RowContext::new(folders, None, task.as_deref()),
            ImportLayout::VlmQuestions => RowContext::of_questions(folders, &self.path),
            _ => RowContext::new(folders, task, None),
        };
        context.post_prompts.clone_from(&self.post_prompts);
        context
    }

    /// Finds the instructions at the end of its questions.
    pub(crate) fn find_post_prompts(&self) -> Result<PostPrompts> {
        let rows = open_rows(&self.path, &self.format)?;
        Ok(PostPrompts::find(rows.filter_map(|(_, row)| row.ok())))
    }

    /// Reads its rows: line, and the row, a message, or `None` for a row to be left out.
    pub(crate) fn read_rows(
        &self,
        mut context: RowContext,
    ) -> Result<impl Iterator<Item = (u64, Result<Option<ImportedRow>, String>)> + Send + use<>>
    {
        let rows = open_rows(&self.path, &self.format)?;
        let layout = self.layout.clone();
        Ok(rows.enumerate().map(move |(index, (line, row))| {
            let row = row.and_then(|row| layout.read_row(&row, &mut context)).map(|row| {
                row.map(|row| {
                    let id = row.id.clone().unwrap_or_else(|| index.to_string());
                    ImportedRow { id: Some(id), ..row }
                })
            });
            (line, row)
        }))
    }
}

/// Removes the copies that programs keep of their files: links to a file, earlier runs of
/// VLMEvalKit, and the parts of MedEvalKit's results.
fn remove_copies(files: Vec<ImportFile>) -> Vec<ImportFile> {
    let mut kept: Vec<ImportFile> = Vec::new();
    let age = |file: &ImportFile| file.path.metadata().and_then(|data| data.modified()).ok();
    for file in files {
        let name = file.path.file_name();
        let has_merged = name != Some("results.json".as_ref())
            && file.path.with_file_name("results.json").is_file();
        if file.layout == ImportLayout::MedEval && has_merged {
            continue;
        }
        let canonical = file.path.canonicalize().ok();
        let is_copy = |other: &&mut ImportFile| {
            let is_earlier_run = file.layout == ImportLayout::VlmEval
                && other.layout == ImportLayout::VlmEval
                && other.path.file_name() == name;
            is_earlier_run || canonical.is_some() && other.path.canonicalize().ok() == canonical
        };
        match kept.iter_mut().find(is_copy) {
            Some(other) if age(&file) >= age(other) => *other = file,
            Some(_) => {}
            None => kept.push(file),
        }
    }
    kept
}

fn list_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = || format!("folder {} cannot be read", folder.display());
    for entry in folder.read_dir().with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.is_dir() {
            if depth > 0 {
                list_files(&path, depth - 1, files)?;
            }
        } else if is_table_name(&path) {
            if files.len() >= MAX_FILES {
                bail!(
                    "{}: more than {MAX_FILES} files\nhint: name the files to read",
                    folder.display()
                );
            }
            files.push(path);
        }
    }
    Ok(())
}

fn is_table_name(path: &Path) -> bool {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    let known = ["csv", "tsv", "json", "jsonl", "ndjson", "xlsx", "parquet"];
    extension.is_some_and(|extension| known.contains(&extension.as_str()))
}
