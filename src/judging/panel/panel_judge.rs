//! The panel judge: judges responses with the members of a panel.

use acem3_conclusion::Verdict;
use acem3_experts::generate::GenerationTask;
use acem3_experts::prompt::Form;
use acem3_experts::{Aspect, Error};
use anyhow::Result;

use super::group_cache::GroupCache;
use super::load::Panel;
use super::options::{JudgeOptions, PanelOptions};
use super::response_pass::{GroupImages, PassTask, ResponsePass};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::limits::PanelLimits;
use crate::data::images::LoadedImage;
use crate::judging::judge::server_usage::ServerUsage;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::panel::trunk_group::TrunkGroup;
use crate::judging::provenance::{Provenance, judge_digest};
use crate::support::device::Placement;

/// A panel with its caches. The caches never affect verdicts.
pub struct PanelJudge {
    panel: Panel,
    options: JudgeOptions,
    /// Caches of each trunk group.
    caches: Vec<GroupCache>,
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
        self.panel = self.panel.with_memory(Some(bytes));
        self
    }

    /// Creates the passes of all jobs: two per pair, or one if configured, and one per response alone.
    fn create_passes<'a>(&mut self, jobs: &'a [JudgeJob]) -> Result<Vec<ResponsePass<'a>>> {
        let samples = self.panel.samples(self.options);
        let mut passes = Vec::new();
        for (i, job) in jobs.iter().enumerate() {
            let images = match &job.image {
                Some(image) => self.encode_image(image)?,
                None => Ok(self.panel.groups.iter().map(|_| None).collect()),
            };
            for rotation in self.form().rotations(job.responses.len(), self.options.single_order) {
                let input = job.to_input(rotation, self.shows_reference(), job.image.is_some());
                let pass =
                    ResponsePass::new(i, rotation, input, images.clone(), &self.panel.rubric);
                passes.push(pass.with_samples(samples.get()));
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
    // Pass of each task, and what it is in it.
    let mut origins: Vec<(usize, PassTask)> = Vec::new();
    let push_conclusions = |origins: &mut Vec<_>, pass_index, pass: &mut ResponsePass| {
        let conclusions = pass.conclusion_tasks(index, group)?;
        origins.extend((0..conclusions.len()).map(|i| (pass_index, PassTask::Conclusion(i))));
        Ok::<_, Error>(conclusions)
    };
    for (pass_index, pass) in passes.iter_mut().enumerate() {
        for (member, task) in pass.expert_tasks(index, group)? {
            tasks.push(task);
            origins.push((pass_index, PassTask::Expert(member)));
        }
        tasks.extend(push_conclusions(&mut origins, pass_index, pass)?);
    }
    group.engine.generate_queue(tasks, &mut cache.prefixes, &mut |finished, texts| {
        let (pass_index, task) = origins[finished];
        let pass = &mut passes[pass_index];
        pass.finish(task, texts);
        match task {
            PassTask::Conclusion(_) => Ok(Vec::new()),
            PassTask::Expert(_) => push_conclusions(&mut origins, pass_index, pass),
        }
    })?;
    Ok(())
}

impl Judge for PanelJudge {
    fn name(&self) -> String {
        let digest = judge_digest(&self.panel.hashes).to_string();
        let hash = digest.get(..8).unwrap_or_default();
        format!("{} ({hash})", self.panel.name())
    }

    fn device(&self) -> String {
        self.panel.device()
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
        self.panel.provenance(self.options)
    }

    fn assumes_image(&self) -> bool {
        self.panel.options.prompt_form(&self.panel.prompt_config).is_trained
    }

    fn limits(&self) -> Option<&PanelLimits> {
        self.panel.limits.as_ref()
    }

    fn is_reproducible(&self) -> bool {
        self.panel.is_reproducible()
    }

    fn computed_usage(&self) -> Option<ServerUsage> {
        let mut usage = ServerUsage::default();
        for group in &self.panel.groups {
            let counts = group.engine.token_counts();
            usage.requests += counts.evaluations;
            usage.prompt_tokens += counts.prompt;
            usage.written_tokens += counts.written;
        }
        Some(usage)
    }

    fn reject_text(&self, text: &str) -> Result<Option<String>> {
        self.panel.reject_text(text)
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
