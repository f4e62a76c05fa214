//! What a panel is made of, whatever form it was given in: four members and how they are asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{Detail, Layout, Rubric};
use anyhow::{Context, Result};

use super::files::PanelFiles;
use super::members_file::MembersFile;
use super::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use crate::checkpoints::hub::{Downloads, HubStamp};
use crate::checkpoints::panel::member::{Member, MemberTokenizer, VisionSetup};
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::device::Placement;
use crate::support::digest::Digest;
use crate::support::terminal::exit::with_hint;

/// How the members are asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptConfig {
    /// The panel's name in tables and records.
    pub name: String,
    /// The prompt layout.
    pub layout: Layout,
    /// How much of the rubric prompts spell out.
    pub rubric: Detail,
    /// Most tokens of one analysis.
    pub analysis_tokens: usize,
    /// What the text of each member begins with: reward tokens, or nothing.
    pub leads: [String; 4],
}

/// Everything that a panel is put together from.
pub(crate) struct PanelDefinition {
    /// How the members are asked.
    pub asking: PromptConfig,
    /// The four members, in the order of [`MEMBERS`].
    pub members: Vec<Member>,
    /// Hashes of everything that can move a verdict.
    pub hashes: BTreeMap<String, String>,
    /// What was taken from the hub.
    pub hub: Vec<HubStamp>,
}

/// The names of the four members, in order.
pub const MEMBERS: [&str; 4] = [
    "expression",
    "medical_knowledge",
    "patient_relevance",
    "conclusion",
];

/// What helps a person whose files cannot be read.
const AGAIN: &str =
    "the file is damaged or of another kind; fetch or make the panel again, all of it";

/// What a published checkpoint is called: its id where it lies in the hub's cache, else the name of its
/// folder or file.
fn called(path: &Path, is_file: bool) -> String {
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let snapshots = path.parent().filter(|p| p.ends_with("snapshots"));
    let repository = snapshots.and_then(Path::parent).and_then(name);
    let id =
        repository.and_then(|folder| Some(folder.strip_prefix("models--")?.replace("--", "/")));
    let own = if is_file {
        path.file_stem().map(|n| n.to_string_lossy().into_owned())
    } else {
        name(path)
    };
    id.or(own).unwrap_or_default()
}

impl PanelDefinition {
    /// Reads all that a panel is made of.
    pub(crate) fn read(
        files: &PanelFiles,
        place: &Placement,
        downloads: Downloads,
    ) -> Result<Self> {
        let recipe = Self::of_files(files, place, downloads);
        recipe.map_err(|error| with_hint(error, AGAIN))
    }

    fn of_files(files: &PanelFiles, place: &Placement, downloads: Downloads) -> Result<Self> {
        let mut library = WeightFiles::new(place, downloads);
        let mut recipe = match files {
            PanelFiles::Embedded | PanelFiles::Folder(_) => Self::own(files, &mut library)?,
            PanelFiles::Members(path) => {
                let file = MembersFile::read(path)?;
                let sources = file.sources(path, &mut library.downloads)?;
                Self::published(file.asking(path), &sources, &mut library)?
            }
            PanelFiles::Checkpoint(folder) => {
                let source = CheckpointSource::plain(folder.clone());
                let asking = MembersFile::default_asking(called(folder, source.is_gguf()));
                Self::published(asking, &MEMBERS.map(|_| source.clone()), &mut library)?
            }
        };
        let rubric = Rubric::built_in()?;
        let layout = recipe.asking.layout;
        let merge = acem3_conclusion::source(layout);
        let texts = [
            ("rubric", rubric.source()),
            ("layout", layout.source()),
            ("merge", merge),
        ];
        let texts = texts.map(|(name, text)| (name.to_owned(), Digest::of(text.as_bytes())));
        let texts = texts.map(|(name, digest)| (name, digest.to_string()));
        recipe.hashes.extend(texts);
        recipe.hub = library.downloads.stamps();
        Ok(recipe)
    }

