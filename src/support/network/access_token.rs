//! Access tokens.

use std::borrow::Cow;
use std::fmt;

/// Environment variable with the token of the hub.
pub const HUB_TOKEN_VARIABLE: &str = "HF_TOKEN";
/// Environment variable with the key of an adviser's endpoint.
pub const API_KEY_VARIABLE: &str = "OPENAI_API_KEY";
/// Shorter tokens are not replaced in texts, because they may occur there by chance.
const MIN_HIDDEN_BYTES: usize = 6;
/// Replacement of a token in a text.
const HIDDEN: &str = "…";

/// Access token, hidden in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl AccessToken {
    /// Creates a token from the text of a variable or file. Returns `None` if it is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the token, for the header of a request.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// Returns true if the token is one word of ASCII characters, as a header requires.
    pub(crate) fn is_word(&self) -> bool {
        self.0.bytes().all(|b| b.is_ascii_graphic())
    }

    /// Replaces the token in a text, for example in an answer of a server that repeats it.
    pub(crate) fn hide_in<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Some writers of JSON escape slashes.
        let escaped = self.0.replace('/', "\\/");
        let forms = [self.0.as_str(), escaped.as_str()];
        if self.0.len() >= MIN_HIDDEN_BYTES && forms.iter().any(|form| text.contains(form)) {
            Cow::Owned(text.replace(forms[0], HIDDEN).replace(forms[1], HIDDEN))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Replaces the token in the body of a response. A body that is not UTF-8 stays as it is.
    pub(crate) fn hide_in_body(&self, body: Vec<u8>) -> Vec<u8> {
        match std::str::from_utf8(&body).map(|text| self.hide_in(text)) {
            Ok(Cow::Owned(hidden)) => hidden.into_bytes(),
            Ok(Cow::Borrowed(_)) | Err(_) => body,
        }
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_hidden() {
        let token = AccessToken::new(" sk-123456\n").unwrap();
        assert_eq!(format!("{token:?}"), "AccessToken(…)");
        assert_eq!(token.hide_in("no key sk-123456!"), "no key …!");
        let slashed = AccessToken::new("sk/123/456").unwrap();
        assert_eq!(slashed.hide_in(r"sk\/123\/456 sk/123/456"), "… …");
        assert_eq!(
            slashed.hide_in_body(br#"{"a":"sk\/123\/456"}"#.to_vec()),
            "{\"a\":\"…\"}".as_bytes()
        );
        assert_eq!(slashed.hide_in_body(b"\xffsk".to_vec()), b"\xffsk");
        assert_eq!(AccessToken::new("a").unwrap().hide_in("a key"), "a key");
        assert_eq!(AccessToken::new(" "), None);
        assert!(token.is_word() && !AccessToken::new("a\nb").unwrap().is_word());
    }
}
