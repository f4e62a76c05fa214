//! Length of a response in words, and length bins.

/// The bins of response lengths: the largest number of words and the name of each.
const LENGTH_BINS: [(usize, &str); 4] =
    [(5, "1-5 words"), (20, "6-20 words"), (80, "21-80 words"), (usize::MAX, "over 80 words")];

/// Returns the bin of a response length: its index and its name.
pub fn length_bin(words: usize) -> (usize, &'static str) {
    let mut bins = LENGTH_BINS.iter().enumerate();
    let bin = bins.find(|(_, (largest, _))| words <= *largest);
    bin.map_or((0, ""), |(i, (_, name))| (i, name))
}

/// Counts the words of a text. In scripts without spaces, each character counts as a word.
pub(super) fn count_words(text: &str) -> usize {
    let is_unspaced =
        |c: &char| matches!(u32::from(*c), 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xAC00..=0xD7AF);
    let count = |word: &str| {
        let characters = word.chars().filter(is_unspaced).count();
        let has_letters = word.chars().any(|c| c.is_alphanumeric() && !is_unspaced(&c));
        characters + usize::from(has_letters)
    };
    text.split_whitespace().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_words_of_two_scripts() {
        assert_eq!(count_words("No - a small, bright mass."), 5);
        assert_eq!(count_words("肺部 CT"), 3);
        assert_eq!(count_words(""), 0);
    }

    #[test]
    fn length_bins_have_inclusive_ends() {
        assert_eq!(length_bin(5).1, "1-5 words");
        assert_eq!(length_bin(6), (1, "6-20 words"));
        assert_eq!(length_bin(999).1, "over 80 words");
    }
}
