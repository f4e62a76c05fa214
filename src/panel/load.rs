//! From files to a panel that can see and write.

use std::collections::BTreeMap;

use acem3_conclusion::ConclusionModel;
use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::generate::{Engine, Settings};
use acem3_experts::prompt::{BranchPrompts, Rubric};
use acem3_experts::{BranchJudge, TextTokenizer};
use acem3_projector::Projector;
use acem3_vision::{ImageProcessor, VisionTower};
use anyhow::{Context, Result, bail};
use candle::Device;
use sha2::{Digest as _, Sha256};

use super::files::PanelFiles;
use super::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use super::weights::{read_members, shared_layers};

/// A loaded panel.
pub struct Panel {
    pub(super) spec: PanelSpec,
    pub(super) processor: ImageProcessor,
    pub(super) tower: VisionTower,
    pub(super) projector: Projector,
    pub(super) engine: Engine,
    pub(super) branches: BranchJudge,
    pub(super) conclusion: ConclusionModel,
    pub(super) device: Device,
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
        for (i, member) in checkpoints.iter().enumerate().skip(1) {
            for part in ["model.vision_tower.", "model.mm_projector."] {
                if !checkpoints[0].agrees_with(member, part) {
                    bail!(
                        "{}: members 1 and {} differ in `{part}*`\n\
                         hint: the members of a panel look through one vision tower and projector",
                        files.describe(PANEL_FILE),
                        i + 1
                    );
                }
            }
        }
        let config = &spec.model.decoder;
        // A head keeps at least one layer, so that every member has a voice of its own.
        let depth = shared_layers(&checkpoints, config.num_hidden_layers)
            .min(config.num_hidden_layers.saturating_sub(1));
        let mut heads = Vec::new();
        let mut shared = None;
        for checkpoint in &checkpoints {
            let vb = checkpoint.builder(device);
            let model = vb.pp("model");
            let vision = model.pp("vision_tower.vision_model");
            let tower = VisionTower::load(&vision, &spec.model.vision, spec.model.selection)?;
            let projector = Projector::load(&model.pp("mm_projector"), &spec.model.projector)?;
            let trunk = Trunk::load(&vb, config, depth)?;
            heads.push(Head::load(&vb, config, depth)?);
            checkpoint.all_used()?;
            shared.get_or_insert((tower, projector, trunk));
        }
        let (tower, projector, trunk) = shared.context("the panel has no members")?;
        let rubric = Rubric::built_in()?;
        let hashes = hashes(&spec, &text, &json, (&weights, &rubric));
        let prompts = BranchPrompts::new(spec.layout, rubric, spec.rubric)?;
        let settings = Settings {
            analysis_tokens: spec.analysis_tokens,
            scores_only,
        };
        Ok(Self {
            branches: BranchJudge::new(prompts, &tokenizer)?,
            conclusion: ConclusionModel::new(spec.layout, &tokenizer)?,
            engine: Engine::new(trunk, heads, tokenizer, config, settings)?,
            processor: spec.processor.clone(),
            tower,
            projector,
            device: device.clone(),
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

fn hashes(
    spec: &PanelSpec,
    panel: &[u8],
    tokenizer: &[u8],
    (weights, rubric): (&BTreeMap<String, [u8; 32]>, &Rubric),
) -> BTreeMap<String, String> {
    let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes).into());
    let mut hashes = BTreeMap::from([
        ("panel".to_owned(), hash(panel)),
        ("tokenizer".to_owned(), hash(tokenizer)),
        ("rubric".to_owned(), hash(rubric.source().as_bytes())),
        ("layout".to_owned(), hash(spec.layout.source().as_bytes())),
        (
            "merge".to_owned(),
            hash(acem3_conclusion::source(spec.layout).as_bytes()),
        ),
    ]);
    for (file, digest) in weights {
        hashes.insert(format!("weights {file}"), hex(digest));
    }
    hashes
}

fn hex(digest: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
