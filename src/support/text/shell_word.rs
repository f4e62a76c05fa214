//! Quotes words for commands in messages.

/// Quotes a word for a shell.
pub(crate) fn quote_shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_./:=,@%+-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_words_of_a_shell() {
        assert_eq!(quote_shell_word("out/peft-1"), "out/peft-1");
        assert_eq!(quote_shell_word("my panel"), "'my panel'");
        assert_eq!(quote_shell_word("it's"), r"'it'\''s'");
    }
}
