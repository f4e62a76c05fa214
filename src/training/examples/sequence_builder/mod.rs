//! Turns examples into training sequences, with the prompts and formats of judging.

mod both_orders;

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, JudgeInput, PromptPiece, PromptToken, Rubric, StagedPrompt,
    TokenStep, render_free_text, tokenize_pieces,
};
use acem3_experts::train::Sequence;
use acem3_experts::{Aspect, Criterion, TextTokenizer};
use anyhow::Result;

use crate::data::phantoms::text::response_writer::finding_range;
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::example::{
    AnswerExample, PairExample, QuestionWithAnswer, RatingExample,
};
use crate::training::examples::prompt_completion::{PromptCompletion, merge_into_branches};
use crate::training::examples::train_tokenizer::ANSWER_HEADING;

/// Loss weight of a score.
const SCORE_WEIGHT: f32 = 2.0;
/// Loss weight of an analysis token. Most analyses are one of a few sentences.
const ANALYSIS_WEIGHT: f32 = 0.7;
/// Loss weight of a score of factual accuracy, which depends on the image.
const FACTUAL_SCORE_WEIGHT: f32 = 4.0;
/// Loss weight of an analysis token of factual accuracy, and of a short answer.
const FACTUAL_TOKEN_WEIGHT: f32 = 1.5;

/// Builds sequences with the prompts, formats and tokenizer of a panel.
#[derive(Clone)]
pub(crate) struct SequenceBuilder {
    tokenizer: TextTokenizer,
    branches: BranchPrompts,
    merge: MergePrompts,
    /// Text that begins every completion in the chat template.
    template_prefix: String,
    /// Formats of the four members.
    formats: Vec<MemberFormat>,
}

/// Format of a member's completion.
#[derive(Clone)]
struct MemberFormat {
    format: EvaluationFormat,
    /// Format as tokens, after the prefix of completions.
    tokens: Vec<TokenStep>,
}

/// Members whose completions for a pair are trained.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LearningMembers {
    /// True for each trained branch expert, in the order of [`Aspect::ALL`].
    pub(crate) branches: [bool; 3],
    /// True if the conclusion model is trained.
    pub(crate) conclusion: bool,
}

impl SequenceBuilder {
    /// Creates the builder of a configuration.
    pub(crate) fn new(config: &TrainConfig, tokenizer: TextTokenizer) -> Result<Self> {
        let formats = Aspect::ALL
            .map(EvaluationFormat::for_aspect)
            .into_iter()
            .chain([EvaluationFormat::for_conclusion()]);
        let template = &config.dialogue;
        let formats = formats
            .map(|format| {
                let tokens = format.clone().with_prefix(&template.lead).tokenize(&tokenizer)?;
                Ok(MemberFormat { format, tokens })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            branches: BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?
                .with_chat_template(template.clone()),
            merge: MergePrompts::new(config.layout)?.with_chat_template(template.clone()),
            template_prefix: template.lead.clone(),
            tokenizer,
            formats,
        })
    }

    /// Sets the text that begins the completions of each member.
    pub(crate) fn with_prefixes(mut self, prefixes: &[String; 4]) -> Result<Self> {
        let by_member = prefixes.iter().enumerate();
        let tokens = by_member.map(|(member, prefix)| self.format_tokens(member, prefix));
        let tokens: Vec<Vec<TokenStep>> = tokens.collect::<Result<_>>()?;
        for (format, tokens) in self.formats.iter_mut().zip(tokens) {
            format.tokens = tokens;
        }
        Ok(self)
    }

    /// Builds the sequences of a pair. They are one sequence if the prompts have a common prefix
    /// that includes the image. The conclusion model reads the evaluations of `conclusion_pair`.
    pub(crate) fn build_evaluations(
        &self,
        pair: &PairExample,
        conclusion_pair: &PairExample,
        learning: LearningMembers,
    ) -> Result<Vec<Sequence>> {
        let members = learning.branches.into_iter().chain([learning.conclusion]);
        let members = members.enumerate().filter(|(_, learns)| *learns);
        let completions = members.map(|(member, _)| {
            let prompt = self.build_prompt(member, pair, conclusion_pair)?;
            let source = if member < 3 { pair } else { conclusion_pair };
            let steps = &self.formats[member].tokens;
            let completion = self.fill_format(steps, &source.member_ratings(member))?;
            Ok(PromptCompletion { prompt, completion })
        });
        let completions: Vec<PromptCompletion> = completions.collect::<Result<_>>()?;
        let merge = |completions| merge_into_branches(completions, pair.image.clone());
        if let Some(sequence) = merge(&completions) {
            return Ok(vec![sequence]);
        }
        Ok(completions.chunks(1).filter_map(merge).collect())
    }

