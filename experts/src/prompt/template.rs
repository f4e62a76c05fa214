//! Prompt templates: fixed text with named places.

use crate::Error;

/// A stretch of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text of the template itself; control tokens in it mean what they say.
    Fixed(String),
    /// Text from outside (a question, a response, a model's analysis). Nothing in it is ever read
    /// as a control token or as a part of the format.
    Free(String),
    /// Where the image tokens go.
    Image,
}

/// A template, split at its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(String),
}

impl Template {
    /// Splits a text at its `{places}`. A leading line break is dropped, as TOML does.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| Error::Template(format!("`{{{after}` is not closed")))?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Place(name.to_owned()));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Fills the places. `value` gives the pieces of a place; an unknown place is an error.
    /// Neighbouring fixed texts become one.
    pub fn fill(&self, value: impl Fn(&str) -> Option<Vec<Piece>>) -> Result<Vec<Piece>, Error> {
        let mut pieces: Vec<Piece> = Vec::new();
        for part in &self.0 {
            let filled = match part {
                Part::Text(text) => vec![Piece::Fixed(text.clone())],
                Part::Place(name) => value(name)
                    .ok_or_else(|| Error::Template(format!("unknown place {{{name}}}")))?,
            };
            for piece in filled {
                push(&mut pieces, piece);
            }
        }
        Ok(pieces)
    }
}

/// Appends a piece, joining it to a fixed text before it.
pub(super) fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (_, Piece::Fixed(text)) if text.is_empty() => {}
        (Some(Piece::Fixed(last)), Piece::Fixed(text)) => last.push_str(&text),
        (_, piece) => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_texts_join_and_free_ones_stay_apart() -> Result<(), Error> {
        let template = Template::parse("a {x}{y} b")?;
        let pieces = template.fill(|name| {
            Some(vec![match name {
                "x" => Piece::Fixed("X".to_owned()),
                _ => Piece::Free("Y".to_owned()),
            }])
        })?;
        let fixed = |s: &str| Piece::Fixed(s.to_owned());
        assert_eq!(
            pieces,
            [fixed("a X"), Piece::Free("Y".to_owned()), fixed(" b")]
        );
        Ok(())
    }

    #[test]
    fn an_open_or_unknown_place_is_an_error() {
        assert!(Template::parse("a {x").is_err());
        assert!(
            Template::parse("{x}")
                .and_then(|t| t.fill(|_| None))
                .is_err()
        );
    }
}
