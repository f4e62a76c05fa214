//! What a panel is made of, for people and programs to read.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Context, Result};

use serde::Serialize;

use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::member::{Member, VisionSetup};
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::store::tensor_store::TensorIdentity;
use crate::judging::panel::trunk_group::{TrunkGroup, together, trunk_layers};
use crate::judging::provenance::judge_digest;
use crate::support::device::Placement;

/// A panel's parts.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// Its name.
    pub name: String,
    /// The prompt layout of its members.
    pub layout: String,
    /// The four members.
    pub members: Vec<MemberReport>,
    /// Members that stand on one trunk, by name, with the trunk's layers.
    pub trunks: Vec<TrunkReport>,
    /// Sizes of all members together.
    pub sizes: WeightSizes,
    /// Hashes of everything that can move a verdict.
    pub hashes: BTreeMap<String, String>,
    /// The hash of those hashes, by which tables call the panel. The judge of a record is the panel
    /// with the settings of its run, and has a hash of its own.
    pub panel_sha256: String,
}

/// One member.
#[derive(Clone, Debug, Serialize)]
pub struct MemberReport {
    /// Which of the four it is.
    pub member: &'static str,
    /// What kind of model it is.
    pub kind: String,
    /// The file that describes it.
    pub origin: String,
    /// Layers of its decoder.
    pub layers: usize,
    /// Hidden size of its decoder.
    pub hidden_size: usize,
    /// Its context, in tokens.
    pub context: usize,
    /// Its values.
    pub parameters: usize,
    /// The types of its tensors in the files.
    pub dtypes: Vec<&'static str>,
    /// Its tokenizer.
    pub tokenizer: TokenizerReport,
    /// What it sees with; absent for a member that reads text alone.
    pub encoder: Option<EncoderReport>,
    /// The hash of each of its files.
    pub files: BTreeMap<String, String>,
}

/// A tokenizer.
#[derive(Clone, Debug, Serialize)]
pub struct TokenizerReport {
    /// Its file.
    pub file: String,
    /// Its tokens, control tokens included.
    pub tokens: usize,
    /// Its hash.
    pub sha256: String,
}

/// A vision tower and its projector.
#[derive(Clone, Debug, Serialize)]
pub struct EncoderReport {
    /// Side of the image it sees, in pixels.
    pub image_size: usize,
    /// Side of a patch, in pixels.
    pub patch_size: usize,
    /// Its layers.
    pub layers: usize,
    /// Its width.
    pub hidden_size: usize,
    /// Tokens that an image takes in a prompt; of one that is seen in tiles too, those of the whole.
    pub image_tokens: usize,
    /// The most tokens that an image takes, where it is seen in tiles and its size decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_image_tokens: Option<usize>,
}

/// Members on one trunk.
#[derive(Clone, Debug, Serialize)]
pub struct TrunkReport {
    /// Their names.
    pub members: Vec<&'static str>,
    /// Layers that all of them share.
    pub shared_layers: usize,
    /// Layers of each.
    pub layers: usize,
}

/// Parameters and bytes, in the files' types and as they are kept (f32, or the blocks of a file).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WeightSizes {
    /// Values of all members, each counted for itself.
    pub parameters: usize,
    /// Values that are kept, equal tensors once.
    pub parameters_shared: usize,
    /// Bytes in the files' types, each member counted for itself.
    pub bytes: usize,
    /// Bytes in the files' types, equal tensors once.
    pub bytes_shared: usize,
    /// Bytes of the weights in memory.
    pub bytes_loaded: usize,
}

/// Reads a panel, puts it together to find out whether it fits, and says what it is made of.
pub fn inspect(files: &PanelFiles, place: &Placement, downloads: Downloads) -> Result<Inspection> {
    let recipe = PanelDefinition::read(files, place, downloads)?;
    let groups = together(&recipe.members);
    let settings = acem3_experts::generate::Settings {
        analysis_tokens: recipe.asking.analysis_tokens,
        scores_only: false,
    };
    let mut trunks = Vec::new();
    for group in groups {
        let names = group.iter().filter_map(|i| MEMBERS.get(*i).copied());
        let layers = group.iter().filter_map(|i| recipe.members.get(*i));
        trunks.push(TrunkReport {
            members: names.collect(),
            shared_layers: trunk_layers(&recipe.members, &group),
            layers: layers
                .map(|m| m.decoder.num_hidden_layers)
                .max()
                .unwrap_or(0),
        });
        TrunkGroup::new(
            &recipe.members,
            group,
            &recipe.asking,
            settings,
            &place.device,
        )?;
    }
    let layout = serde_json::to_value(recipe.asking.layout).context("the layout")?;
    Ok(Inspection {
        name: recipe.asking.name,
        layout: layout.as_str().unwrap_or_default().to_owned(),
        members: MEMBERS
            .iter()
            .zip(&recipe.members)
            .map(|(name, member)| MemberReport::of(name, member))
            .collect(),
        trunks,
        sizes: WeightSizes::of(&recipe.members),
        panel_sha256: judge_digest(&recipe.hashes).to_string(),
        hashes: recipe.hashes,
    })
}

