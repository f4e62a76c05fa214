//! The panel judge: judges responses with the members of a panel.

use std::sync::Arc;

use acem3_conclusion::Verdict;
use acem3_experts::Aspect;
use acem3_experts::prompt::Form;
use anyhow::{Context as _, Result};

use super::load::Panel;
use super::options::{JudgeOptions, PanelOptions};
use super::scheduling::JobQueues;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::limits::PanelLimits;
use crate::judging::judge::job_queue::JobQueue;
use crate::judging::judge::server_usage::ServerUsage;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::provenance::{Provenance, judge_digest};
use crate::support::device::Placement;

/// A panel with a copy on each device, and the jobs that they compute. A verdict depends on its job
/// alone, so the number of copies changes no verdict.
///
/// Do not judge on a thread of the rayon pool: the threads of the devices need the pool.
pub struct PanelJudge {
    /// The copy on the first device.
    panel: Arc<Panel>,
    copies: Vec<Arc<Panel>>,
    options: JudgeOptions,
    queues: JobQueues,
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
        Self::new(panel, JudgeOptions::default())
    }

    /// Creates a judge on one device.
    ///
    /// # Errors
    ///
    /// The system starts no thread.
    pub fn new(panel: Panel, options: JudgeOptions) -> Result<Self> {
        Self::on_devices(vec![panel], options, usize::MAX)
    }

    /// Creates a judge with a copy of a panel on each device. `batch_size`: the most jobs in progress per
    /// device.
    ///
    /// # Errors
    ///
    /// There is no copy, the copies are not of one panel, or the system starts no thread.
    pub fn on_devices(
        copies: Vec<Panel>,
        options: JudgeOptions,
        batch_size: usize,
    ) -> Result<Self> {
        let copies = Panel::share_copies(copies, options)?;
        let panel = Arc::clone(copies.first().context("a panel without a device")?);
        let queues = JobQueues::start(copies.clone(), options, batch_size)?;
        Ok(Self { panel, copies, options, queues })
    }
}

impl Judge for PanelJudge {
    fn name(&self) -> String {
        let digest = judge_digest(&self.panel.hashes).to_string();
        let hash = digest.get(..8).unwrap_or_default();
        format!("{} ({hash})", self.panel.name())
    }

    fn device(&self) -> String {
        let devices: Vec<String> = self.copies.iter().map(|copy| copy.device()).collect();
        devices.join(", ")
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
        for group in self.copies.iter().flat_map(|copy| &copy.groups) {
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

    fn queue(&mut self) -> Option<&mut dyn JobQueue> {
        Some(&mut self.queues)
    }

    fn judge(&mut self, jobs: &[JudgeJob]) -> Result<Vec<Result<Verdict, Unscored>>> {
        self.queues.judge_all(jobs)
    }
}
