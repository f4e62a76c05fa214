//! The panel judge: judges pairs with the members of a panel.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_conclusion::{CONCLUSION_MEMBER, OrderVerdict, Verdict};
use acem3_experts::generate::{GenerationTask, ImageTokens, PrefixCache};
use acem3_experts::prompt::JudgeInput;
use acem3_experts::{Aspect, BranchEvaluation, BranchExperts, Error, Rating};
use anyhow::{Context, Result};
use candle::DType;

use super::load::Panel;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::data::cases::UnscoredReason;
use crate::data::images::LoadedImage;
use crate::judging::judge::{Judge, PairJob, Unscored};
use crate::judging::panel::trunk_group::TrunkGroup;
use crate::judging::provenance::{Provenance, judge_digest};
use crate::support::device::Placement;

/// Ratings of a member for one pass, or its error.
type MemberOutput = Result<Vec<Rating>, Error>;

/// Image tokens for each trunk group; `None` for text-only groups.
type GroupImages = Vec<Option<Arc<ImageTokens>>>;

/// Maximum number of cached image tokens per trunk group.
const MAX_CACHED_TOKENS: usize = 1 << 14;

/// Options of a judge run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgeOptions {
    /// True to judge one presentation order instead of both.
    pub single_order: bool,
}

/// A panel with its caches. The caches never affect verdicts.
pub struct PanelJudge {
    panel: Panel,
    options: JudgeOptions,
    /// Caches of each trunk group.
    caches: Vec<GroupCache>,
}

/// Caches of a trunk group between batches.
#[derive(Default)]
struct GroupCache {
    prefixes: PrefixCache,
    images: HashMap<String, Arc<ImageTokens>>,
}

/// One pair in one presentation order.
struct PairPass<'a> {
    job: usize,
    swapped: bool,
    input: JudgeInput<'a>,
    images: GroupImages,
    branches: Result<Vec<BranchEvaluation>, Unscored>,
}

impl PanelJudge {
    /// Loads a panel that judges both orders of every pair and writes analyses.
    ///
    /// # Errors
    /// If the files are not a valid panel, or do not fit the device.
    pub fn load(
        files: &PanelFiles,
        placement: &Placement,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let panel = Panel::load(files, false, placement, downloads)?;
        Ok(Self::new(panel, JudgeOptions::default()))
    }

    /// Creates a judge with empty caches.
    pub fn new(panel: Panel, options: JudgeOptions) -> Self {
        Self {
            caches: panel.groups.iter().map(|_| GroupCache::default()).collect(),
            panel,
            options,
        }
    }

