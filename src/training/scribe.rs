//! Writes training sequences: the prompts and formats of judging, filled with what is taught.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{
    BranchPrompts, Format, JudgeInput, Piece, Rubric, Slot, TokenStep, free_text, slots,
};
use acem3_experts::train::Sequence;
use acem3_experts::{Aspect, Criterion, TextTokenizer};
use anyhow::Result;

use super::config::TrainConfig;
use super::taught::{Pixels, TaughtPair, TaughtRating};
use super::vocabulary::ANSWER;
use crate::phantoms::style::found;

/// What an error costs at a score and at an analysis, which is one of a few sentences.
const SCORE_WEIGHT: f32 = 2.0;
const ANALYSIS_WEIGHT: f32 = 0.7;
/// The same for factual accuracy, and for short answers: these need a look at the image.
const FACT_SCORE_WEIGHT: f32 = 4.0;
const FACT_WEIGHT: f32 = 1.5;

/// What is read, and what is written then: tokens, each with what an error at it costs.
type Exercise = (Vec<Slot>, Vec<(u32, f32)>);

/// Prompts and formats in one tokenizer's tokens.
pub(super) struct Scribe {
    tokenizer: TextTokenizer,
    branches: BranchPrompts,
    merge: MergePrompts,
    formats: Vec<(Format, Vec<TokenStep>)>,
    image_tokens: usize,
}

/// Which members learn from a pair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lessons {
    /// The branches, in the order of [`Aspect::ALL`].
    pub(super) branches: [bool; 3],
    /// The conclusion.
    pub(super) conclusion: bool,
}

