//! Sections of definitions and anchors that apply only to cases with an image, or only to those without.

use super::template::{PromptPiece, Template, TemplateValues};
use crate::Error;

/// A case with or without an image, for the sections of a definition or anchor.
struct ImageSection(bool);

impl TemplateValues for ImageSection {
    fn pieces(&self, _: &str) -> Option<Vec<PromptPiece>> {
        None
    }

    fn has_section(&self, section: &str) -> Option<bool> {
        (section == "image").then_some(self.0)
    }
}

/// Returns a text without the sections for the other kind of case.
pub(super) fn fit_to_case(text: &str, has_image: bool) -> Result<String, Error> {
    let pieces = Template::parse(text)?.fill(&ImageSection(has_image))?;
    let texts = pieces.into_iter().filter_map(|piece| match piece {
        PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => Some(text),
        PromptPiece::Image => None,
    });
    Ok(texts.collect())
}
