//! A panel with served members: judges the responses of a case in all presentation orders.
//!
//! Members that are checkpoints are computed by this process.

use std::collections::BTreeSet;
use std::sync::Arc;

use acem3_conclusion::{MergePrompts, OrderVerdict, Verdict, prompt_source};
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, Form, JudgeInput, PromptPiece, Rubric, RubricAspect,
};
use acem3_experts::{BranchEvaluation, BranchExperts, Rating};
use anyhow::{Context as _, Result};
use futures_util::future::try_join_all;
use serde_json::value::RawValue;

use super::exchange::text_limit::TextLimit;
use super::image_urls::ImageUrls;
use super::panel_settings::ServedPanelSettings;
use super::served_member::ServedMember;
use crate::data::cases::UnscoredReason;
use crate::data::cases::case::MARKED_LOCAL_ONLY;
use crate::judging::judge::server_report::{NO_IMAGES_HINT, ServerReport};
use crate::judging::judge::{JudgeJob, MemberError, Unscored};
use crate::judging::knowledge::KnowledgeRounds;
use crate::judging::panel::{LocalMembers, LocalTask};
use crate::judging::provenance::Provenance;
use crate::support::digest::Digest;

/// Characters that a token of an analysis has at most, on average.
const CHARACTERS_PER_TOKEN: usize = 4;
/// Characters of a text for each token of a context, more than any tokenizer makes of one token on
/// average.
const MAX_CHARACTERS_PER_TOKEN: u64 = 24;

/// A member that is ready to evaluate.
pub(super) enum MemberRuntime {
    /// A server runs it.
    Served(Box<ServedMember>),
    /// This process computes it.
    Local(Arc<LocalMembers>),
    /// It does not judge in this form.
    Unused,
}

/// A panel of members of which at least one is served.
pub(super) struct ServedPanel {
    settings: ServedPanelSettings,
    rubric: Rubric,
    branches: BranchPrompts,
    /// The prompts of the conclusion model; `None` if the form has none.
    merge: Option<MergePrompts>,
    members: Vec<MemberRuntime>,
    local: Option<Arc<LocalMembers>>,
    images: ImageUrls,
}

/// Responses in one presentation order.
struct OrderRequest<'a> {
    job: &'a JudgeJob,
    rotation: usize,
    image: Option<&'a RawValue>,
}

impl ServedPanel {
    /// Creates a panel of members. The served ones have passed their handshake.
    pub(super) fn new(
        settings: ServedPanelSettings,
        members: Vec<MemberRuntime>,
        local: Option<Arc<LocalMembers>>,
    ) -> Result<Self> {
        let rubric = settings.options.to_rubric()?;
        let prompt_form = settings.prompt_form();
        let branches = BranchPrompts::for_form(prompt_form, rubric.clone(), settings.detail)?;
        let merge = match settings.options.form {
            Form::Correctness => None,
            _ => Some(MergePrompts::for_form(prompt_form, rubric.clone())?),
        };
        let images = ImageUrls::default();
        Ok(Self { settings, rubric, branches, merge, members, local, images })
    }

    pub(super) fn settings(&self) -> &ServedPanelSettings {
        &self.settings
    }

    pub(super) fn rubric(&self) -> &Rubric {
        &self.rubric
    }

    /// Returns the results of the handshakes, one per server and model.
    pub(super) fn reports(&self) -> Vec<ServerReport> {
        let mut reports: Vec<ServerReport> = Vec::new();
        for member in self.served_members() {
            let report = member.report();
            if !reports.contains(&report) {
                reports.push(report);
            }
        }
        reports
    }