    /// Limits the memory for texts in progress, in bytes. Affects speed, not verdicts.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        for group in &mut self.panel.groups {
            group.engine.limit_memory(bytes);
        }
        self
    }

    /// Creates the passes of all jobs: two per job, or one if configured.
    fn create_passes<'a>(&mut self, jobs: &'a [PairJob]) -> Result<Vec<PairPass<'a>>> {
        let mut passes = Vec::new();
        for (i, job) in jobs.iter().enumerate() {
            let images = match &job.image {
                Some(image) => self.encode_image(image)?,
                None => Ok(self.panel.groups.iter().map(|_| None).collect()),
            };
            let orders: &[bool] = if self.options.single_order { &[false] } else { &[false, true] };
            for swapped in orders {
                let [first, second] = job.responses();
                let responses = if *swapped { [second, first] } else { [first, second] };
                passes.push(PairPass {
                    job: i,
                    swapped: *swapped,
                    input: JudgeInput {
                        has_image: job.image.is_some(),
                        question: job.question(),
                        responses,
                    },
                    images: images.clone().unwrap_or_default(),
                    branches: images.clone().map(|_| Vec::new()),
                });
            }
        }
        Ok(passes)
    }

    /// Encodes an image for each trunk group.
    fn encode_image(&mut self, image: &LoadedImage) -> Result<Result<GroupImages, Unscored>> {
        let mut images = Vec::with_capacity(self.caches.len());
        for (group, cache) in self.panel.groups.iter().zip(&mut self.caches) {
            match cache.encode_image(group, image)? {
                Ok(tokens) => images.push(tokens),
                Err(unscored) => return Ok(Err(unscored)),
            }
        }
        Ok(Ok(images))
    }

    /// Generates the evaluations of the three branch experts for all passes.
    fn run_branches(&mut self, passes: &mut [PairPass]) -> Result<()> {
        let mut open_passes: Vec<&mut PairPass> =
            passes.iter_mut().filter(|pass| pass.branches.is_ok()).collect();
        // Output of each expert for each pass, in the order of the aspects.
        let mut outputs: Vec<[Option<MemberOutput>; 3]> =
            open_passes.iter().map(|_| Default::default()).collect();
        let groups = self.panel.groups.iter().zip(&mut self.caches);
        for (group_index, (group, cache)) in groups.enumerate() {
            let mut tasks: Vec<GenerationTask> = Vec::new();
            let mut positions = Vec::new();
            for (pass_index, pass) in open_passes.iter().enumerate() {
                let (input, image) = pass.input_for(group_index);
                let branch_tasks = group.branches.tasks(&input, image, group.engine.tokenizer())?;
                for (aspect, mut task) in branch_tasks.into_iter().enumerate() {
                    if let Some(head) = group.head_index(aspect) {
                        task.member = head;
                        tasks.push(task);
                        positions.push((pass_index, aspect));
                    }
                }
            }
            let generated = group.engine.generate(&tasks, &mut cache.prefixes)?;
            for ((pass_index, aspect), output) in positions.into_iter().zip(generated) {
                let slot = outputs.get_mut(pass_index).and_then(|outputs| outputs.get_mut(aspect));
                if let Some(slot) = slot {
                    *slot = Some(output);
                }
            }
        }
        for (pass, outputs) in open_passes.iter_mut().zip(outputs) {
            for (aspect, ratings) in Aspect::ALL.into_iter().zip(outputs) {
                let ratings = ratings.context("the panel has no member for an aspect")?;
                match (ratings, &mut pass.branches) {
                    (Ok(ratings), Ok(branches)) => {
                        branches.push(BranchExperts::build_evaluation(aspect, ratings));
                    }
                    (Err(error), branches) => *branches = Err(to_unscored(error)?),
                    (Ok(_), Err(_)) => {}
                }
            }
        }
        Ok(())
    }

    /// Generates the output of the conclusion model for all passes that the experts completed.
    fn run_conclusion(&mut self, passes: &[PairPass]) -> Result<Vec<Option<MemberOutput>>> {
        let groups = self.panel.groups.iter().zip(&mut self.caches);
        let indexed_groups = groups.enumerate();
        let mut indexed_groups = indexed_groups.filter_map(|(group_index, (group, cache))| {
            Some((group_index, group.head_index(CONCLUSION_MEMBER)?, group, cache))
        });
        let (group_index, head, group, cache) =
            indexed_groups.next().context("no conclusion model")?;
        let mut tasks = Vec::new();
        for pass in passes {
            if let Ok(branches) = &pass.branches {
                let (input, image) = pass.input_for(group_index);
                let tokenizer = group.engine.tokenizer();
                let mut task = group.conclusion.task(&input, image, branches, tokenizer)?;
                task.member = head;
                tasks.push(task);
            }
        }
        let mut outputs = group.engine.generate(&tasks, &mut cache.prefixes)?.into_iter();
        Ok(passes
            .iter()
            .map(|pass| if pass.branches.is_ok() { outputs.next() } else { None })
            .collect())
    }
}

impl PairPass<'_> {
    /// Returns the input for a trunk group. Text-only groups get no image.
    fn input_for(&self, group: usize) -> (JudgeInput<'_>, Option<&Arc<ImageTokens>>) {
        let image = self.images.get(group).and_then(Option::as_ref);
        let input = JudgeInput { has_image: image.is_some(), ..self.input.clone() };
        (input, image)
    }
}

impl GroupCache {
    /// Returns the tokens of an image. Each image is encoded alone, so its tokens do not depend on
    /// the batch.
    fn encode_image(
        &mut self,
        group: &TrunkGroup,
        image: &LoadedImage,
    ) -> Result<Result<Option<Arc<ImageTokens>>, Unscored>> {
        let Some(image_encoder) = &group.image_encoder else {
            return Ok(Ok(None));
        };
        let key = image.sha256.to_string();
        if let Some(tokens) = self.images.get(&key) {
            return Ok(Ok(Some(tokens.clone())));
        }
        let encoded = image_encoder.encode(&image.decoded).with_context(|| image.name.clone())?;
        let tokens = match encoded {
            Ok(tokens) => tokens,
            Err(error) => {
                let message = format!("{}: {error}", image.name);
                return Ok(Err(Unscored { reason: UnscoredReason::Image, message }));
            }
        };
        let tokens = Arc::new(ImageTokens { key: key.clone(), tokens });
        let lengths = self.images.values().map(|cached| cached.tokens.dim(0));
        let cached_tokens = lengths.sum::<candle::Result<usize>>()?;
        if cached_tokens + tokens.tokens.dim(0)? > MAX_CACHED_TOKENS {
            self.images.clear();
        }
        self.images.insert(key, tokens.clone());
        Ok(Ok(Some(tokens)))
    }
}

