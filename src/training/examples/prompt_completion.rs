//! Prompts with completions and their merge into one sequence.

use acem3_experts::prompt::PromptToken;
use acem3_experts::train::{Sequence, TrainingImage};

/// Prompt with a completion.
#[derive(Clone, Debug)]
pub(crate) struct PromptCompletion {
    /// Tokens of the prompt.
    pub(crate) prompt: Vec<PromptToken>,
    /// Tokens of the completion with their loss weights.
    pub(crate) completion: Vec<(u32, f32)>,
}

/// Common prefix of several prompts, and what follows it in each of them.
pub(crate) struct CommonPrefix<'a> {
    /// Tokens that all prompts begin with.
    pub(crate) prefix: &'a [PromptToken],
    /// The rest of each prompt and its completion, as tokens with their loss weights.
    pub(crate) branches: Vec<Vec<(u32, f32)>>,
}

impl<'a> CommonPrefix<'a> {
    /// Finds the common prefix of prompts with completions. Returns `None` if there is no common prefix or an image comes
    /// after it.
    pub(crate) fn of(completions: &'a [PromptCompletion]) -> Option<Self> {
        let (first, others) = completions.split_first()?;
        let is_common = |i: &usize| others.iter().all(|t| t.prompt.get(*i) == first.prompt.get(*i));
        let common_len = (0..first.prompt.len()).take_while(is_common).count();
        if common_len == 0
            || completions.iter().any(|t| t.prompt[common_len..].contains(&PromptToken::Image))
        {
            return None;
        }
        let branch = |PromptCompletion { prompt, completion }: &PromptCompletion| {
            let rest = prompt[common_len..].iter().filter_map(|token| match token {
                PromptToken::Token(id) => Some((*id, 0.0)),
                PromptToken::Image => None,
            });
            rest.chain(completion.iter().copied()).collect()
        };
        Some(Self {
            prefix: &first.prompt[..common_len],
            branches: completions.iter().map(branch).collect(),
        })
    }
}

/// Merges prompts and completions into one sequence. The sequence has the common prefix of the
/// prompts and one branch per completion. Returns `None` if there is no common prefix or an image
/// comes after it.
pub(crate) fn merge_into_branches(
    completions: &[PromptCompletion],
    image: Option<TrainingImage>,
) -> Option<Sequence> {
    let CommonPrefix { prefix, branches } = CommonPrefix::of(completions)?;
    let mut sequence = Sequence::new(prefix, image);
    for branch in branches {
        sequence.push_branch(branch);
    }
    Some(sequence)
}
