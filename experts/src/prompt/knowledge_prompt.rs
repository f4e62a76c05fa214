//! Questions in an analysis, and what a member reads about them.

use serde::Deserialize;

use super::format::{STOP, one_line, render_free_text};
use crate::{Error, TextTokenizer};

/// Start of a question in the text of a judge or teacher (section 3.1 of AutoMedEval).
pub const QUESTION: &str = "[Question]";
/// Heading below which a prompt says that the member may ask.
const INSTRUCTION_HEADING: &str = "### Instruction:\n";

/// The texts around questions and evidence.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnowledgePrompt {
    /// Version of the file, for its readers.
    pub version: u32,
    /// Says that the member may ask.
    pub instruction: String,
    /// Text before the passages.
    pub evidence: String,
    /// Text in place of passages if there are none.
    pub nothing_found: String,
    /// Text after the passages, where the member continues.
    pub resume: String,
}

impl KnowledgePrompt {
    /// Text of the file. Its hash is part of the provenance of verdicts with knowledge.
    pub const SOURCE: &str = include_str!("../../data/knowledge.toml");

    /// Parses the file.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn built_in() -> Result<Self, Error> {
        toml::from_str(Self::SOURCE).map_err(|error| Error::Template(error.to_string()))
    }

    /// Adds the sentence that the member may ask to the text of a prompt template.
    ///
    /// # Errors
    /// If the template has no instruction.
    pub fn add_instruction(template: &str) -> Result<String, Error> {
        let Some((before, after)) = template.split_once(INSTRUCTION_HEADING) else {
            let heading = INSTRUCTION_HEADING.trim_end();
            return Err(Error::Template(format!(
                "a prompt without `{heading}` cannot offer knowledge"
            )));
        };
        let sentence = Self::built_in()?.instruction;
        Ok(format!("{before}{INSTRUCTION_HEADING}{sentence}\n{after}"))
    }
}

/// A question that a member asked in an analysis, with what it read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredQuestion {
    /// Number of characters of the analysis before the question.
    pub position: usize,
    /// The question.
    pub question: String,
    /// The passages; empty if none was found.
    pub passages: String,
}

/// A part of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionPart<'a> {
    /// Text that the member writes.
    Written(&'a str),
    /// Passages that the member read after its question.
    Evidence(&'a str),
}

impl KnowledgePrompt {
    /// Returns the text that follows the line of a question in a completion: the passages, on one
    /// line, and the start of the next part of the analysis.
    pub fn render_evidence(&self, passages: &str) -> String {
        let Self { evidence, resume, .. } = self;
        format!("{evidence}{}{resume}", render_free_text(passages))
    }

    /// Renders an analysis as the member writes it, with its questions and the evidence for them.
    /// `questions`: in the order of the analysis, which does not contain them.
    pub fn render_analysis(&self, analysis: &str, questions: &[AnsweredQuestion]) -> String {
        let mut text = String::new();
        let mut characters = analysis.chars();
        let mut position = 0;
        for question in questions {
            let count = question.position.saturating_sub(position);
            let before: String = characters.by_ref().take(count).collect();
            position += count;
            let passages = match question.passages.as_str() {
                "" => &self.nothing_found,
                passages => passages,
            };
            let line = format!("{before} {QUESTION}: {}", question.question);
            text += &render_free_text(&line);
            text += &self.render_evidence(passages);
        }
        text + &render_free_text(characters.as_str())
    }

    /// Tokenises [`Self::render_evidence`] as in judging.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn tokenize_evidence(
        &self,
        passages: &str,
        tokenizer: &TextTokenizer,
    ) -> Result<Vec<u32>, Error> {
        let mut tokens = tokenizer.encode_trusted(&self.evidence)?;
        tokens.extend(tokenizer.encode_quoted(&format!(" {}", one_line(passages)))?);
        tokens.extend(tokenizer.encode_quoted(STOP)?);
        tokens.extend(tokenizer.encode_trusted(&self.resume)?);
        Ok(tokens)
    }

    /// Splits a completion at the evidence in it.
    pub fn split_completion<'a>(&self, text: &'a str) -> Vec<CompletionPart<'a>> {
        let start = format!("{STOP}{}", self.evidence);
        let end = format!("{STOP}{}", self.resume);
        let mut parts = Vec::new();
        let (mut rest, mut from) = (text, 0);
        while let Some(found) = rest.get(from..).and_then(|text| text.find(&start)) {
            // The line break belongs to the question.
            let (written, evidence) = rest.split_at(from + found + STOP.len());
            let line = evidence.get(self.evidence.len()..).unwrap_or_default();
            let length = line.find(STOP).unwrap_or(line.len());
            let (passages, after) = line.split_at(length);
            if let Some(after) = after.strip_prefix(&end) {
                parts.extend([
                    CompletionPart::Written(written),
                    CompletionPart::Evidence(passages.trim()),
                ]);
                (rest, from) = (after, 0);
            } else {
                from = written.len();
            }
        }
        parts.push(CompletionPart::Written(rest));
        parts
    }
}

