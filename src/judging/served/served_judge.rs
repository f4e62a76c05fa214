//! The judge of a panel with served members. It sends the requests of many jobs at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acem3_conclusion::Verdict;
use acem3_experts::Aspect;
use acem3_experts::prompt::Form;
use anyhow::{Context as _, Result, bail};

use super::budget::{Budget, Spending, unknown_cost};
use super::endpoint::ServedModel;
use super::endpoint::engine::ServingEngine;
use super::handshake::{shake_hands, to_run_error};
use super::panel_settings::{PanelMember, ServedPanelSettings};
use super::request_queue::RequestQueue;
use super::served_member::ServedMember;
use super::served_panel::{MemberRuntime, ServedPanel};
use super::transport::usage::UsageCounter;
use super::transport::{RequestLimits, Transport};
use crate::judging::judge::job_queue::{FinishedJob, JobQueue};
use crate::judging::judge::server_report::ServerReport;
use crate::judging::judge::server_usage::{EarlierUsage, ServerUsage};
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::panel::{JobWindow, LocalMembers};
use crate::judging::provenance::{Provenance, judge_digest};
use crate::support::terminal::exit::RunFailure;

/// Jobs in progress for each request in progress: a job has eight requests, and its last two wait for
/// the others.
const JOBS_PER_REQUEST: usize = 2;

/// A panel of served members with the jobs in progress.
pub struct ServedJudge {
    panel: Arc<ServedPanel>,
    provenance: Provenance,
    limits: RequestLimits,
    usage: Arc<UsageCounter>,
    budget: Option<Budget>,
    queue: RequestQueue<Verdict>,
    /// The number of jobs in progress if this process computes members; `None` if servers run all.
    window: Option<JobWindow>,
}

impl ServedJudge {
    /// Connects to the servers of the members and tests them. `local`: the members that this process
    /// computes.
    ///
    /// # Errors
    ///
    /// A server cannot be reached, or fails its handshake.
    pub fn connect(
        settings: ServedPanelSettings,
        local: Option<LocalMembers>,
        limits: RequestLimits,
    ) -> Result<Self> {
        let queue = RequestQueue::new()?;
        let usage = Arc::new(UsageCounter::default());
        let local = local.map(Arc::new);
        let window = local.as_ref().map(|local| local.window());
        let members = connect_members(&settings, local.as_ref(), limits, &usage);
        let members = queue.block_on(members)?;
        let panel = Arc::new(ServedPanel::new(settings, members, local)?);
        let provenance = panel.provenance()?;
        Ok(Self { panel, provenance, limits, usage, budget: None, queue, window })
    }

    /// Sets the most that the run may cost.
    ///
    /// # Errors
    ///
    /// A server states no tokens, so that the cost is unknown.
    pub fn with_budget(mut self, budget: Option<Budget>) -> Result<Self> {
        let servers = self.servers();
        let uncounted = servers.iter().find(|server| !server.states_tokens);
        if let (Some(_), Some(server)) = (budget, uncounted) {
            bail!(unknown_cost(&server.model, &server.url));
        }
        self.budget = budget;
        Ok(self)
    }

    fn spending(&self) -> Spending {
        self.queue.spending(&self.usage)
    }
}

/// Connects to each server once, and tests each model once.
async fn connect_members(
    settings: &ServedPanelSettings,
    local: Option<&Arc<LocalMembers>>,
    limits: RequestLimits,
    usage: &Arc<UsageCounter>,
) -> Result<Vec<MemberRuntime>> {
    let mut transports: Vec<Arc<Transport>> = Vec::new();
    let mut served: Vec<ServedMember> = Vec::new();
    let mut members = Vec::new();
    let tokens = settings.token_constraint()?.map(Arc::new);
    for member in &settings.members {
        let (model, text_only) = match member {
            PanelMember::Served { model, text_only } => (model, *text_only),
            PanelMember::Local => {
                let local = local.context("the panel has no checkpoints")?;
                members.push(MemberRuntime::Local(Arc::clone(local)));
                continue;
            }
            PanelMember::Unused => {
                members.push(MemberRuntime::Unused);
                continue;
            }
        };
        let tested = served.iter().find(|member| member.model == *model);
        let member = if let Some(tested) = tested {
            ServedMember { text_only, ..tested.clone() }
        } else {
            let known = transports.iter().find(|transport| transport.serves(model));
            let transport = if let Some(transport) = known {
                Arc::clone(transport)
            } else {
                let transport = Arc::new(Transport::new(model, limits)?);
                transports.push(Arc::clone(&transport));
                transport
            };
            let capabilities = shake_hands(model, &transport).await.map_err(to_run_error)?;
            check_adapters(model, capabilities.engine)?;
            if settings.requests_label_mass && !capabilities.has_label_mass() {
                bail!(
                    "--label-mass: {model} returns no probabilities before the constraint, and does not \
                     continue the start of an answer\n\
                     hint: omit --label-mass"
                );
            }
            let member = ServedMember {
                model: model.clone(),
                transport,
                capabilities,
                token_constraint: tokens.clone(),
                usage: Arc::clone(usage),
                other_models: Arc::default(),
                requests_label_mass: settings.requests_label_mass,
                text_only,
            };
            member.check_token_constraint().await?;
            member
        };
        served.push(member.clone());
        members.push(MemberRuntime::Served(Box::new(member)));
    }
    Ok(members)
}

