//! The format of an evaluation as a constraint of a server: a regular expression, a grammar, or a
//! JSON schema.

use std::fmt::Write as _;

use acem3_experts::prompt::{EvaluationFormat, FormatStep, ScoreWords};
use serde_json::{Map, Value, json};

use super::json_text::rating_names;
use super::text_limit::TextLimit;

/// Characters of an analysis: all but control characters. They would break lines and records.
const REGEX_CLASS: &str = r"[^\x00-\x1f\x7f]";
/// [`REGEX_CLASS`] in GBNF.
const GRAMMAR_CLASS: &str = r"[^\x00-\x1F\x7F]";

/// Renders a format as a regular expression that matches the whole text.
pub(in crate::judging::served) fn to_regex(format: &EvaluationFormat, limit: TextLimit) -> String {
    let mut regex = String::new();
    for step in format.steps() {
        // Writing to a string cannot fail.
        let _ = match step {
            FormatStep::Literal(text) => write!(regex, "{}", escape_regex(text)),
            FormatStep::FreeText if limit.characters == 0 => write!(regex, r"\n"),
            FormatStep::FreeText => {
                write!(regex, r" {REGEX_CLASS}{{1,{}}}\n", limit.characters)
            }
            FormatStep::Score(ScoreWords::Points([low, high])) => write!(regex, " [{low}-{high}]"),
            FormatStep::Score(ScoreWords::NoYes) => write!(regex, " (no|yes)"),
        };
    }
    regex
}

fn escape_regex(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str(r"\n"),
            '.' | '+' | '*' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' | '\\' => {
                escaped.extend(['\\', c]);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Renders a format as a grammar in llama.cpp's notation.
pub(in crate::judging::served) fn to_grammar(
    format: &EvaluationFormat,
    limit: TextLimit,
) -> String {
    let mut root = "root ::=".to_owned();
    for step in format.steps() {
        let _ = match step {
            FormatStep::Literal(text) => write!(root, " {}", quote_grammar(text)),
            FormatStep::FreeText if limit.characters == 0 => write!(root, r#" "\n""#),
            FormatStep::FreeText => write!(root, r#" " " text "\n""#),
            FormatStep::Score(ScoreWords::Points([low, high])) => {
                write!(root, r#" " " [{low}-{high}]"#)
            }
            FormatStep::Score(ScoreWords::NoYes) => write!(root, r#" " " ("no" | "yes")"#),
        };
    }
    if limit.characters > 0 {
        let _ = write!(root, "\ntext ::= {GRAMMAR_CLASS}{{1,{}}}", limit.characters);
    }
    root
}

fn quote_grammar(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
    format!("\"{escaped}\"")
}

/// Renders a format as a JSON schema: an object with an analysis and a score for each rating, in order.
pub(in crate::judging::served) fn to_json_schema(
    format: &EvaluationFormat,
    limit: TextLimit,
) -> Value {
    let mut properties = Map::new();
    for name in rating_names(format) {
        if limit.characters > 0 {
            properties.insert(name.analysis, json!({"type": "string"}));
        }
        let words = name.words.words().into_iter().flatten();
        let score = match name.words {
            ScoreWords::Points(_) => {
                let numbers: Vec<u8> = words.filter_map(|word| word.parse().ok()).collect();
                json!({"type": "integer", "enum": numbers})
            }
            ScoreWords::NoYes => json!({"type": "string", "enum": words.collect::<Vec<_>>()}),
        };
        properties.insert(name.score, score);
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_describe_one_format() {
        let format = EvaluationFormat::for_correctness().with_prefix("[Good]");
        let limit = TextLimit { characters: 20 };
        assert_eq!(
            to_regex(&format, limit),
            r"\[Good\]Analysis: [^\x00-\x1f\x7f]{1,20}\nCorrect: (no|yes)"
        );
        assert_eq!(
            to_grammar(&format, limit),
            "root ::= \"[Good]Analysis:\" \" \" text \"\\n\" \"Correct:\" \" \" (\"no\" | \"yes\")\n\
             text ::= [^\\x00-\\x1F\\x7F]{1,20}"
        );
        let schema = to_json_schema(&format, limit);
        assert_eq!(schema["required"], json!(["analysis", "correct"]));
        assert_eq!(schema["properties"]["correct"]["enum"], json!(["no", "yes"]));
        let none = TextLimit { characters: 0 };
        assert_eq!(to_regex(&format, none), r"\[Good\]Analysis:\nCorrect: (no|yes)");
        assert_eq!(to_json_schema(&format, none)["required"], json!(["correct"]));
    }

    #[test]
    fn literals_and_scores_follow_the_format() {
        let format = EvaluationFormat::for_final_scores(2, ScoreWords::Points([1, 4]));
        let regex = to_regex(&format, TextLimit { characters: 0 });
        assert_eq!(
            regex,
            r"Response 1:\nAnalysis:\nScore: [1-4]\nResponse 2:\nAnalysis:\nScore: [1-4]"
        );
        let schema = to_json_schema(&format, TextLimit { characters: 9 });
        let names = ["response_1_analysis", "response_1_score", "response_2_analysis"];
        assert_eq!(schema["required"].as_array().unwrap()[..3], names.map(Value::from));
        assert_eq!(schema["properties"]["response_2_score"]["enum"], json!([1, 2, 3, 4]));
    }
}
