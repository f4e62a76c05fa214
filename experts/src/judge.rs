//! The three branch experts: a pair in, three evaluations out.

use std::sync::Arc;

use crate::generate::{ImageTokens, Task};
use crate::prompt::{BranchPrompts, Format, JudgeInput, StagedPrompt, TokenStep};
use crate::{Aspect, BranchEvaluation, Error, Rating, TextTokenizer};

/// Writes the experts' tasks and reads what they wrote. Expert `i` of [`Aspect::ALL`] is member
/// `i` of the engine.
pub struct BranchJudge {
    prompts: BranchPrompts,
    formats: Vec<Arc<[TokenStep]>>,
}

impl BranchJudge {
    /// Experts whose prompts are these, and whose texts begin with `leads`: reward tokens, or nothing.
    pub fn new(
        prompts: BranchPrompts,
        leads: [&str; 3],
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let opening = &prompts.dialogue().lead;
        let formats = Aspect::ALL.into_iter().zip(leads).map(|(aspect, lead)| {
            let format = Format::branch(aspect).led(lead).led(opening);
            format.tokens(tokenizer).map(Into::into)
        });
        Ok(Self {
            formats: formats.collect::<Result<_, _>>()?,
            prompts,
        })
    }

    /// The tasks of the three experts for one pair in one order.
    pub fn tasks(
        &self,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        tokenizer: &TextTokenizer,
    ) -> Result<Vec<Task>, Error> {
        let experts = Aspect::ALL.into_iter().zip(&self.formats).enumerate();
        experts
            .map(|(member, (aspect, format))| {
                let pieces = self.prompts.pieces(aspect, input)?;
                Ok(Task {
                    member,
                    prompt: StagedPrompt::new(&pieces, tokenizer)?,
                    image: image.cloned(),
                    format: format.clone(),
                })
            })
            .collect()
    }

    /// What an expert wrote, by criterion. `ratings`: in the order of the text, the first
    /// response's criteria and then the second's.
    pub fn evaluation(aspect: Aspect, ratings: Vec<Rating>) -> BranchEvaluation {
        let criteria = aspect.criteria();
        let mut second = ratings;
        let first: Vec<Rating> = second.drain(..criteria.len().min(second.len())).collect();
        let pairs = criteria.iter().zip(first.into_iter().zip(second));
        BranchEvaluation {
            aspect,
            ratings: pairs.map(|(c, (a, b))| (*c, [a, b])).collect(),
        }
    }
}
