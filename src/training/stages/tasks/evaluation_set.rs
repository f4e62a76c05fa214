//! Training examples from a file of evaluations, each a prompt with its completion.
//!
//! A curriculum has three blocks ordered by quality (`AutoMedEval` §3.2).

use std::ops::Range;
use std::path::Path;

use acem3_experts::prompt::PromptPiece;
use acem3_experts::train::Sequence;
use anyhow::{Context, Result, bail};
use candle_nn::VarBuilder;

use crate::support::text::format_count;
use crate::training::config::stage::curriculum::Curriculum;
use crate::training::config::stage::reward_token::RewardTokenRole;
use crate::training::config::validation_indices::VALIDATION_START;
use crate::training::examples::validation_split::SplitItems;
use crate::training::preferences::files::asked_questions::remove_questions;
use crate::training::preferences::files::file_sequences::{
    CompletionPrefix, FileSequenceBuilder, without_prefix,
};
use crate::training::preferences::{
    EvaluationExample, check_image_for, check_member, read_evaluations,
};
use crate::training::stages::context::StageContext;
use crate::training::stages::files::stage_files::activation_path;
use crate::training::stages::frozen::frozen_cache::{
    CHUNK_SIZE, FrozenCache, FrozenCacheFile, FrozenCacheWriter,
};
use crate::training::stages::parallel::map_parallel;
use crate::training::stages::tasks::epoch_sampler::EpochSampler;

/// Proportion of the evaluations in the first of three disjoint blocks (`AutoMedEval` §3.2: 1,911 of
/// 9,569).
const WORST_PROPORTION: f64 = 1_911.0 / 9_569.0;
/// Proportion of the evaluations in the last of three disjoint blocks (2,394 of 9,569).
const BEST_PROPORTION: f64 = 2_394.0 / 9_569.0;

/// Evaluations on which a stage trains one learner: a member, or all members as one model.
pub(crate) struct EvaluationSet<'a> {
    context: StageContext<'a>,
    /// Index of the trained member; `None` for all members as one model.
    member: Option<usize>,
    path: &'a Path,
    split: SplitItems<EvaluationExample>,
    /// Blocks of the curriculum, in order.
    blocks: Vec<CurriculumBlock>,
    cache: Option<EvaluationCache>,
}

/// Block of a curriculum.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CurriculumBlock {
    /// Indices of its evaluations.
    evaluations: Vec<usize>,
    /// Index of its first example.
    start: u64,
}

/// Cached activations of evaluations.
struct EvaluationCache {
    activations: FrozenCache,
    /// Index of each evaluation in the cache; `None` if it does not fit into the context.
    indices: Vec<Option<usize>>,
}

impl<'a> EvaluationSet<'a> {
    /// Reads the evaluations of a stage. Returns `None` if the stage generates its examples.
    ///
    /// `member`: index of the trained member; `None` if the stage trains all members as one model.
    pub(crate) fn open(context: StageContext<'a>, member: Option<usize>) -> Result<Option<Self>> {
        let stage = context.stage;
        let Some(config) = &stage.evaluations else {
            return Ok(None);
        };
        let path = config.file.display();
        let mut evaluations = read_evaluations(&config.file)?.items;
        let names = stage.member_names;
        for evaluation in &evaluations {
            check_member(names, evaluation.member.as_deref())
                .with_context(|| format!("{path}, line {}", evaluation.line))?;
        }
        let index =
            |evaluation: &EvaluationExample| names.index(evaluation.member.as_deref()?).ok();
        evaluations.retain(|evaluation| {
            let only = index(evaluation);
            member.is_none() || only.is_none() || only == member
        });
        if config.strips_questions {
            evaluations.iter_mut().try_for_each(remove_questions)?;
        }
        let split = SplitItems::by_group(evaluations, index);
        let validation_count = split.items.len() - split.training_count;
        if split.training_count == 0 || validation_count == 0 {
            bail!(
                "{path}: found {} for this stage: {} for training and {validation_count} for validation, expected \
                 at least one each\n\
                 hint: add evaluations; a tenth of those of each member is for validation, if there are two or more, \
                 and lines with another `member` are skipped. To train some members only, list them in \
                 `members`",
                format_count(split.items.len() as u64, "evaluation"),
                split.training_count
            );
        }
        let training = &split.items[..split.training_count];
        let blocks =
            curriculum_blocks(config.curriculum, training, stage.steps * stage.batch as u64)
                .with_context(|| path.to_string())?;
        Ok(Some(Self { context, member, path: &config.file, split, blocks, cache: None }))
    }

    /// Returns the number of training evaluations.
    pub(crate) fn len(&self) -> usize {
        self.split.training_count
    }

    /// Returns the prompt of the first evaluation.
    pub(crate) fn first_prompt(&self) -> &[PromptPiece] {
        self.split.items.first().map_or(&[], |first| &first.prompt)
    }

    /// Returns the number of frozen decoder layers that the cache replaces; `None` without a cache.
    pub(crate) fn cached_layers(&self) -> Option<usize> {
        let cache = self.cache.as_ref();
        cache.map(|cache| cache.activations.decoder_layers())
    }

