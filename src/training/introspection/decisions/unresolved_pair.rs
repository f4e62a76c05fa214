//! A pair of `unresolved.jsonl` that a person decides about.

use std::path::Path;

use acem3_experts::prompt::Rubric;
use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use super::decision_line::DecisionLine;
use super::unresolved_file::NumberedSuggestion;
use crate::support::files::regular_file;
use crate::training::introspection::discussion::label_check::filter_agreeing;
use crate::training::preferences::numbered_lines;

/// Field of the decision in a line.
const DECISION: &str = "decision";

/// A pair without a decision.
#[derive(Clone, Debug)]
pub struct UnresolvedPair {
    fields: Map<String, Value>,
    line: DecisionLine,
}

impl UnresolvedPair {
    /// Reads the pairs of a file.
    ///
    /// # Errors
    /// If the file cannot be read, a line is not a pair, or a line has a decision.
    pub(crate) fn read(path: &Path) -> Result<Vec<Self>> {
        let text = regular_file::read_to_string(path).with_context(|| {
            format!(
                "--unresolved {}: cannot be read\n\
                 hint: pass unresolved.jsonl of a round of `acem3 train introspect`",
                path.display()
            )
        })?;
        let mut pairs = Vec::new();
        for (number, line) in numbered_lines(&text) {
            let place = || format!("{}, line {number}", path.display());
            let pair = Self::parse(line).with_context(|| {
                format!(
                    "{}: not a pair of unresolved.jsonl\n\
                     hint: pass the file as `acem3 train introspect` wrote it",
                    place()
                )
            })?;
            if pair.fields.get(DECISION).is_some_and(|decision| !decision.is_null()) {
                bail!(
                    "{}: the pair has a decision\nhint: pass the file without decisions",
                    place()
                );
            }
            pairs.push(pair);
        }
        if pairs.is_empty() {
            bail!("{}: no pairs\nhint: nothing is left to decide", path.display());
        }
        Ok(pairs)
    }

    fn parse(line: &str) -> Result<Self> {
        let fields: Map<String, Value> = serde_json::from_str(line)?;
        let line: DecisionLine = serde_json::from_value(Value::Object(fields.clone()))?;
        Ok(Self { fields, line })
    }

    /// Returns the id of the case.
    pub(crate) fn case(&self) -> &str {
        &self.line.case
    }

    /// Returns the models of the two responses.
    pub(crate) fn models(&self) -> &[String; 2] {
        &self.line.pair
    }

    /// Returns why the discussion left the pair unresolved.
    pub(crate) fn reason(&self) -> &str {
        self.fields.get("reason").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the suggestions of the adviser.
    pub(crate) fn suggestions(&self) -> &[NumberedSuggestion] {
        self.line.suggestions()
    }

    /// Returns the line with a decision.
    pub(crate) fn to_line(&self, decision: Value) -> String {
        let mut fields = self.fields.clone();
        fields.insert(DECISION.to_owned(), decision);
        Value::Object(fields).to_string()
    }

    /// Checks a decision as `train introspect --decisions` does. `labels`: the labelled final scores.
    ///
    /// # Errors
    /// If the decision is incomplete or contradicts the labels.
    pub(crate) fn check(&self, decision: Value, labels: [f64; 2], rubric: &Rubric) -> Result<()> {
        let line = Self::parse(&self.to_line(decision))?.line;
        let Some(decision) = line.decision()? else { return Ok(()) };
        let verdict = line.verdict(&decision, labels, rubric)?;
        filter_agreeing(verdict, labels).map_err(|problem| {
            anyhow::anyhow!("the evaluation contradicts the labels of the case: {problem}")
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_and_other_lines_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("unresolved.jsonl");
        let line =
            r#"{"case": "c", "pair": ["a", "b"], "reason": "r", "kept": 1, "decision": null}"#;
        std::fs::write(&path, line).unwrap();
        let pairs = UnresolvedPair::read(&path).unwrap();
        assert_eq!((pairs[0].case(), pairs[0].reason()), ("c", "r"));
        let decided = pairs[0].to_line(serde_json::json!({"accept": 1}));
        assert!(decided.contains("\"kept\":1") && decided.contains("\"accept\":1"), "{decided}");
        for (text, expected) in
            [(decided.as_str(), "has a decision"), ("{}", "line 1"), ("", "no pairs")]
        {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", UnresolvedPair::read(&path).unwrap_err());
            assert!(error.contains(expected) && error.contains("hint:"), "{error}");
        }
    }
}
