//! Writes training sequences: the prompts and formats of judging, filled with what is taught.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{
    BranchPrompts, Format, JudgeInput, Piece, Rubric, Slot, StagedPrompt, TokenStep, free_text,
    slots,
};
use acem3_experts::train::Sequence;
use acem3_experts::{Aspect, Criterion, TextTokenizer};
use anyhow::Result;

use crate::data::phantoms::response_writer::found;
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::example::{PairExample, Pixels, RatingExample};
use crate::training::examples::prompt_completion::{PromptCompletion, branched};
use crate::training::examples::train_tokenizer::ANSWER;

/// What an error costs at a score and at an analysis, which is one of a few sentences.
const SCORE_WEIGHT: f32 = 2.0;
const ANALYSIS_WEIGHT: f32 = 0.7;
/// The same for factual accuracy, and for short answers: these need a look at the image.
const FACT_SCORE_WEIGHT: f32 = 4.0;
const FACT_WEIGHT: f32 = 1.5;

/// Prompts and formats in one tokenizer's tokens.
#[derive(Clone)]
pub(crate) struct SequenceBuilder {
    tokenizer: TextTokenizer,
    branches: BranchPrompts,
    merge: MergePrompts,
    /// What every answer in the dialogue begins with.
    lead: String,
    /// The members' forms, and their tokens.
    formats: Vec<(Format, Vec<TokenStep>)>,
    image_tokens: usize,
}

/// Which members learn from a pair.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LearningMembers {
    /// The branches, in the order of [`Aspect::ALL`].
    pub(crate) branches: [bool; 3],
    /// The conclusion.
    pub(crate) conclusion: bool,
}

impl SequenceBuilder {
    /// The writer for a configuration; an image takes `image_tokens` places.
    pub(crate) fn new(
        config: &TrainConfig,
        tokenizer: TextTokenizer,
        image_tokens: usize,
    ) -> Result<Self> {
        let formats = Aspect::ALL
            .map(Format::branch)
            .into_iter()
            .chain([Format::conclusion()]);
        let dialogue = &config.dialogue;
        let formats = formats
            .map(|format| {
                let tokens = format.clone().led(&dialogue.lead).tokens(&tokenizer)?;
                Ok((format, tokens))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            branches: BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?
                .inside(dialogue.clone()),
            merge: MergePrompts::new(config.layout)?.inside(dialogue.clone()),
            lead: dialogue.lead.clone(),
            tokenizer,
            formats,
            image_tokens,
        })
    }

    /// The writer of texts that begin with these words, those of one member after the other.
    pub(crate) fn leading(mut self, leads: &[String; 4]) -> Result<Self> {
        let formats = self.formats.iter().zip(leads).enumerate();
        let formats =
            formats.map(|(i, ((format, _), lead))| Ok((format.clone(), self.led(i, lead)?)));
        self.formats = formats.collect::<Result<_>>()?;
        Ok(self)
    }

    /// The sequences that teach a pair. Prompts that begin alike, image included, become branches
    /// of one sequence. The conclusion reads and merges the evaluations of `read`.
    pub(crate) fn evaluations(
        &self,
        pair: &PairExample,
        read: &PairExample,
        lessons: LearningMembers,
    ) -> Result<Vec<Sequence>> {
        let members = lessons.branches.into_iter().chain([lessons.conclusion]);
        let members = members.enumerate().filter(|(_, learns)| *learns);
        let texts = members.map(|(member, _)| {
            let prompt = self.prompt(member, pair, read)?;
            let known = if member < 3 { pair } else { read };
            let steps = &self.formats[member].1;
            let text = self.filled(steps, &known.of_member(member))?;
            Ok(PromptCompletion { prompt, text })
        });
        let texts: Vec<PromptCompletion> = texts.collect::<Result<_>>()?;
        let sequence = |texts| branched(texts, pair.pixels.clone(), self.image_tokens);
        if let Some(sequence) = sequence(&texts) {
            return Ok(vec![sequence]);
        }
        Ok(texts.chunks(1).filter_map(sequence).collect())
    }

    /// Places that an image takes.
    pub(crate) fn image_tokens(&self) -> usize {
        self.image_tokens
    }

    /// The prompt that a member reads about a pair. The conclusion reads the evaluations of `read`.
    pub(crate) fn prompt(
        &self,
        member: usize,
        pair: &PairExample,
        read: &PairExample,
    ) -> Result<Vec<Slot>> {
        let input = JudgeInput {
            image: pair.pixels.is_some(),
            question: &pair.question,
            responses: [&pair.responses[0].text, &pair.responses[1].text],
        };
        let pieces = if let Some(aspect) = Aspect::ALL.get(member) {
            self.branches.pieces(*aspect, &input)?
        } else {
            let written = [0, 1, 2].map(|i| self.written(i, &read.aspect(Aspect::ALL[i])));
            self.merge.pieces(&input, &written)?
        };
        Ok(StagedPrompt::new(&pieces, &self.tokenizer)?
            .slots()
            .collect())
    }