/// A text with a question in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionInText<'a> {
    /// The text before the question.
    pub before: &'a str,
    /// The question: the rest of its line, without the mark.
    pub question: &'a str,
}

impl<'a> QuestionInText<'a> {
    /// Finds the first question of a text: the rest of the line after [`QUESTION`], without a colon
    /// and surrounding spaces. A mark without text after it is no question. Upper and lower case are
    /// the same: the tokenizers of some models have lower case only.
    pub fn find(text: &'a str) -> Option<Self> {
        // Only ASCII letters change, so offsets equal those of `text`.
        let lower = text.to_ascii_lowercase();
        let marks: Vec<_> = lower.match_indices(&QUESTION.to_ascii_lowercase()).collect();
        marks.into_iter().find_map(|(start, mark)| {
            let rest = text.get(start + mark.len()..)?;
            let line = rest.lines().next()?.trim_start();
            let question = line.strip_prefix(':').unwrap_or(line).trim();
            let before = text.get(..start)?;
            (!question.is_empty()).then_some(Self { before, question })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_ends_with_its_line() {
        let question = |text| QuestionInText::find(text).map(|found| found.question);
        let text = "The first one is vague. [Question]: What is a stent? \r\nThen more.";
        let found =
            QuestionInText { before: "The first one is vague. ", question: "What is a stent?" };
        assert_eq!(QuestionInText::find(text), Some(found));
        assert_eq!(question("é [question]: a Stent?"), Some("a Stent?"));
        assert_eq!(question("[Question] Is it éclair?"), Some("Is it éclair?"));
        assert_eq!(question("[Question]:\n[Question]: b [Question]: c"), Some("b [Question]: c"));
        for none in ["", "Question: what?", "[Question]", "[Question]: \n next"] {
            assert_eq!(question(none), None, "{none}");
        }
    }

    #[test]
    fn evidence_is_split_from_what_the_member_writes() -> Result<(), Error> {
        let prompt = KnowledgePrompt::built_in()?;
        let question = "Analysis: So. [Question]: a?\n";
        let text = format!("{question}{} Then.\nScore: 4", prompt.render_evidence("one\ntwo"));
        assert_eq!(text, format!("{question}[Evidence]: one two\nAnalysis: Then.\nScore: 4"));
        let parts = prompt.split_completion(&text);
        let [first, second, third] = parts.as_slice() else {
            return Err(Error::Template(format!("{parts:?}")));
        };
        assert_eq!(first, &CompletionPart::Written(question));
        assert_eq!(second, &CompletionPart::Evidence("one two"));
        assert_eq!(third, &CompletionPart::Written(" Then.\nScore: 4"));
        let asked = |position, passages: &str| AnsweredQuestion {
            position,
            question: "a?".to_owned(),
            passages: passages.to_owned(),
        };
        assert_eq!(
            prompt.render_analysis("So. Then.", &[asked(3, "one"), asked(3, "")]),
            " So. [Question]: a?\n[Evidence]: one\nAnalysis: [Question]: a?\n\
             [Evidence]: no passage found\nAnalysis: Then.\n"
        );
        assert_eq!(prompt.render_analysis("So. ", &[]), " So.\n");
        // A mark within a line, or without what follows evidence, is text.
        for text in
            ["a [Evidence]: b\nAnalysis:", "a\n[Evidence]: b\nScore: 4", "a\n[Evidence]: b", ""]
        {
            assert_eq!(prompt.split_completion(text), [CompletionPart::Written(text)]);
        }
        Ok(())
    }

    #[test]
    fn sentence_follows_the_heading_of_the_instruction() -> Result<(), Error> {
        let prompt = KnowledgePrompt::add_instruction("a\n### Instruction:\nb")?;
        assert!(prompt.starts_with("a\n### Instruction:\n## If "), "{prompt}");
        assert!(prompt.contains(QUESTION) && prompt.ends_with("\nb"), "{prompt}");
        assert!(KnowledgePrompt::add_instruction("none").is_err());
        Ok(())
    }
}
