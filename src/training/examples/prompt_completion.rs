//! Something to be read and what is to be written then; many of them as one sequence.

use acem3_experts::prompt::Slot;
use acem3_experts::train::Sequence;

use crate::training::examples::example::Pixels;

/// A prompt with a text after it.
#[derive(Clone, Debug)]
pub(crate) struct PromptCompletion {
    /// What is read.
    pub(crate) prompt: Vec<Slot>,
    /// What is written: tokens, each with what an error at it costs.
    pub(crate) text: Vec<(u32, f32)>,
}

/// Exercises as branches after what their prompts have in common. None where that is nothing, or an
/// image stands behind it.
pub(crate) fn branched(
    texts: &[PromptCompletion],
    pixels: Option<Pixels>,
    image_tokens: usize,
) -> Option<Sequence> {
    let (first, others) = texts.split_first()?;
    let agree = |i: &usize| {
        others
            .iter()
            .all(|t| t.prompt.get(*i) == first.prompt.get(*i))
    };
    let common = (0..first.prompt.len()).take_while(agree).count();
    if common == 0
        || texts
            .iter()
            .any(|t| t.prompt[common..].contains(&Slot::Image))
    {
        return None;
    }
    let mut sequence = Sequence::new(&first.prompt[..common], pixels, image_tokens);
    for PromptCompletion { prompt, text } in texts {
        let rest = prompt[common..].iter().filter_map(|slot| match slot {
            Slot::Token(token) => Some((*token, 0.0)),
            Slot::Image => None,
        });
        sequence.branch(rest.chain(text.iter().copied()));
    }
    Some(sequence)
}
