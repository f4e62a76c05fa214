//! Groups of members that share a trunk, which is computed once per group.

use acem3_conclusion::ConclusionModel;
use acem3_experts::BranchJudge;
use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::generate::{Engine, Settings};
use acem3_experts::prompt::{BranchPrompts, Rubric};
use anyhow::{Context, Result};
use candle::Device;

use crate::checkpoints::panel::member::Member;
use crate::checkpoints::panel::prompt_config::PromptConfig;
use crate::checkpoints::store::weight_files::{Checkpoint, shared_layers};
use crate::judging::panel::image_encoder::ImageEncoder;
use crate::support::terminal::exit::with_hint;

/// Hint for tensors that do not match the configuration.
const MISMATCH_HINT: &str =
    "configuration and weights belong to different models; download both from the same repository";

/// Members with the same tokenizer, embeddings and image encoder.
pub(super) struct TrunkGroup {
    /// Index in the panel of the member of each head.
    pub members: Vec<usize>,
    /// Image encoder; `None` for text-only members.
    pub eyes: Option<ImageEncoder>,
    /// Engine with trunk and heads.
    pub engine: Engine,
    /// Tokenized prompts of the branch experts.
    pub branches: BranchJudge,
    /// Tokenized prompts of the conclusion model.
    pub conclusion: ConclusionModel,
    /// Layers that all members of the group share.
    pub trunk_layers: usize,
}

/// Groups members by shared trunk, in the order of the panel.
pub(super) fn together(members: &[Member]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, member) in members.iter().enumerate() {
        let with = |group: &Vec<usize>| {
            let first = group.first().and_then(|first| members.get(*first));
            first.is_some_and(|first| first.stands_with(member))
        };
        match groups.iter().position(with).and_then(|i| groups.get_mut(i)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// Returns the number of trunk layers of a group. Each head keeps at least one layer.
pub(super) fn trunk_layers(members: &[Member], group: &[usize]) -> usize {
    let chosen: Vec<&Member> = group.iter().filter_map(|i| members.get(*i)).collect();
    let layers = chosen.first().map_or(0, |m| m.decoder.num_hidden_layers);
    let weights: Vec<&Checkpoint> = chosen.iter().map(|m| &m.weights).collect();
    shared_layers(&weights, layers).min(layers.saturating_sub(1))
}

impl TrunkGroup {
    /// Returns the head of a member, if it is in this group.
    pub(super) fn head(&self, member: usize) -> Option<usize> {
        self.members.iter().position(|own| *own == member)
    }

    /// Loads the members of a group.
    pub(super) fn new(
        members: &[Member],
        group: Vec<usize>,
        asking: &PromptConfig,
        settings: Settings,
        device: &Device,
    ) -> Result<Self> {
        let depth = trunk_layers(members, &group);
        let mut heads = Vec::new();
        let mut shared = None;
        for member in group.iter().filter_map(|i| members.get(*i)) {
            // Every member loads all its tensors, so that missing, misshapen and unused tensors are
            // reported for each member. Equal tensors share memory.
            let (eyes, trunk, head) = load_parts(member, depth, device)
                .with_context(|| member.origin.clone())
                .map_err(|error| with_hint(error, MISMATCH_HINT))?;
            heads.push(head);
            shared.get_or_insert((member, eyes, trunk));
        }
        let (member, eyes, trunk) = shared.context("group without members")?;
        if let Some(eyes) = &eyes {
            eyes.test().with_context(|| member.origin.clone())?;
        }
        let tokenizer = &member.tokenizer;
        let prompts = BranchPrompts::new(asking.layout, Rubric::built_in()?, asking.rubric)?;
        let prompts = prompts.inside(member.dialogue.clone());
        let load = || {
            let text = tokenizer.text.clone();
            let dialogue = member.dialogue.clone();
            let [leads @ .., conclusion] = &asking.leads;
            let branches = BranchJudge::new(prompts, leads.each_ref().map(String::as_str), &text)?;
            let conclusion = ConclusionModel::inside(asking.layout, dialogue, conclusion, &text)?;
            let engine = Engine::new(trunk, heads, text, &member.decoder, settings)?;
            Ok::<_, acem3_experts::Error>((branches, conclusion, engine))
        };
        let (branches, conclusion, engine) = load().with_context(|| tokenizer.file.clone())?;
        Ok(Self {
            members: group,
            eyes,
            engine,
            branches,
            conclusion,
            trunk_layers: depth,
        })
    }
}

fn load_parts(
    member: &Member,
    depth: usize,
    device: &Device,
) -> Result<(Option<ImageEncoder>, Trunk, Head)> {
    let vb = member.weights.builder(device);
    let eyes = match &member.sight {
        Some(sight) => Some(ImageEncoder::load(sight, &vb, device)?),
        None => None,
    };
    let trunk = Trunk::load(&vb, &member.decoder, depth)?;
    let head = Head::load(&vb, &member.decoder, depth)?;
    member.weights.all_used()?;
    Ok((eyes, trunk, head))
}
