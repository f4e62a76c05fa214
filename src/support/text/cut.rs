//! Cuts messages that quote input: a damaged line can be one word of megabytes.

use std::borrow::Cow;

/// Longest word that stays complete, in characters. Paths are rarely longer.
const MAX_WORD: usize = 300;
/// Characters of a longer word that stay.
const WORD_START: usize = 200;
/// Longest line that stays complete, in characters.
const MAX_LINE: usize = 1000;
/// Characters at both ends of a longer line that stay.
const LINE_ENDS: [usize; 2] = [300, 200];

/// Cuts the long words and lines of a message. A cut message stays as it is.
pub(crate) fn cut_message(message: &str) -> Cow<'_, str> {
    if message.len() <= MAX_WORD {
        return Cow::Borrowed(message);
    }
    let lines = message.split_inclusive('\n').map(|line| cut_line(&cut_words(line)));
    let cut: String = lines.collect();
    if cut == message { Cow::Borrowed(message) } else { Cow::Owned(cut) }
}

/// Longest word of a cell of a table that stays complete, in characters.
const MAX_CELL_WORD: usize = 80;
/// Characters of a longer word that stay.
const CELL_WORD_START: usize = 60;
/// Longest cell that stays complete, in characters.
const MAX_CELL: usize = 400;
/// Characters of a longer cell that stay.
const CELL_START: usize = 300;

/// Cuts the long words of a cell of a table, such as names of models, and a long cell.
pub(crate) fn cut_cell(cell: &str) -> Cow<'_, str> {
    if cell.len() <= MAX_CELL_WORD {
        return Cow::Borrowed(cell);
    }
    let cut_word = |word: &str| {
        if word.chars().count() <= MAX_CELL_WORD {
            return word.to_owned();
        }
        word.chars().take(CELL_WORD_START).chain(['…']).collect()
    };
    let cut: String = cell.split_inclusive(char::is_whitespace).map(cut_word).collect();
    if cut.chars().count() <= MAX_CELL {
        return Cow::Owned(cut);
    }
    Cow::Owned(cut.chars().take(CELL_START).chain(['…']).collect())
}

fn cut_words(line: &str) -> String {
    let cut_word = |word: &str| {
        let characters = word.chars().count();
        if characters <= MAX_WORD {
            return word.to_owned();
        }
        let start: String = word.chars().take(WORD_START).collect();
        let space: String = word.chars().rev().take_while(|c| c.is_whitespace()).collect();
        format!("{start}… ({characters} characters){space}")
    };
    line.split_inclusive(char::is_whitespace).map(cut_word).collect()
}

fn cut_line(line: &str) -> String {
    let characters = line.chars().count();
    if characters <= MAX_LINE {
        return line.to_owned();
    }
    let [start, end] = LINE_ENDS;
    let skipped = characters - start - end;
    let start: String = line.chars().take(start).collect();
    let end: String = line.chars().skip(characters - end).collect();
    format!("{start}… ({skipped} characters left out) …{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_and_lines_are_cut_once() {
        let word = "é".repeat(120_000);
        let words = "no ".repeat(40_000);
        for text in [
            format!("model {word} has two responses\nhint: use one"),
            format!("`{words}` is not a question"),
            word.clone(),
        ] {
            let cut = cut_message(&text).into_owned();
            assert!(cut.chars().count() < 700, "{cut}");
            assert_eq!(cut_message(&cut), cut);
        }
        let cut = cut_message(&words).into_owned() + "end";
        assert!(cut.ends_with("no no end"), "{cut}");
        let named = format!("model {word} has two responses\nhint: use one");
        let cut = cut_message(&named);
        assert!(cut.ends_with("… (120001 characters) has two responses\nhint: use one"), "{cut}");
    }

    #[test]
    fn cells_keep_usual_names_and_cut_long_ones() {
        let usual = "organisation/a-model-with-a-very-long-name-v1.6-mistral-7b-finetuned";
        assert_eq!(cut_cell(usual), usual);
        assert_eq!(cut_cell(&format!("{usual} - {usual}")), format!("{usual} - {usual}"));
        let cut = cut_cell(&"é".repeat(50_000)).into_owned();
        assert_eq!(cut, "é".repeat(60) + "…");
        assert_eq!(cut_cell(&"many words ".repeat(5000)).chars().count(), 301);
    }

    #[test]
    fn usual_messages_are_unchanged() {
        let path = format!("/{}/cases.jsonl", "folder/".repeat(35));
        let message =
            format!("{path}: cannot be read\nhint: check the path {}", "word ".repeat(150));
        assert!(matches!(cut_message(&message), Cow::Borrowed(_)));
    }
}
