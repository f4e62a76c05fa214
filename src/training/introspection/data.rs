//! Training data of a round: a file of evaluations, some of which are replaced in every round.

use std::path::{Path, PathBuf};

use acem3_vision::{DecodedImage, Limits, decode};
use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::review::PairId;
use crate::data::images::png;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::support::files::folder::create_folder;
use crate::support::files::folder::parent_folder;
use crate::training::introspection::completion::MemberCompletion;
use crate::training::preferences::{make_image_paths_absolute, numbered_lines, read_evaluations};

/// Folder of images, next to the files of evaluations.
const IMAGES: &str = "images";
/// Fields of a preference line that do not apply to a replaced evaluation.
const OUTDATED: [&str; 3] = ["chosen", "rejected", "negatives"];

/// Evaluations with all fields of their lines.
pub(super) struct EvaluationData {
    /// Folder of the file; image paths are relative to it.
    folder: PathBuf,
    lines: Vec<Map<String, Value>>,
    /// Added lines.
    new: Vec<Map<String, Value>>,
    replaced: usize,
}

impl EvaluationData {
    /// Reads a file of evaluations, which will be written to `folder`.
    pub(super) fn read(path: &Path, folder: &Path) -> Result<Self> {
        // Validates the file and reports all errors in it.
        read_evaluations(path)?;
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let base = parent_folder(path)?;
        let elsewhere = base != std::path::absolute(folder)?;
        let lines = numbered_lines(&text).map(|(_, line)| {
            let mut fields: Map<String, Value> = serde_json::from_str(line)?;
            if elsewhere {
                make_image_paths_absolute(&mut fields, &base);
            }
            Ok(fields)
        });
        Ok(Self {
            folder: folder.to_owned(),
            lines: lines.collect::<Result<_>>()?,
            new: Vec::new(),
            replaced: 0,
        })
    }

    /// Number of replaced evaluations.
    pub(super) fn replaced(&self) -> usize {
        self.replaced
    }

    /// Replaces the evaluations of a pair with `lessons`; adds those that replace none.
    pub(super) fn learn(
        &mut self,
        (case, models): &PairId,
        image: Option<&DecodedImage>,
        lessons: Vec<MemberCompletion>,
    ) -> Result<()> {
        for lesson in lessons {
            let mut place = None;
            for (i, line) in self.lines.iter().enumerate() {
                if lesson.replaces(line) && self.has_image(line, image)? {
                    place = Some(i);
                    break;
                }
            }
            let mut fields = match place {
                Some(i) => std::mem::take(&mut self.lines[i]),
                None => self.new_line(case, models, image, &lesson)?,
            };
            fields.retain(|name, _| !OUTDATED.contains(&name.as_str()));
            fields.insert("prompt".to_owned(), lesson.prompt.into());
            fields.insert("completion".to_owned(), lesson.completion.into());
            match place {
                Some(i) => {
                    self.lines[i] = fields;
                    self.replaced += 1;
                }
                None => self.new.push(fields),
            }
        }
        Ok(())
    }

    /// Returns all evaluations as lines. Added ones come first, because the last lines are the validation split.
    pub(super) fn text(&self) -> Result<String> {
        let mut text = String::new();
        for line in self.new.iter().chain(&self.lines) {
            text += &serde_json::to_string(line).context("cannot serialise an evaluation")?;
            text.push('\n');
        }
        Ok(text)
    }

    /// Creates a line for an added evaluation. If lines have a quality, it gets the best one, because it agrees with
    /// the labels.
    fn new_line(
        &self,
        case: &str,
        [first, second]: &[String; 2],
        image: Option<&DecodedImage>,
        lesson: &MemberCompletion,
    ) -> Result<Map<String, Value>> {
        let order = if lesson.swapped { "-swapped" } else { "" };
        let id = format!("{case}-{first}-{second}{order}-{}", lesson.member);
        let mut fields = Map::new();
        fields.insert("id".to_owned(), id.into());
        fields.insert("member".to_owned(), lesson.member.into());
        let names: Vec<String> = image
            .map(|image| self.save_image(image))
            .transpose()?
            .into_iter()
            .collect();
        fields.insert("images".to_owned(), names.into());
        let known = self
            .lines
            .iter()
            .filter_map(|line| line.get("quality")?.as_f64());
        if let Some(best) = known.reduce(f64::max) {
            fields.insert("quality".to_owned(), best.into());
        }
        Ok(fields)
    }

    /// Writes an image next to the evaluations unless it exists. Returns its relative path.
    fn save_image(&self, image: &DecodedImage) -> Result<String> {
        let name = format!("{IMAGES}/{}.png", Digest::of(image.data()).short());
        let path = self.folder.join(&name);
        if !path.exists() {
            create_folder(&self.folder.join(IMAGES))?;
            let bytes = png(image).with_context(|| path.display().to_string())?;
            atomic_file::write(&path, &bytes)?;
        }
        Ok(name)
    }

    /// Returns true if a line has this image.
    fn has_image(&self, line: &Map<String, Value>, image: Option<&DecodedImage>) -> Result<bool> {
        let named = line
            .get("images")
            .and_then(|images| images.get(0)?.as_str());
        let (Some(named), Some(image)) = (named, image) else {
            return Ok(named.is_none() && image.is_none());
        };
        let path = self.folder.join(named);
        let bytes =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown =
            decode(&bytes, &Limits::default()).with_context(|| path.display().to_string())?;
        let size = |image: &DecodedImage| (image.width(), image.height());
        Ok(size(&shown) == size(image) && shown.data() == image.data())
    }
}
