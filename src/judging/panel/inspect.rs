//! Report of `panel inspect`: members, sizes and hashes of a panel, as text or JSON.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use acem3_experts::prompt::Rubric;
use anyhow::{Context, Result};

use serde::Serialize;

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::member::{Member, VisionSetup};
use crate::checkpoints::panel::member_entry::EndpointEntry;
use crate::checkpoints::panel::members_file::MembersFile;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::panel::trained_rubrics::own_rubric;
use crate::checkpoints::store::tensor_store::TensorIdentity;
use crate::judging::panel::options::PanelOptions;
use crate::judging::panel::tile_tokens::max_tile_tokens;
use crate::judging::panel::trunk_group::{TrunkGroup, group_members, trunk_layers};
use crate::judging::provenance::judge_digest;
use crate::support::device::Placement;
use crate::support::network::service_url::{ServiceUrl, UrlRules};
use crate::support::text::escape_control_chars;

/// Report about a panel.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// Name of the panel.
    pub name: String,
    /// Prompt layout of its members.
    pub layout: String,
    /// The rubrics that it was trained for, with the hashes of their content; empty for published
    /// models, which take any rubric.
    pub rubrics: BTreeMap<String, String>,
    /// Text that ends the finding that both presentation orders of a pair share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding_end: Option<String>,
    /// The members that are checkpoints.
    pub members: Vec<MemberReport>,
    /// The members that servers run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<ServedMemberReport>,
    /// Trunks, with the names of the members that share them.
    pub trunks: Vec<TrunkReport>,
    /// Sizes of all members together.
    pub sizes: WeightSizes,
    /// Hashes of everything that can change a verdict.
    pub hashes: BTreeMap<String, String>,
    /// Warning about cases that the panel is known to judge badly; no part of the hashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Hash of these hashes, which identifies the panel in tables. It differs from the judge hash
    /// of a record, which also covers the settings of the run.
    pub panel_sha256: String,
}

/// Report about a member.
#[derive(Clone, Debug, Serialize)]
pub struct MemberReport {
    /// Name of the member.
    pub member: &'static str,
    /// Model type.
    pub kind: String,
    /// The file that describes the member.
    pub origin: String,
    /// Number of decoder layers.
    pub layers: usize,
    /// Hidden size of the decoder.
    pub hidden_size: usize,
    /// Context length, in tokens.
    pub context: usize,
    /// Number of parameters.
    pub parameters: usize,
    /// Encodings of the tensors in the files.
    pub dtypes: Vec<&'static str>,
    /// Tokenizer.
    pub tokenizer: TokenizerReport,
    /// Vision tower and projector; absent for a text-only member.
    pub encoder: Option<EncoderReport>,
    /// Hash of each file.
    pub files: BTreeMap<String, String>,
}

/// Report about a member that a server runs, as the panel file names it.
#[derive(Clone, Debug, Serialize)]
pub struct ServedMemberReport {
    /// Name of the member.
    pub member: &'static str,
    /// The model.
    pub model: String,
    /// The base URL of the server.
    pub url: String,
    /// True if the member sees no images.
    pub text_only: bool,
}

/// Report about a tokenizer.
#[derive(Clone, Debug, Serialize)]
pub struct TokenizerReport {
    /// File of the tokenizer.
    pub file: String,
    /// Vocabulary size, special tokens included.
    pub tokens: usize,
    /// Hash of the tokenizer.
    pub sha256: String,
}

/// Report about a vision tower and its projector.
#[derive(Clone, Debug, Serialize)]
pub struct EncoderReport {
    /// Side of the input image, in pixels.
    pub image_size: usize,
    /// Side of a patch, in pixels.
    pub patch_size: usize,
    /// Number of layers.
    pub layers: usize,
    /// Hidden size.
    pub hidden_size: usize,
    /// Image tokens in a prompt; with tiles, only those of the complete image.
    pub image_tokens: usize,
    /// Maximum number of image tokens in a prompt, if the number of tiles depends on the image
    /// size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_image_tokens: Option<usize>,
}

/// Report about a trunk.
#[derive(Clone, Debug, Serialize)]
pub struct TrunkReport {
    /// Names of the members.
    pub members: Vec<&'static str>,
    /// Number of layers that all members share.
    pub shared_layers: usize,
    /// Number of layers of each member.
    pub layers: usize,
}

