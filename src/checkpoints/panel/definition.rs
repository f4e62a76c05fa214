//! Definition of a panel, independent of its file layout: four members and the prompt
//! configuration.

use crate::checkpoints::panel::prompt_config::{CONCLUSION, MEMBERS, PromptConfig};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{PromptForm, Rubric};
use anyhow::{Context, Result};

use super::files::PanelFiles;
use super::limits::PanelLimits;
use super::member_names::MemberNames;
use super::members_file::MembersFile;
use super::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use super::trained_rubrics::{check_trained, trained_rubrics};
use crate::checkpoints::hub::{HubDownloads, HubSource};
use crate::checkpoints::panel::member::{Member, MemberTokenizer, VisionSetup};
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::device::Placement;
use crate::support::digest::Digest;
use crate::support::terminal::exit::with_hint;

/// All inputs needed to build a panel.
pub(crate) struct PanelDefinition {
    /// The prompt configuration.
    pub prompt_config: PromptConfig,
    /// The members: the experts in the order of the aspects, then the conclusion model. Members that
    /// servers run are left out.
    pub members: Vec<Member>,
    /// The names of the members.
    pub names: Vec<&'static str>,
    /// The index of each member in the panel.
    pub indices: Vec<usize>,
    /// Hashes of everything that can change a verdict.
    pub hashes: BTreeMap<String, String>,
    /// The rubrics that the panel was trained for, with the hashes of their content; empty for
    /// published models, which take any rubric.
    pub rubrics: BTreeMap<String, String>,
    /// What the panel is known to judge badly; no part of the hashes.
    pub limits: Option<PanelLimits>,
    /// Snapshots downloaded from the hub.
    pub hub: Vec<HubSource>,
}

/// Checks that a file of members has the member of each aspect of a rubric.
fn check_members(rubric: &Rubric) -> Result<()> {
    anyhow::ensure!(
        rubric.has_keys_of_ace_m3(),
        "--rubric {}: the file names the members of the rubric ace_m3, which has other aspects or criteria\n\
         hint: judge with one published checkpoint, which takes the part of every member, such as \
         --panel FOLDER of a LLaVA checkpoint, or omit --rubric",
        rubric.key
    );
    Ok(())
}

/// Hint for files that cannot be read.
const UNREADABLE_HINT: &str =
    "the file is damaged or has another format; download or write all files of the panel again";

/// Returns the name of a published checkpoint: its id if it is in the hub cache, otherwise the name
/// of its folder or file.
fn display_name(path: &Path, is_file: bool) -> String {
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let snapshots = path.parent().filter(|p| p.ends_with("snapshots"));
    let repository = snapshots.and_then(Path::parent).and_then(name);
    let id =
        repository.and_then(|folder| Some(folder.strip_prefix("models--")?.replace("--", "/")));
    let file_name = if is_file {
        path.file_stem().map(|n| n.to_string_lossy().into_owned())
    } else {
        name(path)
    };
    id.or(file_name).unwrap_or_default()
}

impl PanelDefinition {
    /// Reads the files of a panel.
    ///
    /// # Errors
    ///
    /// The files are not a panel, or the panel does not take the rubric.
    pub(crate) fn read(
        files: &PanelFiles,
        rubric: &Rubric,
        placement: &Placement,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let definition = Self::from_files(files, rubric, placement, downloads);
        definition.map_err(|error| with_hint(error, UNREADABLE_HINT))
    }

    /// Reads the members of a members file that are checkpoints. Servers run the others.
    ///
    /// # Errors
    ///
    /// A checkpoint cannot be read, or the rubric has other members.
    pub(crate) fn read_checkpoints(
        file: &MembersFile,
        path: &Path,
        rubric: &Rubric,
        placement: &Placement,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let mut weight_files = WeightFiles::new(placement, downloads);
        let definition = Self::from_members(file, path, rubric, &mut weight_files);
        let definition = definition.map_err(|error| with_hint(error, UNREADABLE_HINT))?;
        Ok(definition.with_texts(rubric, &weight_files))
    }