    /// Returns everything that can change a verdict and is known. The URL is no part of it: the same
    /// model on another machine is the same judge.
    pub(super) fn provenance(&self) -> Result<Provenance> {
        let ServedPanelSettings { options, run, .. } = &self.settings;
        let run = *run;
        let mut provenance =
            self.local.as_ref().map(|local| local.provenance(run)).unwrap_or_default();
        if let Some(engine) = provenance.remove("engine") {
            provenance.insert("engine of checkpoints".to_owned(), engine);
        }
        let mut set = |name: String, value: String| {
            provenance.insert(name, value);
        };
        let digest = |text: &str| Digest::sha256(text.as_bytes()).to_string();
        let prompt_form = self.settings.prompt_form();
        set("rubric".to_owned(), digest(self.rubric.source()));
        set("layout".to_owned(), digest(prompt_form.source()));
        if let Some(source) = prompt_source(prompt_form) {
            set("merge".to_owned(), digest(source));
        }
        let asking = (
            prompt_form.layout,
            self.settings.detail,
            self.settings.analysis_tokens,
            &self.settings.completion_prefixes,
            self.is_text_only(),
        );
        let asking =
            serde_json::to_string(&asking).context("cannot serialise the prompt settings")?;
        set("asking".to_owned(), digest(&asking));
        if let Some(tokenizer) = &self.settings.tokenizer {
            set("tokenizer".to_owned(), digest(&tokenizer.to_json()?));
        }
        for (name, member) in self.member_names().into_iter().zip(&self.members) {
            let MemberRuntime::Served(member) = member else {
                continue;
            };
            let report = &member.capabilities.report;
            let version = report.version.as_deref().unwrap_or("of unknown version");
            let adapters = &member.model.adapters;
            let adapters = if adapters.is_empty() {
                String::new()
            } else {
                format!(", adapters {}", serde_json::to_string(adapters)?)
            };
            let engine = &report.engine;
            let texts = if member.text_only && !self.is_text_only() { ", texts only" } else { "" };
            set(
                format!("{name} model"),
                format!("{}, served by {engine} {version}{adapters}{texts}", member.model.model),
            );
        }
        set("engine".to_owned(), "served, greedy, version 1".to_owned());
        options.add_to(&mut provenance, run);
        Ok(provenance)
    }

