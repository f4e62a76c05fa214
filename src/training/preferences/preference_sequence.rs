//! Builds sequences from correct evaluations and their negatives.

use acem3_experts::prompt::TokenStep;
use acem3_experts::train::Sequence;
use anyhow::{Result, bail};

use super::negatives::EvaluationRatings;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::training::config::reward_tokens::RewardTokens;
use crate::training::config::stage::reward_token::RewardTokenRole;
use crate::training::examples::example::{PairExample, RatingExample};
use crate::training::examples::prompt_completion::{PromptCompletion, merge_into_branches};
use crate::training::examples::sequence_builder::SequenceBuilder;

/// Preference pairs of some members about a case. Branch `2i + 1` is the chosen completion of the
/// `i`-th member, branch `2i + 2` the rejected one.
#[derive(Clone, Debug)]
pub(crate) struct PreferenceSequence {
    /// Prompt and completions.
    pub(crate) sequence: Sequence,
    /// Indices of the members.
    pub(crate) members: Vec<usize>,
    /// Numbers of targets of the chosen completion of each member.
    pub(crate) targets: Vec<ChosenTargets>,
}

/// Numbers of targets of a chosen completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChosenTargets {
    /// Those of the reward token.
    pub(crate) lead: usize,
    /// Those about the response that is shown first.
    pub(crate) first: usize,
}

impl PreferenceSequence {
    /// Returns the branches of the `i`-th member: chosen, then rejected.
    pub(crate) fn branches(i: usize) -> [u16; 2] {
        [2 * i as u16 + 1, 2 * i as u16 + 2]
    }
}

/// Builds preference sequences from examples.
pub(crate) struct PreferenceSequenceBuilder<'a> {
    builder: &'a SequenceBuilder,
    /// Format of each member's chosen and rejected completion.
    formats: Vec<[Vec<TokenStep>; 2]>,
    /// Numbers of tokens of each member's two reward tokens.
    reward_lengths: Vec<[usize; 2]>,
    /// Loss weight of reward tokens.
    reward_weight: f32,
}

impl<'a> PreferenceSequenceBuilder<'a> {
    /// Creates the builder for reward tokens in this role.
    pub(crate) fn new(
        builder: &'a SequenceBuilder,
        role: RewardTokenRole,
        reward_tokens: &RewardTokens,
    ) -> Result<Self> {
        let format = |member, reward_token: &str| {
            let format = builder.format_tokens(member, reward_token)?;
            let tokens = builder.tokenizer().encode_trusted(reward_token)?;
            match format.first() {
                Some(TokenStep::Literal(literal)) if literal.starts_with(&tokens) => Ok(format),
                _ => bail!("the tokenizer merges {reward_token} with the text after it"),
            }
        };
        let length =
            |text: &str| builder.tokenizer().encode_trusted(text).map(|tokens| tokens.len());
        let (mut formats, mut reward_lengths) = (Vec::new(), Vec::new());
        // Generated examples are for the members of ACE-M³.
        for (member, name) in MEMBERS.iter().enumerate() {
            let pair = reward_tokens.of(name);
            let [good, bad] = match role {
                RewardTokenRole::Absent => ["", ""],
                RewardTokenRole::Target | RewardTokenRole::Context => pair.sides(),
            };
            formats.push([format(member, good)?, format(member, bad)?]);
            reward_lengths.push([length(good)?, length(bad)?]);
        }
        Ok(Self {
            formats,
            reward_lengths,
            reward_weight: if role == RewardTokenRole::Target { 1.0 } else { 0.0 },
            builder,
        })
    }

    /// Builds the preference pairs of a case for these members. They are one sequence if the
    /// prompts have a common prefix. The conclusion model reads the evaluations of
    /// `conclusion_pair`.
    ///
    /// `derive_negative` derives a negative of a member from its correct ratings. If it returns `None`, the member
    /// gets no pair.
    pub(crate) fn build(
        &self,
        pair: &PairExample,
        conclusion_pair: &PairExample,
        members: &[usize],
        mut derive_negative: impl FnMut(usize, &EvaluationRatings) -> Option<EvaluationRatings>,
    ) -> Result<Vec<PreferenceSequence>> {
        let (mut pair_members, mut targets) = (Vec::new(), Vec::new());
        let mut completions: Vec<PromptCompletion> = Vec::new();
        for &member in members {
            let source = if member < 3 { pair } else { conclusion_pair };
            let chosen = source.member_ratings(member);
            let ratings = chosen.iter().map(|r| (r.analysis.clone(), r.score)).collect();
            let Some(rejected) = derive_negative(member, &ratings) else {
                continue;
            };
            let rejected: Vec<RatingExample> = chosen
                .iter()
                .zip(rejected)
                .map(|(rating, (analysis, score))| rating.with_text(analysis, score))
                .collect();
            let prompt = self.builder.build_prompt(member, pair, conclusion_pair)?;
            let rejected = rejected.iter().collect::<Vec<_>>();
            for (side, ratings) in [&chosen, &rejected].into_iter().enumerate() {
                completions.push(PromptCompletion {
                    prompt: prompt.clone(),
                    completion: self.completion(member, side, ratings)?,
                });
            }
            pair_members.push(member);
            targets.push(self.chosen_targets(member, &chosen)?);
        }
        let merge = |completions| merge_into_branches(completions, pair.image.clone());
        if let Some(sequence) = merge(&completions) {
            return Ok(vec![PreferenceSequence { sequence, members: pair_members, targets }]);
        }
        let separate = pair_members.into_iter().zip(targets).zip(completions.chunks(2));
        let separate = separate.filter_map(|((member, targets), completions)| {
            Some(PreferenceSequence {
                sequence: merge(completions)?,
                members: vec![member],
                targets: vec![targets],
            })
        });
        Ok(separate.collect())
    }

    /// Returns the numbers of targets of a member's chosen completion.
    fn chosen_targets(&self, member: usize, ratings: &[&RatingExample]) -> Result<ChosenTargets> {
        let first = ratings.get(..ratings.len() / 2).unwrap_or_default();
        let tokens = self.completion(member, 0, first)?;
        let lead = tokens.iter().take(self.reward_lengths[member][0]);
        let lead = lead.filter(|(_, weight)| *weight > 0.0).count();
        let all = tokens.iter().filter(|(_, weight)| *weight > 0.0).count();
        Ok(ChosenTargets { lead, first: all - lead })
    }

    /// Returns the tokens of a completion with their loss weights; `side` is 0 for chosen and 1 for
    /// rejected.
    fn completion(
        &self,
        member: usize,
        side: usize,
        ratings: &[&RatingExample],
    ) -> Result<Vec<(u32, f32)>> {
        let format = &self.formats[member][side];
        let mut tokens = self.builder.fill_format(format, ratings)?;
        for (_, weight) in tokens.iter_mut().take(self.reward_lengths[member][side]) {
            *weight = self.reward_weight;
        }
        Ok(tokens)
    }
}