    fn from_members(
        file: &MembersFile,
        path: &Path,
        rubric: &Rubric,
        weight_files: &mut WeightFiles,
    ) -> Result<Self> {
        check_members(rubric).with_context(|| path.display().to_string())?;
        let sources = file.sources(path, &mut weight_files.downloads)?;
        let (indices, sources): (Vec<usize>, Vec<CheckpointSource>) = sources.into_iter().unzip();
        let names = indices.iter().filter_map(|i| MEMBERS.get(*i).copied()).collect();
        let prompt_config = file.prompt_config(path);
        let mut definition = Self::read_published(prompt_config, &sources, names, weight_files)?;
        let reward_tokens = &definition.prompt_config.completion_prefixes;
        if reward_tokens.iter().any(|token| !token.is_empty()) {
            let json = serde_json::to_vec(reward_tokens);
            let digest = Digest::sha256(&json.context("cannot serialize the reward tokens")?);
            definition.hashes.insert("reward tokens".to_owned(), digest.to_string());
        }
        Ok(Self { indices, ..definition })
    }

    /// Adds the hashes of the prompt texts, and the downloads.
    fn with_texts(mut self, rubric: &Rubric, weight_files: &WeightFiles) -> Self {
        let layout = self.prompt_config.layout;
        let merge = acem3_conclusion::prompt_source(PromptForm::pair(layout)).unwrap_or_default();
        let texts = [("rubric", rubric.source()), ("layout", layout.source()), ("merge", merge)];
        let texts = texts.map(|(name, text)| (name.to_owned(), Digest::sha256(text.as_bytes())));
        let texts = texts.map(|(name, digest)| (name, digest.to_string()));
        self.hashes.extend(texts);
        self.hub = weight_files.downloads.sources();
        self
    }

    fn from_files(
        files: &PanelFiles,
        rubric: &Rubric,
        placement: &Placement,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let mut weight_files = WeightFiles::new(placement, downloads);
        let definition = match files {
            PanelFiles::Embedded | PanelFiles::Folder(_) => {
                Self::read_panel(files, rubric, &mut weight_files)?
            }
            PanelFiles::Members(path) => {
                let file = MembersFile::read(path)?;
                file.check_all_checkpoints(path)?;
                Self::from_members(&file, path, rubric, &mut weight_files)?
            }
            PanelFiles::Checkpoint(folder) => {
                let downloads = &mut weight_files.downloads;
                let source = CheckpointSource::locate(folder.clone(), None, downloads)?;
                let prompt_config =
                    MembersFile::default_prompt_config(display_name(folder, folder.is_file()));
                let names = rubric.aspects.iter().map(|aspect| aspect.key.key());
                let names: Vec<_> = names.chain([CONCLUSION]).collect();
                let sources = vec![source; names.len()];
                Self::read_published(prompt_config, &sources, names, &mut weight_files)?
            }
        };
        Ok(definition.with_texts(rubric, &weight_files))
    }

