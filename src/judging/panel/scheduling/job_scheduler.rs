//! Jobs in progress on a device, and the texts that they wait for.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_conclusion::Verdict;
use acem3_experts::generate::WrittenOpening;
use anyhow::Result;

use super::group_progress::GroupProgress;
use super::response_pass::{GroupImages, PassInput, PassTask, ResponsePass, to_unscored};
use super::shared_finding::{FindingState, different_findings, keep_likelier_finding};
use crate::data::images::LoadedImage;
use crate::judging::judge::job_queue::FinishedJob;
use crate::judging::judge::{JudgeJob, Unscored};
use crate::judging::panel::finding_settings::FindingSettings;
use crate::judging::panel::load::Panel;
use crate::judging::panel::options::JudgeOptions;

/// A finished job, or the error of the panel.
pub(super) type JobResult = Result<FinishedJob>;

/// Computes jobs with a panel. Each step adds a token to the texts of all jobs in progress. The caches
/// and the other jobs never affect a verdict.
pub(super) struct JobScheduler {
    panel: Arc<Panel>,
    options: JudgeOptions,
    /// Which analyses begin with a finding that both presentation orders share.
    finding: Option<FindingSettings>,
    /// The work of each group of members that share a trunk.
    groups: Vec<GroupProgress<TextPurpose>>,
    jobs: HashMap<u64, JobInProgress>,
}

/// What a text is for.
struct TextPurpose {
    /// Number of the job.
    job: u64,
    /// Index of the pass in the job.
    pass: usize,
    task: PassTask,
}

/// A job whose texts are in progress.
struct JobInProgress {
    /// One pass for each presentation order.
    passes: Vec<ResponsePass>,
    /// Number of tasks that have not ended.
    open_tasks: usize,
    /// Progress of the shared finding.
    finding: FindingState,
}

impl JobScheduler {
    /// Creates a scheduler without jobs.
    pub(super) fn new(panel: Arc<Panel>, options: JudgeOptions) -> Self {
        let groups = panel.groups.iter().map(|_| GroupProgress::default()).collect();
        let finding = panel.shared_finding(options);
        Self { panel, options, finding, groups, jobs: HashMap::new() }
    }

    /// Returns true if no job is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Forgets all jobs. The caches stay.
    pub(super) fn cancel(&mut self) {
        self.jobs.clear();
        for progress in &mut self.groups {
            progress.cancel();
        }
    }

    /// Describes the jobs in progress, for an error.
    pub(super) fn describe_jobs(&self) -> String {
        let first = self.jobs.iter().min_by_key(|(number, _)| **number);
        let case = first.and_then(|(_, job)| job.passes.first()).map(ResponsePass::case_id);
        let device = self.panel.device();
        let case = case.unwrap_or_default();
        match self.jobs.len() {
            1 => format!("case `{case}` on {device}"),
            count => format!("{count} pairs in progress on {device}, the first of case `{case}`"),
        }
    }

    /// Starts a job under a number: encodes its image, and adds the tasks of the experts in each
    /// presentation order.
    ///
    /// # Errors
    ///
    /// The judge cannot judge any job.
    pub(super) fn start(&mut self, number: u64, mut job: JudgeJob) -> Result<()> {
        let panel = Arc::clone(&self.panel);
        let images = match job.image.take() {
            Some(image) => self.encode_image(&image)?,
            None => Ok(panel.groups.iter().map(|_| None).collect()),
        };
        let form = panel.options.form;
        let rotations = form.rotations(job.responses.len(), self.options.single_order);
        let input = PassInput {
            job,
            shows_reference: panel.options.shows_reference,
            images,
            aspects: panel.rubric.aspects.len(),
            samples: panel.samples(self.options).get(),
            finding: self.finding.clone(),
        };
        let finding = match &input.finding {
            Some(_) => FindingState::Writing,
            None => FindingState::Settled,
        };
        let passes =
            rotations.into_iter().map(|rotation| ResponsePass::new(input.clone(), rotation));
        let mut job = JobInProgress { passes: passes.collect(), open_tasks: 0, finding };
        for (pass_index, pass) in job.passes.iter_mut().enumerate() {
            let groups = panel.groups.iter().zip(&mut self.groups).enumerate();
            for (group_index, (group, progress)) in groups {
                let tasks = match pass.expert_tasks(group_index, group) {
                    Ok(tasks) => tasks,
                    Err(error) => {
                        pass.refuse(to_unscored(error)?);
                        break;
                    }
                };
                for (member, task) in tasks {
                    let task_of_pass = PassTask::Expert(member);
                    let purpose = TextPurpose { job: number, pass: pass_index, task: task_of_pass };
                    progress.add(group, task, purpose);
                    job.open_tasks += 1;
                }
            }
        }
        self.jobs.insert(number, job);
        Ok(())
    }

    /// Adds a token to each text in progress, and returns the jobs that have ended. A text of the
    /// conclusion model starts when the experts of its pass have ended, while other texts are in
    /// progress.
    ///
    /// The last result is an error if the judge cannot judge any other job.
    pub(super) fn step(&mut self) -> Vec<JobResult> {
        let stepped = self.step_groups();
        let mut finished = self.take_finished();
        finished.extend(stepped.err().map(Err));
        finished
    }

