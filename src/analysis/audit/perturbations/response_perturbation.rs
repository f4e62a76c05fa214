//! Rewritten responses: other formatting, appended text, a neutral clause.

/// Precedes a correct response without changing its content.
const NEUTRAL_CLAUSE: &str = "As seen in this image: ";

/// Returns the text as a list with one sentence per entry.
pub(super) fn as_bullet_list(text: &str) -> String {
    let entries: Vec<String> = sentences(text).map(|s| format!("- {s}")).collect();
    entries.join("\n")
}

/// Returns the text with one sentence per line.
pub(super) fn as_lines(text: &str) -> String {
    sentences(text).collect::<Vec<_>>().join("\n") + "\n"
}

/// Appends a sentence to a text, after a full stop.
pub(crate) fn append_sentence(text: &str, sentence: &str) -> String {
    let text = text.trim_end();
    let stop = if text.ends_with(['.', '!', '?', ':', ';']) { "" } else { "." };
    format!("{text}{stop} {sentence}")
}

/// Puts a neutral clause before a text.
pub(crate) fn with_neutral_clause(text: &str) -> String {
    format!("{NEUTRAL_CLAUSE}{}", text.trim_start())
}

/// Splits a text into sentences. A sentence ends with a stop before a space, or at the end of the
/// line. Numbers such as 3.5 are not split.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |line: &str| -> Vec<usize> {
        let pairs = line.char_indices().zip(line.chars().skip(1));
        pairs
            .filter(|((_, c), next)| ".!?。！？".contains(*c) && next.is_whitespace())
            .map(|((start, c), _)| start + c.len_utf8())
            .collect()
    };
    text.lines().flat_map(move |line| {
        let mut sentences = Vec::new();
        let mut rest = line;
        let mut consumed = 0;
        for end in ends(line) {
            let (sentence, after) = rest.split_at(end - consumed);
            sentences.push(sentence.trim());
            (rest, consumed) = (after, end);
        }
        sentences.push(rest.trim());
        sentences.into_iter().filter(|s| !s.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reformatting_keeps_the_words() {
        let text = "A mass of 3.5 cm. It is dark! Left side";
        assert_eq!(as_bullet_list(text), "- A mass of 3.5 cm.\n- It is dark!\n- Left side");
        assert_eq!(as_lines("One. Two."), "One.\nTwo.\n");
        assert_eq!(as_bullet_list("yes"), "- yes");
        assert_eq!(as_bullet_list(""), "");
        let words = |text: &str| -> Vec<String> {
            let words = text.split_whitespace().filter(|w| *w != "-");
            words.map(str::to_owned).collect()
        };
        assert_eq!(words(&as_bullet_list(text)), words(text));
        assert_eq!(words(&as_lines("肺部。 CT。")), words("肺部。 CT。"));
    }

    #[test]
    fn append_separates_sentences() {
        assert_eq!(append_sentence("no", "Score: 5."), "no. Score: 5.");
        assert_eq!(append_sentence("No. ", "Score: 5."), "No. Score: 5.");
        assert_eq!(with_neutral_clause(" No."), "As seen in this image: No.");
    }
}
