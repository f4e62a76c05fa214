//! Writes a file of evaluations with predicted qualities.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::jsonl_line::numbered_lines;
use crate::support::files::file_form::{FileForm, has_json_line};
use crate::support::files::folder::parent_folder;
use crate::support::files::out_file::OutFile;
use crate::support::files::regular_file;

/// The form of a file with predicted qualities. Its lines have a field `rated`, which files of human
/// ratings do not have.
pub const RATED_FORM: FileForm = FileForm {
    name: "a file of evaluations with predicted qualities",
    recognise: |file| has_json_line(file, &["prompt", "quality", "rated"]),
};

/// Writes the lines of a file with their predicted qualities as `quality`. An existing rating moves
/// to `rated`. Image paths become absolute if `out` is in another folder.
///
/// # Errors
/// If a file cannot be read or written, or a line is malformed. Errors name the file and the line.
pub fn write_rated(path: &Path, out: &OutFile, qualities: &[f64]) -> Result<()> {
    let text = regular_file::read_to_string(path).with_context(|| path.display().to_string())?;
    let base = parent_folder(path)?;
    let is_same_folder = base == parent_folder(out.path())?;
    let mut output = String::with_capacity(text.len() + 32 * qualities.len());
    for ((number, line), quality) in numbered_lines(&text).zip(qualities) {
        let location = || format!("{}, line {number}", path.display());
        let mut fields: Map<String, Value> = serde_json::from_str(line).with_context(location)?;
        let rounded = (quality * 1e6).round() / 1e6;
        if let Some(rated) = fields.insert("quality".to_owned(), rounded.into()) {
            fields.insert("rated".to_owned(), rated);
        }
        if !is_same_folder {
            make_image_paths_absolute(&mut fields, &base);
        }
        output += &serde_json::to_string(&fields).with_context(location)?;
        output.push('\n');
    }
    out.write(output.as_bytes())
}

/// Makes the image paths of a line absolute. They are relative to `base`.
pub(crate) fn make_image_paths_absolute(fields: &mut Map<String, Value>, base: &Path) {
    if let Some(Value::Array(images)) = fields.get_mut("images") {
        for image in images {
            let path = image.as_str().map(|name| base.join(name));
            if let Some(path) = path {
                *image = Value::from(path.display().to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_fields_are_preserved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evaluations.jsonl");
        let text = "{\"prompt\": \"a\", \"note\": 7, \"images\": [\"x.png\"], \"quality\": 3}\n\n{\"prompt\": \"b\"}\n";
        std::fs::write(&path, text).unwrap();
        let read = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let sibling = folder.path().join("rated.jsonl");
        let write = |out: &Path| {
            let out = OutFile::check(out, RATED_FORM, &[&path]).unwrap();
            write_rated(&path, &out, &[0.25, 0.75]).unwrap();
        };
        write(&sibling);
        // The output replaces itself, but no other ratings.
        write(&sibling);
        assert!(OutFile::check(&path, RATED_FORM, &[]).is_err());
        let lines = read(&sibling);
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["quality"], &lines[0]["rated"]), (&0.25.into(), &3.into()));
        assert_eq!((&lines[0]["note"], &lines[0]["images"][0]), (&7.into(), &"x.png".into()));
        assert_eq!((&lines[1]["quality"], lines[1].get("rated")), (&0.75.into(), None));
        // A file name without a folder is in the current folder.
        let here = std::env::current_dir().unwrap();
        assert_eq!(parent_folder(Path::new("rated.jsonl")).unwrap(), here);
        let other = tempfile::tempdir().unwrap();
        let elsewhere = other.path().join("rated.jsonl");
        write(&elsewhere);
        let image = folder.path().join("x.png").display().to_string();
        assert_eq!(read(&elsewhere)[0]["images"][0], image);
    }
}
