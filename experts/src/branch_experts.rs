//! Generation tasks of the branch experts, and evaluations from their ratings.

use std::sync::Arc;

use crate::generate::{GenerationTask, ImageTokens};
use crate::prompt::{BranchPrompts, EvaluationFormat, Form, JudgeInput, StagedPrompt, TokenStep};
use crate::{Aspect, BranchEvaluation, Error, Rating, TextTokenizer};

/// Builds the tasks and evaluations of the branch experts. The expert of aspect `i` of
/// [`Aspect::ALL`] is member `i` of the engine.
pub struct BranchExperts {
    prompts: BranchPrompts,
    /// Aspects whose experts judge, with the format of their evaluations.
    formats: Vec<(Aspect, Arc<[TokenStep]>)>,
}

/// Returns the aspects whose experts judge in a form: the correctness of a response is a question of
/// medical knowledge.
pub fn expert_aspects(form: Form) -> &'static [Aspect] {
    match form {
        Form::Pair | Form::Single => &Aspect::ALL,
        Form::Correctness => &[Aspect::MedicalKnowledge],
    }
}

impl BranchExperts {
    /// Creates the experts of the form of the prompts. Expert `i` starts its evaluation with
    /// `reward_tokens[i]`, which may be empty.
    pub fn new(
        prompts: BranchPrompts,
        reward_tokens: [&str; 3],
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let template_lead = &prompts.chat_template().lead;
        let form = prompts.form();
        let experts = Aspect::ALL.into_iter().zip(reward_tokens);
        let experts = experts.filter(|(aspect, _)| expert_aspects(form).contains(aspect));
        let formats = experts.map(|(aspect, reward_token)| {
            let format = match form {
                Form::Pair | Form::Single => EvaluationFormat::for_expert(form, aspect),
                Form::Correctness => EvaluationFormat::for_correctness(),
            };
            let format = format.with_prefix(reward_token).with_prefix(template_lead);
            Ok::<_, Error>((aspect, format.tokenize(tokenizer)?.into()))
        });
        Ok(Self { formats: formats.collect::<Result<_, _>>()?, prompts })
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
        let members = Aspect::ALL.into_iter().enumerate();
        let experts = members.filter_map(|(member, aspect)| {
            let (_, format) = self.formats.iter().find(|(expert, _)| *expert == aspect)?;
            Some((member, aspect, format))
        });
        experts
            .map(|(member, aspect, format)| {
                let pieces = self.prompts.pieces(aspect, input)?;
                Ok(GenerationTask {
                    member,
                    prompt: StagedPrompt::new(&pieces, input.text_count(), tokenizer)?,
                    image: image.cloned(),
                    format: format.clone(),
                })
            })
            .collect()
    }

    /// Groups an expert's ratings by criterion.
    ///
    /// `ratings`: in the order of the text, first all criteria of the first response, then those of
    /// the next.
    pub fn build_evaluation(aspect: Aspect, ratings: Vec<Rating>) -> BranchEvaluation {
        let criteria = aspect.criteria();
        let mut grouped: Vec<_> = criteria.iter().map(|c| (*c, Vec::new())).collect();
        for (i, rating) in ratings.into_iter().enumerate() {
            if let Some((_, of_criterion)) = grouped.get_mut(i % criteria.len().max(1)) {
                of_criterion.push(rating);
            }
        }
        BranchEvaluation { aspect, ratings: grouped }
    }
}
