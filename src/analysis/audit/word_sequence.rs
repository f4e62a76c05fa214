//! A text of which single words can be exchanged.

/// A text cut into words and what stands between them: `gaps[i]` is before `words[i]`.
pub(super) struct WordSequence {
    pub(super) words: Vec<String>,
    pub(super) gaps: Vec<String>,
    tail: String,
}

impl WordSequence {
    /// The words of a text.
    pub(super) fn of(text: &str) -> Self {
        let (mut words, mut gaps) = (Vec::new(), Vec::new());
        let (mut word, mut gap) = (String::new(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for (i, c) in letters.iter().enumerate() {
            let next = letters.get(i + 1).is_some_and(|n| n.is_alphanumeric());
            // "X-ray", "3.5" and "don't" are one word each.
            let inside = !word.is_empty() && next && "-.'’".contains(*c);
            if c.is_alphanumeric() || inside {
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
        Self {
            words,
            gaps,
            tail: gap,
        }
    }

    /// The text again.
    pub(super) fn join(&self) -> String {
        let mut text = String::new();
        for (gap, word) in self.gaps.iter().zip(&self.words) {
            // A word that was dropped takes the gap before it along.
            if !word.is_empty() {
                text.push_str(gap);
                text.push_str(word);
            }
        }
        text + &self.tail
    }

    /// The words in lower case, without hyphens, with their places.
    pub(super) fn plain(&self) -> Vec<(usize, String)> {
        let plain = |word: &String| word.to_lowercase().replace(['-', '’', '\''], "");
        self.words.iter().map(plain).enumerate().collect()
    }

    /// Puts a word in a place, with the capital of the one that stood there.
    pub(super) fn put(&mut self, at: usize, word: &str) {
        if let Some(old) = self.words.get_mut(at) {
            let capital = old.chars().next().is_some_and(char::is_uppercase);
            let shouted = old.len() > 1 && !old.chars().any(char::is_lowercase);
            let mut letters = word.chars();
            *old = match letters.next() {
                Some(_) if shouted => word.to_uppercase(),
                Some(first) if capital => first.to_uppercase().chain(letters).collect(),
                _ => word.to_owned(),
            };
        }
    }

    /// Makes the article before a place fit.
    pub(super) fn fit_article(&mut self, at: usize, vowel: bool) {
        let before = at
            .checked_sub(1)
            .and_then(|i| Some((i, self.words.get(i)?.to_lowercase())));
        if let Some((i, word)) = before
            && (word == "a" || word == "an")
        {
            self.put(i, if vowel { "an" } else { "a" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_put_together_as_it_was() {
        for text in [
            "",
            "No.",
            " - An X-ray, 3.5 cm;  (left)! ",
            "肺部 CT",
            "a\nb",
        ] {
            assert_eq!(WordSequence::of(text).join(), text);
        }
        let mut text = WordSequence::of("An X-ray is NOT a CT.");
        assert_eq!(text.words, ["An", "X-ray", "is", "NOT", "a", "CT"]);
        text.put(3, "");
        text.put(0, "some");
        text.fit_article(5, true);
        assert_eq!(text.join(), "Some X-ray is an CT.");
    }
}
