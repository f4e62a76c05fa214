//! Detects the layout of a path.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

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
}

const LAYOUTS: &str = "a folder with cases.jsonl, or with questions.csv and answers/*.jsonl; \
    a .jsonl file of cases; VQA-RAD's json with images/; SLAKE's json with imgs/; \
    .parquet files with image, question and answer";

/// Detects the layout of a path. `split` selects one of several splits in a folder.
///
/// # Errors
/// The path does not exist, has no known layout, or has several splits.
pub(super) fn recognise(path: &Path, split: Option<&str>) -> Result<SourceLayout> {
    if !path.exists() {
        bail!(
            "{} does not exist\nhint: expected {LAYOUTS}",
            path.display()
        );
    }
    if path.is_dir() {
        folder(path, split)
    } else {
        file(path)
    }
}

fn file(path: &Path) -> Result<SourceLayout> {
    // Check the file type first: a pipe may be named `cases.jsonl`.
    regular_file::check(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("jsonl" | "ndjson") => Ok(SourceLayout::Cases(path.to_path_buf())),
        Some("csv" | "tsv") => Ok(SourceLayout::Questions(path.to_path_buf())),
        Some("parquet") => Ok(SourceLayout::Hub(vec![path.to_path_buf()])),
        _ => match sniff(path)? {
            Some(layout) => Ok(layout),
            None => bail!(
                "{}: unknown layout\nhint: expected {LAYOUTS}; \
                 an array of cases must be written one per line in a .jsonl file",
                path.display()
            ),
        },
    }
}

/// Detects the layout from the first bytes of a file.
fn sniff(path: &Path) -> Result<Option<SourceLayout>> {
    let mut start = Vec::new();
    let unreadable = || format!("{} cannot be read", path.display());
    let file = regular_file::open(path).with_context(unreadable)?;
    file.take(1 << 16)
        .read_to_end(&mut start)
        .with_context(unreadable)?;
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

fn folder(path: &Path, split: Option<&str>) -> Result<SourceLayout> {
    for (name, layout) in [
        ("cases.jsonl", SourceLayout::Cases as fn(_) -> _),
        ("questions.csv", SourceLayout::Questions),
    ] {
        let file = path.join(name);
        if file.exists() {
            regular_file::check(&file)
                .with_context(|| format!("{} cannot be read", file.display()))?;
            return Ok(layout(file));
        }
    }
    let mut found: BTreeMap<String, SourceLayout> = BTreeMap::new();
    for file in files(path, "json")? {
        if let Some(layout @ (SourceLayout::Slake(_) | SourceLayout::VqaRad(_))) = sniff(&file)? {
            found.insert(stem(&file), layout);
        }
    }
    if found.is_empty() {
        found = shards(path)?
            .into_iter()
            .map(|(name, files)| (name, SourceLayout::Hub(files)))
            .collect();
    }
    if found.is_empty() {
        return Err(nothing(path));
    }
    choose(path, found, split)
}

fn choose(
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
            "{} contains the splits {names}, expected one\nhint: select one with --split, or pass its \
             file, such as {}",
            path.display(),
            first.display()
        );
    }
    found.into_values().next().context("a split was lost")
}

/// Parquet files by split, in the folder and one level below it (`data/`, or one folder per split).
fn shards(path: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut folders = vec![path.to_path_buf()];
    folders.extend(entries(path)?.into_iter().filter(|entry| entry.is_dir()));
    for folder in folders {
        for file in files(&folder, "parquet")? {
            let name = stem(&file);
            // `train-00000-of-00002` is a shard of `train`; `train/0000` is one too.
            let split = match name.split_once('-') {
                Some((split, rest)) if rest.contains("-of-") => split.to_owned(),
                _ if name.bytes().all(|b| b.is_ascii_digit()) => stem(&folder),
                _ => name,
            };
            found.entry(split).or_default().push(file);
        }
    }
    Ok(found)
}

fn nothing(path: &Path) -> anyhow::Error {
    let lines = files(path, "jsonl").unwrap_or_default();
    let hint = match lines.first() {
        Some(file) if holds_preferences(file) => format!(
            "{} holds preferences, for a trainer; `acem3 data phantoms` makes cases to judge",
            file.display()
        ),
        Some(file) => format!("to judge the cases in {0}, give that file", file.display()),
        None => "`acem3 judge --help` shows what is read".to_owned(),
    };
    anyhow::anyhow!(
        "{}: unknown layout, looked for cases.jsonl, questions.csv, VQA-RAD's or \
         SLAKE's *.json, *.parquet and data/*.parquet\nhint: {hint}",
        path.display()
    )
}