    /// Builds a member's prompt about a pair. The conclusion model reads the evaluations of
    /// `conclusion_pair`.
    pub(crate) fn build_prompt(
        &self,
        member: usize,
        pair: &PairExample,
        conclusion_pair: &PairExample,
    ) -> Result<Vec<PromptToken>> {
        let responses = pair.responses.each_ref().map(|response| response.text.as_str());
        let input = JudgeInput::pair(pair.image.is_some(), &pair.question, responses);
        let pieces = if let Some(aspect) = Aspect::ALL.get(member) {
            self.branches.pieces(*aspect, &input)?
        } else {
            let evaluations = [0, 1, 2].map(|i| {
                self.evaluation_pieces(i, &conclusion_pair.aspect_ratings(Aspect::ALL[i]))
            });
            self.merge.pieces(&input, &evaluations)?
        };
        let prompt = StagedPrompt::new(&pieces, input.text_count(), &self.tokenizer)?;
        Ok(prompt.tokens().collect())
    }

    /// Returns the format of a member's completion as tokens, after a prefix.
    pub(crate) fn format_tokens(&self, member: usize, prefix: &str) -> Result<Vec<TokenStep>> {
        Ok(self.formats[member]
            .format
            .clone()
            .with_prefix(prefix)
            .with_prefix(&self.template_prefix)
            .tokenize(&self.tokenizer)?)
    }

    /// Returns the tokenizer.
    pub(crate) fn tokenizer(&self) -> &TextTokenizer {
        &self.tokenizer
    }

    /// Builds a sequence of an image with questions and short answers, one branch per question.
    pub(crate) fn build_answers(&self, example: &AnswerExample) -> Result<Sequence> {
        let input = JudgeInput::pair(true, "", ["", ""]);
        let pieces = self.branches.pieces(Aspect::EXPRESSION, &input)?;
        let prefix: Vec<PromptPiece> =
            match pieces.iter().position(|p| matches!(p, PromptPiece::Image)) {
                Some(image) => pieces[image.saturating_sub(1)..=image + 1].to_vec(),
                None => pieces[..1].to_vec(),
            };
        let prefix = tokenize_pieces(&prefix, &self.tokenizer)?;
        let mut sequence = Sequence::new(&prefix, Some(example.image.clone()));
        for QuestionWithAnswer { question, answer } in &example.questions {
            let question = self
                .tokenizer
                .encode_quoted(question)?
                .into_iter()
                .chain(self.tokenizer.encode_trusted(ANSWER_HEADING)?);
            let answer = self.tokenizer.encode_quoted(&render_free_text(answer))?;
            sequence.push_branch(
                question
                    .map(|t| (t, 0.0))
                    .chain(answer.into_iter().map(|t| (t, FACTUAL_TOKEN_WEIGHT))),
            );
        }
        Ok(sequence)
    }

    /// Builds a sequence of texts without a case, one branch per text. Each text comes twice, and the second
    /// one has a loss.
    pub(crate) fn build_copies(&self, texts: &[String]) -> Result<Sequence> {
        let mut sequence = self.start_without_case()?;
        for text in texts {
            let tokens = self.tokenizer.encode_quoted(&render_free_text(text))?;
            let first = tokens.iter().map(|token| (*token, 0.0));
            let second = tokens.iter().map(|token| (*token, FACTUAL_TOKEN_WEIGHT));
            sequence.push_branch(first.chain(second));
        }
        Ok(sequence)
    }

    /// Returns a sequence with the start of a prompt, before a case.
    fn start_without_case(&self) -> Result<Sequence> {
        let input = JudgeInput::pair(false, "", ["", ""]);
        let pieces = self.branches.pieces(Aspect::EXPRESSION, &input)?;
        Ok(Sequence::new(&tokenize_pieces(&pieces[..1], &self.tokenizer)?, None))
    }