    /// Reads a folder with a `panel.toml`, or the embedded panel.
    fn read_panel(
        files: &PanelFiles,
        rubric: &Rubric,
        weight_files: &mut WeightFiles,
    ) -> Result<Self> {
        let text = files.read(PANEL_FILE)?;
        let spec = std::str::from_utf8(&text).context("not UTF-8").and_then(PanelSpec::parse);
        let spec = spec.with_context(|| files.describe(PANEL_FILE))?;
        let rubrics = trained_rubrics(&spec)?;
        check_trained(rubric, &rubrics)?;
        let names = MemberNames::of_rubric(rubric)?;
        let listed = spec.member_names();
        anyhow::ensure!(
            names.all() == listed,
            "{}: the experts are {}, expected {}, the aspects of the rubric {}",
            files.describe(PANEL_FILE),
            listed[..3].join(", "),
            names.all()[..3].join(", "),
            rubric.key
        );
        let json = files.read(TOKENIZER_FILE)?;
        let file = files.describe(TOKENIZER_FILE);
        let tokenizer = MemberTokenizer {
            text: TextTokenizer::parse(&json).with_context(|| file.clone())?,
            hash: Digest::sha256(&json).to_string(),
            file,
        };
        let tokenizer = Arc::new(tokenizer);
        let mut hashes = BTreeMap::from([
            ("panel".to_owned(), Digest::sha256(&text).to_string()),
            ("tokenizer".to_owned(), tokenizer.hash.clone()),
        ]);
        let mut members = Vec::new();
        for (name, names) in spec.members() {
            let (weights, digests) =
                Checkpoint::from_panel_files(name, files, names, weight_files)?;
            let digests = digests.into_iter();
            let digests: BTreeMap<String, String> =
                digests.map(|(file, d)| (file, d.to_string())).collect();
            let weight_digests = digests.iter();
            hashes.extend(weight_digests.map(|(file, d)| (format!("weights {file}"), d.clone())));
            members.push(Member {
                origin: files.describe(PANEL_FILE),
                model_type: "acem3".to_owned(),
                vision: (!spec.model.is_text_only()).then(|| VisionSetup {
                    processor: spec.processor.clone(),
                    tiling: spec.model.tiling.clone(),
                    vision: spec.model.vision.clone(),
                    selection: spec.model.selection,
                    projector: spec.model.projector.clone(),
                }),
                decoder: spec.model.decoder.clone(),
                tokenizer: tokenizer.clone(),
                chat_template: spec.dialogue.clone(),
                files: digests,
                weights,
            });
        }
        Ok(Self {
            prompt_config: PromptConfig {
                completion_prefixes: spec.completion_prefixes().into(),
                trained_forms: Some(spec.trained_forms()),
                rejected_prefixes: spec.rejected_prefixes().into(),
                name: spec.name,
                layout: spec.layout,
                rubric: spec.rubric,
                analysis_tokens: spec.analysis_tokens,
                samples: spec.samples,
                finding_end: spec.finding_end,
            },
            members,
            names: names.all().into(),
            indices: (0..names.all().len()).collect(),
            hashes,
            rubrics,
            limits: PanelLimits::read(files)?,
            hub: Vec::new(),
        })
    }

    /// Reads published checkpoints.
    fn read_published(
        prompt_config: PromptConfig,
        sources: &[CheckpointSource],
        names: Vec<&'static str>,
        weight_files: &mut WeightFiles,
    ) -> Result<Self> {
        let mut hashes = BTreeMap::new();
        let mut members: Vec<Member> = Vec::new();
        for (i, (name, source)) in names.iter().zip(sources).enumerate() {
            // Members with the same source differ only in their names.
            let twin_index = sources.iter().take(i).position(|other| other == source);
            let member = match twin_index.and_then(|i| members.get(i)) {
                Some(twin) => twin.with_name(name),
                None => source.load(name, weight_files)?,
            };
            let model = (&member.decoder, &member.vision, &member.chat_template);
            let model =
                serde_json::to_vec(&model).context("cannot serialize the model configuration")?;
            hashes.insert(format!("{name} model"), Digest::sha256(&model).to_string());
            hashes.insert(format!("{name} weights"), member.weights.digest().to_string());
            hashes.insert(format!("{name} tokenizer"), member.tokenizer.hash.clone());
            members.push(member);
        }
        let prompt_bytes =
            serde_json::to_vec(&(prompt_config.rubric, prompt_config.analysis_tokens));
        let prompt_bytes = prompt_bytes.context("cannot serialize the prompt configuration")?;
        let prompt_digest = Digest::sha256(&prompt_bytes);
        hashes.insert("asking".to_owned(), prompt_digest.to_string());
        let (rubrics, hub) = (BTreeMap::new(), Vec::new());
        let indices = (0..names.len()).collect();
        Ok(Self { prompt_config, members, names, indices, hashes, rubrics, limits: None, hub })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hub_checkpoint_is_named_by_its_id() {
        let name_of = |path: &str, is_file| display_name(Path::new(path), is_file);
        let cached = "/c/hub/models--owner--llava-7b/snapshots/0123abcd";
        assert_eq!(name_of(cached, false), "owner/llava-7b");
        assert_eq!(name_of("/models/llava-7b", false), "llava-7b");
        assert_eq!(name_of("/models/a.q4.gguf", true), "a.q4");
    }
}
