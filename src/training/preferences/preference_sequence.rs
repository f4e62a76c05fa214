//! Right evaluations beside worse ones, written as sequences.

use acem3_experts::prompt::TokenStep;
use acem3_experts::train::Sequence;
use anyhow::{Result, bail};

use crate::checkpoints::panel::definition::MEMBERS;
use crate::training::examples::example::{PairExample, RatingExample};
use crate::training::examples::prompt_completion::{PromptCompletion, branched};
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::preferences::data::{EvaluationRatings, REWARD_TOKENS};

/// What the reward token before an evaluation is to one who learns to prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewardTokenRole {
    /// There is none.
    Absent,
    /// A part of what is written.
    Target,
    /// A part of what is given.
    Context,
}

/// A case with what members are to prefer about it: of the `i`-th member, branch `2i + 1` is
/// preferred and branch `2i + 2` rejected.
#[derive(Clone, Debug)]
pub(crate) struct PreferenceSequence {
    pub(crate) sequence: Sequence,
    pub(crate) members: Vec<usize>,
}

impl PreferenceSequence {
    /// The two branches of the `i`-th member.
    pub(crate) fn branches(i: usize) -> [u16; 2] {
        [2 * i as u16 + 1, 2 * i as u16 + 2]
    }
}

/// Writes contrasts.
pub(crate) struct PreferenceSequenceBuilder<'a> {
    scribe: &'a SequenceBuilder,
    /// The form of each member's text, preferred and rejected.
    forms: Vec<[Vec<TokenStep>; 2]>,
    /// Tokens of the reward before each, and what an error at them costs.
    rewards: [usize; 2],
    cost: f32,
}

impl<'a> PreferenceSequenceBuilder<'a> {
    /// The writer for a kind of preferences.
    pub(crate) fn new(scribe: &'a SequenceBuilder, reward: RewardTokenRole) -> Result<Self> {
        let leads = match reward {
            RewardTokenRole::Absent => ["", ""],
            RewardTokenRole::Target | RewardTokenRole::Context => REWARD_TOKENS,
        };
        let form = |member, lead: &str| {
            let form = scribe.led(member, lead)?;
            let apart = scribe.tokenizer().fixed(lead)?;
            match form.first() {
                Some(TokenStep::Feed(fed)) if fed.starts_with(&apart) => Ok(form),
                _ => bail!("the tokenizer does not keep {lead} apart from what follows it"),
            }
        };
        let length = |lead: &str| scribe.tokenizer().fixed(lead).map(|tokens| tokens.len());
        let forms =
            (0..MEMBERS.len()).map(|member| Ok([form(member, leads[0])?, form(member, leads[1])?]));
        Ok(Self {
            forms: forms.collect::<Result<_>>()?,
            rewards: [length(leads[0])?, length(leads[1])?],
            cost: if reward == RewardTokenRole::Target {
                1.0
            } else {
                0.0
            },
            scribe,
        })
    }

    /// The contrasts of a pair for these members, in one sequence where their prompts begin alike.
    /// `worse`: a worse evaluation of a right one, if there is any; a member without it learns nothing
    /// from the pair. The conclusion reads the evaluations of `read`.
    pub(crate) fn of(
        &self,
        pair: &PairExample,
        read: &PairExample,
        members: &[usize],
        mut worse: impl FnMut(&EvaluationRatings) -> Option<EvaluationRatings>,
    ) -> Result<Vec<PreferenceSequence>> {
        let (mut learning, mut texts): (Vec<usize>, Vec<PromptCompletion>) =
            (Vec::new(), Vec::new());
        for &member in members {
            let known = if member < 3 { pair } else { read };
            let right = known.of_member(member);
            let ratings = right
                .iter()
                .map(|r| (r.analysis.clone(), r.score))
                .collect();
            let Some(wrong) = worse(&ratings) else {
                continue;
            };
            let wrong: Vec<RatingExample> = right.iter().zip(wrong).map(changed).collect();
            let prompt = self.scribe.prompt(member, pair, read)?;
            let wrong = wrong.iter().collect::<Vec<_>>();
            for (side, ratings) in [&right, &wrong].into_iter().enumerate() {
                texts.push(PromptCompletion {
                    prompt: prompt.clone(),
                    text: self.text(member, side, ratings)?,
                });
            }
            learning.push(member);
        }
        let image_tokens = self.scribe.image_tokens();
        let sequence = |texts| branched(texts, pair.pixels.clone(), image_tokens);
        if let Some(sequence) = sequence(&texts) {
            return Ok(vec![PreferenceSequence {
                sequence,
                members: learning,
            }]);
        }
        let alone = learning.into_iter().zip(texts.chunks(2));
        let alone = alone.filter_map(|(member, texts)| {
            Some(PreferenceSequence {
                sequence: sequence(texts)?,
                members: vec![member],
            })
        });
        Ok(alone.collect())
    }

    fn text(
        &self,
        member: usize,
        side: usize,
        ratings: &[&RatingExample],
    ) -> Result<Vec<(u32, f32)>> {
        let mut text = self.scribe.filled(&self.forms[member][side], ratings)?;
        for (_, cost) in text.iter_mut().take(self.rewards[side]) {
            *cost = self.cost;
        }
        Ok(text)
    }
}

/// A rating with another analysis and score.
fn changed((right, (analysis, score)): (&&RatingExample, (String, u8))) -> RatingExample {
    RatingExample {
        analysis,
        score,
        ..(*right).clone()
    }
}
