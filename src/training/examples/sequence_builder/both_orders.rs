//! Sequences of a pair in both presentation orders, which should lead to the same finding.

use acem3_experts::Aspect;
use acem3_experts::prompt::{TokenStep, render_free_text};
use acem3_experts::train::Sequence;
use anyhow::Result;

use super::{FACTUAL_TOKEN_WEIGHT, SequenceBuilder};
use crate::data::phantoms::text::response_writer::finding_range;
use crate::training::examples::example::{PairExample, RatingExample};
use crate::training::examples::prompt_completion::{CommonPrefix, PromptCompletion};

/// Loss weight of a token of the finding.
const CONSISTENCY_WEIGHT: f32 = 4.0;

/// Start of a factual analysis: claim and finding.
struct ClaimAndFinding {
    /// Tokens with the loss weights of the claim. The finding has no loss.
    tokens: Vec<(u32, f32)>,
    /// Number of tokens of the finding, which come last.
    finding_len: usize,
}

impl SequenceBuilder {
    /// Builds a sequence of one branch for each presentation order of a pair. A branch is the factual analysis
    /// of the response that is shown first, up to the finding. The findings of both orders should have equal
    /// distributions. Which finding is right does not matter, so the image may be that of another question.
    ///
    /// Returns `None` if an analysis has no finding, if the findings differ, or if the prompts of
    /// both orders do not begin with the image.
    pub(crate) fn build_both_orders(&self, pair: &PairExample) -> Result<Option<Sequence>> {
        let member = Aspect::ALL.iter().position(|a| *a == Aspect::MEDICAL_KNOWLEDGE);
        let member = member.unwrap_or_default();
        let exchanged = pair.exchanged();
        let (mut completions, mut lengths) = (Vec::new(), Vec::new());
        for shown in [pair, &exchanged] {
            let ratings = shown.aspect_ratings(Aspect::MEDICAL_KNOWLEDGE);
            let start = match ratings.first() {
                Some(rating) => self.claim_and_finding(member, rating)?,
                None => None,
            };
            let Some(ClaimAndFinding { tokens: completion, finding_len }) = start else {
                return Ok(None);
            };
            let prompt = self.build_prompt(member, shown, shown)?;
            completions.push(PromptCompletion { prompt, completion });
            lengths.push(finding_len);
        }
        let Some(CommonPrefix { prefix, branches }) = CommonPrefix::of(&completions) else {
            return Ok(None);
        };
        let [first, second] = branches.as_slice() else { return Ok(None) };
        let finding = |branch: &[(u32, f32)], len: usize| {
            branch.iter().rev().take(len).map(|(token, _)| *token).collect::<Vec<u32>>()
        };
        if finding(first, lengths[0]) != finding(second, lengths[1]) {
            return Ok(None);
        }
        let mut sequence = Sequence::new(prefix, pair.image.clone());
        sequence.push_equal_branches([first, second], lengths[0], CONSISTENCY_WEIGHT)?;
        Ok(Some(sequence))
    }

    /// Returns the start of a member's completion whose first rating is `rating`, up to the finding. Returns
    /// `None` if its analysis has no finding.
    fn claim_and_finding(
        &self,
        member: usize,
        rating: &RatingExample,
    ) -> Result<Option<ClaimAndFinding>> {
        let text = render_free_text(&rating.analysis);
        let Some(finding) = finding_range(&text) else { return Ok(None) };
        let claim_len = self.tokenizer.encode_quoted(&text[..finding.start])?.len();
        let quoted = self.tokenizer.encode_quoted(&text[..finding.end])?;
        let mut tokens = Vec::new();
        for step in &self.formats[member].tokens {
            let TokenStep::Literal(literal) = step else { break };
            tokens.extend(literal.iter().map(|token| (*token, 0.0)));
        }
        let finding_len = quoted.len().saturating_sub(claim_len);
        let weight = |i| if i < claim_len { FACTUAL_TOKEN_WEIGHT } else { 0.0 };
        tokens.extend(quoted.into_iter().enumerate().map(|(i, token)| (token, weight(i))));
        Ok((finding_len > 0).then_some(ClaimAndFinding { tokens, finding_len }))
    }
}