    fn member_names(&self) -> Vec<&'static str> {
        let aspects = self.rubric.aspects.iter().map(|aspect| aspect.key.key());
        aspects.chain(["conclusion"]).collect()
    }

    /// Returns the members that servers run.
    pub(super) fn served_members(&self) -> impl Iterator<Item = &ServedMember> {
        self.members.iter().filter_map(|member| match member {
            MemberRuntime::Served(member) => Some(&**member),
            MemberRuntime::Local(_) | MemberRuntime::Unused => None,
        })
    }

    /// Returns true if no served member sees images.
    fn is_text_only(&self) -> bool {
        self.served_members().all(|member| member.text_only)
    }

    /// Returns the devices and servers of the members.
    pub(super) fn device(&self) -> String {
        let urls: BTreeSet<&str> =
            self.served_members().map(|member| member.model.url.as_str()).collect();
        let local = self.local.as_ref().map(|local| local.devices()).unwrap_or_default();
        local.into_iter().chain(urls.into_iter().map(str::to_owned)).collect::<Vec<_>>().join(", ")
    }

    fn limit(&self) -> TextLimit {
        let characters = self.settings.analysis_tokens * CHARACTERS_PER_TOKEN;
        TextLimit { characters: if self.settings.options.scores_only { 0 } else { characters } }
    }

    /// Returns why no prompt can hold a text, if its length alone shows it.
    pub(super) fn reject_text(&self, text: &str) -> Result<Option<String>> {
        let local = self.local.as_ref().map(|local| local.reject_text(text)).transpose()?;
        Ok(local.flatten().or_else(|| self.reject_length(text)))
    }

    fn reject_length(&self, text: &str) -> Option<String> {
        let contexts = self.served_members().filter_map(|m| m.capabilities.report.context);
        let context = contexts.min()?;
        let characters = text.chars().count() as u64;
        (characters > context.saturating_mul(MAX_CHARACTERS_PER_TOKEN)).then(|| {
            format!(
                "it has {characters} characters, more than the context of {context} tokens\n\
                 hint: shorten it, or use a model with a longer context"
            )
        })
    }

    /// Judges the responses of a job.
    pub(super) async fn judge(&self, job: JudgeJob) -> Result<Verdict, MemberError> {
        let remote = self.served_members().find(|member| !member.model.url.is_local());
        if let Some(remote) = remote.filter(|_| job.case.is_local_only()) {
            let host = remote.model.url.host();
            let message = format!(
                "{MARKED_LOCAL_ONLY}, and the judge sends cases to {host}\n\
                 hint: judge it with a panel on this machine"
            );
            let reason = UnscoredReason::Transport;
            return Err(MemberError::Unscored(Unscored::new(reason, message)));
        }
        let image = self.encode_image(&job).await?;
        let rotations = self
            .settings
            .options
            .form
            .rotations(job.responses.len(), self.settings.run.single_order);
        let orders = rotations.map(|rotation| {
            self.judge_order(OrderRequest { job: &job, rotation, image: image.as_deref() })
        });
        Ok(Verdict { orders: try_join_all(orders).await? })
    }

    /// Returns the image of a job as a data URL.
    async fn encode_image(&self, job: &JudgeJob) -> Result<Option<Arc<RawValue>>, MemberError> {
        let Some(image) = job.image.as_ref().filter(|_| !self.is_text_only()) else {
            return Ok(None);
        };
        let unscored =
            |message| MemberError::Unscored(Unscored::new(UnscoredReason::Image, message));
        let cannot_see = |m: &&ServedMember| !m.text_only && !m.capabilities.sees_images();
        if let Some(member) = self.served_members().find(cannot_see) {
            return Err(unscored(format!(
                "{}: {}\nhint: {NO_IMAGES_HINT}",
                member.model,
                member.capabilities.report.why_no_images()
            )));
        }
        self.images.get(Arc::clone(image)).await.map(Some).map_err(unscored)
    }

    /// Judges the responses in one presentation order.
    async fn judge_order(&self, request: OrderRequest<'_>) -> Result<OrderVerdict, MemberError> {
        let form = self.settings.options.form;
        let experts = self.rubric.experts(form).into_iter();
        let experts = experts.map(|(index, aspect)| self.evaluate_expert(&request, index, aspect));
        let mut ratings = try_join_all(experts).await?;
        let Some(merge) = &self.merge else {
            // The answer of the only expert is the verdict.
            let conclusion = ratings.pop().unwrap_or_default();
            let branches = Vec::new();
            return Ok(OrderVerdict { swapped: false, first_shown: None, branches, conclusion });
        };
        let experts = self.rubric.aspects.iter().zip(ratings);
        let branches: Vec<BranchEvaluation> = experts
            .map(|(aspect, ratings)| BranchExperts::build_evaluation(aspect, ratings))
            .collect();
        let conclusion = self.conclude(&request, merge, &branches).await?;
        Ok(OrderVerdict::from_presentation(form, request.rotation, branches, conclusion))
    }

    /// Evaluates responses with an expert.
    async fn evaluate_expert(
        &self,
        request: &OrderRequest<'_>,
        index: usize,
        aspect: &RubricAspect,
    ) -> Result<Vec<Rating>, MemberError> {
        let member = match self.member(index)? {
            MemberRuntime::Local(local) => {
                return local.evaluate(request.to_local(index, Vec::new())).await;
            }
            MemberRuntime::Served(member) => member,
            MemberRuntime::Unused => return Err(unused_member()),
        };
        let (form, responses) = (self.settings.options.form, request.job.responses.len());
        let format =
            EvaluationFormat::of_expert(form, responses, aspect, self.rubric.score_words());
        let pieces = self.branches.pieces(aspect.key, &self.input(request, member));
        self.request(member, pieces, self.with_prefix(index, format), request.image).await
    }

    /// Merges the evaluations of the experts with the conclusion model.
    async fn conclude(
        &self,
        request: &OrderRequest<'_>,
        merge: &MergePrompts,
        branches: &[BranchEvaluation],
    ) -> Result<Vec<Rating>, MemberError> {
        let index = self.rubric.aspects.len();
        let member = match self.member(index)? {
            MemberRuntime::Local(local) => {
                return local.evaluate(request.to_local(index, branches.to_vec())).await;
            }
            MemberRuntime::Served(member) => member,
            MemberRuntime::Unused => return Err(unused_member()),
        };
        let (words, responses) = (self.rubric.score_words(), request.job.responses.len());
        let evaluations: Vec<Vec<PromptPiece>> = (self.rubric.aspects.iter().zip(branches))
            .map(|(aspect, branch)| {
                let format = EvaluationFormat::for_expert(responses, aspect, words);
                format.render_pieces(&branch.texts_in_order(responses))
            })
            .collect();
        let pieces = merge.pieces(&self.input(request, member), &evaluations);
        let format = EvaluationFormat::for_final_scores(responses, words);
        self.request(member, pieces, self.with_prefix(index, format), request.image).await
    }

    /// Returns what the prompt of a served member shows.
    fn input<'a>(&self, request: &OrderRequest<'a>, member: &ServedMember) -> JudgeInput<'a> {
        let has_image = request.image.is_some() && !member.text_only;
        let shows_reference = self.settings.options.shows_reference;
        request.job.to_input(request.rotation, shows_reference, has_image)
    }

    fn member(&self, index: usize) -> Result<&MemberRuntime, MemberError> {
        let too_few = || MemberError::Unusable("the panel has too few members".to_owned());
        self.members.get(index).ok_or_else(too_few)
    }

    /// Requests an evaluation from a served member, and again with evidence while it asks questions.
    async fn request(
        &self,
        member: &ServedMember,
        pieces: Result<Vec<PromptPiece>, acem3_experts::Error>,
        format: EvaluationFormat,
        image: Option<&RawValue>,
    ) -> Result<Vec<Rating>, MemberError> {
        let mut pieces = pieces.map_err(|error| MemberError::Unusable(error.to_string()))?;
        let image = image.filter(|_| !member.text_only);
        let mut ratings = member.evaluate(&pieces, &format, image, self.limit()).await?;
        let Some(knowledge) = &self.settings.options.knowledge else {
            return Ok(ratings);
        };
        let unusable = |error: anyhow::Error| MemberError::Unusable(format!("{error:#}"));
        let mut rounds = KnowledgeRounds::new(knowledge).map_err(unusable)?;
        loop {
            let texts: Vec<&str> = ratings.iter().map(|rating| rating.analysis.as_str()).collect();
            let Some(evidence) = rounds.find_evidence(&texts).map_err(unusable)? else {
                break;
            };
            pieces.extend(evidence);
            match member.evaluate(&pieces, &format, image, self.limit()).await {
                Ok(again) => ratings = again,
                // Without the evidence, the evaluation is complete.
                Err(MemberError::Unscored(unscored))
                    if unscored.reason == UnscoredReason::Truncated =>
                {
                    rounds.drop_last();
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        rounds.add_to(&mut ratings);
        Ok(ratings)
    }

    /// Adds the reward token of a member to the format of its evaluation.
    fn with_prefix(&self, index: usize, format: EvaluationFormat) -> EvaluationFormat {
        let prefix = self.settings.completion_prefixes.get(index).map_or("", String::as_str);
        format.with_prefix(prefix)
    }
}

impl OrderRequest<'_> {
    /// Returns the task of a member that this process computes.
    fn to_local(&self, member: usize, evaluations: Vec<BranchEvaluation>) -> LocalTask {
        LocalTask { member, job: self.job.clone(), rotation: self.rotation, evaluations }
    }
}

/// Returns the error of a member that is asked and does not judge in this form.
fn unused_member() -> MemberError {
    MemberError::Unusable("a member was asked that does not judge in this form".to_owned())
}
