//! The thread that computes the members of a panel that are not served.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use acem3_experts::generate::{GenerationTask, TextAlternative};
use acem3_experts::{Error, Rating};
use anyhow::Result;

use super::group_progress::GroupProgress;
use super::local_task::{LocalRequest, LocalTask};
use super::messages::receive;
use super::response_pass::to_unscored;
use crate::judging::judge::{MemberError, Unscored};
use crate::judging::panel::load::Panel;
use crate::judging::panel::trunk_group::TrunkGroup;

/// Computes the requested evaluations. Each step adds a token to the texts of all requests.
pub(in crate::judging::panel) struct MemberThread {
    panel: Arc<Panel>,
    requests: Receiver<LocalRequest>,
    /// The work of each group of members that share a trunk.
    groups: Vec<GroupProgress<LocalRequest>>,
}

impl MemberThread {
    /// Creates the thread's state with empty caches.
    pub(in crate::judging::panel) fn new(
        panel: Arc<Panel>,
        requests: Receiver<LocalRequest>,
    ) -> Self {
        let groups = panel.groups.iter().map(|_| GroupProgress::default()).collect();
        Self { panel, requests, groups }
    }

    /// Computes requests until their sender is gone.
    pub(in crate::judging::panel) fn run(mut self) {
        while let Ok(request) = receive(&self.requests, self.is_idle()) {
            // On a thread of the pool, small parallel operations start without waking another thread.
            rayon::scope(|_| match request {
                Some(request) => self.start(request),
                None => self.step(),
            });
        }
    }

    fn is_idle(&self) -> bool {
        self.groups.iter().all(GroupProgress::is_idle)
    }

    /// Starts the text of a request.
    fn start(&mut self, request: LocalRequest) {
        // The job of a closed request has failed elsewhere.
        if request.reply.is_closed() {
            return;
        }
        let mut groups = self.panel.groups.iter().zip(&mut self.groups);
        let group = groups.find(|(group, _)| group.members.contains(&request.task.member));
        let Some((group, progress)) = group else {
            let message = "the panel has too few members".to_owned();
            return reply_to(request, Err(MemberError::Unusable(message)));
        };
        match to_generation(&self.panel, group, progress, &request.task) {
            Ok(Ok(task)) => progress.add(group, task, request),
            Ok(Err(unscored)) => reply_to(request, Err(MemberError::Unscored(unscored))),
            Err(error) => reply_to(request, Err(MemberError::Unusable(format!("{error:#}")))),
        }
    }

    /// Adds a token to all texts, and sends the replies of those that have ended.
    fn step(&mut self) {
        for (group, progress) in self.panel.groups.iter().zip(&mut self.groups) {
            match progress.step(group) {
                Ok(finished) => {
                    for (request, texts) in finished {
                        reply_to(
                            request,
                            texts.map(TextAlternative::average).map_err(to_member_error),
                        );
                    }
                }
                Err(error) => {
                    for request in progress.cancel() {
                        reply_to(request, Err(MemberError::Unusable(error.to_string())));
                    }
                }
            }
        }
    }
}

/// Creates the task of the engine, or says why the responses cannot be evaluated.
fn to_generation(
    panel: &Panel,
    group: &TrunkGroup,
    progress: &mut GroupProgress<LocalRequest>,
    task: &LocalTask,
) -> Result<Result<GenerationTask, Unscored>> {
    let image = match &task.job.image {
        Some(image) => match progress.cache.encode_image(group, image)? {
            Ok(tokens) => tokens,
            Err(unscored) => return Ok(Err(unscored)),
        },
        None => None,
    };
    let shows_reference = panel.options.shows_reference;
    let input = task.job.to_input(task.rotation, shows_reference, image.is_some());
    let (image, tokenizer) = (image.as_ref(), group.engine.tokenizer());
    let generation = match &group.conclusion {
        Some(conclusion) if task.member == group.conclusion_member => {
            Some(conclusion.task(&input, image, &task.evaluations, tokenizer)?)
        }
        _ => group.branches.task_of(task.member, &input, image, tokenizer)?,
    };
    let head = group.head_index(task.member);
    let (Some(mut generation), Some(head)) = (generation, head) else {
        anyhow::bail!("the panel has too few members");
    };
    generation.member = head;
    Ok(Ok(generation))
}

/// Returns the error of a text.
fn to_member_error(error: Error) -> MemberError {
    match to_unscored(error) {
        Ok(unscored) => MemberError::Unscored(unscored),
        Err(error) => MemberError::Unusable(format!("{error:#}")),
    }
}

/// Sends a reply. The receiver is gone if the job failed elsewhere or the run ended.
fn reply_to(request: LocalRequest, result: Result<Vec<Rating>, MemberError>) {
    let _ = request.reply.send(result);
}
