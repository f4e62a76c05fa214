//! Values of flags in environment variables.

/// Parses the value that an environment variable gives a flag. An empty value turns the flag off, as if the
/// variable were not set.
///
/// # Errors
/// The value is neither true nor false.
pub(crate) fn parse_switch(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("expected true, false, yes, no, on, off, 1 or 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_rejected() {
        for (text, value) in
            [("1", true), ("On", true), (" yes ", true), ("", false), ("off", false)]
        {
            assert_eq!(parse_switch(text), Ok(value), "{text:?}");
        }
        for text in ["maybe", "disabled", "2"] {
            assert!(parse_switch(text).is_err(), "{text}");
        }
    }
}