impl MemberReport {
    fn of(name: &'static str, member: &Member) -> Self {
        let tensors = member.weights.tensors.values();
        let mut dtypes: Vec<&'static str> = tensors
            .clone()
            .map(|t| t.identity.encoding.name())
            .collect();
        dtypes.sort_unstable();
        dtypes.dedup();
        Self {
            member: name,
            kind: member.kind.clone(),
            origin: member.origin.clone(),
            layers: member.decoder.num_hidden_layers,
            hidden_size: member.decoder.hidden_size,
            context: member.decoder.max_position_embeddings,
            parameters: tensors.map(|t| t.identity.parameters()).sum(),
            dtypes,
            tokenizer: TokenizerReport {
                file: member.tokenizer.file.clone(),
                tokens: member.tokenizer.text.vocabulary(),
                sha256: member.tokenizer.hash.clone(),
            },
            encoder: member.sight.as_ref().map(EncoderReport::of),
            files: member.files.clone(),
        }
    }
}

impl EncoderReport {
    fn of(sight: &VisionSetup) -> Self {
        let vision = &sight.vision;
        let image_tokens = vision.tokens(sight.selection);
        // Patches of a side, and one more that ends each row of them.
        let tiled = |[height, width]: &[usize; 2]| {
            let patches = |side: usize| side / vision.image_size.max(1) * vision.grid();
            patches(*height) * (patches(*width) + 1)
        };
        let most = |points: &Vec<[usize; 2]>| points.iter().map(tiled).max();
        Self {
            image_size: vision.image_size,
            patch_size: vision.patch_size,
            layers: vision.num_hidden_layers,
            hidden_size: vision.hidden_size,
            image_tokens,
            most_image_tokens: sight
                .pinpoints
                .as_ref()
                .and_then(most)
                .map(|most| image_tokens + most),
        }
    }
}

impl WeightSizes {
    fn of(members: &[Member]) -> Self {
        let mut sizes = Self {
            parameters: 0,
            parameters_shared: 0,
            bytes: 0,
            bytes_shared: 0,
            bytes_loaded: 0,
        };
        let mut seen: HashSet<&Arc<TensorIdentity>> = HashSet::new();
        for stored in members.iter().flat_map(|m| m.weights.tensors.values()) {
            let values = stored.identity.parameters();
            let bytes = stored.identity.bytes();
            sizes.parameters += values;
            sizes.bytes += bytes;
            if seen.insert(&stored.identity) {
                sizes.parameters_shared += values;
                sizes.bytes_shared += bytes;
                let kept = &stored.values;
                sizes.bytes_loaded += kept.elem_count() * kept.dtype().size_in_bytes();
            }
        }
        sizes
    }
}

impl Inspection {
    /// The report as a person reads it.
    pub fn text(&self) -> String {
        let mut text = format!("panel {}, layout {}\n", self.name, self.layout);
        // Writing to a string cannot fail.
        for m in &self.members {
            let _ = write!(
                text,
                "\n{} ({}, {})\n  decoder    {} layers of {}, context {}\n  weights    {} parameters, {}\n",
                m.member,
                m.kind,
                m.origin,
                m.layers,
                m.hidden_size,
                m.context,
                m.parameters,
                m.dtypes.join(" and ")
            );
            let _ = writeln!(
                text,
                "  tokenizer  {} tokens, {} ({})",
                m.tokenizer.tokens, m.tokenizer.file, m.tokenizer.sha256
            );
            let _ = match &m.encoder {
                Some(e) => writeln!(
                    text,
                    "  encoder    {} layers of {}, images of {s} x {s}, patches of {}, {} tokens{}",
                    e.layers,
                    e.hidden_size,
                    e.patch_size,
                    e.image_tokens,
                    e.most_image_tokens
                        .map_or(String::new(), |most| format!(", with tiles at most {most}")),
                    s = e.image_size
                ),
                None => writeln!(text, "  encoder    none: it reads text alone"),
            };
            for (file, hash) in &m.files {
                let _ = writeln!(text, "  file       {file} ({hash})");
            }
        }
        text.push('\n');
        for trunk in &self.trunks {
            let (members, shared, layers) = (&trunk.members, trunk.shared_layers, trunk.layers);
            let _ = writeln!(
                text,
                "trunk      {shared} of {layers} layers under {}",
                members.join(", ")
            );
        }
        let s = &self.sizes;
        let _ = writeln!(
            text,
            "size       {} parameters in {} bytes, equal tensors once {} in {}; {} bytes in memory",
            s.parameters, s.bytes, s.parameters_shared, s.bytes_shared, s.bytes_loaded
        );
        for (name, hash) in &self.hashes {
            let _ = writeln!(text, "hash       {name} {hash}");
        }
        let _ = writeln!(text, "panel      {}", self.panel_sha256);
        text
    }
}