    /// Creates the frozen-activation cache if the configuration enables it. `vb` contains the
    /// stage's initial weights; `name` is the name of the learner's files. Returns false if the
    /// user interrupts it.
    pub(crate) fn cache_activations(
        &mut self,
        vb: &VarBuilder,
        out: &Path,
        name: &str,
    ) -> Result<bool> {
        let config = self.context.stage.evaluations.as_ref();
        let Some(dtype) = config.and_then(|config| config.cache_dtype) else {
            return Ok(true);
        };
        let progress = self.context.progress;
        let file = FrozenCacheFile { path: activation_path(out, name), dtype };
        let mut writer = FrozenCacheWriter::open(self.context, vb, &file)?;
        let (mut indices, mut cached) = (Vec::new(), 0);
        let all_indices: Vec<usize> = (0..self.split.items.len()).collect();
        for chunk in all_indices.chunks(CHUNK_SIZE as usize) {
            if progress.is_interrupted() {
                return Ok(false);
            }
            if writer.needs_computation() {
                let (done, total) = (indices.len(), all_indices.len());
                let state = format!("computing frozen activations, {done} of {total} evaluations");
                progress.report(name, 0, &state);
            }
            let mut sequences = self.build_sequences(chunk)?;
            sequences.retain(|sequence| {
                let fits = self.context.fits_context(sequence);
                indices.push(fits.then_some(cached));
                cached += usize::from(fits);
                fits
            });
            writer.add(sequences)?;
        }
        self.cache = Some(EvaluationCache { activations: writer.finish()?, indices });
        Ok(true)
    }

    /// Returns the sequences of the examples with these indices (see `TrainingTask::examples`).
    /// With a cache, sequences that do not fit into the context are left out.
    pub(crate) fn sequences(&self, indices: Range<u64>) -> Result<Vec<Sequence>> {
        let sampled = self.sample(indices);
        let Some(cache) = &self.cache else {
            return self.build_sequences(&sampled);
        };
        let cached = sampled.into_iter().filter_map(|i| cache.indices[i]);
        // Branch 1 is the completion, the only branch.
        cached.map(|i| cache.activations.select(i, &[1])).collect()
    }

    /// Builds the sequences of some evaluations.
    fn build_sequences(&self, evaluations: &[usize]) -> Result<Vec<Sequence>> {
        let StageContext { config, stage, sampler, builder, .. } = self.context;
        let builder = FileSequenceBuilder {
            tokenizer: builder.tokenizer(),
            images: sampler.images(),
            // Only sequences of preference pairs use the role.
            reward_token_role: RewardTokenRole::Absent,
            reward_tokens: &config.reward_tokens,
            strips_reward_tokens: stage.strips_reward_tokens,
        };
        map_parallel(evaluations, |i| {
            let evaluation = &self.split.items[*i];
            let prefix = |reward_token: &str| {
                let prefix = CompletionPrefix { template: &config.dialogue.lead, reward_token };
                builder.build_evaluation(evaluation, prefix)
            };
            let sequence = self.reward_token(evaluation).and_then(|token| prefix(&token));
            sequence.with_context(|| self.location(evaluation))
        })
    }

    /// Returns the reward token before an evaluation; empty for none.
    fn reward_token(&self, evaluation: &EvaluationExample) -> Result<String> {
        let StageContext { config, stage, .. } = self.context;
        if !stage.trains_reward_tokens() {
            return Ok(String::new());
        }
        let pair = {
            let own = self.member.map(|member| stage.member_names.get(member));
            config.reward_tokens.of_evaluation(evaluation.member.as_deref().or(own))
        };
        let pair = pair.context(
            "the line has no `member`, and the members have different reward tokens\n\
             hint: add `member` to the line, or give all members one pair (`default` in [reward_tokens])",
        )?;
        Ok(pair.good)
    }

    /// Returns the file and line of an evaluation.
    fn location(&self, evaluation: &EvaluationExample) -> String {
        format!("{}, line {}", self.path.display(), evaluation.line)
    }

    /// Converts example indices to indices of evaluations. Training examples come from one block
    /// after another, and a block is reshuffled each time it is used up. From [`VALIDATION_START`]
    /// on, the result is the whole validation split.
    fn sample(&self, indices: Range<u64>) -> Vec<usize> {
        if indices.start >= VALIDATION_START {
            return (self.split.training_count..self.split.items.len()).collect();
        }
        let mut sampled = Vec::new();
        for (i, block) in self.blocks.iter().enumerate() {
            let end = self.blocks.get(i + 1).map_or(u64::MAX, |next| next.start);
            let range = indices.start.max(block.start)..indices.end.min(end);
            if range.is_empty() {
                continue;
            }
            let sampler = EpochSampler {
                seed: self.context.config.seed ^ (i as u64) << 32,
                n: block.evaluations.len(),
            };
            let within = sampler.indices(range.start - block.start..range.end - block.start);
            sampled.extend(within.into_iter().map(|i| block.evaluations[i]));
        }
        sampled
    }

