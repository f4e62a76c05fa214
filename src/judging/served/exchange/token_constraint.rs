//! A format as tokens: a constraint that a server obeys token by token.
//!
//! A regular expression leaves open how a server splits the fixed texts of a format into tokens, and a
//! model that was trained on their usual tokens does not know others. With this constraint a server
//! writes the tokens of a local member (`experts/src/generate`).

use acem3_experts::prompt::{EvaluationFormat, NO_TOKEN, STOP, TokenStep};
use acem3_experts::{Error, TextTokenizer};
use serde_json::{Value, json};

use super::reply::ReplyToken;

/// Constraint on the tokens of evaluations, as a structural tag of `XGrammar` (`structural_tag.py`).
#[derive(Clone, Debug)]
pub(in crate::judging::served) struct TokenConstraint {
    tokenizer: TextTokenizer,
    /// Maximum tokens of an analysis; 0 to write none.
    budget: usize,
    /// Tokens that no analysis contains: special tokens, and those with a line break.
    excluded: Vec<u32>,
    /// Tokens that end an analysis: those whose text ends with its first line break.
    ends: Vec<u32>,
}

impl TokenConstraint {
    /// Creates a constraint. `budget`: maximum tokens of an analysis.
    ///
    /// # Errors
    ///
    /// The tokenizer cannot decode a token.
    pub(in crate::judging::served) fn new(
        tokenizer: TextTokenizer,
        budget: usize,
    ) -> Result<Self, Error> {
        let (mut excluded, mut ends) = (Vec::new(), Vec::new());
        for token in 0..tokenizer.id_limit() {
            if tokenizer.is_special(token) {
                excluded.push(token);
                continue;
            }
            if let Some((_, rest)) = tokenizer.decode(&[token])?.split_once(STOP) {
                excluded.push(token);
                if rest.is_empty() {
                    ends.push(token);
                }
            }
        }
        Ok(Self { tokenizer, budget, excluded, ends })
    }

    /// Returns the value of `structured_outputs` for a format.
    ///
    /// # Errors
    ///
    /// The tokenizer has no single tokens for the scores.
    pub(in crate::judging::served) fn render(
        &self,
        format: &EvaluationFormat,
    ) -> Result<Value, Error> {
        let token = |id: &u32| json!({"type": "token", "token": id});
        let any_of = |ids: &[u32]| {
            let elements: Vec<Value> =
                ids.iter().filter(|id| **id != NO_TOKEN).map(token).collect();
            json!({"type": "or", "elements": elements})
        };
        let mut elements = Vec::new();
        for step in format.tokenize(&self.tokenizer)? {
            match step {
                TokenStep::Literal(ids) => elements.extend(ids.iter().map(token)),
                TokenStep::Score(ids) => elements.push(any_of(&ids)),
                TokenStep::FreeText if self.budget == 0 => {
                    elements.extend(self.tokenizer.encode_quoted(STOP)?.iter().map(token));
                }
                TokenStep::FreeText => {
                    elements.push(json!({
                        "type": "any_tokens",
                        "exclude_tokens": self.excluded,
                        "max_tokens": self.budget,
                    }));
                    elements.push(any_of(&self.ends));
                }
            }
        }
        let format = json!({"type": "sequence", "elements": elements});
        let tag = json!({"type": "structural_tag", "format": format});
        Ok(json!({"structural_tag": tag.to_string()}))
    }

    /// Returns for each analysis of a reply whether it has the maximum number of tokens, so that it was
    /// truncated.
    ///
    /// # Errors
    ///
    /// As [`Self::render`].
    pub(in crate::judging::served) fn cut_analyses(
        &self,
        format: &EvaluationFormat,
        tokens: &[ReplyToken],
    ) -> Result<Vec<bool>, Error> {
        let mut cut = Vec::new();
        let mut rest = tokens.iter();
        for step in format.tokenize(&self.tokenizer)? {
            match step {
                TokenStep::Literal(ids) => rest.by_ref().take(ids.len()).for_each(drop),
                TokenStep::Score(_) => rest.by_ref().take(1).for_each(drop),
                TokenStep::FreeText => {
                    let is_text = |token: &&ReplyToken| !token.text.contains(&b'\n');
                    let written = rest.by_ref().take_while(is_text).count();
                    cut.push(self.budget > 0 && written >= self.budget);
                }
            }
        }
        Ok(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use acem3_experts::prompt::ScoreWords;

    fn constraint(budget: usize) -> TokenConstraint {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/assets/golden/checkpoints/llava/tokenizer.json");
        let tokenizer = TextTokenizer::parse(&std::fs::read(path).unwrap()).unwrap();
        TokenConstraint::new(tokenizer, budget).unwrap()
    }

    fn format() -> EvaluationFormat {
        EvaluationFormat::for_final_scores(1, ScoreWords::DEFAULT)
    }

    #[test]
    fn literals_and_scores_are_tokens_of_the_tokenizer() {
        let elements = |budget: usize| {
            let value = constraint(budget).render(&format()).unwrap();
            let tag: Value =
                serde_json::from_str(value["structural_tag"].as_str().unwrap()).unwrap();
            tag["format"]["elements"].as_array().unwrap().clone()
        };
        let with_analysis = elements(9);
        let kinds = |kind: &str| with_analysis.iter().filter(|e| e["type"] == kind).count();
        assert_eq!((kinds("any_tokens"), kinds("or")), (1, 2));
        let free = with_analysis.iter().find(|e| e["type"] == "any_tokens").unwrap();
        assert_eq!(free["max_tokens"], 9);
        // `<unk>`, `<s>` and `</s>`.
        assert!(free["exclude_tokens"].as_array().unwrap().len() > 3);
        let scores = with_analysis.last().unwrap()["elements"].as_array().unwrap();
        let tokenizer = constraint(0).tokenizer;
        let text = |id: &Value| tokenizer.token_text(id["token"].as_u64().unwrap() as u32).unwrap();
        assert_eq!(scores.len(), 6);
        assert!(text(&scores[4]).ends_with('4'), "{}", text(&scores[4]));
        assert!(elements(0).iter().all(|element| element["type"] != "any_tokens"));
    }

    #[test]
    fn analyses_of_maximum_length_are_cut() {
        let constraint = constraint(2);
        let literal = |step: &TokenStep| match step {
            TokenStep::Literal(ids) => ids.len(),
            _ => 0,
        };
        let steps = format().tokenize(&constraint.tokenizer).unwrap();
        let token = |text: &str| ReplyToken { text: text.into(), alternatives: Vec::new() };
        for (words, expected) in [(1, false), (2, true)] {
            let before = (0..literal(&steps[0])).map(|_| token("x"));
            let analysis = (0..words).map(|_| token(" word")).chain([token("\n")]);
            let tokens: Vec<_> =
                before.chain(analysis).chain([token("Score:"), token(" 4")]).collect();
            assert_eq!(constraint.cut_analyses(&format(), &tokens).unwrap(), [expected]);
        }
    }
}
