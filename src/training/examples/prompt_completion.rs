//! Prompts with completions, and their merge into one sequence.

use acem3_experts::prompt::Slot;
use acem3_experts::train::Sequence;

use crate::training::examples::pixels::Pixels;

/// A prompt with a completion.
#[derive(Clone, Debug)]
pub(crate) struct PromptCompletion {
    /// The prompt.
    pub(crate) prompt: Vec<Slot>,
    /// Tokens of the completion with their loss weights.
    pub(crate) completion: Vec<(u32, f32)>,
}

/// Merges prompts and completions into one sequence: the common prefix of the prompts, and a branch for the rest of
/// each. Returns `None` if there is no common prefix or an image comes after it.
pub(crate) fn merge_into_branches(
    texts: &[PromptCompletion],
    pixels: Option<Pixels>,
    image_tokens: usize,
) -> Option<Sequence> {
    let (first, others) = texts.split_first()?;
    let is_common = |i: &usize| {
        others
            .iter()
            .all(|t| t.prompt.get(*i) == first.prompt.get(*i))
    };
    let common = (0..first.prompt.len()).take_while(is_common).count();
    if common == 0
        || texts
            .iter()
            .any(|t| t.prompt[common..].contains(&Slot::Image))
    {
        return None;
    }
    let mut sequence = Sequence::new(&first.prompt[..common], pixels, image_tokens);
    for PromptCompletion { prompt, completion } in texts {
        let rest = prompt[common..].iter().filter_map(|slot| match slot {
            Slot::Token(token) => Some((*token, 0.0)),
            Slot::Image => None,
        });
        sequence.branch(rest.chain(completion.iter().copied()));
    }
    Some(sequence)
}