    /// Checks that all image files exist, and that no evaluation begins with an unexpected reward token.
    pub(crate) fn check_lines(&self) -> Result<()> {
        for evaluation in &self.split.items {
            let image = evaluation.image.as_deref();
            check_image_for(&self.context.config.model, image)
                .and_then(|()| self.check_reward_token(evaluation))
                .with_context(|| self.location(evaluation))?;
        }
        Ok(())
    }

    /// Checks that an evaluation begins with the reward token of the stage, or with none.
    fn check_reward_token(&self, evaluation: &EvaluationExample) -> Result<()> {
        let StageContext { config, stage, .. } = self.context;
        let token = self.reward_token(evaluation)?;
        if token.is_empty() || stage.strips_reward_tokens {
            return Ok(());
        }
        let prefix = CompletionPrefix { template: &config.dialogue.lead, reward_token: &token };
        without_prefix(&evaluation.text, prefix, &config.reward_tokens).map(drop)
    }
}

/// Returns the blocks of a curriculum. Evaluations of equal quality stay in file order. `examples`:
/// number of examples of the stage.
fn curriculum_blocks(
    curriculum: Curriculum,
    evaluations: &[EvaluationExample],
    examples: u64,
) -> Result<Vec<CurriculumBlock>> {
    if curriculum == Curriculum::None {
        return Ok(vec![CurriculumBlock {
            evaluations: (0..evaluations.len()).collect(),
            start: 0,
        }]);
    }
    let mut by_quality: Vec<(f64, usize)> = Vec::new();
    for (i, evaluation) in evaluations.iter().enumerate() {
        let quality = evaluation.quality.with_context(|| {
            format!(
                "line {} has no `quality`, which the stage's curriculum requires\n\
                 hint: add a number to each line (see `acem3 data quality`), or remove `curriculum`",
                evaluation.line
            )
        })?;
        by_quality.push((quality, i));
    }
    by_quality.sort_by(|a, b| a.0.total_cmp(&b.0));
    let order: Vec<usize> = by_quality.into_iter().map(|(_, i)| i).collect();
    let n = order.len();
    if curriculum == Curriculum::Overlapping {
        let (lower, upper) = order.split_at(n.div_ceil(2));
        let upper = if upper.is_empty() { lower } else { upper };
        let length = examples.div_ceil(3).max(1);
        let blocks = [lower, &order, upper].into_iter().zip(0..);
        return Ok(blocks
            .map(|(block, i)| CurriculumBlock { evaluations: block.to_vec(), start: i * length })
            .collect());
    }
    let worst = (n as f64 * WORST_PROPORTION).round() as usize;
    let best = (n as f64 * BEST_PROPORTION).round() as usize;
    let bounds = [0, worst, n - best.min(n - worst), n];
    let blocks = bounds.windows(2).filter(|bound| bound[0] < bound[1]).map(|bound| {
        let proportion = bound[0] as f64 / n as f64;
        let start = (examples as f64 * proportion).round() as u64;
        CurriculumBlock { evaluations: order[bound[0]..bound[1]].to_vec(), start }
    });
    Ok(blocks.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_qualities(qualities: &[f64]) -> Vec<EvaluationExample> {
        let evaluation = |(i, quality): (usize, &f64)| EvaluationExample {
            line: i + 1,
            member: None,
            prompt: Vec::new(),
            text: String::new(),
            image: None,
            quality: Some(*quality),
        };
        qualities.iter().enumerate().map(evaluation).collect()
    }

    #[test]
    fn curriculum_orders_evaluations_by_quality() {
        let blocks = |curriculum, qualities: &[f64], examples| {
            let blocks = curriculum_blocks(curriculum, &with_qualities(qualities), examples);
            let blocks = blocks.unwrap().into_iter().map(|block| (block.start, block.evaluations));
            blocks.collect::<Vec<_>>()
        };
        let qualities = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(
            blocks(Curriculum::Overlapping, &qualities, 30),
            [(0, vec![1, 3, 4]), (10, vec![1, 3, 4, 2, 0]), (20, vec![2, 0])]
        );
        assert_eq!(
            blocks(Curriculum::Disjoint, &qualities, 30),
            [(0, vec![1]), (6, vec![3, 4, 2]), (24, vec![0])]
        );
        assert_eq!(blocks(Curriculum::None, &qualities, 30), [(0, vec![0, 1, 2, 3, 4])]);
        let single = blocks(Curriculum::Overlapping, &[1.0], 3);
        assert_eq!(single, [(0, vec![0]), (1, vec![0]), (2, vec![0])]);
        assert_eq!(blocks(Curriculum::Disjoint, &[1.0], 3), [(0, vec![0])]);
        let mut unrated = with_qualities(&[1.0, 2.0]);
        unrated[1].quality = None;
        let error = curriculum_blocks(Curriculum::Disjoint, &unrated, 1).unwrap_err().to_string();
        assert!(error.contains("line 2 has no `quality`") && error.contains("hint:"));
    }
}
