//! From files to a panel that can see and write.

use std::collections::BTreeMap;

use acem3_conclusion::ConclusionModel;
use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::generate::{Engine, Settings};
use acem3_experts::prompt::{BranchPrompts, Rubric};
use acem3_experts::{BranchJudge, TextTokenizer};
use anyhow::{Context, Result, bail};
use candle::Device;

use super::eyes::Eyes;
use super::files::PanelFiles;
use super::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use super::weights::{Checkpoint, read_members, shared_layers};
use crate::key::Digest;

/// A loaded panel.
pub struct Panel {
    pub(super) spec: PanelSpec,
    pub(super) eyes: Eyes,
    pub(super) engine: Engine,
    pub(super) branches: BranchJudge,
    pub(super) conclusion: ConclusionModel,
    /// Hashes of everything that can move a verdict.
    pub(super) hashes: BTreeMap<String, String>,
    trunk_layers: usize,
}

impl Panel {
    /// Loads a panel's files onto a device.
    pub fn load(files: &PanelFiles, scores_only: bool, device: &Device) -> Result<Self> {
        let text = files.read(PANEL_FILE)?;
        let spec = std::str::from_utf8(&text)
            .context("it is not UTF-8")
            .and_then(PanelSpec::parse);
        let spec = spec.with_context(|| files.describe(PANEL_FILE))?;
        let json = files.read(TOKENIZER_FILE)?;
        let tokenizer =
            TextTokenizer::parse(&json).with_context(|| files.describe(TOKENIZER_FILE))?;
        let (checkpoints, weights) = read_members(files, &spec.members, device)?;
        let parts =
            parts(&spec, &checkpoints, device).with_context(|| files.describe(PANEL_FILE))?;
        let (eyes, trunk, heads) = parts;
        let depth = trunk.depth();
        let rubric = Rubric::built_in()?;
        let hashes = hashes(&spec, &text, &json, (&weights, &rubric));
        let prompts = BranchPrompts::new(spec.layout, rubric, spec.rubric)?;
        let settings = Settings {
            analysis_tokens: spec.analysis_tokens,
            scores_only,
        };
        let config = &spec.model.decoder;
        Ok(Self {
            branches: BranchJudge::new(prompts, &tokenizer)?,
            conclusion: ConclusionModel::new(spec.layout, &tokenizer)?,
            engine: Engine::new(trunk, heads, tokenizer, config, settings)?,
            eyes,
            hashes,
            trunk_layers: depth,
            spec,
        })
    }

    /// What the panel is made of.
    pub fn spec(&self) -> &PanelSpec {
        &self.spec
    }

    /// Layers that all members share.
    pub fn trunk_layers(&self) -> usize {
        self.trunk_layers
    }
}

/// What the members look through, the layers they share, and the head of each.
fn parts(
    spec: &PanelSpec,
    checkpoints: &[Checkpoint],
    device: &Device,
) -> Result<(Eyes, Trunk, Vec<Head>)> {
    let (first, others) = checkpoints
        .split_first()
        .context("the panel has no members")?;
    for part in ["model.vision_tower.", "model.mm_projector."] {
        if let Some(i) = others
            .iter()
            .position(|other| !first.agrees_with(other, part))
        {
            bail!(
                "members 1 and {} differ in `{part}*`\n\
                 hint: the members of a panel look through one vision tower and projector",
                i + 2
            );
        }
    }
    let config = &spec.model.decoder;
    // A head keeps at least one layer, so that every member has a voice of its own.
    let depth = shared_layers(checkpoints, config.num_hidden_layers)
        .min(config.num_hidden_layers.saturating_sub(1));
    let mut heads = Vec::new();
    let mut shared = None;
    for checkpoint in checkpoints {
        let vb = checkpoint.builder(device);
        // Every member loads all it has, so that a tensor of any of them that is missing, misshapen
        // or of no use is found; equal tensors are the same in memory.
        let eyes = Eyes::load(spec, checkpoint, device)?;
        let trunk = Trunk::load(&vb, config, depth)?;
        heads.push(Head::load(&vb, config, depth)?);
        checkpoint.all_used()?;
        shared.get_or_insert((eyes, trunk));
    }
    let (eyes, trunk) = shared.context("the panel has no members")?;
    eyes.test()?;
    Ok((eyes, trunk, heads))
}

fn hashes(
    spec: &PanelSpec,
    panel: &[u8],
    tokenizer: &[u8],
    (weights, rubric): (&BTreeMap<String, Digest>, &Rubric),
) -> BTreeMap<String, String> {
    let merge = acem3_conclusion::source(spec.layout);
    let texts = [
        ("panel", panel),
        ("tokenizer", tokenizer),
        ("rubric", rubric.source().as_bytes()),
        ("layout", spec.layout.source().as_bytes()),
        ("merge", merge.as_bytes()),
    ];
    let texts = texts.map(|(name, text)| (name.to_owned(), Digest::of(text).to_string()));
    let weights = weights
        .iter()
        .map(|(file, digest)| (format!("weights {file}"), digest.to_string()));
    texts.into_iter().chain(weights).collect()
}
