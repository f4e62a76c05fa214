//! Groups of members that share a trunk. The trunk is computed once per group.

use acem3_conclusion::{ConclusionModel, MergePrompts};
use acem3_experts::BranchExperts;
use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::generate::Engine;
use acem3_experts::prompt::{BranchPrompts, ChatTemplate, Form};
use anyhow::{Context, Result};

use crate::checkpoints::panel::member::Member;
use crate::checkpoints::panel::prompt_config::PromptConfig;
use crate::checkpoints::store::weight_files::{Checkpoint, count_shared_layers};
use crate::judging::panel::image_encoder::ImageEncoder;
use crate::judging::panel::options::PanelOptions;
use crate::support::device::Placement;
use crate::support::terminal::exit::with_hint;

/// Hint for tensors that do not match the configuration.
const MISMATCH_HINT: &str =
    "configuration and weights belong to different models; download both from the same repository";

/// Members with the same tokenizer, embeddings and image encoder.
pub(super) struct TrunkGroup {
    /// Panel index of the member of each head.
    pub members: Vec<usize>,
    /// Image encoder; `None` for text-only members.
    pub image_encoder: Option<ImageEncoder>,
    /// Engine with trunk and heads.
    pub engine: Engine,
    /// Tokenized prompts of the branch experts.
    pub branches: BranchExperts,
    /// Index of the conclusion model among the members.
    pub conclusion_member: usize,
    /// Tokenized prompts of the conclusion model; `None` if the form has none.
    pub conclusion: Option<ConclusionModel>,
    /// Layers that all members of the group share.
    pub trunk_layers: usize,
    /// Chat template of the members.
    pub chat_template: ChatTemplate,
}

/// Groups members by shared trunk, in the order of the panel.
pub(super) fn group_members(members: &[Member]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, member) in members.iter().enumerate() {
        let shares_trunk = |group: &Vec<usize>| {
            let first = group.first().and_then(|first| members.get(*first));
            first.is_some_and(|first| first.shares_trunk_with(member))
        };
        match groups.iter().position(shares_trunk).and_then(|i| groups.get_mut(i)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// Returns the number of trunk layers of a group. Each head keeps at least one layer.
pub(super) fn trunk_layers(members: &[Member], group: &[usize]) -> usize {
    let group_members: Vec<&Member> = group.iter().filter_map(|i| members.get(*i)).collect();
    let layers = group_members.first().map_or(0, |m| m.decoder.num_hidden_layers);
    let weights: Vec<&Checkpoint> = group_members.iter().map(|m| &m.weights).collect();
    count_shared_layers(&weights, layers).min(layers.saturating_sub(1))
}

impl TrunkGroup {
    /// Returns the head of a member, if it is in this group.
    pub(super) fn head_index(&self, member: usize) -> Option<usize> {
        self.members.iter().position(|index| *index == member)
    }

    /// Replaces indices into a list of loaded members by those of the panel.
    pub(super) fn with_panel_indices(mut self, indices: &[usize]) -> Self {
        self.members = self.members.iter().filter_map(|i| indices.get(*i).copied()).collect();
        self
    }

    /// Loads the members of a group: indices into `members`.
    pub(super) fn new(
        members: &[Member],
        group: Vec<usize>,
        prompt_config: &PromptConfig,
        options: &PanelOptions,
        placement: &Placement,
    ) -> Result<Self> {
        let depth = trunk_layers(members, &group);
        let mut heads = Vec::new();
        let mut shared = None;
        for member in group.iter().filter_map(|i| members.get(*i)) {
            // Load all tensors of every member, so that missing, misshapen and unused tensors are
            // reported for each member. Equal tensors share memory.
            let (image_encoder, trunk, head) = load_parts(member, depth, placement)
                .with_context(|| member.origin.clone())
                .map_err(|error| with_hint(error, MISMATCH_HINT))?;
            heads.push(head);
            shared.get_or_insert((member, image_encoder, trunk));
        }
        let (member, image_encoder, trunk) = shared.context("group without members")?;
        if let Some(image_encoder) = &image_encoder {
            image_encoder.self_test().with_context(|| member.origin.clone())?;
        }
        let tokenizer = &member.tokenizer;
        let prompt_form = options.prompt_form(prompt_config);
        let rubric = options.to_rubric()?;
        let conclusion_member = rubric.aspects.len();
        let prompts = BranchPrompts::for_form(prompt_form, rubric.clone(), prompt_config.rubric)?;
        let prompts = prompts.with_chat_template(member.chat_template.clone());
        let build = || {
            let text_tokenizer = tokenizer.text.clone();
            let prefixes: Vec<&str> =
                prompt_config.completion_prefixes.iter().map(String::as_str).collect();
            let branches = BranchExperts::new(prompts, &prefixes, &text_tokenizer)?;
            let has_conclusion = prompt_form.form != Form::Correctness;
            let conclusion = has_conclusion.then(|| {
                let prefix = prefixes.get(rubric.aspects.len()).copied().unwrap_or_default();
                let merge = MergePrompts::for_form(prompt_form, rubric)?;
                let merge = merge.with_chat_template(member.chat_template.clone());
                ConclusionModel::with_prompts(prompt_form.form, merge, prefix, &text_tokenizer)
            });
            let conclusion = conclusion.transpose()?;
            let settings = options.generation(prompt_config.analysis_tokens);
            let knowledge = options.knowledge.as_ref();
            let knowledge = knowledge.map(|k| k.to_completion(&text_tokenizer)).transpose()?;
            let mut engine = Engine::new(trunk, heads, text_tokenizer, &member.decoder, settings)?;
            if let Some(knowledge) = knowledge {
                engine.set_knowledge(knowledge);
            }
            Ok::<_, acem3_experts::Error>((branches, conclusion, engine))
        };
        let (branches, conclusion, engine) = build().with_context(|| tokenizer.file.clone())?;
        Ok(Self {
            members: group,
            image_encoder,
            engine,
            branches,
            conclusion_member,
            conclusion,
            trunk_layers: depth,
            chat_template: member.chat_template.clone(),
        })
    }
}

fn load_parts(
    member: &Member,
    depth: usize,
    placement: &Placement,
) -> Result<(Option<ImageEncoder>, Trunk, Head)> {
    let vb = member.weights.for_judging(placement).builder(&placement.device);
    let image_encoder = match &member.vision {
        Some(vision) => Some(ImageEncoder::load(vision, &vb, &placement.device)?),
        None => None,
    };
    let trunk = Trunk::load(&vb, &member.decoder, depth)?;
    let head = Head::load(&vb, &member.decoder, depth)?;
    member.weights.check_all_used()?;
    Ok((image_encoder, trunk, head))
}