    /// A folder with a `panel.toml`, or the embedded one.
    fn own(files: &PanelFiles, library: &mut WeightFiles) -> Result<Self> {
        let text = files.read(PANEL_FILE)?;
        let spec = std::str::from_utf8(&text)
            .context("it is not UTF-8")
            .and_then(PanelSpec::parse);
        let spec = spec.with_context(|| files.describe(PANEL_FILE))?;
        let json = files.read(TOKENIZER_FILE)?;
        let file = files.describe(TOKENIZER_FILE);
        let tokenizer = MemberTokenizer {
            text: TextTokenizer::parse(&json).with_context(|| file.clone())?,
            hash: Digest::of(&json).to_string(),
            file,
        };
        let tokenizer = Arc::new(tokenizer);
        let mut hashes = BTreeMap::from([
            ("panel".to_owned(), Digest::of(&text).to_string()),
            ("tokenizer".to_owned(), tokenizer.hash.clone()),
        ]);
        let mut members = Vec::new();
        for (name, names) in spec.members.all() {
            let (weights, digests) = Checkpoint::of_panel(name, files, names, library)?;
            let digests = digests.into_iter();
            let digests: BTreeMap<String, String> =
                digests.map(|(file, d)| (file, d.to_string())).collect();
            let of_weights = digests.iter();
            hashes.extend(of_weights.map(|(file, d)| (format!("weights {file}"), d.clone())));
            members.push(Member {
                origin: files.describe(PANEL_FILE),
                kind: "acem3".to_owned(),
                sight: Some(VisionSetup {
                    processor: spec.processor.clone(),
                    pinpoints: None,
                    vision: spec.model.vision.clone(),
                    selection: spec.model.selection,
                    projector: spec.model.projector.clone(),
                }),
                decoder: spec.model.decoder.clone(),
                tokenizer: tokenizer.clone(),
                dialogue: spec.dialogue.clone(),
                files: digests,
                weights,
            });
        }
        Ok(Self {
            asking: PromptConfig {
                leads: spec.leads(),
                name: spec.name,
                layout: spec.layout,
                rubric: spec.rubric,
                analysis_tokens: spec.analysis_tokens,
            },
            members,
            hashes,
            hub: Vec::new(),
        })
    }

    /// Published checkpoints.
    fn published(
        asking: PromptConfig,
        sources: &[CheckpointSource],
        library: &mut WeightFiles,
    ) -> Result<Self> {
        let mut hashes = BTreeMap::new();
        let mut members: Vec<Member> = Vec::new();
        for (i, (name, source)) in MEMBERS.iter().zip(sources).enumerate() {
            // Members that are the same folder are the same in everything but their name.
            let before = sources.iter().take(i).position(|other| other == source);
            let member = match before.and_then(|i| members.get(i)) {
                Some(twin) => twin.renamed(name),
                None => source.load(name, library)?,
            };
            let model = (&member.decoder, &member.sight, &member.dialogue);
            let model = serde_json::to_vec(&model).context("cannot write a model's shape")?;
            hashes.insert(format!("{name} model"), Digest::of(&model).to_string());
            hashes.insert(
                format!("{name} weights"),
                member.weights.digest().to_string(),
            );
            hashes.insert(format!("{name} tokenizer"), member.tokenizer.hash.clone());
            members.push(member);
        }
        let asked = serde_json::to_vec(&(asking.rubric, asking.analysis_tokens));
        let asked = Digest::of(&asked.context("cannot write how a panel is asked")?);
        hashes.insert("asking".to_owned(), asked.to_string());
        Ok(Self {
            asking,
            members,
            hashes,
            hub: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_of_the_hub_is_called_by_its_id() {
        let called = |path: &str, is_file| called(Path::new(path), is_file);
        let cached = "/c/hub/models--owner--llava-7b/snapshots/0123abcd";
        assert_eq!(called(cached, false), "owner/llava-7b");
        assert_eq!(called("/models/llava-7b", false), "llava-7b");
        assert_eq!(called("/models/a.q4.gguf", true), "a.q4");
    }
}