/// Number of parameters, and bytes in files and in memory (f32 or quantised blocks).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WeightSizes {
    /// Parameters of all members. A shared tensor counts for each member.
    pub parameters: usize,
    /// Parameters in memory. Equal tensors count once.
    pub parameters_shared: usize,
    /// Bytes in the files. A shared tensor counts for each member.
    pub bytes: usize,
    /// Bytes in the files. Equal tensors count once.
    pub bytes_shared: usize,
    /// Bytes of the weights in memory.
    pub bytes_loaded: usize,
}

/// Reads a panel, checks that it loads, and reports its members, sizes and hashes.
pub fn inspect(
    files: &PanelFiles,
    placement: &Placement,
    downloads: HubDownloads,
) -> Result<Inspection> {
    let (definition, served) = read_definition(files, placement, downloads)?;
    let groups = group_members(&definition.members);
    let mut trunks = Vec::new();
    for group in groups {
        let names = group.iter().filter_map(|i| definition.names.get(*i).copied());
        let layers = group.iter().filter_map(|i| definition.members.get(*i));
        trunks.push(TrunkReport {
            members: names.collect(),
            shared_layers: trunk_layers(&definition.members, &group),
            layers: layers.map(|m| m.decoder.num_hidden_layers).max().unwrap_or(0),
        });
        TrunkGroup::new(
            &definition.members,
            group,
            &definition.prompt_config,
            &PanelOptions::default(),
            placement,
        )?;
    }
    let layout = serde_json::to_value(definition.prompt_config.layout)
        .context("cannot serialize the layout")?;
    Ok(Inspection {
        name: definition.prompt_config.name,
        layout: layout.as_str().unwrap_or_default().to_owned(),
        members: (definition.names.iter())
            .zip(&definition.members)
            .map(|(name, member)| MemberReport::new(name, member))
            .collect(),
        served,
        trunks,
        sizes: WeightSizes::new(&definition.members),
        rubrics: definition.rubrics,
        finding_end: definition.prompt_config.finding_end,
        warning: definition.limits.map(|limits| limits.warning.trim().to_owned()),
        panel_sha256: judge_digest(&definition.hashes).to_string(),
        hashes: definition.hashes,
    })
}

/// Reads the checkpoints of a panel, and the names of its served members. Connects to no server.
fn read_definition(
    files: &PanelFiles,
    placement: &Placement,
    downloads: HubDownloads,
) -> Result<(PanelDefinition, Vec<ServedMemberReport>)> {
    let rubric = own_rubric(files)?.map_or_else(Rubric::built_in, Ok)?;
    let path = match files {
        PanelFiles::Members(path) if MembersFile::read(path)?.has_served_members() => path,
        _ => {
            return Ok((PanelDefinition::read(files, &rubric, placement, downloads)?, Vec::new()));
        }
    };
    let file = MembersFile::read(path)?;
    let mut definition =
        PanelDefinition::read_checkpoints(&file, path, &rubric, placement, downloads)?;
    let mut served = Vec::new();
    for (name, endpoint) in MEMBERS.into_iter().zip(file.endpoints(path)?) {
        if let Some(EndpointEntry { url, model, text_only, .. }) = endpoint {
            // The error does not contain the URL, which may have credentials.
            let rules = UrlRules { key_variable: "api_key_env", allow_http: true };
            let url = ServiceUrl::parse(&url, rules)
                .with_context(|| format!("{}: members.{name}", path.display()))?;
            let url = url.as_str().to_owned();
            definition.hashes.insert(format!("{name} model"), format!("{model}, served"));
            served.push(ServedMemberReport { member: name, model, url, text_only });
        }
    }
    Ok((definition, served))
}

impl MemberReport {
    fn new(name: &'static str, member: &Member) -> Self {
        let tensors = member.weights.tensors.values();
        let mut dtypes: Vec<&'static str> =
            tensors.clone().map(|t| t.identity.encoding.name()).collect();
        dtypes.sort_unstable();
        dtypes.dedup();
        Self {
            member: name,
            kind: member.model_type.clone(),
            origin: member.origin.clone(),
            layers: member.decoder.num_hidden_layers,
            hidden_size: member.decoder.hidden_size,
            context: member.decoder.max_position_embeddings,
            parameters: tensors.map(|t| t.identity.parameter_count()).sum(),
            dtypes,
            tokenizer: TokenizerReport {
                file: member.tokenizer.file.clone(),
                tokens: member.tokenizer.text.vocab_size(),
                sha256: member.tokenizer.hash.clone(),
            },
            encoder: member.vision.as_ref().map(EncoderReport::new),
            files: member.files.clone(),
        }
    }
}

