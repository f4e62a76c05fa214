//! The panel judge: judges responses with the members of a panel.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_conclusion::Verdict;
use acem3_experts::Aspect;
use acem3_experts::generate::{GenerationTask, ImageTokens, PrefixCache};
use acem3_experts::prompt::{Form, JudgeInput};
use acem3_kernels::instruction_set;
use anyhow::{Context, Result};
use candle::DType;

use super::load::Panel;
use super::options::PanelOptions;
use super::response_pass::{GroupImages, ResponsePass};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::limits::PanelLimits;
use crate::data::cases::UnscoredReason;
use crate::data::images::LoadedImage;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::panel::trunk_group::TrunkGroup;
use crate::judging::provenance::{Provenance, add_form, judge_digest};
use crate::support::device::Placement;

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
        let panel = Panel::load(files, PanelOptions::default(), placement, downloads)?;
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

    /// Limits the memory for keys and values, in bytes. Groups of members that share a trunk get equal
    /// parts. Affects speed, not verdicts.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        let part = bytes / self.panel.groups.len().max(1) as u64;
        for group in &mut self.panel.groups {
            group.engine.limit_memory(part);
        }
        self
    }

    /// Creates the passes of all jobs: two per pair, or one if configured, and one per response alone.
    fn create_passes<'a>(&mut self, jobs: &'a [JudgeJob]) -> Result<Vec<ResponsePass<'a>>> {
        let mut passes = Vec::new();
        for (i, job) in jobs.iter().enumerate() {
            let images = match &job.image {
                Some(image) => self.encode_image(image)?,
                None => Ok(self.panel.groups.iter().map(|_| None).collect()),
            };
            let reference = job.case.reference.as_deref().filter(|_| self.shows_reference());
            for rotation in self.form().rotations(job.responses.len(), self.options.single_order) {
                let mut responses = job.texts();
                responses.rotate_left(rotation);
                let input = JudgeInput {
                    has_image: job.image.is_some(),
                    question: job.question(),
                    reference,
                    responses,
                };
                passes.push(ResponsePass::new(
                    i,
                    rotation,
                    input,
                    images.clone(),
                    &self.panel.rubric,
                ));
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

    /// Generates the evaluations of the experts and the output of the conclusion model for all passes.
    fn generate(&mut self, passes: &mut [ResponsePass]) -> Result<()> {
        let conclusion = self.panel.conclusion_member();
        let groups = self.panel.groups.iter().zip(&mut self.caches).enumerate();
        // The group of the conclusion model comes last, because it needs all experts.
        let (last, first): (Vec<_>, Vec<_>) =
            groups.partition(|(_, (group, _))| group.head_index(conclusion).is_some());
        for (index, (group, cache)) in first.into_iter().chain(last) {
            generate_group(index, group, cache, passes)?;
        }
        Ok(())
    }
}

/// Generates the texts of the members of a group. A text of the conclusion model starts when the
/// experts of its pass have ended, while texts of other passes are in progress.
fn generate_group(
    index: usize,
    group: &TrunkGroup,
    cache: &mut GroupCache,
    passes: &mut [ResponsePass],
) -> Result<()> {
    let mut tasks: Vec<GenerationTask> = Vec::new();
    // Pass and member of each task.
    let mut origins = Vec::new();
    for (pass_index, pass) in passes.iter().enumerate() {
        for (member, task) in pass.expert_tasks(index, group)? {
            tasks.push(task);
            origins.push((pass_index, member));
        }
        if let Some(task) = pass.conclusion_task(index, group)? {
            tasks.push(task);
            origins.push((pass_index, group.conclusion_member));
        }
    }
    group.engine.generate_queue(tasks, &mut cache.prefixes, &mut |task, ratings| {
        let (pass_index, member) = origins[task];
        let pass = &mut passes[pass_index];
        pass.finish(member, ratings);
        if member == group.conclusion_member {
            return Ok(Vec::new());
        }
        let conclusion = pass.conclusion_task(index, group)?;
        origins.extend(conclusion.iter().map(|_| (pass_index, group.conclusion_member)));
        Ok(conclusion.into_iter().collect())
    })?;
    Ok(())
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
            candle::DeviceLocation::Cpu => format!("cpu ({})", instruction_set()),
            candle::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
            candle::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
        }
    }

    fn form(&self) -> Form {
        self.panel.options.form
    }

    fn score_range(&self) -> [u8; 2] {
        self.panel.rubric.scores
    }

    fn scores_aspect(&self, aspect: Aspect) -> bool {
        self.panel.rubric.aspect(aspect).is_some()
    }

    fn shows_reference(&self) -> bool {
        self.panel.options.shows_reference
    }

    fn provenance(&self) -> Provenance {
        let mut provenance: Provenance = self.panel.hashes.clone().into_iter().collect();
        let orders = if self.options.single_order { "single" } else { "both" };
        let texts = if self.panel.options.scores_only { "scores-only" } else { "analyses" };
        provenance.insert("engine".to_owned(), "greedy f32, version 3".to_owned());
        let weights = self.panel.placement.weight_type();
        if weights != DType::F32.as_str() {
            provenance.insert("weights".to_owned(), weights.to_owned());
        }
        if self.panel.has_byte_products {
            let products = "inputs of q8_0 and q4k weights in 8 bits";
            provenance.insert("products".to_owned(), products.to_owned());
        }
        let PanelOptions { form, shows_reference, rubric, .. } = &self.panel.options;
        add_form(&mut provenance, *form, *shows_reference, rubric.as_deref());
        provenance.insert("orders".to_owned(), orders.to_owned());
        provenance.insert("texts".to_owned(), texts.to_owned());
        provenance
    }

    fn assumes_image(&self) -> bool {
        self.panel.prompt_config.is_trained
    }

    fn limits(&self) -> Option<&PanelLimits> {
        self.panel.limits.as_ref()
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

    fn judge(&mut self, jobs: &[JudgeJob]) -> Result<Vec<Result<Verdict, Unscored>>> {
        // On a thread of the pool, small parallel operations start without waking another thread.
        rayon::scope(|_| self.judge_jobs(jobs))
    }
}

impl PanelJudge {
    fn judge_jobs(&mut self, jobs: &[JudgeJob]) -> Result<Vec<Result<Verdict, Unscored>>> {
        let (form, rubric) = (self.form(), self.panel.rubric.clone());
        let mut passes = self.create_passes(jobs)?;
        self.generate(&mut passes)?;
        let mut verdicts: Vec<Result<Verdict, Unscored>> =
            jobs.iter().map(|_| Ok(Verdict { orders: Vec::new() })).collect();
        for pass in passes {
            let verdict = &mut verdicts[pass.job];
            match (verdict.as_mut(), pass.into_order(form, &rubric)?) {
                (Ok(verdict), Ok(order)) => verdict.orders.push(order),
                (Ok(_), Err(unscored)) => *verdict = Err(unscored),
                (Err(_), _) => {}
            }
        }
        Ok(verdicts)
    }
}
