//! Prompt templates: text with named placeholders and optional sections.

use crate::Error;

/// A piece of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPiece {
    /// Text that the program supplies. Special tokens in it are recognised.
    Trusted(String),
    /// Text of a question, a response or a model's analysis. No part of it becomes a special token
    /// or a part of the format.
    Quoted(String),
    /// Position of the image tokens.
    Image,
}

/// A template, split at its placeholders. `{name}` is a placeholder. The text between `{#name}` and
/// `{/name}` is a section, which is left out of prompts that lack its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Placeholder(String),
    Section(String, Vec<TemplatePart>),
}

/// Values of the placeholders and sections of a template.
pub trait TemplateValues {
    /// Returns the pieces of a placeholder; `None` if there is no placeholder with this name.
    fn pieces(&self, placeholder: &str) -> Option<Vec<PromptPiece>>;

    /// Returns whether a section is part of the prompt; `None` if there is no section with this name.
    fn has_section(&self, section: &str) -> Option<bool>;
}

impl Template {
    /// Splits a text at its placeholders and sections.
    ///
    /// # Errors
    /// If a placeholder or section is not closed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        // The sections that are open, each with the parts before it.
        let mut open: Vec<(String, Vec<TemplatePart>)> = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (tag, after) = after
                .split_once('}')
                .ok_or_else(|| Error::Template(format!("placeholder `{{{after}` is not closed")))?;
            parts.push(TemplatePart::Text(before.to_owned()));
            rest = after;
            if let Some(name) = tag.strip_prefix('#') {
                open.push((name.to_owned(), std::mem::take(&mut parts)));
            } else if let Some(name) = tag.strip_prefix('/') {
                let (_, outer) = open
                    .pop_if(|(open, _)| open == name)
                    .ok_or_else(|| Error::Template(format!("no section ends at `{{/{name}}}`")))?;
                let inner = std::mem::replace(&mut parts, outer);
                parts.push(TemplatePart::Section(name.to_owned(), inner));
            } else {
                parts.push(TemplatePart::Placeholder(tag.to_owned()));
            }
        }
        if let Some((name, _)) = open.pop() {
            return Err(Error::Template(format!("section `{{#{name}}}` is not closed")));
        }
        parts.push(TemplatePart::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Fills in the placeholders and leaves out absent sections. Adjacent trusted texts are joined.
    ///
    /// # Errors
    /// If a placeholder or section has no value.
    pub fn fill(&self, values: &dyn TemplateValues) -> Result<Vec<PromptPiece>, Error> {
        let mut pieces = Vec::new();
        fill_parts(&self.0, values, &mut pieces)?;
        Ok(pieces)
    }
}

fn fill_parts(
    parts: &[TemplatePart],
    values: &dyn TemplateValues,
    pieces: &mut Vec<PromptPiece>,
) -> Result<(), Error> {
    let unknown = |name: &str| Error::Template(format!("unknown placeholder {{{name}}}"));
    for part in parts {
        match part {
            TemplatePart::Text(text) => push_piece(pieces, PromptPiece::Trusted(text.clone())),
            TemplatePart::Placeholder(name) => {
                for piece in values.pieces(name).ok_or_else(|| unknown(name))? {
                    push_piece(pieces, piece);
                }
            }
            TemplatePart::Section(name, inner) => {
                if values.has_section(name).ok_or_else(|| unknown(name))? {
                    fill_parts(inner, values, pieces)?;
                }
            }
        }
    }
    Ok(())
}

/// Appends a piece. Trusted text is joined to trusted text before it.
pub(super) fn push_piece(pieces: &mut Vec<PromptPiece>, piece: PromptPiece) {
    match (pieces.last_mut(), piece) {
        (_, PromptPiece::Trusted(text)) if text.is_empty() => {}
        (Some(PromptPiece::Trusted(last)), PromptPiece::Trusted(text)) => last.push_str(&text),
        (_, piece) => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Values {
        has_image: bool,
    }

    impl TemplateValues for Values {
        fn pieces(&self, placeholder: &str) -> Option<Vec<PromptPiece>> {
            match placeholder {
                "x" => Some(vec![PromptPiece::Trusted("X".to_owned())]),
                "y" => Some(vec![PromptPiece::Quoted("Y".to_owned())]),
                _ => None,
            }
        }

        fn has_section(&self, section: &str) -> Option<bool> {
            (section == "image").then_some(self.has_image)
        }
    }

    #[test]
    fn fill_joins_trusted_texts_only() -> Result<(), Error> {
        let template = Template::parse("a {x}{y} b")?;
        let pieces = template.fill(&Values { has_image: true })?;
        let trusted = |text: &str| PromptPiece::Trusted(text.to_owned());
        assert_eq!(pieces, [trusted("a X"), PromptPiece::Quoted("Y".to_owned()), trusted(" b")]);
        Ok(())
    }

    #[test]
    fn absent_section_is_left_out() -> Result<(), Error> {
        let template = Template::parse("a{#image} with {x}{/image}.")?;
        for (has_image, expected) in [(true, "a with X."), (false, "a.")] {
            let pieces = template.fill(&Values { has_image })?;
            assert_eq!(pieces, [PromptPiece::Trusted(expected.to_owned())]);
        }
        Ok(())
    }

    #[test]
    fn malformed_or_unknown_placeholder_is_an_error() {
        for text in ["a {x", "{#image}a", "a{/image}", "{#image}{/x}{/image}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        for text in ["{z}", "{#z}a{/z}"] {
            let template = Template::parse(text).unwrap();
            assert!(template.fill(&Values { has_image: true }).is_err(), "{text}");
        }
    }
}