/// Returns an error if a model names adapters by number and its engine does not take them so.
fn check_adapters(model: &ServedModel, engine: ServingEngine) -> Result<()> {
    if model.adapters.is_empty() || engine == ServingEngine::LlamaCpp {
        return Ok(());
    }
    bail!(
        "{model}: adapters are for llama.cpp, and the server is {}\n\
         hint: remove adapters, and name the adapter as model",
        engine.name()
    )
}

impl JobQueue for ServedJudge {
    fn capacity(&self) -> usize {
        let jobs = match &self.window {
            Some(window) => window.jobs(),
            None => self.limits.concurrency.max(1) * JOBS_PER_REQUEST,
        };
        self.budget.map_or(jobs, |budget| budget.jobs(self.spending()).min(jobs))
    }

    fn check_budget(&self) -> Result<()> {
        let checked = self.budget.map_or(Ok(()), |budget| budget.check(self.spending()));
        checked.map_err(|error| {
            error.context(RunFailure("the run stops because of its limit on the cost".to_owned()))
        })
    }

    fn submit(&mut self, number: u64, job: JudgeJob) {
        let panel = Arc::clone(&self.panel);
        if let Some(window) = &mut self.window {
            window.start_job(Instant::now());
        }
        self.queue.submit(number, async move { panel.judge(job).await });
    }

    fn interrupt_note(&self) -> &'static str {
        "stopping after the cases that have sent requests"
    }

    fn cancel_unsent(&mut self) -> usize {
        self.queue.cancel_unsent()
    }

    fn next_finished(&mut self, timeout: Duration) -> Result<Option<FinishedJob>> {
        let Some((number, result)) = self.queue.next_finished(timeout)? else {
            return Ok(None);
        };
        if let Some(window) = self.window.as_mut().filter(|_| result.is_ok()) {
            window.finish_job(Instant::now());
        }
        Ok(Some(FinishedJob { number, result }))
    }
}

impl Judge for ServedJudge {
    fn name(&self) -> String {
        let digest = judge_digest(&self.provenance).to_string();
        let hash = digest.get(..8).unwrap_or_default();
        format!("{} ({hash})", self.panel.settings().name)
    }

    fn device(&self) -> String {
        self.panel.device()
    }

    fn form(&self) -> Form {
        self.panel.settings().options.form
    }

    fn score_range(&self) -> [u8; 2] {
        self.panel.rubric().scores
    }

    fn scores_aspect(&self, aspect: Aspect) -> bool {
        self.panel.rubric().aspect(aspect).is_some()
    }

    fn shows_reference(&self) -> bool {
        self.panel.settings().options.shows_reference
    }

    fn is_reproducible(&self) -> bool {
        false
    }

    fn servers(&self) -> Vec<ServerReport> {
        self.panel.reports()
    }

    fn usage(&self) -> Option<ServerUsage> {
        Some(self.usage.usage())
    }

    fn add_earlier_usage(&mut self, earlier: EarlierUsage) {
        self.usage.add_earlier(earlier.usage);
        self.queue.earlier = earlier;
    }

    fn provenance(&self) -> Provenance {
        self.provenance.clone()
    }

    fn reject_text(&self, text: &str) -> Result<Option<String>> {
        self.panel.reject_text(text)
    }

    fn queue(&mut self) -> Option<&mut dyn JobQueue> {
        Some(self)
    }

    fn judge(&mut self, jobs: &[JudgeJob]) -> Result<Vec<Result<Verdict, Unscored>>> {
        let mut results: Vec<Option<Result<Verdict, Unscored>>> =
            jobs.iter().map(|_| None).collect();
        let mut waiting = jobs.iter().zip(0_u64..);
        loop {
            while self.queue.in_progress() < self.capacity()
                && let Some((job, number)) = waiting.next()
            {
                self.check_budget()?;
                self.submit(number, job.clone());
            }
            if self.queue.in_progress() == 0 {
                break;
            }
            if let Some(finished) = self.next_finished(Duration::from_secs(1))?
                && let Some(result) = results.get_mut(finished.number as usize)
            {
                *result = Some(finished.result);
            }
        }
        let results: Option<Vec<_>> = results.into_iter().collect();
        results.context("a job has no result")
    }
}
