//! The thread that computes the members of a panel that are not served.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use acem3_experts::generate::{GenerationTask, ImageTokens, TextAlternative};
use acem3_experts::{Error, Rating};
use anyhow::Result;

use super::group_cache::GroupCache;
use super::load::Panel;
use super::local_task::{LocalRequest, LocalTask};
use super::response_pass::to_unscored;
use super::trunk_group::TrunkGroup;
use crate::judging::judge::{MemberError, Unscored};

/// Computes the waiting tasks: one batch for each group of members that share a trunk.
pub(super) struct EngineThread {
    panel: Arc<Panel>,
    requests: Receiver<LocalRequest>,
    caches: Vec<GroupCache>,
}

impl EngineThread {
    /// Creates the thread's state with empty caches.
    pub(super) fn new(panel: Arc<Panel>, requests: Receiver<LocalRequest>) -> Self {
        let caches = panel.groups.iter().map(|_| GroupCache::default()).collect();
        Self { panel, requests, caches }
    }

    /// Computes requests until their sender is gone.
    pub(super) fn run(mut self) {
        while let Ok(first) = self.requests.recv() {
            let waiting: Vec<LocalRequest> =
                [first].into_iter().chain(self.requests.try_iter()).collect();
            // On a thread of the pool, small parallel operations start without waking another thread.
            rayon::scope(|_| self.compute(waiting));
        }
    }

    /// Computes requests, group by group.
    fn compute(&mut self, mut waiting: Vec<LocalRequest>) {
        // The job of a closed request has failed elsewhere.
        waiting.retain(|request| !request.reply.is_closed());
        let panel = Arc::clone(&self.panel);
        for (group, cache) in panel.groups.iter().zip(&mut self.caches) {
            let is_member =
                |request: &mut LocalRequest| group.members.contains(&request.task.member);
            let requests: Vec<LocalRequest> = waiting.extract_if(.., is_member).collect();
            if !requests.is_empty() {
                compute_group(&panel, group, cache, requests);
            }
        }
        for request in waiting {
            reply_to(
                request,
                Err(MemberError::Unusable("the panel has too few members".to_owned())),
            );
        }
    }
}

/// Computes the requests of a group and sends the replies as soon as their texts end.
fn compute_group(
    panel: &Panel,
    group: &TrunkGroup,
    cache: &mut GroupCache,
    requests: Vec<LocalRequest>,
) {
    let mut tasks = Vec::new();
    let mut waiting = Vec::new();
    for request in requests {
        match to_generation(panel, group, cache, &request.task) {
            Ok(Ok(task)) => {
                tasks.push(task);
                waiting.push(Some(request));
            }
            Ok(Err(unscored)) => reply_to(request, Err(MemberError::Unscored(unscored))),
            Err(error) => reply_to(request, Err(MemberError::Unusable(format!("{error:#}")))),
        }
    }
    let result = group.engine.generate_queue(tasks, &mut cache.prefixes, &mut |index, texts| {
        if let Some(request) = waiting.get_mut(index).and_then(Option::take) {
            reply_to(request, texts.map(TextAlternative::average).map_err(to_member_error));
        }
        Ok(Vec::new())
    });
    if let Err(error) = result {
        for request in waiting.into_iter().flatten() {
            reply_to(request, Err(MemberError::Unusable(error.to_string())));
        }
    }
}

/// Creates the task of the engine, or says why the responses cannot be evaluated.
fn to_generation(
    panel: &Panel,
    group: &TrunkGroup,
    cache: &mut GroupCache,
    task: &LocalTask,
) -> Result<Result<GenerationTask, Unscored>> {
    let image: Option<Arc<ImageTokens>> = match &task.job.image {
        Some(image) => match cache.encode_image(group, image)? {
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
