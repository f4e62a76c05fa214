//! Sequences that contain both presentation orders of a pair, to train findings that do not depend on the
//! order.

use acem3_experts::Aspect;
use acem3_experts::prompt::{TokenStep, render_free_text};
use acem3_experts::train::Sequence;
use anyhow::Result;

use super::{FACTUAL_TOKEN_WEIGHT, SequenceBuilder, medical_knowledge};
use crate::data::phantoms::text::response_writer::finding_range;
use crate::training::examples::example::PairExample;
use crate::training::examples::prompt_completion::{CommonPrefix, PromptCompletion};

/// Loss weight of a token of the finding.
const CONSISTENCY_WEIGHT: f32 = 4.0;

/// Beginning of a completion: the factual analysis of the first response, up to the finding.
struct FirstFinding {
    /// Tokens with their loss weights. Those of the finding have none.
    tokens: Vec<(u32, f32)>,
    /// Tokens of the finding, with which `tokens` ends.
    finding: Vec<u32>,
}

impl SequenceBuilder {
    /// Builds a sequence with one branch for each presentation order of a pair. A branch is the prompt and the
    /// factual analysis of the response that is shown first, up to the finding. The model should predict
    /// the finding with the same distributions in both orders. The finding need not be right, so the
    /// image may be that of another question.
    ///
    /// Returns `None` if an analysis has no finding, if the findings differ, or if the image comes after the
    /// responses in the prompt.
    pub(crate) fn build_both_orders(&self, pair: &PairExample) -> Result<Option<Sequence>> {
        let exchanged = pair.exchanged();
        let (mut completions, mut findings) = (Vec::new(), Vec::new());
        for shown in [pair, &exchanged] {
            let Some(start) = self.first_finding(shown)? else { return Ok(None) };
            let prompt = self.build_prompt(medical_knowledge(), shown, shown)?;
            completions.push(PromptCompletion { prompt, completion: start.tokens });
            findings.push(start.finding);
        }
        if findings[0] != findings[1] {
            return Ok(None);
        }
        let Some(CommonPrefix { prefix, branches }) = CommonPrefix::of(&completions) else {
            return Ok(None);
        };
        let [first, second] = branches.as_slice() else { return Ok(None) };
        let mut sequence = Sequence::new(prefix, pair.image.clone());
        sequence.push_equal_branches([first, second], findings[0].len(), CONSISTENCY_WEIGHT)?;
        Ok(Some(sequence))
    }

    /// Returns the beginning of the completion about a pair, up to the first finding. Returns `None` if the
    /// first analysis has no finding.
    fn first_finding(&self, pair: &PairExample) -> Result<Option<FirstFinding>> {
        let ratings = pair.aspect_ratings(Aspect::MEDICAL_KNOWLEDGE);
        let Some(rating) = ratings.first() else { return Ok(None) };
        let text = render_free_text(&rating.analysis);
        let Some(range) = finding_range(&text) else { return Ok(None) };
        let heading_len = self.tokenizer.encode_quoted(&text[..range.start])?.len();
        let quoted = self.tokenizer.encode_quoted(&text[..range.end])?;
        let finding: Vec<u32> = quoted.iter().skip(heading_len).copied().collect();
        let mut tokens = Vec::new();
        for step in &self.formats[medical_knowledge()].tokens {
            let TokenStep::Literal(literal) = step else { break };
            tokens.extend(literal.iter().map(|token| (*token, 0.0)));
        }
        let weight = |i| if i < heading_len { FACTUAL_TOKEN_WEIGHT } else { 0.0 };
        tokens.extend(quoted.into_iter().enumerate().map(|(i, token)| (token, weight(i))));
        Ok((!finding.is_empty()).then_some(FirstFinding { tokens, finding }))
    }
}
