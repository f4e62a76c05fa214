//! Detects the layout of a source.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::source_options::SourceOptions;
use super::unknown_file::{damaged_json_error, unknown_file_error};
use super::unknown_folder::no_cases_error;
use crate::data::imports::import_file::{FileSample, ImportFile};
use crate::data::imports::unknown_layout::{self, KNOWN_LAYOUTS};
use crate::support::files::regular_file;

/// A source layout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SourceLayout {
    /// A JSONL file of cases.
    Cases(PathBuf),
    /// A table of questions.
    Questions(PathBuf),
    /// VQA-RAD as released.
    VqaRad(PathBuf),
    /// A split of SLAKE as released.
    Slake(PathBuf),
    /// The Parquet shards of a split.
    Hub(Vec<PathBuf>),
    /// Files of other programs.
    Import(Vec<ImportFile>),
}

/// Detects the layout of the source at a path. A split selects one of several in a folder.
///
/// # Errors
/// The path does not exist, has no known layout, or has several splits.
pub(super) fn detect(path: &Path, options: &SourceOptions) -> Result<SourceLayout> {
    if !path.exists() {
        bail!("{} does not exist\nhint: check the path of the cases", path.display());
    }
    if path.is_dir() { detect_folder(path, options) } else { detect_file(path, options) }
}

fn detect_file(path: &Path, options: &SourceOptions) -> Result<SourceLayout> {
    // Check the file type first: a pipe may be named `cases.jsonl`.
    regular_file::check_regular(path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    if let Some(file) = detect_import(path, options)? {
        return Ok(SourceLayout::Import(vec![file]));
    }
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("jsonl" | "ndjson") => Ok(SourceLayout::Cases(path.to_path_buf())),
        Some("csv" | "tsv") => Ok(SourceLayout::Questions(path.to_path_buf())),
        Some("parquet") => Ok(SourceLayout::Hub(vec![path.to_path_buf()])),
        extension => {
            if extension == Some("json")
                && let Some(error) = damaged_json_error(path)?
            {
                return Err(error);
            }
            detect_by_content(path)?.ok_or_else(|| unknown_file_error(path))
        }
    }
}

/// Recognises a file of another program, or a table with named or guessed columns; `None` for a
/// file in a layout of this program, or if no row can be read.
///
/// # Errors
/// The file has rows, but no known layout.
fn detect_import(path: &Path, options: &SourceOptions) -> Result<Option<ImportFile>> {
    let columns = options.columns.as_ref();
    let unreadable = || format!("{} cannot be read", path.display());
    let sample = match FileSample::read(path) {
        Ok(sample) => sample,
        Err(error) if columns.is_some() || is_workbook(path) => {
            return Err(error.context(unreadable()));
        }
        // The reader of the layout reports the error.
        Err(_) => return Ok(None),
    };
    let Some(sample) = sample else {
        let unreadable = columns.and_then(|_| FileSample::first_unreadable(path));
        let Some((line, message)) = unreadable else {
            return Ok(None);
        };
        bail!(
            "{}: none of the first rows can be read; line {line}: {message}\n\
             hint: correct the file, or export it again as UTF-8",
            path.display()
        );
    };
    // A table with answers keeps them beside those of answers files.
    let is_own = columns.is_none() && (sample.has_cases() || sample.has_own_columns(path));
    if is_own && !is_workbook(path) {
        return Ok(None);
    }
    if let Some(file) = ImportFile::from_sample(path, &sample, columns) {
        return Ok(Some(file));
    }
    if let Some(roles) = columns {
        let missing: Vec<&str> = roles.columns().filter(|name| !sample.has_column(name)).collect();
        bail!(
            "{}: --columns names {}, which the file does not have, found {}\n\
             hint: write --columns id=COLUMN,image=COLUMN,question=COLUMN,answer:MODEL=COLUMN",
            path.display(),
            missing.join(", "),
            sample.columns().join(", ")
        );
    }
    let has_one = ["id", "responses", "chosen"].iter().any(|name| sample.has_fields(&[name]));
    if has_one && !is_workbook(path) {
        return Ok(None);
    }
    bail!("{}", unknown_layout::describe(path, Some(&sample)))
}

/// Returns true for a workbook, which can only be imported.
fn is_workbook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xlsx"))
}

