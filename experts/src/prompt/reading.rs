//! An evaluation that somebody wrote freely, read back by its form.

use super::format::{Format, Step, one_line};
use crate::Error;

/// What stands for a free text and for a score in a form that is to be filled in.
const BLANKS: [&str; 2] = ["<one or two sentences>", "<0 to 5>"];

impl Format {
    /// The form as it is shown to a writer who is not held to it: every place to fill in says what belongs there.
    pub fn blank(&self) -> String {
        let [free, score] = BLANKS;
        let steps = self.steps().iter().map(|step| match step {
            Step::Feed(text) => text.clone(),
            Step::Free => format!(" {free}\n"),
            Step::Score => format!(" {score}"),
        });
        steps.collect()
    }

    /// The analyses and scores of a text that keeps to this form, in their order. White space, case and marks of
    /// emphasis do not matter, nor do words before the form and behind its scores.
    ///
    /// # Errors
    /// What the form has at the place where the text departs from it.
    pub fn read(&self, text: &str) -> Result<Vec<(String, u8)>, Error> {
        let plain = one_line(&text.replace(['*', '#', '`'], ""));
        // Only ASCII changes its case, so that places are those of `plain`.
        let lower = plain.to_ascii_lowercase();
        let (mut ratings, mut analysis, mut at) = (Vec::new(), String::new(), 0);
        let steps = self.steps();
        for (i, step) in steps.iter().enumerate() {
            let feed = steps[i + 1..].iter().find_map(|step| match step {
                Step::Feed(text) => Some(one_line(text)),
                Step::Free | Step::Score => None,
            });
            let lacks = |what: &str| Error::Form(what.to_owned());
            let end = match (&feed, step) {
                (_, Step::Feed(text)) => {
                    let text = one_line(text);
                    let found = lower[at..].find(&text.to_ascii_lowercase());
                    at += found.ok_or_else(|| lacks(&text))? + text.len();
                    continue;
                }
                (Some(next), _) => {
                    let found = lower[at..].find(&next.to_ascii_lowercase());
                    at + found.ok_or_else(|| lacks(next))?
                }
                (None, _) => plain.len(),
            };
            let written = plain[at..end].trim();
            if *step == Step::Free {
                written.clone_into(&mut analysis);
            } else {
                let score = score(written).ok_or_else(|| lacks("Score: <0 to 5>"))?;
                ratings.push((std::mem::take(&mut analysis), score));
            }
            at = end;
        }
        Ok(ratings)
    }
}

/// The whole number from 0 to 5 that a text begins with.
fn score(text: &str) -> Option<u8> {
    let mut letters = text.chars();
    let score = letters.next()?.to_digit(10).filter(|score| *score <= 5)?;
    let rest = letters.as_str();
    let longer = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let fraction = rest.strip_prefix(['.', ',']).is_some_and(longer);
    (!longer(rest) && !fraction).then_some(score as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Aspect;
    use crate::prompt::Piece;

    fn written(format: &Format, ratings: &[(String, u8)]) -> String {
        let pieces = format.pieces(ratings).into_iter().map(|piece| match piece {
            Piece::Fixed(text) | Piece::Free(text) => text,
            Piece::Image => String::new(),
        });
        pieces.collect()
    }

    #[test]
    fn what_is_written_in_a_form_is_read_back() {
        for aspect in Aspect::ALL {
            let format = Format::branch(aspect);
            let n = 2 * aspect.criteria().len();
            let ratings: Vec<(String, u8)> = (0..n)
                .map(|i| (format!("Réason {i}, 3 of 5."), (i % 6) as u8))
                .collect();
            assert_eq!(format.read(&written(&format, &ratings)).unwrap(), ratings);
        }
    }

    #[test]
    fn a_writer_of_his_own_mind_is_understood() {
        let text = "Sure! Here it is.\n\n## response 1:\n**Analysis:** Right,\n  and short.\n**Score:** 4/5\n\n\
                    **Response 2:**\nanalysis: Wrong.\nScore: 1.\nI hope this helps.";
        let read = Format::conclusion().read(text).unwrap();
        let wanted = [("Right, and short.", 4), ("Wrong.", 1)];
        assert_eq!(read, wanted.map(|(text, score)| (text.to_owned(), score)));
    }

    #[test]
    fn a_text_that_departs_from_the_form_is_refused_with_what_is_missing() {
        let refused = |text: &str| Format::conclusion().read(text).unwrap_err().to_string();
        let first = "Response 1:\nAnalysis: Right.\nScore: 4\n";
        assert!(refused("I cannot judge images.").contains("Response 1: Analysis:"));
        assert!(refused(first).contains("Response 2: Analysis:"));
        for score in ["", "6", "4.5", "42", "good", "-1"] {
            let text = format!("{first}Response 2:\nAnalysis: Wrong.\nScore: {score}");
            assert!(refused(&text).contains("<0 to 5>"), "{score}");
        }
    }

    #[test]
    fn a_blank_form_says_what_belongs_where() {
        let blank = Format::conclusion().blank();
        let half = "Response 1:\nAnalysis: <one or two sentences>\nScore: <0 to 5>\n";
        assert!(blank.starts_with(half), "{blank}");
        assert!(Format::conclusion().read(&blank).is_err());
    }
}
