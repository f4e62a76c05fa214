//! The format of an evaluation, found in its text.

use std::sync::LazyLock;

use acem3_experts::Aspect;
use acem3_experts::prompt::{EvaluationFormat, Form, ScoreWords};
use anyhow::{Context, Result, bail};
use regex::Regex;

use super::evaluation_content::EvaluationRatings;
use crate::checkpoints::panel::prompt_config::MEMBERS;

/// Headings of an evaluation: the number of a response, the name of a criterion, or the answer of
/// the form `correctness`.
static HEADINGS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?im)(?:^|\])[\s*#`]*(?:(response)(?:[ \t]+(\d+))?|criterion[ \t]+([^:\n]+?)|(correct))[*` \t]*:",
    )
    .ok()
});

/// Format of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DetectedFormat {
    /// The format.
    pub(crate) format: EvaluationFormat,
    /// Number of rated responses.
    pub(crate) responses: usize,
    /// Words of the scores.
    pub(crate) words: ScoreWords,
}

/// Format of an evaluation with its ratings.
pub(crate) struct ParsedEvaluation {
    /// The format.
    pub(crate) format: DetectedFormat,
    /// The ratings.
    pub(crate) ratings: EvaluationRatings,
    /// Index of the member that writes evaluations in this format; `None` for those of other rubrics
    /// and forms.
    pub(crate) member: Option<usize>,
}

/// Finds the format of an evaluation in its text and parses it. `range`: lowest and highest score.
///
/// # Errors
/// The text has no headings of an evaluation, or does not match the format that they describe.
pub(crate) fn parse_evaluation(text: &str, range: [u8; 2]) -> Result<ParsedEvaluation> {
    let format = detect_format(text, range)?;
    let ratings = format.format.parse(text)?;
    let member = (0..MEMBERS.len()).find(|member| member_format(*member) == format.format);
    Ok(ParsedEvaluation { format, ratings, member })
}

/// Returns the format of a member's evaluations of a pair.
pub(crate) fn member_format(member: usize) -> EvaluationFormat {
    match Aspect::ALL.get(member) {
        Some(aspect) => EvaluationFormat::for_aspect(*aspect),
        None => EvaluationFormat::for_conclusion(),
    }
}

/// Finds the format of an evaluation in its text: the number of responses, and the names of the
/// criteria of the first one.
fn detect_format(text: &str, range: [u8; 2]) -> Result<DetectedFormat> {
    let headings = HEADINGS.as_ref().context("the pattern of headings is damaged")?;
    let (mut responses, mut criteria, mut is_correctness) = (0, Vec::new(), false);
    for heading in headings.captures_iter(text) {
        if heading.get(1).is_some() {
            let number = heading.get(2).map_or("1", |number| number.as_str());
            if number == (responses + 1).to_string() {
                responses += 1;
            }
        } else if let Some(name) = heading.get(3) {
            if responses == 1 {
                criteria.push(name.as_str().trim().to_owned());
            }
        } else if heading.get(4).is_some() {
            is_correctness = true;
        }
    }
    if responses == 0 && is_correctness {
        let format = EvaluationFormat::for_correctness();
        return Ok(DetectedFormat { format, responses: 1, words: ScoreWords::NoYes });
    }
    if responses == 0 || responses > Form::List.max_responses() {
        bail!(
            "found {responses} headings of responses, expected 1 to {}",
            Form::List.max_responses()
        );
    }
    let words = ScoreWords::Points(range);
    let format = match criteria.as_slice() {
        [] => EvaluationFormat::for_final_scores(responses, words),
        names => EvaluationFormat::for_criteria(responses, names, words),
    };
    Ok(DetectedFormat { format, responses, words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::preferences::prompt_text;

    fn render(format: &EvaluationFormat, n: usize) -> String {
        let ratings: Vec<(String, u8)> =
            (0..n).map(|i| (format!("Reason {i}: of it."), (i % 2) as u8)).collect();
        prompt_text(&format.render_pieces(&ratings))
    }

    #[test]
    fn format_is_found_in_the_text() {
        let points = ScoreWords::Points([0, 5]);
        for member in 0..MEMBERS.len() {
            let n = Aspect::ALL.get(member).map_or(2, |aspect| 2 * aspect.criteria().len());
            let text = format!(" [Good]{}", render(&member_format(member), n));
            let parsed = parse_evaluation(&text, [0, 5]).unwrap();
            assert_eq!((parsed.member, parsed.ratings.len()), (Some(member), n));
            assert_eq!(parsed.format.responses, 2);
        }
        let names = ["Safety".to_owned(), "Cost: low or high".to_owned()];
        for (format, n, responses) in [
            (EvaluationFormat::for_criteria(1, &names[..1], points), 1, 1),
            (EvaluationFormat::for_criteria(3, &names[..1], points), 3, 3),
            (EvaluationFormat::for_final_scores(1, points), 1, 1),
            (EvaluationFormat::for_correctness(), 1, 1),
        ] {
            let parsed = parse_evaluation(&render(&format, n), [0, 5]).unwrap();
            assert_eq!((parsed.format.format, parsed.format.responses), (format, responses));
            assert_eq!((parsed.ratings.len(), parsed.member), (n, None));
        }
        let markdown = "**Response 1:**\n**Criterion Safety:**\n**Analysis:** Bad.\n**Score:** 1/5\n\n\
                        **Response 2:**\n**Criterion Safety:**\n**Analysis:** Good.\n**Score:** 4";
        let parsed = parse_evaluation(markdown, [0, 5]).unwrap();
        assert_eq!(parsed.ratings[1], ("Good.".to_owned(), 4));
        assert!(parse_evaluation("Both are good.", [0, 5]).is_err());
        assert!(parse_evaluation(markdown, [2, 5]).is_err(), "1 is out of range");
    }
}
