//! A file of evaluations written again with what they were rated.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::support::files::atomic_file;
use crate::support::files::folder::parent_folder;
use crate::training::preferences::data::jsonl_line::numbered;

/// The lines of a file in their order, each with its chance as `quality`; a rating that was there before is kept as
/// `rated`. Images are named as before where `out` lies beside the file, else by their whole paths.
///
/// # Errors
/// Name the file and the line.
pub fn write_rated(path: &Path, out: &Path, chances: &[f64]) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let base = parent_folder(path)?;
    let beside = base == parent_folder(out)?;
    let mut written = String::with_capacity(text.len() + 32 * chances.len());
    for ((number, line), chance) in numbered(&text).zip(chances) {
        let place = || format!("{}, line {number}", path.display());
        let mut fields: Map<String, Value> = serde_json::from_str(line).with_context(place)?;
        let rounded = (chance * 1e6).round() / 1e6;
        if let Some(rated) = fields.insert("quality".to_owned(), rounded.into()) {
            fields.insert("rated".to_owned(), rated);
        }
        if !beside {
            whole_images(&mut fields, &base);
        }
        written += &serde_json::to_string(&fields).with_context(place)?;
        written.push('\n');
    }
    atomic_file::write(out, written.as_bytes()).with_context(|| format!("--out {}", out.display()))
}

/// Names the images of a line, which are named from `base`, by their whole paths.
pub(crate) fn whole_images(fields: &mut Map<String, Value>, base: &Path) {
    if let Some(Value::Array(images)) = fields.get_mut("images") {
        for image in images {
            let whole = image.as_str().map(|name| base.join(name));
            if let Some(whole) = whole {
                *image = Value::from(whole.display().to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_all_they_had() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evaluations.jsonl");
        let text = "{\"prompt\": \"a\", \"note\": 7, \"images\": [\"x.png\"], \"quality\": 3}\n\n{\"prompt\": \"b\"}\n";
        std::fs::write(&path, text).unwrap();
        let read = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        };
        let beside = folder.path().join("rated.jsonl");
        write_rated(&path, &beside, &[0.25, 0.75]).unwrap();
        let lines = read(&beside);
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (&lines[0]["quality"], &lines[0]["rated"]),
            (&0.25.into(), &3.into())
        );
        assert_eq!(
            (&lines[0]["note"], &lines[0]["images"][0]),
            (&7.into(), &"x.png".into())
        );
        assert_eq!(
            (&lines[1]["quality"], lines[1].get("rated")),
            (&0.75.into(), None)
        );
        // A bare name has a folder too.
        let here = std::env::current_dir().unwrap();
        assert_eq!(parent_folder(Path::new("rated.jsonl")).unwrap(), here);
        let other = tempfile::tempdir().unwrap();
        let away = other.path().join("rated.jsonl");
        write_rated(&path, &away, &[0.25, 0.75]).unwrap();
        let image = folder.path().join("x.png").display().to_string();
        assert_eq!(read(&away)[0]["images"][0], image);
    }
}