    /// The form of a member's text that begins with some words, in tokens.
    pub(crate) fn led(&self, member: usize, lead: &str) -> Result<Vec<TokenStep>> {
        Ok(self.formats[member]
            .0
            .clone()
            .led(lead)
            .led(&self.lead)
            .tokens(&self.tokenizer)?)
    }

    /// What texts become tokens with.
    pub(crate) fn tokenizer(&self) -> &TextTokenizer {
        &self.tokenizer
    }

    /// One image with questions and short answers, each pair a branch of its own.
    pub(crate) fn answers(
        &self,
        pixels: Option<Pixels>,
        facts: &[(String, String)],
    ) -> Result<Sequence> {
        let input = JudgeInput {
            image: pixels.is_some(),
            question: "",
            responses: ["", ""],
        };
        let pieces = self.branches.pieces(Aspect::Expression, &input)?;
        let head: Vec<Piece> = match pieces.iter().position(|p| matches!(p, Piece::Image)) {
            Some(at) => pieces[at.saturating_sub(1)..=at + 1].to_vec(),
            None => pieces[..1].to_vec(),
        };
        let head = slots(&head, &self.tokenizer)?;
        let mut sequence = Sequence::new(&head, pixels, self.image_tokens);
        for (question, answer) in facts {
            let asked = self
                .tokenizer
                .free(question)?
                .into_iter()
                .chain(self.tokenizer.fixed(ANSWER)?);
            let answered = self.tokenizer.free(&free_text(answer))?;
            sequence.branch(
                asked
                    .map(|t| (t, 0.0))
                    .chain(answered.into_iter().map(|t| (t, FACT_WEIGHT))),
            );
        }
        Ok(sequence)
    }

    /// Factual ratings without a case, each a branch of its own: given what is claimed and what the
    /// image shows, whether they agree, and the score.
    pub(crate) fn comparisons(&self, ratings: &[RatingExample]) -> Result<Sequence> {
        let input = JudgeInput {
            image: false,
            question: "",
            responses: ["", ""],
        };
        let pieces = self.branches.pieces(Aspect::Expression, &input)?;
        let head = slots(&pieces[..1], &self.tokenizer)?;
        let mut sequence = Sequence::new(&head, None, self.image_tokens);
        let member = Aspect::ALL
            .iter()
            .position(|a| *a == Aspect::MedicalKnowledge);
        for rating in ratings {
            let mut tokens = self.filled(&self.formats[member.unwrap_or_default()].1, &[rating])?;
            // Claim and finding cannot be known without a case.
            let given = free_text(&rating.analysis);
            let given = given.rsplit_once(':').map_or("", |(given, _)| given);
            let mut unknown = self.tokenizer.free(given)?.len() + 1;
            for (_, weight) in &mut tokens {
                if *weight > 0.0 && unknown > 0 {
                    *weight = 0.0;
                    unknown -= 1;
                }
            }
            sequence.branch(tokens);
        }
        Ok(sequence)
    }

    /// The tokens of a member's text with what an error costs.
    pub(crate) fn filled(
        &self,
        steps: &[TokenStep],
        ratings: &[&RatingExample],
    ) -> Result<Vec<(u32, f32)>> {
        let mut tokens = Vec::new();
        let mut ratings = ratings.iter();
        let mut current = ratings.next();
        for step in steps {
            let Some(rating) = current else { break };
            let (analysis, score) = weights(rating.criterion);
            match step {
                TokenStep::Feed(fed) => tokens.extend(fed.iter().map(|t| (*t, 0.0))),
                TokenStep::Free => {
                    let text = free_text(&rating.analysis);
                    let unlearned = match found(&text).filter(|_| !rating.learned) {
                        Some(found) => {
                            let tokens = |end| self.tokenizer.free(&text[..end]).map(|t| t.len());
                            tokens(found.start)?..tokens(found.end)?
                        }
                        None => 0..0,
                    };
                    let text = self.tokenizer.free(&text)?;
                    let weight = |i| {
                        if unlearned.contains(&i) {
                            0.0
                        } else {
                            analysis
                        }
                    };
                    tokens.extend(text.into_iter().enumerate().map(|(i, t)| (t, weight(i))));
                }
                TokenStep::Score(scores) => {
                    tokens.push((scores[usize::from(rating.score.min(5))], score));
                    current = ratings.next();
                }
            }
        }
        Ok(tokens)
    }

    fn written(&self, member: usize, ratings: &[&RatingExample]) -> Vec<Piece> {
        let ratings: Vec<(String, u8)> = ratings
            .iter()
            .map(|r| (r.analysis.clone(), r.score))
            .collect();
        self.formats[member].0.pieces(&ratings)
    }

    /// Whether a target counts in the accuracy: scores, and the only tokens of short answers.
    pub(crate) fn is_counted(weight: f32) -> bool {
        weight >= SCORE_WEIGHT
    }
}

/// What errors at the analysis and at the score of a criterion cost.
fn weights(criterion: Option<Criterion>) -> (f32, f32) {
    match criterion {
        Some(Criterion::FactualAccuracy) => (FACT_WEIGHT, FACT_SCORE_WEIGHT),
        _ => (ANALYSIS_WEIGHT, SCORE_WEIGHT),
    }
}

#[cfg(test)]
mod tests;
