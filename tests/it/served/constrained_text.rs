//! Texts that obey a constraint, as a serving engine writes them.

use std::collections::VecDeque;

use serde_json::Value;

/// A part of a text. A part with choices is a score; its text is one of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextPart {
    pub(crate) text: String,
    pub(crate) choices: Vec<String>,
}

/// Writes a text that a regular expression, a grammar or a JSON schema allows. It has the given analyses
/// and scores, in their order; without them, the scores depend on the seed.
pub(crate) fn write_text(
    body: &Value,
    seed: u64,
    ratings: Option<&WrittenRatings>,
) -> Option<Vec<TextPart>> {
    let WrittenRatings { analyses, scores } = ratings.cloned().unwrap_or_default();
    let (analyses, scores) = (analyses.into(), scores.into());
    let mut writer = Writer { parts: Vec::new(), seed, analyses, scores };
    if let Some(regex) = body["structured_outputs"]["regex"].as_str().or(body["regex"].as_str()) {
        writer.follow_regex(regex);
    } else if let Some(grammar) = body["grammar"].as_str() {
        writer.follow_grammar(grammar);
    } else {
        writer.follow_schema(&body["response_format"]["json_schema"]["schema"])?;
    }
    Some(writer.parts)
}

/// Analyses and scores of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WrittenRatings {
    pub(crate) analyses: Vec<String>,
    pub(crate) scores: Vec<String>,
}

struct Writer {
    parts: Vec<TextPart>,
    seed: u64,
    /// Analyses and scores that are not written yet.
    analyses: VecDeque<String>,
    scores: VecDeque<String>,
}

impl Writer {
    fn literal(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(TextPart { text: last, choices }) if choices.is_empty() => last.push_str(text),
            _ => self.parts.push(TextPart { text: text.to_owned(), choices: Vec::new() }),
        }
    }

    fn choice(&mut self, choices: Vec<String>) {
        self.seed =
            self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        let seeded = || choices[(self.seed >> 33) as usize % choices.len()].clone();
        let text = self.scores.pop_front().unwrap_or_else(seeded);
        assert!(choices.contains(&text), "{text} is not one of {choices:?}");
        self.parts.push(TextPart { text, choices });
    }

    fn digits(&mut self, class: &str) {
        let (low, high) = class.split_once('-').unwrap();
        let range = low.parse::<u8>().unwrap()..=high.parse().unwrap();
        self.choice(range.map(|digit| digit.to_string()).collect());
    }

    fn analysis(&mut self) {
        if let Some(text) = self.analyses.pop_front() {
            return self.literal(&text);
        }
        let words =
            ["It is clear.", "The side is wrong.", "It fits the image.", "Vague, but right."];
        self.literal(words[(self.seed >> 7) as usize % words.len()]);
    }

    fn follow_regex(&mut self, regex: &str) {
        let mut rest = regex;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            rest = match c {
                '\\' => {
                    let escaped = after.chars().next().unwrap();
                    let text = if escaped == 'n' { "\n".to_owned() } else { escaped.to_string() };
                    self.literal(&text);
                    &after[escaped.len_utf8()..]
                }
                '[' if after.starts_with('^') => {
                    self.analysis();
                    &after[after.find('}').unwrap() + 1..]
                }
                '[' => {
                    let (class, after) = after.split_once(']').unwrap();
                    self.digits(class);
                    after
                }
                '(' => {
                    let (words, after) = after.split_once(')').unwrap();
                    self.choice(words.split('|').map(str::to_owned).collect());
                    after
                }
                _ => {
                    let end = rest.find(['\\', '[', '(']).unwrap_or(rest.len());
                    self.literal(&rest[..end]);
                    &rest[end..]
                }
            };
        }
    }

    fn follow_grammar(&mut self, grammar: &str) {
        let root = grammar.lines().next().unwrap().strip_prefix("root ::= ").unwrap();
        let mut rest = root.trim_start();
        while !rest.is_empty() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let end = quoted.find('"').unwrap();
                self.literal(&quoted[..end].replace("\\n", "\n"));
                rest = &quoted[end + 1..];
            } else if let Some(after) = rest.strip_prefix("text") {
                self.analysis();
                rest = after;
            } else if let Some(class) = rest.strip_prefix('[') {
                let (class, after) = class.split_once(']').unwrap();
                self.digits(class);
                rest = after;
            } else {
                let (words, after) = rest.strip_prefix('(').unwrap().split_once(')').unwrap();
                let words = words.split('|').map(|word| word.trim().trim_matches('"').to_owned());
                self.choice(words.collect());
                rest = after;
            }
            rest = rest.trim_start();
        }
    }

    fn follow_schema(&mut self, schema: &Value) -> Option<()> {
        let mut separator = "{";
        for (name, property) in schema["properties"].as_object()? {
            self.literal(&format!("{separator}\"{name}\": "));
            separator = ", ";
            let kind = property["type"].as_str()?;
            if let Some(values) = property["enum"].as_array() {
                let quote = if kind == "string" { "\"" } else { "" };
                self.literal(quote);
                let word = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
                self.choice(values.iter().map(word).collect());
                self.literal(quote);
            } else {
                self.literal("\"");
                self.analysis();
                self.literal("\"");
            }
        }
        self.literal("}");
        Some(())
    }
}
