//! A text whose words can be replaced one by one.

/// The words of a text and the characters between them: `gaps[i]` precedes `words[i]`.
pub(super) struct WordSequence {
    pub(super) words: Vec<String>,
    pub(super) gaps: Vec<String>,
    tail: String,
}

impl WordSequence {
    /// Splits a text into words.
    pub(super) fn split(text: &str) -> Self {
        let (mut words, mut gaps) = (Vec::new(), Vec::new());
        let (mut word, mut gap) = (String::new(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for (i, c) in letters.iter().enumerate() {
            let next = letters.get(i + 1).is_some_and(|n| n.is_alphanumeric());
            // "X-ray", "3.5" and "don't" are one word each.
            let is_inside_word = !word.is_empty() && next && "-.'’".contains(*c);
            if c.is_alphanumeric() || is_inside_word {
                if word.is_empty() {
                    gaps.push(std::mem::take(&mut gap));
                }
                word.push(*c);
            } else {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                gap.push(*c);
            }
        }
        if !word.is_empty() {
            words.push(word);
        }
        Self { words, gaps, tail: gap }
    }

    /// Joins words and gaps into a text.
    pub(super) fn join(&self) -> String {
        let mut text = String::new();
        for (gap, word) in self.gaps.iter().zip(&self.words) {
            // The gap before a deleted word is deleted, too.
            if !word.is_empty() {
                text.push_str(gap);
                text.push_str(word);
            }
        }
        text + &self.tail
    }

    /// Returns the words in lower case, without hyphens and apostrophes, with their indices.
    pub(super) fn normalized(&self) -> Vec<(usize, String)> {
        let normalize = |word: &String| word.to_lowercase().replace(['-', '’', '\''], "");
        self.words.iter().map(normalize).enumerate().collect()
    }

    /// Replaces a word; the new word gets the capitalisation of the old one.
    pub(super) fn replace_word(&mut self, index: usize, word: &str) {
        if let Some(old) = self.words.get_mut(index) {
            let is_capital = old.chars().next().is_some_and(char::is_uppercase);
            let is_all_capitals = old.len() > 1 && !old.chars().any(char::is_lowercase);
            let mut letters = word.chars();
            *old = match letters.next() {
                Some(_) if is_all_capitals => word.to_uppercase(),
                Some(first) if is_capital => first.to_uppercase().chain(letters).collect(),
                _ => word.to_owned(),
            };
        }
    }

    /// Corrects the indefinite article before a word; `starts_with_vowel` refers to its sound.
    pub(super) fn fix_article(&mut self, index: usize, starts_with_vowel: bool) {
        let before =
            index.checked_sub(1).and_then(|i| Some((i, self.words.get(i)?.to_lowercase())));
        if let Some((i, word)) = before
            && (word == "a" || word == "an")
        {
            self.replace_word(i, if starts_with_vowel { "an" } else { "a" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_restores_the_text() {
        for text in ["", "No.", " - An X-ray, 3.5 cm;  (left)! ", "肺部 CT", "a\nb"] {
            assert_eq!(WordSequence::split(text).join(), text);
        }
        let mut text = WordSequence::split("An X-ray is NOT a CT.");
        assert_eq!(text.words, ["An", "X-ray", "is", "NOT", "a", "CT"]);
        text.replace_word(3, "");
        text.replace_word(0, "some");
        text.fix_article(5, true);
        assert_eq!(text.join(), "Some X-ray is an CT.");
    }
}
