//! Chat templates: the text that a model expects around a prompt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::template::{PromptPiece, push_piece};
use crate::Error;

/// Built-in chat templates (TOML).
const BUILT_IN_TEMPLATES: &str = include_str!("../../data/dialogues.toml");

/// Text around a prompt, in the format that a model was trained on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatTemplate {
    /// Text before the prompt.
    pub open: String,
    /// Text after the prompt.
    pub close: String,
    /// Start of the model's output. [`Self::wrap`] does not add it, because it belongs to the
    /// format of the output.
    pub lead: String,
    /// Text that the model expects directly before and after the image tokens.
    #[serde(default, skip_serializing_if = "ImageMarkers::is_empty")]
    pub image_markers: ImageMarkers,
}

/// Text directly before and after the image tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageMarkers {
    /// Text before the image tokens.
    pub before: String,
    /// Text after the image tokens.
    pub after: String,
}

impl ImageMarkers {
    /// Creates markers.
    pub fn new(before: &str, after: &str) -> Self {
        Self { before: before.to_owned(), after: after.to_owned() }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Contents of `dialogues.toml`.
#[derive(Deserialize)]
struct ChatTemplateFile {
    #[expect(dead_code, reason = "for readers of the file, not for the program")]
    version: u32,
    #[serde(flatten)]
    templates: BTreeMap<String, ChatTemplate>,
}

impl ChatTemplate {
    /// Returns the built-in template with a name.
    ///
    /// # Errors
    /// If there is none. The message lists the known names.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        let file: ChatTemplateFile =
            toml::from_str(BUILT_IN_TEMPLATES).map_err(|e| Error::Template(e.to_string()))?;
        file.templates.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = file.templates.keys().map(String::as_str).collect();
            Error::Template(format!(
                "unknown chat template `{name}`, expected one of {}",
                known.join(", ")
            ))
        })
    }

    /// Returns true if the template adds no text.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Puts the template around a prompt, and the markers around its image. Line breaks at the end of
    /// the prompt are removed if text follows.
    pub fn wrap(&self, pieces: Vec<PromptPiece>) -> Vec<PromptPiece> {
        let mut wrapped = Vec::with_capacity(pieces.len() + 2);
        push_piece(&mut wrapped, PromptPiece::Trusted(self.open.clone()));
        let ImageMarkers { before, after } = &self.image_markers;
        for piece in pieces {
            if piece == PromptPiece::Image {
                push_piece(&mut wrapped, PromptPiece::Trusted(before.clone()));
                push_piece(&mut wrapped, piece);
                push_piece(&mut wrapped, PromptPiece::Trusted(after.clone()));
            } else {
                push_piece(&mut wrapped, piece);
            }
        }
        if let (false, Some(PromptPiece::Trusted(last))) =
            (self.close.is_empty(), wrapped.last_mut())
        {
            last.truncate(last.trim_end_matches('\n').len());
        }
        push_piece(&mut wrapped, PromptPiece::Trusted(self.close.clone()));
        wrapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_wraps_prompt_and_plain_adds_nothing() -> Result<(), Error> {
        let trusted = |text: &str| PromptPiece::Trusted(text.to_owned());
        let prompt =
            vec![trusted("Is it "), PromptPiece::Quoted("large".to_owned()), trusted("?\n")];
        assert_eq!(ChatTemplate::by_name("plain")?, ChatTemplate::default());
        assert_eq!(ChatTemplate::default().wrap(prompt.clone()), prompt);
        let wrapped = ChatTemplate::by_name("mistral")?.wrap(prompt);
        assert_eq!(wrapped.first(), Some(&trusted("[INST] Is it ")));
        assert_eq!(wrapped.last(), Some(&trusted("? [/INST]")));
        Ok(())
    }

    #[test]
    fn markers_enclose_the_image() {
        let trusted = |text: &str| PromptPiece::Trusted(text.to_owned());
        let prompt = vec![trusted("See "), PromptPiece::Image, trusted("\nIs it large?")];
        let image_markers = ImageMarkers::new("<img>", "</img>");
        let template = ChatTemplate { image_markers, ..ChatTemplate::default() };
        let expected = [trusted("See <img>"), PromptPiece::Image, trusted("</img>\nIs it large?")];
        assert_eq!(template.wrap(prompt), expected);
        let json = serde_json::to_string(&ChatTemplate::default()).unwrap();
        assert!(!json.contains("image"), "{json}");
    }

    #[test]
    fn unknown_name_error_lists_known_names() {
        let error = ChatTemplate::by_name("alpaca").unwrap_err().to_string();
        assert!(error.contains("alpaca") && error.contains("vicuna"), "{error}");
    }
}
