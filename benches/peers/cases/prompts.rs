//! Prompts of the cases, built by the prompt code of this program.

use std::sync::Arc;

use acem3_conclusion::ConclusionModel;
use acem3_experts::generate::{GenerationTask, ImageTokens};
use acem3_experts::prompt::{BranchPrompts, JudgeInput, PromptLayout, Rubric, RubricDetail};
use acem3_experts::{Aspect, BranchEvaluation, BranchExperts, Rating, Score, TextTokenizer};
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// Layout of the prompts, that of panels trained with this program.
pub(super) const LAYOUT: PromptLayout = PromptLayout::CaseFirst;
/// Steps of the format of a text that are written: a heading, the text, a label and a score.
const FORMAT_STEPS: usize = 4;

/// A case: an image and texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BenchCase {
    /// Name of the image file.
    pub image: String,
    /// The question.
    pub question: String,
    /// The two answers.
    pub answers: [String; 2],
}

impl BenchCase {
    /// Returns the judge's view in a presentation order.
    fn input(&self, swapped: bool) -> JudgeInput<'_> {
        let [first, second] = self.answers.each_ref().map(String::as_str);
        let responses = if swapped { [second, first] } else { [first, second] };
        JudgeInput::pair(true, &self.question, responses)
    }
}

/// Builds the tasks of all members.
pub(super) struct Prompts {
    pub(super) tokenizer: TextTokenizer,
    experts: BranchExperts,
    conclusion: ConclusionModel,
}

impl Prompts {
    /// Creates the prompts with a tokenizer (`tokenizer.json`).
    pub(super) fn new(tokenizer: &[u8]) -> Result<Self> {
        let tokenizer = TextTokenizer::parse(tokenizer)?;
        let prompts = BranchPrompts::new(LAYOUT, Rubric::built_in()?, RubricDetail::Names)?;
        Ok(Self {
            experts: BranchExperts::new(prompts, &[], &tokenizer)?,
            conclusion: ConclusionModel::new(LAYOUT, &tokenizer)?,
            tokenizer,
        })
    }

    /// Returns the tasks of the three experts.
    pub(super) fn expert_tasks(
        &self,
        case: &BenchCase,
        swapped: bool,
        image: Option<&Arc<ImageTokens>>,
    ) -> Result<Vec<GenerationTask>> {
        let tasks = self.experts.tasks(&case.input(swapped), image, &self.tokenizer)?;
        tasks.into_iter().map(shorten).collect()
    }

    /// Returns the task of the conclusion model after the texts of the three experts. One half of a
    /// text stands for the analysis of the first answer, the other for that of the second.
    pub(super) fn conclusion_task(
        &self,
        case: &BenchCase,
        swapped: bool,
        image: Option<&Arc<ImageTokens>>,
        texts: &[String],
    ) -> Result<GenerationTask> {
        let evaluations = Aspect::ALL.into_iter().zip(texts).map(|(aspect, text)| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let (first, second) = words.split_at(words.len() / 2);
            let rating = |words: &[&str]| Rating {
                cut: true,
                ..Rating::new(words.join(" "), Score::from_logits(&[0.; 6]))
            };
            let criterion = aspect.criteria().first().context("an aspect without criteria")?;
            Ok(BranchEvaluation {
                aspect,
                ratings: vec![(*criterion, vec![rating(first), rating(second)])],
            })
        });
        let evaluations = evaluations.collect::<Result<Vec<_>>>()?;
        let input = case.input(swapped);
        shorten(self.conclusion.task(&input, image, &evaluations, &self.tokenizer)?)
    }
}

/// Removes all steps of a format after the first score.
fn shorten(mut task: GenerationTask) -> Result<GenerationTask> {
    task.format = task.format.get(..FORMAT_STEPS).context("the format is too short")?.into();
    Ok(task)
}
