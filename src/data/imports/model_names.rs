//! Names of the models of files that do not name them.

use std::collections::HashSet;

use super::folders::{MAX_FOLDERS, folder_above};
use super::import_file::ImportFile;

/// Returns a name for each file: that of its layout, else the file name, else the nearest folder.
/// The names of all files of one data set differ.
pub(super) fn name_models(files: &[ImportFile]) -> Vec<String> {
    let stem = |file: &ImportFile| {
        file.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let candidates = (0..MAX_FOLDERS + 2).map(|kind| {
        let name = |file: &ImportFile| match kind {
            0 => file.layout.model(&file.path),
            1 => Some(stem(file)),
            kind => folder_above(&file.path, kind - 1),
        };
        let names = files.iter().map(|file| {
            let named = file.model.clone().or_else(|| name(file)).unwrap_or_default();
            named.trim().to_owned()
        });
        names.collect::<Vec<String>>()
    });
    let are_distinct = |names: &Vec<String>| {
        let mut known = HashSet::new();
        names.iter().zip(files).all(|(name, file)| {
            let task = file.layout.task(&file.path);
            !name.is_empty() && (file.model.is_some() || known.insert((task, name.clone())))
        })
    };
    let distinct = candidates.into_iter().find(are_distinct);
    distinct.unwrap_or_else(|| {
        let numbered = files.iter().enumerate();
        numbered.map(|(index, file)| format!("{}-{}", stem(file), index + 1)).collect()
    })
}