impl Scribe {
    /// The writer for a configuration; an image takes `image_tokens` places.
    pub(super) fn new(
        config: &TrainConfig,
        tokenizer: TextTokenizer,
        image_tokens: usize,
    ) -> Result<Self> {
        let formats = Aspect::ALL
            .map(Format::branch)
            .into_iter()
            .chain([Format::conclusion()]);
        let formats = formats
            .map(|format| Ok((format.clone(), format.tokens(&tokenizer)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            branches: BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?,
            merge: MergePrompts::new(config.layout)?,
            tokenizer,
            formats,
            image_tokens,
        })
    }

    /// The sequences that teach a pair. Prompts that begin alike, image included, become branches
    /// of one sequence. The conclusion reads and merges the evaluations of `read`.
    pub(super) fn evaluations(
        &self,
        pair: &TaughtPair,
        read: &TaughtPair,
        lessons: Lessons,
    ) -> Result<Vec<Sequence>> {
        let input = JudgeInput {
            image: pair.pixels.is_some(),
            question: &pair.question,
            responses: [&pair.responses[0].text, &pair.responses[1].text],
        };
        let mut texts: Vec<Exercise> = Vec::new();
        for (i, aspect) in Aspect::ALL.into_iter().enumerate() {
            if lessons.branches[i] {
                let prompt = slots(&self.branches.pieces(aspect, &input)?, &self.tokenizer)?;
                texts.push((prompt, self.filled(i, &pair.aspect(aspect))?));
            }
        }
        if lessons.conclusion {
            let written = [0, 1, 2].map(|i| self.written(i, &read.aspect(Aspect::ALL[i])));
            let prompt = slots(&self.merge.pieces(&input, &written)?, &self.tokenizer)?;
            texts.push((prompt, self.filled(3, &read.conclusion())?));
        }
        let prompts: Vec<&[Slot]> = texts.iter().map(|(prompt, _)| prompt.as_slice()).collect();
        let common = common_prefix(&prompts);
        let shared = common > 0 && prompts.iter().all(|p| !p[common..].contains(&Slot::Image));
        let pixels = || pair.pixels.clone();
        let mut sequences = Vec::new();
        if shared && let Some(first) = prompts.first() {
            let mut sequence = Sequence::new(&first[..common], pixels(), self.image_tokens);
            for (prompt, text) in &texts {
                let rest = prompt[common..].iter().filter_map(|slot| match slot {
                    Slot::Token(token) => Some((*token, 0.0)),
                    Slot::Image => None,
                });
                sequence.branch(rest.chain(text.iter().copied()));
            }
            sequences.push(sequence);
        } else {
            for (prompt, text) in texts {
                let mut sequence = Sequence::new(&prompt, pixels(), self.image_tokens);
                sequence.branch(text);
                sequences.push(sequence);
            }
        }
        Ok(sequences)
    }

    /// One image with questions and short answers, each pair a branch of its own.
    pub(super) fn answers(
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
    pub(super) fn comparisons(&self, ratings: &[TaughtRating]) -> Result<Sequence> {
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
            let mut tokens = self.filled(member.unwrap_or_default(), &[rating])?;
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
    fn filled(&self, member: usize, ratings: &[&TaughtRating]) -> Result<Vec<(u32, f32)>> {
        let mut tokens = Vec::new();
        let mut ratings = ratings.iter();
        let mut current = ratings.next();
        for step in &self.formats[member].1 {
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

    fn written(&self, member: usize, ratings: &[&TaughtRating]) -> Vec<Piece> {
        let ratings: Vec<(String, u8)> = ratings
            .iter()
            .map(|r| (r.analysis.clone(), r.score))
            .collect();
        self.formats[member].0.pieces(&ratings)
    }

    /// Whether a target counts in the accuracy: scores, and the only tokens of short answers.
    pub(super) fn is_counted(weight: f32) -> bool {
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

fn common_prefix(prompts: &[&[Slot]]) -> usize {
    let Some((first, others)) = prompts.split_first() else {
        return 0;
    };
    let agree = |i: &usize| others.iter().all(|p| p.get(*i) == first.get(*i));
    (0..first.len()).take_while(agree).count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use acem3_conclusion::ConclusionModel;
    use acem3_experts::generate::Task;
    use acem3_experts::{BranchEvaluation, BranchJudge, Rating, Score};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::training::teacher::Teacher;
    use crate::training::{phantom_lessons, vocabulary};

    /// The recipe of the embedded panel, and its texts' writer.
    fn scribe() -> (TrainConfig, Scribe) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let config = TrainConfig::read(&path).unwrap();
        let teacher = Teacher::new(&config, None);
        let trained = vocabulary::train(&config, teacher.texts(40)).unwrap();
        let scribe = Scribe::new(&config, TextTokenizer::new(trained), 5).unwrap();
        (config, scribe)
    }

    fn score(value: u8) -> Score {
        let mut logits = [0.0; 6];
        logits[usize::from(value)] = 9.0;
        Score::from_logits(logits)
    }

    /// The tokens of a task with its text filled in, image places as in a sequence.
    fn whole(task: &Task, scribe: &Scribe, ratings: &[&TaughtRating]) -> Vec<u32> {
        let mut tokens = Vec::new();
        for slot in task.prompt.0.iter().flatten() {
            match slot {
                Slot::Token(token) => tokens.push(*token),
                Slot::Image => tokens.extend(vec![0; scribe.image_tokens]),
            }
        }
        tokens.extend(
            scribe
                .filled(task.member, ratings)
                .unwrap()
                .into_iter()
                .map(|(t, _)| t),
        );
        tokens
    }

    /// What is taught is, token by token, what is asked and answered when a pair is judged.
    #[test]
    fn a_lesson_reads_as_the_judging_it_prepares_for() {
        let (config, scribe) = scribe();
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let pair = phantom_lessons::pair(1, 2, &config.processor(), &mut rng).unwrap();
        let all = Lessons {
            branches: [true; 3],
            conclusion: true,
        };
        let sequences = scribe.evaluations(&pair, &pair, all).unwrap();
        assert_eq!(sequences.len(), 1, "the case is computed once for all four");
        let sequence = &sequences[0];

        let input = JudgeInput {
            image: true,
            question: &pair.question,
            responses: [&pair.responses[0].text, &pair.responses[1].text],
        };
        let judge = BranchJudge::new(scribe.branches.clone(), &scribe.tokenizer).unwrap();
        let mut tasks = judge.tasks(&input, None, &scribe.tokenizer).unwrap();
        let evaluations: Vec<BranchEvaluation> = Aspect::ALL
            .into_iter()
            .map(|aspect| {
                let ratings = pair.aspect(aspect).into_iter().map(|r| Rating {
                    analysis: r.analysis.clone(),
                    cut: false,
                    score: score(r.score),
                });
                BranchJudge::evaluation(aspect, ratings.collect())
            })
            .collect();
        let conclusion = ConclusionModel::new(config.layout, &scribe.tokenizer).unwrap();
        tasks.push(
            conclusion
                .task(&input, None, &evaluations, &scribe.tokenizer)
                .unwrap(),
        );
        for (i, task) in tasks.iter().enumerate() {
            let ratings = match i {
                3 => pair.conclusion(),
                _ => pair.aspect(Aspect::ALL[i]),
            };
            let taught: Vec<u32> = sequence
                .tokens
                .iter()
                .zip(&sequence.branches)
                .filter(|(_, branch)| **branch == 0 || usize::from(**branch) == i + 1)
                .map(|(token, _)| *token)
                .collect();
            assert_eq!(taught, whole(task, &scribe, &ratings), "member {i}");
        }
    }

    /// Of a doubted analysis the claim and the agreement are learned, not the finding between them.
    #[test]
    fn a_doubted_finding_is_read_alone() {
        let (_, scribe) = scribe();
        let rating = TaughtRating {
            criterion: Some(Criterion::FactualAccuracy),
            analysis: "Claims left side; the image shows right side: they differ.".to_owned(),
            score: 1,
            learned: false,
        };
        let tokens = scribe.filled(1, &[&rating]).unwrap();
        let learned = |wanted: bool| {
            let tokens = tokens
                .iter()
                .filter(|(_, weight)| (*weight > 0.0) == wanted);
            let tokens: Vec<u32> = tokens.map(|(token, _)| *token).collect();
            scribe.tokenizer.decode(&tokens).unwrap()
        };
        let text = learned(true);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(text, "claims left side; the image shows: they differ. 1");
        assert!(learned(false).contains("right side"));
    }
}
