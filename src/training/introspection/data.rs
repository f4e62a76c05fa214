//! The evaluations that a round learns from: lines of a file, mended from round to round.

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

/// The folder of images, beside the files of evaluations.
const IMAGES: &str = "images";
/// Fields of a line of preferences that say nothing of an evaluation which has been mended.
const OUTDATED: [&str; 3] = ["chosen", "rejected", "negatives"];

/// Evaluations with all that their lines say.
pub(super) struct EvaluationData {
    /// Where they lie, which their images are named from.
    folder: PathBuf,
    lines: Vec<Map<String, Value>>,
    /// What is learned anew.
    new: Vec<Map<String, Value>>,
    replaced: usize,
}

impl EvaluationData {
    /// Reads a file of evaluations that is to be written into `folder`.
    pub(super) fn read(path: &Path, folder: &Path) -> Result<Self> {
        // All that can be wrong with it is said by who reads it to learn from it.
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

    /// How many stand in the place of earlier ones.
    pub(super) fn replaced(&self) -> usize {
        self.replaced
    }

    /// Takes what members should have written about a pair: in place of what they learned of it, or anew.
    pub(super) fn learn(
        &mut self,
        (case, models): &PairId,
        image: Option<&DecodedImage>,
        lessons: Vec<MemberCompletion>,
    ) -> Result<()> {
        for lesson in lessons {
            let mut place = None;
            for (i, line) in self.lines.iter().enumerate() {
                if lesson.replaces(line) && self.shows(line, image)? {
                    place = Some(i);
                    break;
                }
            }
            let mut fields = match place {
                Some(i) => std::mem::take(&mut self.lines[i]),
                None => self.begun(case, models, image, &lesson)?,
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

    /// All evaluations as lines, those that are new before the others: the last ones validate.
    pub(super) fn text(&self) -> Result<String> {
        let mut text = String::new();
        for line in self.new.iter().chain(&self.lines) {
            text += &serde_json::to_string(line).context("cannot write an evaluation")?;
            text.push('\n');
        }
        Ok(text)
    }

    /// A line of what was not learned before. Where lines are in an order of quality, what people agree with
    /// is of the best.
    fn begun(
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
            .map(|image| self.keep(image))
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

    /// Writes an image beside the evaluations, once, and gives its name.
    fn keep(&self, image: &DecodedImage) -> Result<String> {
        let name = format!("{IMAGES}/{}.png", Digest::of(image.data()).short());
        let path = self.folder.join(&name);
        if !path.exists() {
            create_folder(&self.folder.join(IMAGES))?;
            let bytes = png(image).with_context(|| path.display().to_string())?;
            atomic_file::write(&path, &bytes)?;
        }
        Ok(name)
    }

    /// Whether a line is about this image.
    fn shows(&self, line: &Map<String, Value>, image: Option<&DecodedImage>) -> Result<bool> {
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
