//! Common parts of the lines of preference and evaluation files.

use std::path::{Path, PathBuf};

use acem3_experts::ModelConfig;
use acem3_experts::prompt::PromptPiece;
use anyhow::{Context, Result, bail};

use crate::checkpoints::panel::member_names::MemberNames;
use crate::support::digest::Digest;
use crate::support::files::regular_file;
use crate::training::preferences::prompt_text::IMAGE_MARKER;

/// Items of a file, with its hash.
#[derive(Clone, Debug)]
pub struct ParsedFile<T> {
    /// One item per line that is not blank.
    pub items: Vec<T>,
    /// SHA-256 of the file.
    pub digest: Digest,
}

/// Line to parse.
#[derive(Clone, Copy)]
pub(crate) struct JsonlLine<'a> {
    /// Content of the line.
    pub(crate) text: &'a str,
    /// Line number, counted from one.
    pub(crate) number: usize,
    /// Folder of the file. Image paths are relative to it.
    pub(crate) base: &'a Path,
}

/// Parses every non-blank line of a file. `noun` names an item in messages.
pub(crate) fn parse_lines<T>(
    path: &Path,
    noun: &str,
    parse: impl Fn(JsonlLine) -> Result<T>,
) -> Result<ParsedFile<T>> {
    let text = regular_file::read_to_string(path).with_context(|| {
        format!(
            "cannot read the {noun}s {}\n\
             hint: check the path; in a configuration, it is relative to the folder of the configuration",
            path.display()
        )
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    let items = numbered_lines(&text).map(|(number, text)| {
        parse(JsonlLine { text, number, base })
            .with_context(|| format!("{}, line {number}", path.display()))
    });
    let items: Vec<T> = items.collect::<Result<_>>()?;
    if items.is_empty() {
        bail!(
            "{}: the file contains no {noun}\n\
             hint: write at least one {noun}, as a JSON object on one line",
            path.display()
        );
    }
    Ok(ParsedFile { items, digest: Digest::sha256(text.as_bytes()) })
}

/// Returns the non-blank lines of a text with their numbers. Skips a byte order mark at the start.
pub(crate) fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| (i + 1, line))
}

/// Parses a prompt and checks that its image markers match the number of images of the line, 0 or
/// 1.
pub(crate) fn parse_prompt(text: &str, images: usize) -> Result<Vec<PromptPiece>> {
    let mut prompt = Vec::new();
    for (i, part) in text.split(IMAGE_MARKER).enumerate() {
        if i > 0 {
            prompt.push(PromptPiece::Image);
        }
        if !part.is_empty() {
            prompt.push(PromptPiece::Trusted(part.to_owned()));
        }
    }
    let markers = prompt.iter().filter(|piece| **piece == PromptPiece::Image);
    let markers = markers.count();
    if markers != images || markers > 1 {
        bail!(
            "the prompt contains {IMAGE_MARKER} {markers} times and `images` has {images} entries, expected 0 or 1 of both"
        );
    }
    Ok(prompt)
}

/// Checks that the member that a line names is one of these.
pub(crate) fn check_member(names: MemberNames, name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    names.index(name).map(drop).with_context(|| {
        "the line is for another panel\n\
         hint: set `rubric` in the table [judging] of the configuration to the rubric of the evaluations"
    })
}

/// Checks that an image file exists, and that the model sees images.
pub(crate) fn check_image_for(model: &ModelConfig, image: Option<&Path>) -> Result<()> {
    if image.is_some() && model.is_text_only() {
        bail!(
            "the line has an image, and the model is a text model\n\
             hint: write the file with `acem3 data evaluations --config CONFIG`, which leaves images out for \
             a text model, or start from a model with a vision tower"
        );
    }
    check_image(image)
}

/// Checks that an image file exists.
pub(crate) fn check_image(image: Option<&Path>) -> Result<()> {
    match image.filter(|path| !path.is_file()) {
        Some(path) => bail!(
            "missing image {}\nhint: image paths are relative to the folder of the file",
            path.display()
        ),
        None => Ok(()),
    }
}

/// Returns the path of a line's image.
pub(crate) fn image_path(images: &[PathBuf], base: &Path) -> Option<PathBuf> {
    images.first().map(|image| base.join(image))
}