impl EncoderReport {
    fn new(setup: &VisionSetup) -> Self {
        let vision = &setup.vision;
        let image_tokens = setup.projector.kind.token_count(vision.token_count(setup.selection));
        Self {
            image_size: vision.image_size,
            patch_size: vision.patch_size,
            layers: vision.num_hidden_layers,
            hidden_size: vision.hidden_size,
            image_tokens,
            most_image_tokens: setup
                .tiling
                .as_ref()
                .and_then(|tiling| max_tile_tokens(tiling, vision, image_tokens))
                .map(|tokens| image_tokens + tokens),
        }
    }
}

impl WeightSizes {
    fn new(members: &[Member]) -> Self {
        let mut sizes = Self {
            parameters: 0,
            parameters_shared: 0,
            bytes: 0,
            bytes_shared: 0,
            bytes_loaded: 0,
        };
        let mut seen: HashSet<&Arc<TensorIdentity>> = HashSet::new();
        for stored in members.iter().flat_map(|m| m.weights.tensors.values()) {
            let values = stored.identity.parameter_count();
            let bytes = stored.identity.byte_len();
            sizes.parameters += values;
            sizes.bytes += bytes;
            if seen.insert(&stored.identity) {
                sizes.parameters_shared += values;
                sizes.bytes_shared += bytes;
                let loaded = &stored.values;
                sizes.bytes_loaded += loaded.elem_count() * loaded.dtype().size_in_bytes();
            }
        }
        sizes
    }
}

impl Inspection {
    /// Returns the report as text.
    pub fn to_text(&self) -> String {
        let name = escape_control_chars(&self.name);
        let mut text = format!("panel {name}, layout {}\n", self.layout);
        // Writing to a string cannot fail.
        let rubrics: Vec<&str> = self.rubrics.keys().map(String::as_str).collect();
        if !rubrics.is_empty() {
            let _ = writeln!(text, "trained for the rubric {}", rubrics.join(", "));
        }
        if let Some(end) = self.finding_end.as_deref().map(escape_control_chars) {
            let _ = writeln!(
                text,
                "the first analysis has the same finding in both presentation orders, up to `{end}`"
            );
        }
        let warning = self.warning.as_deref().map(escape_control_chars);
        text.extend(warning.map(|warning| format!("warning: {warning}\n")));
        for m in &self.members {
            let _ = write!(
                text,
                "\n{} ({}, {})\n  decoder    {} layers of width {}, context {}\n  \
                 weights    {} parameters, {}\n",
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
                    "  encoder    {} layers of width {}, images of {s} x {s}, patches of \
                     {p} x {p}, {} tokens{}",
                    e.layers,
                    e.hidden_size,
                    e.image_tokens,
                    e.most_image_tokens
                        .map_or(String::new(), |most| format!(", with tiles at most {most}")),
                    s = e.image_size,
                    p = e.patch_size
                ),
                None => writeln!(text, "  encoder    none (text only)"),
            };
            for (file, hash) in &m.files {
                let _ = writeln!(text, "  file       {file} ({hash})");
            }
        }
        for m in &self.served {
            let texts = if m.text_only { ", reads texts only" } else { "" };
            let _ = writeln!(text, "\n{} ({}, served by {}{texts})", m.member, m.model, m.url);
        }
        text.push('\n');
        for trunk in &self.trunks {
            let (members, shared, layers) = (&trunk.members, trunk.shared_layers, trunk.layers);
            let _ = writeln!(
                text,
                "trunk      first {shared} of {layers} layers, shared by {}",
                members.join(", ")
            );
        }
        let s = &self.sizes;
        if s.parameters == 0 {
            let _ = writeln!(text, "size       unknown: servers run all members");
            return text + &self.hashes_text();
        }
        let _ = writeln!(
            text,
            "size       {} parameters in {} bytes; if equal tensors count once, {} parameters in \
             {} bytes in files and {} bytes in memory",
            s.parameters, s.bytes, s.parameters_shared, s.bytes_shared, s.bytes_loaded
        );
        text + &self.hashes_text()
    }

    fn hashes_text(&self) -> String {
        let mut text = String::new();
        for (name, hash) in &self.hashes {
            let _ = writeln!(text, "hash       {name} {hash}");
        }
        let _ = writeln!(text, "digest     {} (of these hashes)", self.panel_sha256);
        text
    }
}
