//! Instructions that lmms-eval adds to the questions of a task (`post_prompt` in its task files).
//! They are for the model under evaluation, so the judge does not see them.

use std::collections::HashSet;

use super::lm_eval::first_text;
use crate::data::imports::rows::table_row::TableRow;

/// Instructions of lmms-eval's task files (`lmms_eval/tasks/*/*.yaml`).
const KNOWN: [&str; 7] = [
    "Answer the question using a single word or phrase.",
    "Answer the question using a single word or phrase",
    "Answer with the option's letter from the given choices directly.",
    "Answer with the option letter from the given choices directly.",
    "Answer the question with Yes or No.",
    "Please answer yes or no.",
    "Please answer directly with only the letter of the correct option and nothing else.",
];
/// Starts of instructions, in lower case.
const STARTS: [&str; 9] =
    ["answer", "please", "respond", "reply", "choose", "select", "give", "provide", "output"];
/// Words of instructions on the format of an answer, in lower case.
const FORMAT_WORDS: [&str; 7] =
    ["answer", "option", "letter", "choice", "word", "phrase", "yes or no"];

/// What the questions of a file end with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PostPrompts {
    /// Instructions, which are cut off.
    pub(crate) cut: Vec<String>,
    /// A last line that all questions share and that may belong to them.
    pub(crate) kept: Option<String>,
}

impl PostPrompts {
    /// Finds the last lines of the questions of a file.
    pub(crate) fn find(rows: impl Iterator<Item = TableRow>) -> Self {
        let (mut lines, mut others) = (HashSet::new(), HashSet::new());
        let mut found = Self::default();
        let mut count = 0_u64;
        for row in rows {
            let Some(input) = row.field("input").and_then(first_text) else {
                continue;
            };
            count += 1;
            let input = input_text(&input);
            let (other, line) = split_last_line(&input).unwrap_or((&input, ""));
            if KNOWN.contains(&line) && !found.cut.iter().any(|cut| cut == line) {
                found.cut.push(line.to_owned());
            }
            // Two different ones decide.
            if lines.len() < 2 {
                lines.insert(line.to_owned());
            }
            if others.len() < 2 {
                others.insert(other.to_owned());
            }
        }
        let mut lines = lines.into_iter();
        let common = lines.next().filter(|line| lines.next().is_none() && !line.is_empty());
        match common.filter(|line| count > 1 && !found.cut.contains(line)) {
            // If nothing but the last line is left, it is the question.
            Some(line) if is_instruction(&line) && others.len() > 1 => found.cut.push(line),
            Some(line) => found.kept = Some(line),
            None => {}
        }
        found
    }
}

/// Returns the text of an input without its image placeholders.
pub(super) fn input_text(input: &str) -> String {
    input.replace("<image>", "").trim().to_owned()
}

fn is_instruction(line: &str) -> bool {
    let lower = line.to_lowercase();
    STARTS.iter().any(|start| lower.starts_with(start))
        && FORMAT_WORDS.iter().any(|word| lower.contains(word))
}

fn split_last_line(text: &str) -> Option<(&str, &str)> {
    let (other, line) = text.rsplit_once('\n')?;
    Some((other.trim(), line.trim())).filter(|(other, _)| !other.is_empty())
}

/// Returns a question without an instruction at its end.
pub(super) fn without_post_prompt<'a>(question: &'a str, post_prompts: &[String]) -> &'a str {
    match split_last_line(question) {
        Some((other, line)) if post_prompts.iter().any(|cut| cut == line) => other,
        _ => question,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(inputs: &[&str]) -> PostPrompts {
        let row = |input: &&str| {
            let fields = json!({"input": input}).as_object().cloned().unwrap_or_default();
            TableRow { fields, bytes: Vec::new() }
        };
        PostPrompts::find(inputs.iter().map(row))
    }

    #[test]
    fn instructions_are_cut_and_questions_kept() {
        let known = "Answer the question using a single word or phrase.";
        let found = find(&[&format!("<image>\nWhy?\n{known}")]);
        assert_eq!((found.cut, found.kept), (vec![known.to_owned()], None));
        let own = "Please give the answer as one letter.";
        let found = find(&[&format!("Why?\n{own}"), &format!("How?\n{own}")]);
        assert_eq!(found.cut, [own]);
        assert_eq!(without_post_prompt(&format!("Why?\n{own}"), &found.cut), "Why?");
        // The last line may be the question.
        for inputs in [
            [
                "Report: a\nPlease summarise the findings.",
                "Report: b\nPlease summarise the findings.",
            ],
            ["You are a doctor.\nPlease answer.", "You are a doctor.\nPlease answer."],
        ] {
            let found = find(&inputs);
            assert!(found.cut.is_empty() && found.kept.is_some(), "{inputs:?}");
        }
        assert_eq!(find(&["a\nb", "a\nc"]), PostPrompts::default());
        assert_eq!(find(&["Please answer with a word.", "Why?"]), PostPrompts::default());
    }
}
