//! Reads ratings from a text that a server wrote under a constraint.
//!
//! The text must have exactly the format. A reader that forgives differences would hide a server
//! that ignores the constraint.

use acem3_experts::prompt::{EvaluationFormat, FormatStep};

use super::read_rating::{ReadRating, describe_step, starting_score};
use super::text_limit::TextLimit;

/// Reads the ratings of a text in a format.
///
/// # Errors
///
/// The text has another format. The message says what was expected.
pub(in crate::judging::served) fn read_plain_text(
    format: &EvaluationFormat,
    text: &[u8],
    limit: TextLimit,
) -> Result<Vec<ReadRating>, String> {
    let (mut ratings, mut analysis, mut is_cut) = (Vec::new(), String::new(), false);
    let mut position = 0;
    for step in format.steps() {
        let rest = text.get(position..).unwrap_or_default();
        let mismatch = || format!("expected {}", describe_step(step));
        match step {
            FormatStep::Literal(literal) => {
                if !rest.starts_with(literal.as_bytes()) {
                    return Err(mismatch());
                }
                position += literal.len();
            }
            FormatStep::FreeText => {
                let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(mismatch)?;
                let line = String::from_utf8_lossy(&rest[..end]);
                let written = line.strip_prefix(' ').unwrap_or(&line);
                is_cut = limit.characters > 0 && written.chars().count() >= limit.characters;
                // As local members write it: one line, with single spaces.
                analysis = written.split_whitespace().collect::<Vec<_>>().join(" ");
                position += end + 1;
            }
            FormatStep::Score(words) => {
                let word = rest.strip_prefix(b" ").ok_or_else(mismatch)?;
                let (score, length) = starting_score(word, *words).ok_or_else(mismatch)?;
                let start = position + 1;
                position = start + length;
                ratings.push(ReadRating {
                    analysis: std::mem::take(&mut analysis),
                    is_cut,
                    words: *words,
                    score,
                    place: start..position,
                });
            }
        }
    }
    if text.get(position..).is_some_and(|rest| !rest.trim_ascii().is_empty()) {
        return Err("expected the end of the text".to_owned());
    }
    Ok(ratings)
}

#[cfg(test)]
mod tests {
    use acem3_experts::prompt::ScoreWords;

    use super::*;

    const LIMIT: TextLimit = TextLimit { characters: 10 };

    #[test]
    fn ratings_have_analyses_scores_and_places() {
        let format = EvaluationFormat::for_final_scores(2, ScoreWords::DEFAULT);
        let text =
            "Response 1:\nAnalysis: Good.\nScore: 4\nResponse 2:\nAnalysis: 0123456789\nScore: 0\n";
        let ratings = read_plain_text(&format, text.as_bytes(), LIMIT).unwrap();
        let [first, second] = ratings.as_slice() else { panic!("{ratings:?}") };
        assert_eq!((first.analysis.as_str(), first.score, first.is_cut), ("Good.", 4, false));
        assert_eq!(&text[first.place.clone()], "4");
        assert_eq!((second.score, second.is_cut), (0, true));
        assert_eq!(&text[second.place.clone()], "0");
    }

    #[test]
    fn other_texts_are_rejected() {
        let format = EvaluationFormat::for_correctness();
        let error = |text: &str| read_plain_text(&format, text.as_bytes(), LIMIT).unwrap_err();
        assert_eq!(error("I think that it is right."), "expected Analysis:");
        assert_eq!(error("Analysis: so"), "expected an analysis and a line break");
        assert_eq!(error("Analysis: so\nCorrect: maybe"), "expected yes or no");
        assert_eq!(error("Analysis: so\nCorrect: yessir"), "expected yes or no");
        assert_eq!(error("Analysis: so\nCorrect: yes, it is"), "expected the end of the text");
        assert!(read_plain_text(&format, b"Analysis: \xff\nCorrect: no", LIMIT).is_ok());
    }
}
