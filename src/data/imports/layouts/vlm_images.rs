//! Images of a data set of VLMEvalKit: files in `$LMUData/images/DATASET`, or base64 text in
//! `$LMUData/DATASET.tsv`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::data::cases::case::ImageSource;
use crate::data::cases::case::case_id::parse_id;
use crate::data::imports::image_value::{ImageFolders, first_existing, image_of};
use crate::data::imports::rows::row_format::{RowFormat, open_rows};
use crate::data::imports::rows::table_row::{TableRow, TableRows};

/// Variable with the folder of the data sets.
const DATA_VARIABLE: &str = "LMUData";
/// Extensions of image files.
const EXTENSIONS: [&str; 4] = ["png", "jpg", "jpeg", "webp"];
/// Texts of at most this length are the index of another row with the same image.
const MAX_INDEX_CHARS: usize = 64;
/// Maximum number of times that the table is read from its start.
const MAX_RESTARTS: u32 = 200;

/// Images of one data set. The rows of the table are read in their order, without keeping them.
#[derive(Default)]
pub(super) struct VlmImages {
    /// Folders of image files.
    folders: Vec<PathBuf>,
    /// The table with base64 text.
    table: Option<PathBuf>,
    rows: Option<TableRows>,
    restarts: u32,
    /// The image that was found last, and the index of its row.
    last: Option<(String, ImageSource)>,
}

impl std::fmt::Debug for VlmImages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VlmImages").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl VlmImages {
    /// Finds the images of a data set in the folder that the user named, in `$LMUData` or in
    /// `~/LMUData`.
    pub(super) fn new(named: Option<&Path>, dataset: Option<&str>) -> Self {
        let Some(dataset) = dataset else {
            return Self::default();
        };
        let variable = std::env::var_os(DATA_VARIABLE).map(PathBuf::from);
        let home = std::env::home_dir().map(|home| home.join(DATA_VARIABLE));
        let roots: Vec<PathBuf> =
            named.map(Path::to_owned).into_iter().chain(variable.or(home)).collect();
        let subfolders = roots.iter().map(|root| root.join("images").join(dataset));
        let folders = subfolders.chain(named.map(Path::to_owned)).collect();
        let tables = roots.iter().map(|root| root.join(format!("{dataset}.tsv")));
        let table = tables.into_iter().find(|table| table.is_file());
        Self { folders, table, ..Self::default() }
    }

    /// Finds the images of a data set whose table is known.
    pub(super) fn of_table(table: &Path, named: Option<&Path>) -> Self {
        let dataset = table.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self { table: Some(table.to_owned()), ..Self::new(named, dataset.as_deref()) }
    }

    /// Returns the image of a row.
    pub(super) fn find(
        &mut self,
        index: &str,
        row: &TableRow,
        folders: &ImageFolders,
    ) -> Result<Option<ImageSource>, String> {
        if folders.is_skipped {
            return Ok(None);
        }
        let image = row.field("image").filter(|image| !image.is_null());
        let same_as = image.and_then(index_of_other_row).filter(|_| self.table.is_some());
        if let (Some(image), None) = (image, &same_as) {
            return image_of(image, index, folders);
        }
        let named = row.field("image_path").and_then(Value::as_str);
        let names = named.map(str::to_owned).into_iter();
        let names: Vec<String> =
            names.chain(EXTENSIONS.map(|extension| format!("{index}.{extension}"))).collect();
        let files = self.folders.iter().flat_map(|folder| names.iter().map(|n| folder.join(n)));
        if let Some(image) = first_existing(files) {
            return Ok(Some(image));
        }
        let mut index = same_as.unwrap_or_else(|| index.to_owned());
        for _ in 0..2 {
            match self.find_in_table(&index, folders)? {
                TableImage::Image(image) => return Ok(Some(image)),
                TableImage::SameAs(other) => index = other,
                TableImage::Missing => break,
            }
        }
        Err(format!(
            "no image of index {index}\nhint: set {DATA_VARIABLE} to the folder of VLMEvalKit's \
             data sets, or pass it with --images"
        ))
    }

    /// Reads the table up to a row. Starts again after the last row.
    fn find_in_table(&mut self, index: &str, folders: &ImageFolders) -> Result<TableImage, String> {
        let Some(table) = &self.table else {
            return Ok(TableImage::Missing);
        };
        if let Some((_, image)) = self.last.as_ref().filter(|(last, _)| last == index) {
            return Ok(TableImage::Image(image.clone()));
        }
        for _ in 0..2 {
            if self.rows.is_none() {
                self.restarts += 1;
                if self.restarts > MAX_RESTARTS {
                    return Err(format!(
                        "{}: the rows are in another order than the predictions",
                        table.display()
                    ));
                }
                let rows = open_rows(table, &RowFormat::Csv).map_err(|e| format!("{e:#}"))?;
                self.rows = Some(rows);
            }
            while let Some((_, row)) = self.rows.as_mut().and_then(Iterator::next) {
                let Ok(row) = row else { continue };
                if row.field("index").and_then(parse_id).as_deref() != Some(index) {
                    continue;
                }
                let image = row.field("image").unwrap_or(&Value::Null);
                if let Some(other) = index_of_other_row(image) {
                    return Ok(TableImage::SameAs(other));
                }
                return Ok(match image_of(image, index, folders)? {
                    Some(image) => {
                        self.last = Some((index.to_owned(), image.clone()));
                        TableImage::Image(image)
                    }
                    None => TableImage::Missing,
                });
            }
            self.rows = None;
        }
        Ok(TableImage::Missing)
    }
}

/// Returns the index in a field that names the row with the image.
fn index_of_other_row(image: &Value) -> Option<String> {
    let text = image.as_str()?.trim();
    let is_index = text.len() <= MAX_INDEX_CHARS && !text.contains(['/', '.']);
    (is_index && !text.is_empty()).then(|| text.to_owned())
}

/// What the table has for a row.
enum TableImage {
    /// The image.
    Image(ImageSource),
    /// The index of another row with the same image.
    SameAs(String),
    /// Nothing.
    Missing,
}