    /// Adds a token to each text in progress.
    fn step_groups(&mut self) -> Result<()> {
        let panel = Arc::clone(&self.panel);
        for (index, group) in panel.groups.iter().enumerate() {
            let Some(progress) = self.groups.get_mut(index) else {
                continue;
            };
            for (purpose, texts) in progress.step(group)? {
                let TextPurpose { job: number, pass: pass_index, task } = purpose;
                let Some(job) = self.jobs.get_mut(&number) else {
                    continue;
                };
                job.open_tasks -= 1;
                if let Some(pass) = job.passes.get_mut(pass_index) {
                    pass.finish(task, texts);
                }
                match task {
                    PassTask::Expert(_) => self.finish_expert(number, pass_index)?,
                    PassTask::Exchanged => self.settle_finding(number)?,
                    PassTask::Conclusion(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Continues a job after a text of an expert: exchanges the findings of both orders if they differ, and
    /// starts the conclusion model.
    fn finish_expert(&mut self, number: u64, pass_index: usize) -> Result<()> {
        let Some(job) = self.jobs.get_mut(&number) else {
            return Ok(());
        };
        if let (FindingState::Writing, Some(settings)) = (job.finding, &self.finding) {
            if job.passes.iter().any(|pass| pass.output(settings.member).is_none()) {
                return Ok(());
            }
            return match different_findings(&job.passes, settings.member) {
                Some(findings) => self.exchange_findings(number, &findings),
                None => self.settle_finding(number),
            };
        }
        self.start_conclusions(number, pass_index)
    }

    /// Lets the expert write the text of each order again, with the finding of the other order.
    fn exchange_findings(&mut self, number: u64, findings: &[WrittenOpening; 2]) -> Result<()> {
        let Some(job) = self.jobs.get_mut(&number) else {
            return Ok(());
        };
        job.finding = FindingState::Exchanging;
        let exchanged = job.passes.iter().zip(findings.iter().rev()).enumerate();
        for (pass_index, (pass, finding)) in exchanged {
            let groups = self.panel.groups.iter().zip(&mut self.groups).enumerate();
            for (group_index, (group, progress)) in groups {
                if let Some(task) = pass.exchange_task(group_index, group, finding)? {
                    let task_of_pass = PassTask::Exchanged;
                    let purpose = TextPurpose { job: number, pass: pass_index, task: task_of_pass };
                    progress.add(group, task, purpose);
                    job.open_tasks += 1;
                }
            }
        }
        Ok(())
    }

    /// Gives both orders the same finding when the texts for it have ended, and starts the conclusion
    /// model.
    fn settle_finding(&mut self, number: u64) -> Result<()> {
        let (Some(job), Some(settings)) = (self.jobs.get_mut(&number), &self.finding) else {
            return Ok(());
        };
        if job.finding == FindingState::Exchanging {
            if !job.passes.iter().all(ResponsePass::has_exchanged) {
                return Ok(());
            }
            keep_likelier_finding(&mut job.passes, settings.member);
        }
        job.finding = FindingState::Settled;
        (0..job.passes.len()).try_for_each(|pass| self.start_conclusions(number, pass))
    }

    /// Adds the tasks of the conclusion model if all experts of a pass have ended.
    fn start_conclusions(&mut self, number: u64, pass_index: usize) -> Result<()> {
        let Some(job) = self.jobs.get_mut(&number) else {
            return Ok(());
        };
        let settled = job.finding == FindingState::Settled;
        let Some(pass) = job.passes.get_mut(pass_index).filter(|_| settled) else {
            return Ok(());
        };
        let groups = self.panel.groups.iter().zip(&mut self.groups).enumerate();
        for (index, (group, progress)) in groups {
            for (i, task) in pass.conclusion_tasks(index, group)?.into_iter().enumerate() {
                let task_of_pass = PassTask::Conclusion(i);
                let purpose = TextPurpose { job: number, pass: pass_index, task: task_of_pass };
                progress.add(group, task, purpose);
                job.open_tasks += 1;
            }
        }
        Ok(())
    }

    /// Removes the jobs without open tasks and returns their results, errors last.
    fn take_finished(&mut self) -> Vec<JobResult> {
        let mut ended: Vec<(u64, JobInProgress)> =
            self.jobs.extract_if(|_, job| job.open_tasks == 0).collect();
        ended.sort_unstable_by_key(|(number, _)| *number);
        let to_finished = |(number, job): (u64, JobInProgress)| {
            Ok(FinishedJob { number, result: self.to_verdict(job)? })
        };
        let mut results: Vec<JobResult> = ended.into_iter().map(to_finished).collect();
        results.sort_by_key(Result::is_err);
        results
    }

    fn to_verdict(&self, job: JobInProgress) -> Result<Result<Verdict, Unscored>> {
        let mut orders = Vec::new();
        for pass in job.passes {
            match pass.into_order(self.panel.options.form, &self.panel.rubric)? {
                Ok(order) => orders.push(order),
                Err(unscored) => return Ok(Err(unscored)),
            }
        }
        Ok(Ok(Verdict { orders }))
    }

    /// Encodes an image for each group.
    fn encode_image(&mut self, image: &LoadedImage) -> Result<Result<GroupImages, Unscored>> {
        let mut images = Vec::with_capacity(self.groups.len());
        for (group, progress) in self.panel.groups.iter().zip(&mut self.groups) {
            match progress.cache.encode_image(group, image)? {
                Ok(tokens) => images.push(tokens),
                Err(unscored) => return Ok(Err(unscored)),
            }
        }
        Ok(Ok(images))
    }
}
