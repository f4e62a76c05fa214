//! Evaluations as one JSON object, for servers that take no other constraint.

use acem3_experts::prompt::{EvaluationFormat, FormatStep, ScoreWords};
use serde_json::Value;

use super::read_rating::{ReadRating, starting_score};
use super::text_limit::TextLimit;

/// Names of the fields of a rating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RatingNames {
    /// Field with the analysis.
    pub(super) analysis: String,
    /// Field with the score.
    pub(super) score: String,
    /// The words of the scores.
    pub(super) words: ScoreWords,
}

/// Returns the names of the ratings of a format, in order. They come from its headings: the rating
/// below `Response 1:` and `Criterion Clarity:` is `response_1_clarity_analysis` and
/// `response_1_clarity_score`.
pub(super) fn rating_names(format: &EvaluationFormat) -> Vec<RatingNames> {
    let (mut names, mut response, mut criterion) = (Vec::new(), String::new(), String::new());
    let mut score_label = String::new();
    for step in format.steps() {
        match step {
            FormatStep::Literal(text) => {
                for line in text.lines() {
                    let line = line.trim().trim_end_matches(':');
                    if let Some(name) = line.strip_prefix("Criterion ") {
                        criterion = to_field_name(name);
                    } else if line.starts_with("Response") {
                        (response, criterion) = (to_field_name(line), String::new());
                    } else {
                        score_label = to_field_name(line);
                    }
                }
            }
            FormatStep::FreeText => {}
            FormatStep::Score(words) => {
                let name = |label: &str| {
                    let parts = [response.as_str(), criterion.as_str(), label];
                    let parts = parts.into_iter().filter(|part| !part.is_empty());
                    parts.collect::<Vec<_>>().join("_")
                };
                names.push(RatingNames {
                    analysis: name("analysis"),
                    score: name(&score_label),
                    words: *words,
                });
            }
        }
    }
    names
}

/// Returns a text in lower case with `_` between its words.
fn to_field_name(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// Reads the ratings of a JSON object. Longer analyses than the limit are cut.
///
/// # Errors
///
/// The text is not such an object. The message says what was expected.
pub(in crate::judging::served) fn read_json_text(
    format: &EvaluationFormat,
    text: &[u8],
    limit: TextLimit,
) -> Result<Vec<ReadRating>, String> {
    let object: Value =
        serde_json::from_slice(text).map_err(|error| format!("expected a JSON object: {error}"))?;
    let names = rating_names(format);
    let mut ratings = Vec::with_capacity(names.len());
    let mut position = 0;
    for name in names {
        let value = object.get(&name.score);
        let word = match value {
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::String(word)) => word.to_lowercase(),
            _ => return Err(format!("expected the field `{}`", name.score)),
        };
        let (score, _) = starting_score(word.as_bytes(), name.words)
            .filter(|(_, length)| *length == word.len())
            .ok_or_else(|| format!("`{}` is {word}, expected a score of the rubric", name.score))?;
        let place = find_value(text, position, &name.score).map(|start| start..start + word.len());
        position = place.as_ref().map_or(position, |place| place.end);
        let analysis = object.get(&name.analysis).and_then(Value::as_str).unwrap_or_default();
        let mut analysis = analysis.split_whitespace().collect::<Vec<_>>().join(" ");
        // The other notations limit the analysis; not all servers accept a schema that does.
        let is_cut = limit.cut(&mut analysis);
        ratings.push(ReadRating {
            analysis,
            is_cut,
            words: name.words,
            score,
            place: place.unwrap_or(0..0),
        });
    }
    Ok(ratings)
}

/// Finds the start of the value of a field after a position. The quotation mark of a string is not
/// part of its value.
fn find_value(text: &[u8], from: usize, name: &str) -> Option<usize> {
    let key = format!("\"{name}\"");
    let rest = text.get(from..)?;
    let mut keys = rest.windows(key.len()).enumerate().filter(|(i, window)| {
        // In an analysis, the quotation mark has a backslash.
        *window == key.as_bytes() && (*i == 0 || rest.get(i - 1) != Some(&b'\\'))
    });
    let after_key = from + keys.next()?.0 + key.len();
    let is_value = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b':' | b'"');
    Some(after_key + text.get(after_key..)?.iter().position(is_value)?)
}

#[cfg(test)]
mod tests {
    use acem3_experts::Aspect;

    use super::*;

    #[test]
    fn ratings_are_named_after_their_headings() {
        let names = rating_names(&EvaluationFormat::for_aspect(Aspect::MEDICAL_KNOWLEDGE));
        let scores: Vec<_> = names.iter().map(|name| name.score.as_str()).collect();
        assert_eq!(scores[0], "response_1_factual_accuracy_score");
        assert_eq!(scores[5], "response_2_handling_uncertainty_score");
        assert_eq!(names[3].analysis, "response_2_factual_accuracy_analysis");
    }

    #[test]
    fn values_and_their_places_are_read() {
        let format = EvaluationFormat::for_final_scores(2, ScoreWords::DEFAULT);
        let text = r#"{"response_1_analysis": "no \"response_1_score\": 1",
            "response_1_score": 4, "response_2_analysis":"b","response_2_score":0}"#;
        let limit = TextLimit { characters: 24 };
        let ratings = read_json_text(&format, text.as_bytes(), limit).unwrap();
        let places: Vec<_> = ratings.iter().map(|r| &text[r.place.clone()]).collect();
        assert_eq!(places, ["4", "0"]);
        assert_eq!(ratings.iter().map(|r| r.score).collect::<Vec<_>>(), [4, 0]);
        assert_eq!(ratings[0].analysis, "no \"response_1_score\": 1");
        assert!(!ratings[0].is_cut);
        let cut = read_json_text(&format, text.as_bytes(), TextLimit { characters: 2 }).unwrap();
        assert_eq!((cut[0].analysis.as_str(), cut[0].is_cut), ("no", true));
        for (text, expected) in [
            ("Sure!", "expected a JSON object"),
            (r#"{"response_1_score": 4}"#, "expected the field `response_2_score`"),
            (r#"{"response_1_score": 4.5, "response_2_score": 0}"#, "is 4.5, expected a score"),
            (r#"{"response_1_score": 6, "response_2_score": 0}"#, "is 6, expected a score"),
        ] {
            let error = read_json_text(&format, text.as_bytes(), limit).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
