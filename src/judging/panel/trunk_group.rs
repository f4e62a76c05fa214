//! Members on one trunk: what they share is computed once.

use acem3_conclusion::ConclusionModel;
use acem3_experts::BranchJudge;
use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::generate::{Engine, Settings};
use acem3_experts::prompt::{BranchPrompts, Rubric};
use anyhow::{Context, Result};
use candle::Device;

use crate::checkpoints::panel::definition::PromptConfig;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::store::weight_files::{Checkpoint, shared_layers};
use crate::judging::panel::image_encoder::ImageEncoder;
use crate::support::terminal::exit::with_hint;

/// What helps a person whose tensors are not those of their configuration.
const TOGETHER: &str =
    "configuration and weights are not of one model; fetch both from the same place";

/// Members that read the same tokens and see the same image tokens.
pub(super) struct TrunkGroup {
    /// Which members of the panel they are: the place of a head to the place of a member.
    pub members: Vec<usize>,
    /// What they see with.
    pub eyes: Option<ImageEncoder>,
    /// What they compute with.
    pub engine: Engine,
    /// The experts' prompts in their tokens.
    pub branches: BranchJudge,
    /// The conclusion's prompts in their tokens.
    pub conclusion: ConclusionModel,
    /// Layers that all of them share.
    pub trunk_layers: usize,
}

/// Which members stand together, in the order of the panel.
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

/// Layers of the trunk under these members. A head keeps at least one layer, so that every member
/// has a voice of its own.
pub(super) fn trunk_layers(members: &[Member], group: &[usize]) -> usize {
    let chosen: Vec<&Member> = group.iter().filter_map(|i| members.get(*i)).collect();
    let layers = chosen.first().map_or(0, |m| m.decoder.num_hidden_layers);
    let weights: Vec<&Checkpoint> = chosen.iter().map(|m| &m.weights).collect();
    shared_layers(&weights, layers).min(layers.saturating_sub(1))
}

impl TrunkGroup {
    /// The head of a member of the panel, if it stands here.
    pub(super) fn head(&self, member: usize) -> Option<usize> {
        self.members.iter().position(|own| *own == member)
    }

    /// Puts members together.
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
            // Every member loads all it has, so that a tensor of any of them that is missing,
            // misshapen or of no use is found; equal tensors are the same in memory.
            let (eyes, trunk, head) = parts(member, depth, device)
                .with_context(|| member.origin.clone())
                .map_err(|error| with_hint(error, TOGETHER))?;
            heads.push(head);
            shared.get_or_insert((member, eyes, trunk));
        }
        let (member, eyes, trunk) = shared.context("a group without members")?;
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

fn parts(
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