/// Detects the layout from the first bytes of a file.
fn detect_by_content(path: &Path) -> Result<Option<SourceLayout>> {
    let mut start = Vec::new();
    let unreadable = || format!("{} cannot be read", path.display());
    let file = regular_file::open(path).with_context(unreadable)?;
    file.take(1 << 16).read_to_end(&mut start).with_context(unreadable)?;
    let text = String::from_utf8_lossy(&start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let path = path.to_path_buf();
    Ok(if text.starts_with("PAR1") {
        Some(SourceLayout::Hub(vec![path]))
    } else if text.starts_with('{') {
        Some(SourceLayout::Cases(path))
    } else if text.starts_with('[') && text.contains("\"img_name\"") {
        Some(SourceLayout::Slake(path))
    } else if text.starts_with('[') && text.contains("\"image_name\"") {
        Some(SourceLayout::VqaRad(path))
    } else {
        None
    })
}

fn detect_folder(path: &Path, options: &SourceOptions) -> Result<SourceLayout> {
    if let Some(columns) = &options.columns {
        let files = ImportFile::find_in_folder(path, Some(columns))?;
        if files.is_empty() {
            bail!(
                "{}: no file in the folder has the columns of --columns {columns}\n\
                 hint: leave --columns out if the folder has a layout of acem3; otherwise pass the file, and the \
                 error lists its columns",
                path.display()
            );
        }
        return Ok(SourceLayout::Import(files));
    }
    for (name, layout) in [
        ("cases.jsonl", SourceLayout::Cases as fn(_) -> _),
        ("questions.csv", SourceLayout::Questions),
    ] {
        let file = path.join(name);
        if file.exists() {
            regular_file::check_regular(&file)
                .with_context(|| format!("{} cannot be read", file.display()))?;
            return Ok(layout(file));
        }
    }
    let mut found: BTreeMap<String, SourceLayout> = BTreeMap::new();
    for file in files_with_extension(path, "json")? {
        if let Some(layout @ (SourceLayout::Slake(_) | SourceLayout::VqaRad(_))) =
            detect_by_content(&file)?
        {
            found.insert(file_stem(&file), layout);
        }
    }
    if found.is_empty() {
        found = find_shards(path)?
            .into_iter()
            .map(|(name, files)| (name, SourceLayout::Hub(files)))
            .collect();
    }
    if found.is_empty() || !is_own_shard(&found) {
        let files = ImportFile::find_in_folder(path, None)?;
        if !files.is_empty() {
            return Ok(SourceLayout::Import(files));
        }
    }
    if found.is_empty() {
        let files = files_with_extension(path, "jsonl").unwrap_or_default();
        return Err(no_cases_error(path, &files, KNOWN_LAYOUTS));
    }
    select_split(path, found, options.split.as_deref())
}

/// Returns true unless the first Parquet file has columns of another layout.
fn is_own_shard(found: &BTreeMap<String, SourceLayout>) -> bool {
    let Some(SourceLayout::Hub(shards)) = found.values().next() else {
        return true;
    };
    let sample = shards.first().and_then(|shard| FileSample::read(shard).ok().flatten());
    let shard = shards.first().map_or(Path::new(""), PathBuf::as_path);
    sample.is_none_or(|sample| sample.has_own_columns(shard) || sample.layout(None).is_none())
}

fn select_split(
    path: &Path,
    mut found: BTreeMap<String, SourceLayout>,
    split: Option<&str>,
) -> Result<SourceLayout> {
    let names = found.keys().cloned().collect::<Vec<_>>().join(", ");
    if let Some(split) = split {
        return found.remove(split).with_context(|| {
            format!(
                "{}: no split {split}, found {names}\nhint: use one of these with --split",
                path.display()
            )
        });
    }
    if found.len() > 1 {
        let first = match found.values().next() {
            Some(SourceLayout::Slake(file) | SourceLayout::VqaRad(file)) => file.clone(),
            Some(SourceLayout::Hub(files)) => files.first().cloned().unwrap_or_default(),
            _ => PathBuf::new(),
        };
        bail!(
            "{} contains the splits {names}, expected one\nhint: select one with --split, or pass \
             a file, such as {}",
            path.display(),
            first.display()
        );
    }
    found.into_values().next().context("no split found")
}

/// Finds Parquet files by split, in the folder and one level below it (`data/`, or one folder per
/// split).
fn find_shards(path: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut folders = vec![path.to_path_buf()];
    folders.extend(list_folder(path)?.into_iter().filter(|entry| entry.is_dir()));
    for folder in folders {
        for file in files_with_extension(&folder, "parquet")? {
            let name = file_stem(&file);
            // `train-00000-of-00002` and `train/0000` are shards of `train`.
            let split = match name.split_once('-') {
                Some((split, rest)) if rest.contains("-of-") => split.to_owned(),
                _ if name.bytes().all(|b| b.is_ascii_digit()) => file_stem(&folder),
                _ => name,
            };
            found.entry(split).or_default().push(file);
        }
    }
    Ok(found)
}

fn list_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("folder {} cannot be read", folder.display());
    let mut paths = Vec::new();
    for entry in folder.read_dir().with_context(unreadable)? {
        paths.push(entry.with_context(unreadable)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Returns the files of a folder with an extension, sorted by name.
pub(super) fn files_with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let has_extension = |path: &PathBuf| {
        // Anything else with this name is an error on opening, not left out.
        !path.is_dir() && path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
    };
    Ok(list_folder(folder)?.into_iter().filter(has_extension).collect())
}

/// Returns the name of a file without its extension.
pub(super) fn file_stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn split(name: &str) -> SourceOptions {
        SourceOptions { split: Some(name.to_owned()), ..SourceOptions::default() }
    }

    fn create_files(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn folders_are_detected() {
        let cases = create_files(&[("cases.jsonl", ""), ("questions.csv", "")]);
        let found = detect(cases.path(), &SourceOptions::default()).unwrap();
        assert_eq!(found, SourceLayout::Cases(cases.path().join("cases.jsonl")));
        let table = create_files(&[("questions.csv", ""), ("answers/a.jsonl", "")]);
        assert!(matches!(
            detect(table.path(), &SourceOptions::default()).unwrap(),
            SourceLayout::Questions(_)
        ));
        let rad = create_files(&[
            ("VQA_RAD Dataset Public.json", "[{\"image_name\": 1}]"),
            ("x.json", "{}"),
        ]);
        assert!(matches!(
            detect(rad.path(), &SourceOptions::default()).unwrap(),
            SourceLayout::VqaRad(_)
        ));
    }

    #[test]
    fn several_splits_need_a_flag() {
        let slake =
            create_files(&[("train.json", "[{\"img_name\": 1}]"), ("test.json", "[\"img_name\"]")]);
        let error = detect(slake.path(), &SourceOptions::default()).unwrap_err().to_string();
        assert!(error.contains("test, train") && error.contains("hint:"), "{error}");
        let selected = detect(slake.path(), &split("train")).unwrap();
        assert_eq!(selected, SourceLayout::Slake(slake.path().join("train.json")));
        let error = detect(slake.path(), &split("dev")).unwrap_err().to_string();
        assert!(error.contains("no split dev"), "{error}");

        let names = ["data/a-00001-of-00002.parquet", "data/a-00000-of-00002.parquet"];
        let hub = create_files(&[(names[0], ""), (names[1], ""), ("README.md", "")]);
        let shards = [names[1], names[0]].map(|name| hub.path().join(name)).to_vec();
        assert_eq!(
            detect(hub.path(), &SourceOptions::default()).unwrap(),
            SourceLayout::Hub(shards)
        );
        let converted = create_files(&[("train/0000.parquet", ""), ("test/0000.parquet", "")]);
        let error = detect(converted.path(), &SourceOptions::default()).unwrap_err().to_string();
        assert!(error.contains("test, train"), "{error}");
    }

    #[test]
    fn files_are_detected_by_content() {
        let dir = create_files(&[
            ("a.json", "\u{feff} [\n{\"img_name\": 1}]"),
            ("b.json", "[{\"image_name\": 1}]"),
            ("damaged.json", "\u{feff}[\n{\"img_name\""),
            ("c.json", "{\"id\": 1}"),
            ("d.bin", "PAR1"),
            ("e.json", "[{\"id\": 1}]"),
        ]);
        let detect_in_dir = |name: &str| detect(&dir.path().join(name), &SourceOptions::default());
        assert!(matches!(detect_in_dir("a.json").unwrap(), SourceLayout::Slake(_)));
        assert!(matches!(detect_in_dir("b.json").unwrap(), SourceLayout::VqaRad(_)));
        let damaged = detect_in_dir("damaged.json").unwrap_err().to_string();
        assert!(
            damaged.contains("damaged JSON: EOF while parsing an object at line 2"),
            "{damaged}"
        );
        assert!(matches!(detect_in_dir("c.json").unwrap(), SourceLayout::Cases(_)));
        assert!(matches!(detect_in_dir("d.bin").unwrap(), SourceLayout::Hub(_)));
        assert!(detect_in_dir("e.json").unwrap_err().to_string().contains("found the columns id"));
        assert!(detect_in_dir("none").unwrap_err().to_string().contains("does not exist"));
        let empty =
            detect(create_files(&[]).path(), &SourceOptions::default()).unwrap_err().to_string();
        assert!(empty.contains("hint: expected a folder with cases.jsonl"), "{empty}");
        let nothing = create_files(&[("mine.jsonl", ""), ("images/a.png", "")]);
        let error = detect(nothing.path(), &SourceOptions::default()).unwrap_err().to_string();
        assert!(error.contains("cases.jsonl") && error.contains("mine.jsonl"), "{error}");
    }
}