impl Judge for PanelJudge {
    fn name(&self) -> String {
        let digest = judge_digest(&self.panel.hashes).to_string();
        let hash = digest.get(..8).unwrap_or_default();
        format!("{} ({hash})", self.panel.name())
    }

    fn device(&self) -> String {
        match self.panel.placement.device.location() {
            candle::DeviceLocation::Cpu => "cpu".to_owned(),
            candle::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
            candle::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
        }
    }

    fn provenance(&self) -> Provenance {
        let mut provenance: Provenance = self.panel.hashes.clone().into_iter().collect();
        let settings = self.panel.settings;
        let orders = if self.options.single_order { "single" } else { "both" };
        let texts = if settings.scores_only { "scores-only" } else { "analyses" };
        provenance.insert("engine".to_owned(), "greedy f32, version 3".to_owned());
        let weights = self.panel.placement.weight_type();
        if weights != DType::F32.as_str() {
            provenance.insert("weights".to_owned(), weights.to_owned());
        }
        provenance.insert("orders".to_owned(), orders.to_owned());
        provenance.insert("texts".to_owned(), texts.to_owned());
        provenance
    }

    fn reject_text(&self, text: &str) -> Result<Option<String>> {
        for group in &self.panel.groups {
            if let Some(tokens) = group.engine.tokens_over_context(text)? {
                let context = group.engine.context();
                return Ok(Some(format!(
                    "it has {tokens} tokens, more than the context of {context}\n\
                     hint: shorten it, or use a panel with a longer context"
                )));
            }
        }
        Ok(None)
    }

    fn judge(&mut self, jobs: &[PairJob]) -> Result<Vec<Result<Verdict, Unscored>>> {
        // On a thread of the pool, small parallel operations start without waking another thread.
        rayon::scope(|_| self.judge_pairs(jobs))
    }
}

impl PanelJudge {
    fn judge_pairs(&mut self, jobs: &[PairJob]) -> Result<Vec<Result<Verdict, Unscored>>> {
        let mut passes = self.create_passes(jobs)?;
        self.run_branches(&mut passes)?;
        let conclusions = self.run_conclusion(&passes)?;
        let mut verdicts: Vec<Result<Verdict, Unscored>> =
            jobs.iter().map(|_| Ok(Verdict { orders: Vec::new() })).collect();
        for (pass, conclusion) in passes.into_iter().zip(conclusions) {
            let verdict = &mut verdicts[pass.job];
            let order = match (pass.branches, conclusion) {
                (Err(unscored), _) => Err(unscored),
                (Ok(_), None) => continue,
                (Ok(_), Some(Err(error))) => Err(to_unscored(error)?),
                (Ok(branches), Some(Ok(ratings))) => {
                    let pair: [Rating; 2] = ratings.try_into().map_err(|_| {
                        anyhow::anyhow!("the conclusion model did not rate both responses")
                    })?;
                    Ok(to_pair_order(pass.swapped, branches, pair))
                }
            };
            match (verdict.as_mut(), order) {
                (Ok(verdict), Ok(order)) => verdict.orders.push(order),
                (Ok(_), Err(unscored)) => *verdict = Err(unscored),
                (Err(_), _) => {}
            }
        }
        Ok(verdicts)
    }
}

/// Converts results from presentation order to the order of the pair.
fn to_pair_order(
    swapped: bool,
    mut branches: Vec<BranchEvaluation>,
    mut conclusion: [Rating; 2],
) -> OrderVerdict {
    if swapped {
        conclusion.reverse();
        for (_, pair) in branches.iter_mut().flat_map(|b| &mut b.ratings) {
            pair.reverse();
        }
    }
    OrderVerdict { swapped, branches, conclusion }
}

/// Converts errors about a single case (too long, values that are not finite) to unscored; returns
/// other errors.
fn to_unscored(error: Error) -> Result<Unscored> {
    match error {
        Error::TooLong { .. } => {
            Ok(Unscored { reason: UnscoredReason::Truncated, message: error.to_string() })
        }
        // A retry would fail again, and an error would end the run before the remaining cases.
        Error::NotFinite => {
            Ok(Unscored { reason: UnscoredReason::Refused, message: error.to_string() })
        }
        error => Err(error.into()),
    }
}
