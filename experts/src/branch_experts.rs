//! Generation tasks of the three branch experts, and evaluations from their ratings.

use std::sync::Arc;

use crate::generate::{GenerationTask, ImageTokens};
use crate::prompt::{BranchPrompts, EvaluationFormat, JudgeInput, StagedPrompt, TokenStep};
use crate::{Aspect, BranchEvaluation, Error, Rating, TextTokenizer};

/// Builds the tasks and evaluations of the branch experts. The expert of aspect `i` of
/// [`Aspect::ALL`] is member `i` of the engine.
pub struct BranchExperts {
    prompts: BranchPrompts,
    formats: Vec<Arc<[TokenStep]>>,
}

impl BranchExperts {
    /// Creates the experts. Expert `i` starts its evaluation with `reward_tokens[i]`, which may be
    /// empty.
    pub fn new(
        prompts: BranchPrompts,
        reward_tokens: [&str; 3],
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let template_lead = &prompts.chat_template().lead;
        let experts = Aspect::ALL.into_iter().zip(reward_tokens);
        let formats = experts.map(|(aspect, reward_token)| {
            let format = EvaluationFormat::for_aspect(aspect)
                .with_prefix(reward_token)
                .with_prefix(template_lead);
            format.tokenize(tokenizer).map(Into::into)
        });
        Ok(Self { formats: formats.collect::<Result<_, _>>()?, prompts })
    }

    /// Builds the tasks of the three experts for one pair in one presentation order.
    pub fn tasks(
        &self,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        tokenizer: &TextTokenizer,
    ) -> Result<Vec<GenerationTask>, Error> {
        let experts = Aspect::ALL.into_iter().zip(&self.formats).enumerate();
        experts
            .map(|(member, (aspect, format))| {
                let pieces = self.prompts.pieces(aspect, input)?;
                Ok(GenerationTask {
                    member,
                    prompt: StagedPrompt::new(&pieces, tokenizer)?,
                    image: image.cloned(),
                    format: format.clone(),
                })
            })
            .collect()
    }

    /// Groups an expert's ratings by criterion.
    ///
    /// `ratings`: in the order of the text, first all criteria of response 1, then those of
    /// response 2.
    pub fn build_evaluation(aspect: Aspect, ratings: Vec<Rating>) -> BranchEvaluation {
        let criteria = aspect.criteria();
        let mut first = ratings;
        let second = first.split_off(criteria.len().min(first.len()));
        let rated = criteria.iter().zip(first.into_iter().zip(second));
        BranchEvaluation {
            aspect,
            ratings: rated
                .map(|(criterion, (first, second))| (*criterion, [first, second]))
                .collect(),
        }
    }
}
