//! Common parts of the lines of preference and evaluation files.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::Piece;
use anyhow::{Context, Result, bail};

use super::prompt_text::IMAGE;
use crate::checkpoints::panel::definition::MEMBERS;
use crate::support::digest::Digest;

/// The items of a file, with its hash.
#[derive(Clone, Debug)]
pub struct ParsedFile<T> {
    /// One item per line that is not blank.
    pub items: Vec<T>,
    /// SHA-256 of the file.
    pub digest: Digest,
}

/// A line to parse.
#[derive(Clone, Copy)]
pub(super) struct JsonlLine<'a> {
    /// Content.
    pub(super) text: &'a str,
    /// Line number, counted from one.
    pub(super) number: usize,
    /// Folder of the file, which image paths are relative to.
    pub(super) base: &'a Path,
}

/// Parses every line of a file that is not blank. `noun` names an item in messages.
pub(super) fn parse_lines<T>(
    path: &Path,
    noun: &str,
    parse: impl Fn(JsonlLine) -> Result<T>,
) -> Result<ParsedFile<T>> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!(
            "cannot read the {noun}s {}\n\
             hint: create the file with `acem3 data preferences`; paths are relative to the configuration",
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
        bail!("{}: the file contains no {noun}", path.display());
    }
    Ok(ParsedFile {
        items,
        digest: Digest::of(text.as_bytes()),
    })
}

/// Returns the lines of a text that are not blank, with their numbers. A byte order mark at the start is skipped.
pub(crate) fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| (i + 1, line))
}

/// Parses a prompt, and checks that it refers to as many images as the line names: none or one.
pub(super) fn parse_prompt(text: &str, images: usize) -> Result<Vec<Piece>> {
    let mut prompt = Vec::new();
    for (i, part) in text.split(IMAGE).enumerate() {
        if i > 0 {
            prompt.push(Piece::Image);
        }
        if !part.is_empty() {
            prompt.push(Piece::Fixed(part.to_owned()));
        }
    }
    let references = prompt.iter().filter(|piece| **piece == Piece::Image);
    let references = references.count();
    if references != images || references > 1 {
        bail!(
            "the prompt contains {IMAGE} {references} times and `images` names {images}, expected none or one of each"
        );
    }
    Ok(prompt)
}

/// Returns the index of a member by its name.
pub(super) fn member_index(name: Option<String>) -> Result<Option<usize>> {
    let Some(name) = name else { return Ok(None) };
    let index = MEMBERS.iter().position(|member| *member == name);
    let index = index.with_context(|| {
        format!(
            "unknown member {name:?}, expected one of {}",
            MEMBERS.join(", ")
        )
    })?;
    Ok(Some(index))
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
pub(super) fn image_path(images: &[PathBuf], base: &Path) -> Option<PathBuf> {
    images.first().map(|image| base.join(image))
}
