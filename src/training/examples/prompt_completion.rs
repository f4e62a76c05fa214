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

/// Merges prompts and completions into one sequence. The sequence has the common prefix of the
/// prompts and one branch per completion. Returns `None` if there is no common prefix or an image
/// comes after it.
pub(crate) fn merge_into_branches(
    completions: &[PromptCompletion],
    image: Option<TrainingImage>,
) -> Option<Sequence> {
    let (first, others) = completions.split_first()?;
    let is_common = |i: &usize| others.iter().all(|t| t.prompt.get(*i) == first.prompt.get(*i));
    let common_len = (0..first.prompt.len()).take_while(is_common).count();
    if common_len == 0
        || completions.iter().any(|t| t.prompt[common_len..].contains(&PromptToken::Image))
    {
        return None;
    }
    let mut sequence = Sequence::new(&first.prompt[..common_len], image);
    for PromptCompletion { prompt, completion } in completions {
        let rest = prompt[common_len..].iter().filter_map(|token| match token {
            PromptToken::Token(id) => Some((*id, 0.0)),
            PromptToken::Image => None,
        });
        sequence.push_branch(rest.chain(completion.iter().copied()));
    }
    Some(sequence)
}
