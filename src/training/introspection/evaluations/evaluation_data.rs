//! Training data of a round: a file of evaluations. Every round replaces some of them.

use std::path::{Path, PathBuf};

use acem3_vision::DecodedImage;
use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::data::images::decoder::load_image_file;
use crate::data::images::encode_png;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::support::files::folder::{create_folder, parent_folder};
use crate::support::files::regular_file;
use crate::training::introspection::evaluations::completion::MemberCompletion;
use crate::training::introspection::judged::review::PairId;
use crate::training::preferences::{make_image_paths_absolute, numbered_lines, read_evaluations};

/// Folder of images, next to the files of evaluations.
const IMAGES: &str = "images";
/// Fields of a preference line that do not apply to a replaced evaluation.
const OUTDATED_FIELDS: [&str; 3] = ["chosen", "rejected", "negatives"];

/// Evaluations with all fields of their lines.
pub(crate) struct EvaluationData {
    /// Folder of the file; image paths are relative to it.
    folder: PathBuf,
    /// Lines of the original file, some of them replaced.
    lines: Vec<Map<String, Value>>,
    /// Added lines.
    added_lines: Vec<Map<String, Value>>,
    /// Number of replaced evaluations.
    replaced: usize,
}

impl EvaluationData {
    /// Reads a file of evaluations, which will be written to `folder`.
    pub(crate) fn read(path: &Path, folder: &Path) -> Result<Self> {
        // Validates the file and reports all errors in it.
        read_evaluations(path)?;
        let text =
            regular_file::read_to_string(path).with_context(|| path.display().to_string())?;
        let base = parent_folder(path)?;
        let has_other_folder = base != std::path::absolute(folder)?;
        let lines = numbered_lines(&text).map(|(_, line)| {
            let mut fields: Map<String, Value> = serde_json::from_str(line)?;
            if has_other_folder {
                make_image_paths_absolute(&mut fields, &base);
            }
            Ok(fields)
        });
        Ok(Self {
            folder: folder.to_owned(),
            lines: lines.collect::<Result<_>>()?,
            added_lines: Vec::new(),
            replaced: 0,
        })
    }

    /// Returns the number of replaced evaluations.
    pub(crate) fn replaced_count(&self) -> usize {
        self.replaced
    }

    /// Replaces the evaluations of a pair with `completions`. Adds a line for a completion that
    /// replaces none.
    pub(crate) fn insert(
        &mut self,
        (case, models): &PairId,
        image: Option<&DecodedImage>,
        completions: Vec<MemberCompletion>,
    ) -> Result<()> {
        for completion in completions {
            let mut index = None;
            for (i, line) in self.lines.iter().enumerate() {
                if completion.replaces(line)? && self.has_image(line, image)? {
                    index = Some(i);
                    break;
                }
            }
            let mut fields = match index {
                Some(i) => std::mem::take(&mut self.lines[i]),
                None => self.new_line(case, models, image, &completion)?,
            };
            fields.retain(|name, _| !OUTDATED_FIELDS.contains(&name.as_str()));
            fields.insert("prompt".to_owned(), completion.prompt.into());
            fields.insert("completion".to_owned(), completion.completion.into());
            match index {
                Some(i) => {
                    self.lines[i] = fields;
                    self.replaced += 1;
                }
                None => self.added_lines.push(fields),
            }
        }
        Ok(())
    }

    /// Returns all evaluations as lines, added ones first.
    pub(crate) fn to_jsonl(&self) -> Result<String> {
        let mut text = String::new();
        for line in self.added_lines.iter().chain(&self.lines) {
            text += &serde_json::to_string(line).context("cannot serialise an evaluation")?;
            text.push('\n');
        }
        Ok(text)
    }

    /// Creates a line for an added evaluation. If any line has a quality, the new line gets the
    /// highest one, because the evaluation agrees with the labels.
    fn new_line(
        &self,
        case: &str,
        [first, second]: &[String; 2],
        image: Option<&DecodedImage>,
        completion: &MemberCompletion,
    ) -> Result<Map<String, Value>> {
        let order = if completion.swapped { "-swapped" } else { "" };
        let id = format!("{case}-{first}-{second}{order}-{}", completion.member);
        let mut fields = Map::new();
        fields.insert("id".to_owned(), id.into());
        fields.insert("member".to_owned(), completion.member.into());
        let image_names: Vec<String> =
            image.map(|image| self.save_image(image)).transpose()?.into_iter().collect();
        fields.insert("images".to_owned(), image_names.into());
        let qualities = self.lines.iter().filter_map(|line| line.get("quality")?.as_f64());
        if let Some(best) = qualities.reduce(f64::max) {
            fields.insert("quality".to_owned(), best.into());
        }
        Ok(fields)
    }

    /// Writes an image next to the evaluations unless it exists. Returns its relative path.
    fn save_image(&self, image: &DecodedImage) -> Result<String> {
        let name = format!("{IMAGES}/{}.png", Digest::sha256(image.data()).short_hex());
        let path = self.folder.join(&name);
        if !path.exists() {
            create_folder(&self.folder.join(IMAGES))?;
            let bytes = encode_png(image).with_context(|| path.display().to_string())?;
            atomic_file::write_atomic(&path, &bytes)?;
        }
        Ok(name)
    }

    /// Returns true if a line has this image.
    fn has_image(&self, line: &Map<String, Value>, image: Option<&DecodedImage>) -> Result<bool> {
        let image_name = line.get("images").and_then(|images| images.get(0)?.as_str());
        let (Some(image_name), Some(image)) = (image_name, image) else {
            return Ok(image_name.is_none() && image.is_none());
        };
        let path = self.folder.join(image_name);
        let line_image = load_image_file(&path)?;
        let size = |image: &DecodedImage| (image.width(), image.height());
        Ok(size(&line_image) == size(image) && line_image.data() == image.data())
    }
}
