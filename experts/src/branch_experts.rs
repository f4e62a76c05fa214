//! Generation tasks of the branch experts, and evaluations from their ratings.

use std::sync::Arc;

use crate::generate::{GenerationTask, ImageTokens};
use crate::prompt::{
    BranchPrompts, EvaluationFormat, Form, FormatsByLength, JudgeInput, RubricAspect, StagedPrompt,
};
use crate::{Aspect, BranchEvaluation, Error, Rating, TextTokenizer};

/// Builds the tasks and evaluations of the branch experts. The expert of aspect `i` of the rubric is
/// member `i` of the engine.
pub struct BranchExperts {
    prompts: BranchPrompts,
    /// The experts that judge in the form of the prompts.
    experts: Vec<BranchExpert>,
}

/// An expert: its index among the members, its aspect and the formats of its evaluations.
struct BranchExpert {
    member: usize,
    aspect: Aspect,
    formats: FormatsByLength,
}

impl BranchExperts {
    /// Creates the experts of the form of the prompts. Expert `i` starts its evaluation with
    /// `reward_tokens[i]`, if there is one.
    pub fn new(
        prompts: BranchPrompts,
        reward_tokens: &[&str],
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let template_lead = &prompts.chat_template().lead;
        let (form, rubric) = (prompts.form(), prompts.rubric());
        let experts = rubric.experts(form).into_iter().map(|(member, aspect)| {
            let reward_token = reward_tokens.get(member).copied().unwrap_or_default();
            let formats = FormatsByLength::new(form, |responses| {
                EvaluationFormat::of_expert(form, responses, aspect, rubric.score_words())
                    .with_prefix(reward_token)
                    .with_prefix(template_lead)
                    .tokenize(tokenizer)
            })?;
            Ok::<_, Error>(BranchExpert { member, aspect: aspect.key, formats })
        });
        Ok(Self { experts: experts.collect::<Result<_, _>>()?, prompts })
    }

    /// Returns the form of the prompts.
    pub fn form(&self) -> Form {
        self.prompts.form()
    }

    /// Builds the tasks of the experts for the responses of a case in one presentation order.
    pub fn tasks(
        &self,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        tokenizer: &TextTokenizer,
    ) -> Result<Vec<GenerationTask>, Error> {
        let experts = self.experts.iter();
        experts.map(|expert| self.build_task(expert, input, image, tokenizer)).collect()
    }

    /// Builds the task of one expert; `None` if it does not judge in the form of the prompts.
    pub fn task_of(
        &self,
        member: usize,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        tokenizer: &TextTokenizer,
    ) -> Result<Option<GenerationTask>, Error> {
        let expert = self.experts.iter().find(|expert| expert.member == member);
        expert.map(|expert| self.build_task(expert, input, image, tokenizer)).transpose()
    }

    fn build_task(
        &self,
        expert: &BranchExpert,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        tokenizer: &TextTokenizer,
    ) -> Result<GenerationTask, Error> {
        let pieces = self.prompts.pieces(expert.aspect, input)?;
        Ok(GenerationTask {
            member: expert.member,
            prompt: StagedPrompt::new(&pieces, input.text_count(), tokenizer)?,
            image: image.cloned(),
            format: expert.formats.get(input.responses.len())?,
            samples: 1,
            opening: None,
        })
    }

    /// Groups an expert's ratings by criterion.
    ///
    /// `ratings`: in the order of the text, first all criteria of the first response, then those of
    /// the next.
    pub fn build_evaluation(aspect: &RubricAspect, ratings: Vec<Rating>) -> BranchEvaluation {
        let criteria = &aspect.criteria;
        let mut grouped: Vec<_> = criteria.iter().map(|c| (c.key, Vec::new())).collect();
        for (i, rating) in ratings.into_iter().enumerate() {
            if let Some((_, of_criterion)) = grouped.get_mut(i % criteria.len().max(1)) {
                of_criterion.push(rating);
            }
        }
        BranchEvaluation { aspect: aspect.key, ratings: grouped }
    }
}
