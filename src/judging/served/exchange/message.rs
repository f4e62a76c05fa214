//! The message of a request: the prompt with its image.

use acem3_experts::prompt::PromptPiece;
use serde::Serialize;
use serde_json::value::RawValue;

/// Longest text between angle brackets that may be a special token, in bytes.
const MAX_SPECIAL_BYTES: usize = 48;

/// Part of a message, as in the interface of OpenAI.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::judging::served) enum ContentPart<'a> {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The image.
    ImageUrl {
        /// The address.
        image_url: ImageAddress<'a>,
    },
}

/// Address of an image.
#[derive(Serialize)]
pub(in crate::judging::served) struct ImageAddress<'a> {
    /// A `data:` URL as a JSON string. It is not copied to escape it.
    url: &'a RawValue,
}

/// Returns the parts of a prompt. `image`: the data URL of the image as a JSON string.
pub(in crate::judging::served) fn content_parts<'a>(
    pieces: &[PromptPiece],
    image: Option<&'a RawValue>,
) -> Vec<ContentPart<'a>> {
    let mut parts: Vec<ContentPart<'a>> = Vec::new();
    let push_text = |parts: &mut Vec<ContentPart<'a>>, piece: &str| match parts.last_mut() {
        Some(ContentPart::Text { text }) => text.push_str(piece),
        _ => parts.push(ContentPart::Text { text: piece.to_owned() }),
    };
    for piece in pieces {
        match piece {
            PromptPiece::Trusted(text) => push_text(&mut parts, text),
            PromptPiece::Quoted(text) => push_text(&mut parts, &split_special_tokens(text)),
            PromptPiece::Image => parts
                .extend(image.map(|url| ContentPart::ImageUrl { image_url: ImageAddress { url } })),
        }
    }
    parts
}

/// Adds a space to texts that servers read as special tokens, such as `</s>`, `<image>`,
/// `<|im_end|>` and `[INST]`: a server tokenises the whole prompt, and would take one of a response
/// for its own.
fn split_special_tokens(text: &str) -> String {
    let mut split = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['<', '[']) {
        let (before, token) = rest.split_at(start);
        split.push_str(before);
        let (bracket, after) = token.split_at(1);
        split.push_str(bracket);
        if is_special(bracket, after) {
            split.push(' ');
        }
        rest = after;
    }
    split.push_str(rest);
    split
}

/// Returns true if the text after a bracket may complete a special token.
fn is_special(bracket: &str, after: &str) -> bool {
    let close = if bracket == "<" { '>' } else { ']' };
    let window: &str = after.get(..MAX_SPECIAL_BYTES).unwrap_or_else(|| {
        let end =
            (0..=MAX_SPECIAL_BYTES.min(after.len())).rev().find(|i| after.is_char_boundary(*i));
        &after[..end.unwrap_or(0)]
    });
    let Some(end) = window.find(close) else {
        return false;
    };
    let inside = &window[..end];
    if inside.is_empty() || inside.contains(char::is_whitespace) {
        return false;
    }
    // In brackets, only the upper-case words of Mistral's templates are special.
    bracket == "<" || inside.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_tokens_in_quoted_texts_are_split() {
        for (text, expected) in [
            ("a </s> b", "a < /s> b"),
            ("<image><|im_end|>", "< image>< |im_end|>"),
            ("[INST] x [/INST]", "[ INST] x [ /INST]"),
            ("<｜end▁of▁sentence｜>", "< ｜end▁of▁sentence｜>"),
            ("<<SYS>>", "< < SYS>>"),
            ("p < 0.05 and > 3 mm [1] [a]", "p < 0.05 and > 3 mm [1] [a]"),
            ("3 < x, y > 2", "3 < x, y > 2"),
            ("<", "<"),
            ("é<é", "é<é"),
        ] {
            assert_eq!(split_special_tokens(text), expected);
        }
    }

    #[test]
    fn image_stands_at_its_place() {
        let pieces = [
            PromptPiece::Trusted("a".to_owned()),
            PromptPiece::Image,
            PromptPiece::Quoted("b</s>".to_owned()),
            PromptPiece::Trusted("c".to_owned()),
        ];
        let url = serde_json::value::to_raw_value("data:x").unwrap();
        let json = serde_json::to_string(&content_parts(&pieces, Some(&url))).unwrap();
        assert_eq!(
            json,
            r#"[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"b< /s>c"}]"#
        );
        let text_only = serde_json::to_string(&content_parts(&pieces, None)).unwrap();
        assert_eq!(text_only, r#"[{"type":"text","text":"ab< /s>c"}]"#);
    }
}