/// Whether a file starts with a preference pair, as written by `data preferences`.
fn holds_preferences(file: &Path) -> bool {
    let mut line = String::new();
    let first = regular_file::open(file)
        .and_then(|file| BufReader::new(file.take(1 << 20)).read_line(&mut line));
    let value = serde_json::from_str::<Value>(&line).unwrap_or_default();
    first.is_ok()
        && ["prompt", "chosen", "rejected"]
            .iter()
            .all(|name| value.get(name).is_some())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("folder {} cannot be read", folder.display());
    let mut paths = Vec::new();
    for entry in folder.read_dir().with_context(unreadable)? {
        paths.push(entry.with_context(unreadable)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The files of a folder with an extension, sorted by name.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let wanted = |path: &PathBuf| {
        path.is_file()
            && path
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case(extension))
    };
    Ok(entries(folder)?.into_iter().filter(wanted).collect())
}

/// The name of a file without its extension.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
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
        let cases = tree(&[("cases.jsonl", ""), ("questions.csv", "")]);
        let found = recognise(cases.path(), None).unwrap();
        assert_eq!(found, SourceLayout::Cases(cases.path().join("cases.jsonl")));
        let table = tree(&[("questions.csv", ""), ("answers/a.jsonl", "")]);
        assert!(matches!(
            recognise(table.path(), None).unwrap(),
            SourceLayout::Questions(_)
        ));
        let rad = tree(&[
            ("VQA_RAD Dataset Public.json", "[{\"image_name\": 1}]"),
            ("x.json", "{}"),
        ]);
        assert!(matches!(
            recognise(rad.path(), None).unwrap(),
            SourceLayout::VqaRad(_)
        ));
    }

    #[test]
    fn several_splits_need_a_flag() {
        let slake = tree(&[
            ("train.json", "[{\"img_name\": 1}]"),
            ("test.json", "[\"img_name\"]"),
        ]);
        let error = recognise(slake.path(), None).unwrap_err().to_string();
        assert!(
            error.contains("test, train") && error.contains("hint:"),
            "{error}"
        );
        let named = recognise(slake.path(), Some("train")).unwrap();
        assert_eq!(named, SourceLayout::Slake(slake.path().join("train.json")));
        let none = recognise(slake.path(), Some("dev"))
            .unwrap_err()
            .to_string();
        assert!(none.contains("no split dev"), "{none}");

        let names = [
            "data/a-00001-of-00002.parquet",
            "data/a-00000-of-00002.parquet",
        ];
        let hub = tree(&[(names[0], ""), (names[1], ""), ("README.md", "")]);
        let shards = [names[1], names[0]]
            .map(|name| hub.path().join(name))
            .to_vec();
        assert_eq!(
            recognise(hub.path(), None).unwrap(),
            SourceLayout::Hub(shards)
        );
        let converted = tree(&[("train/0000.parquet", ""), ("test/0000.parquet", "")]);
        let error = recognise(converted.path(), None).unwrap_err().to_string();
        assert!(error.contains("test, train"), "{error}");
    }

    #[test]
    fn files_are_detected_by_content() {
        let dir = tree(&[
            ("a.json", "\u{feff} [\n{\"img_name\""),
            ("b.json", "[{\"image_name\""),
            ("c.json", "{\"id\": 1}"),
            ("d.bin", "PAR1"),
            ("e.json", "[{\"id\": 1}]"),
        ]);
        let at = |name: &str| recognise(&dir.path().join(name), None);
        assert!(matches!(at("a.json").unwrap(), SourceLayout::Slake(_)));
        assert!(matches!(at("b.json").unwrap(), SourceLayout::VqaRad(_)));
        assert!(matches!(at("c.json").unwrap(), SourceLayout::Cases(_)));
        assert!(matches!(at("d.bin").unwrap(), SourceLayout::Hub(_)));
        assert!(
            at("e.json")
                .unwrap_err()
                .to_string()
                .contains("one per line")
        );
        assert!(
            at("none")
                .unwrap_err()
                .to_string()
                .contains("does not exist")
        );
        let nothing = tree(&[("mine.jsonl", ""), ("images/a.png", "")]);
        let error = recognise(nothing.path(), None).unwrap_err().to_string();
        assert!(
            error.contains("cases.jsonl") && error.contains("mine.jsonl"),
            "{error}"
        );
    }
}