    /// Builds a sequence of factual ratings without a case, one branch per rating. The claim and
    /// the finding are context; the agreement and the score have a loss.
    pub(crate) fn build_comparisons(&self, ratings: &[RatingExample]) -> Result<Sequence> {
        let mut sequence = self.start_without_case()?;
        for rating in ratings {
            let mut tokens =
                self.fill_format(&self.formats[medical_knowledge()].tokens, &[rating])?;
            // Without a case, the claim and the finding cannot be predicted.
            let analysis = render_free_text(&rating.analysis);
            let context = analysis.rsplit_once(':').map_or("", |(context, _)| context);
            // The colon after the finding is context too.
            let mut context_tokens = self.tokenizer.encode_quoted(context)?.len() + 1;
            for (_, weight) in &mut tokens {
                if *weight > 0.0 && context_tokens > 0 {
                    *weight = 0.0;
                    context_tokens -= 1;
                }
            }
            sequence.push_branch(tokens);
        }
        Ok(sequence)
    }

    /// Returns the tokens of a completion with their loss weights.
    pub(crate) fn fill_format(
        &self,
        steps: &[TokenStep],
        ratings: &[&RatingExample],
    ) -> Result<Vec<(u32, f32)>> {
        let mut tokens = Vec::new();
        let mut ratings = ratings.iter();
        let mut current = ratings.next();
        for step in steps {
            let Some(rating) = current else { break };
            let weights = LossWeights::for_criterion(rating.criterion);
            match step {
                TokenStep::Literal(literal) => tokens.extend(literal.iter().map(|t| (*t, 0.0))),
                TokenStep::FreeText => {
                    let text = render_free_text(&rating.analysis);
                    let without_loss = match finding_range(&text).filter(|_| !rating.trains_finding)
                    {
                        Some(finding) => {
                            let token_count = |end| {
                                let tokens = self.tokenizer.encode_quoted(&text[..end]);
                                tokens.map(|tokens| tokens.len())
                            };
                            token_count(finding.start)?..token_count(finding.end)?
                        }
                        None => 0..0,
                    };
                    let text = self.tokenizer.encode_quoted(&text)?;
                    let weight = |i| {
                        if without_loss.contains(&i) { 0.0 } else { weights.analysis }
                    };
                    tokens.extend(text.into_iter().enumerate().map(|(i, t)| (t, weight(i))));
                }
                TokenStep::Score(scores) => {
                    tokens.push((scores[usize::from(rating.score.min(5))], weights.score));
                    current = ratings.next();
                }
            }
        }
        Ok(tokens)
    }

    /// Renders a member's evaluation for the prompt of the conclusion model.
    fn evaluation_pieces(&self, member: usize, ratings: &[&RatingExample]) -> Vec<PromptPiece> {
        let ratings: Vec<(String, u8)> =
            ratings.iter().map(|r| (r.analysis.clone(), r.score)).collect();
        self.formats[member].format.render_pieces(&ratings)
    }

    /// Returns true if a target with this weight is a score. Only scores count for the accuracy.
    pub(crate) fn counts_for_accuracy(weight: f32) -> bool {
        weight >= SCORE_WEIGHT
    }
}

/// Returns the index of the medical knowledge expert among the members.
pub(crate) fn medical_knowledge() -> usize {
    Aspect::ALL.iter().position(|aspect| *aspect == Aspect::MEDICAL_KNOWLEDGE).unwrap_or_default()
}

/// Loss weights of a rating.
struct LossWeights {
    /// Weight of an analysis token.
    analysis: f32,
    /// Weight of the score.
    score: f32,
}

impl LossWeights {
    fn for_criterion(criterion: Option<Criterion>) -> Self {
        match criterion {
            Some(Criterion::FACTUAL_ACCURACY) => {
                Self { analysis: FACTUAL_TOKEN_WEIGHT, score: FACTUAL_SCORE_WEIGHT }
            }
            _ => Self { analysis: ANALYSIS_WEIGHT, score: SCORE_WEIGHT },
        }
    }
}

#[cfg(test)]
mod tests;
