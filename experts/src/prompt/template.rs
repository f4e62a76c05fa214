//! Prompt templates: text with named placeholders.

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

/// A template, split at its placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Placeholder(String),
}

impl Template {
    /// Splits a text at its `{placeholders}`.
    ///
    /// # Errors
    /// If a placeholder is not closed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| Error::Template(format!("placeholder `{{{after}` is not closed")))?;
            parts.push(TemplatePart::Text(before.to_owned()));
            parts.push(TemplatePart::Placeholder(name.to_owned()));
            rest = after;
        }
        parts.push(TemplatePart::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Replaces the placeholders with the pieces that `value` returns for their names. Adjacent
    /// trusted texts are joined.
    ///
    /// # Errors
    /// If `value` returns `None` for a placeholder.
    pub fn fill(
        &self,
        value: impl Fn(&str) -> Option<Vec<PromptPiece>>,
    ) -> Result<Vec<PromptPiece>, Error> {
        let mut pieces: Vec<PromptPiece> = Vec::new();
        for part in &self.0 {
            let filled = match part {
                TemplatePart::Text(text) => vec![PromptPiece::Trusted(text.clone())],
                TemplatePart::Placeholder(name) => value(name)
                    .ok_or_else(|| Error::Template(format!("unknown placeholder {{{name}}}")))?,
            };
            for piece in filled {
                push_piece(&mut pieces, piece);
            }
        }
        Ok(pieces)
    }
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

    #[test]
    fn fill_joins_trusted_texts_only() -> Result<(), Error> {
        let template = Template::parse("a {x}{y} b")?;
        let pieces = template.fill(|name| {
            Some(vec![match name {
                "x" => PromptPiece::Trusted("X".to_owned()),
                _ => PromptPiece::Quoted("Y".to_owned()),
            }])
        })?;
        let trusted = |text: &str| PromptPiece::Trusted(text.to_owned());
        assert_eq!(pieces, [trusted("a X"), PromptPiece::Quoted("Y".to_owned()), trusted(" b")]);
        Ok(())
    }

    #[test]
    fn unclosed_or_unknown_placeholder_is_an_error() {
        assert!(Template::parse("a {x").is_err());
        assert!(Template::parse("{x}").and_then(|t| t.fill(|_| None)).is_err());
    }
}
