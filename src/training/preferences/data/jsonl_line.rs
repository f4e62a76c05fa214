//! What lines of preferences and of evaluations have in common.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::Piece;
use anyhow::{Context, Result, bail};

use super::folder::IMAGE;
use crate::checkpoints::panel::definition::MEMBERS;
use crate::support::digest::Digest;

/// Reads every line of a file that is not blank, as a `what`; also gives the file's hash.
pub(super) fn read_lines<T>(
    path: &Path,
    what: &str,
    read: impl Fn(&str, usize, &Path) -> Result<T>,
) -> Result<(Vec<T>, Digest)> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!(
            "cannot read the {what}s {}\n\
             hint: `acem3 data preferences` writes such a file; its name is relative to the configuration",
            path.display()
        )
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    let all = numbered(&text).map(|(number, line)| {
        read(line, number, base).with_context(|| format!("{}, line {number}", path.display()))
    });
    let all: Vec<T> = all.collect::<Result<_>>()?;
    if all.is_empty() {
        bail!("{}: it holds no {what}", path.display());
    }
    Ok((all, Digest::of(text.as_bytes())))
}

/// The lines of a text that are not blank, with their numbers. Some editors begin a file with a mark of its encoding, which
/// is none of them.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| (i + 1, line))
}

/// The pieces of a prompt about so many images.
pub(super) fn prompt(text: &str, images: usize) -> Result<Vec<Piece>> {
    let mut prompt = Vec::new();
    for (i, part) in text.split(IMAGE).enumerate() {
        if i > 0 {
            prompt.push(Piece::Image);
        }
        if !part.is_empty() {
            prompt.push(Piece::Fixed(part.to_owned()));
        }
    }
    let pieces = prompt.iter();
    let wanted = pieces.filter(|piece| **piece == Piece::Image).count();
    if wanted != images || wanted > 1 {
        bail!(
            "the prompt has {wanted} times {IMAGE}, `images` names {images}, expected one of each or none"
        );
    }
    Ok(prompt)
}

/// The place of the member of this name.
pub(super) fn member(name: Option<String>) -> Result<Option<usize>> {
    let Some(name) = name else { return Ok(None) };
    let place = MEMBERS.iter().position(|member| *member == name);
    let place = place.with_context(|| {
        format!(
            "no member is called {name:?}, they are {}",
            MEMBERS.join(", ")
        )
    })?;
    Ok(Some(place))
}

/// Refuses an image that is not there.
pub(crate) fn there(image: Option<&Path>) -> Result<()> {
    match image.filter(|path| !path.is_file()) {
        Some(path) => bail!(
            "there is no image {}\nhint: images are named from the folder of the file",
            path.display()
        ),
        None => Ok(()),
    }
}

/// The file of the one image.
pub(super) fn image(images: &[PathBuf], base: &Path) -> Option<PathBuf> {
    images.first().map(|image| base.join(image))
}
