//! Loads the vision encoders of a comparison.

use std::path::Path;

use acem3_experts::train::Parameters;
use acem3_vision::published::EncoderNetwork;
use acem3_vision::{ImageProcessor, Selection, VisionConfig, VisionTower};
use anyhow::{Context, Result, bail};
use candle::{DType, Device, Tensor};
use serde_json::Value;

use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub;
use crate::checkpoints::hub::{HubArgs, HubDownloads, HubSource};
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::published::checkpoint_tower::CheckpointTower;
use crate::checkpoints::published::config_json::CONFIG_FILE;
use crate::checkpoints::published::published_tower::PublishedTower;
use crate::support::digest::Digest;
use crate::support::files::regular_file;
use crate::support::terminal::exit::with_hint;

/// Prefix of the vision tower in the weights of a member and of a training.
const TOWER: &str = "model.vision_tower.";

/// Vision encoder with its weights and preprocessing.
pub struct Candidate {
    /// Name in tables, as given by the user.
    pub name: String,
    /// Configuration of the encoder.
    pub config: VisionConfig,
    /// Hidden state and tokens that are used as features.
    pub selection: Selection,
    /// Preprocessing of images.
    pub processor: ImageProcessor,
    /// Weights, named as in a panel's member.
    pub weights: Parameters,
    /// Hub repository and commit, if it was downloaded.
    pub hub: Option<HubSource>,
}

impl Candidate {
    /// Opens an encoder by name.
    ///
    /// A name is `embedded`, `random` or `random:SEED` (the architecture of the embedded encoder
    /// with untrained weights), the folder of a panel, the folder of a published encoder
    /// (`config.json` or `open_clip_config.json`, and the weights), or the hub id of a panel or
    /// encoder, which is downloaded. `quiet` hides the progress bar of the download.
    pub fn open(name: &str, hub_args: &HubArgs, quiet: bool) -> Result<Self> {
        if let Some(seed) = name.strip_prefix("random:") {
            let seed = seed.parse().with_context(|| {
                format!(
                    "encoder {name}: `{seed}` is not a seed\nhint: pass a whole number, for example random:7"
                )
            })?;
            return Self::random(name, seed);
        }
        match name {
            "random" => return Self::random(name, 0),
            "embedded" => return Self::from_panel(name, &PanelFiles::Embedded),
            _ => {}
        }
        let snapshot = hub::snapshot_unless_path(name, &FileFilter::Encoder, *hub_args, quiet);
        let snapshot = snapshot.map_err(|error| error.into_error(&format!("encoder {name}")))?;
        match snapshot {
            Some(snapshot) => Ok(Self {
                hub: Some(snapshot.source),
                ..Self::from_folder(name, &snapshot.folder, *hub_args, quiet)?
            }),
            None => Self::from_folder(name, Path::new(name), *hub_args, quiet),
        }
    }

    /// Creates an encoder with random weights and the architecture of the embedded one.
    fn random(name: &str, seed: u64) -> Result<Self> {
        Ok(Self {
            weights: Parameters::uninitialized(seed),
            ..Self::from_panel(name, &PanelFiles::Embedded)?
        })
    }

    /// Opens the folder of a panel or a published encoder.
    fn from_folder(name: &str, folder: &Path, hub_args: HubArgs, quiet: bool) -> Result<Self> {
        if folder.is_dir() && !folder.join(PANEL_FILE).exists() {
            let config = folder.join(CONFIG_FILE);
            let model_type = read_json(&config)?
                .and_then(|config| Some(config.get("model_type")?.as_str()?.to_owned()));
            return match model_type {
                Some(kind) if !is_encoder_type(&kind) && !has_open_clip(folder) => {
                    Self::from_checkpoint(name, folder, hub_args, quiet)
                }
                _ => Self::from_published(name, folder),
            };
        }
        if !folder.exists() {
            bail!(
                "encoder {name}: no such folder, expected a folder, embedded, random[:SEED] or a hub id \
                 (owner/name[@revision])\n\
                 hint: check the path; embedded and random:SEED need no files"
            );
        }
        let files = PanelFiles::resolve_local("encoder", &folder.display().to_string());
        Self::from_panel(name, &files.with_context(|| format!("encoder {name}"))?)
    }

    /// Opens the vision tower of a panel.
    fn from_panel(name: &str, files: &PanelFiles) -> Result<Self> {
        let text = files.read(PANEL_FILE)?;
        let spec = std::str::from_utf8(&text)
            .context("the file is not UTF-8")
            .and_then(PanelSpec::parse)
            .with_context(|| files.describe(PANEL_FILE))?;
        let mut tensors: Vec<(String, Tensor)> = Vec::new();
        // All members see the image through the same tower.
        let [(_, files_of_member), ..] = spec.members();
        for file in files_of_member {
            let bytes = files.read(file)?;
            let loaded = candle::safetensors::load_buffer(&bytes, &Device::Cpu)
                .with_context(|| files.describe(file))?;
            tensors.extend(loaded.into_iter().filter(|(name, _)| name.starts_with(TOWER)));
        }
        if tensors.is_empty() {
            bail!("{}: the panel has no vision tower", files.describe(PANEL_FILE));
        }
        Ok(Self {
            name: name.to_owned(),
            config: spec.model.vision,
            selection: spec.model.selection,
            processor: spec.processor,
            hub: None,
            weights: Parameters::from_tensors(tensors)?,
        })
    }

    /// Opens the vision tower of a checkpoint such as LLaVA. Images are encoded whole, without tiles.
    fn from_checkpoint(name: &str, folder: &Path, hub_args: HubArgs, quiet: bool) -> Result<Self> {
        let source = CheckpointSource::new(folder.to_owned());
        let downloads = HubDownloads::new(hub_args, quiet);
        let tower = source.load_tower(downloads).map_err(|error| {
            let hint = "expected an encoder (CLIP, SigLIP, DINOv2, InternViT, open_clip) or a checkpoint with a vision \
                        tower (LLaVA, InternVL, Gemma 3); check that all files of the repository are in the folder";
            with_hint(error.context(format!("encoder {name}")), hint)
        })?;
        let CheckpointTower { setup, weights } = tower;
        let tensors = weights.tensors.into_iter();
        let tensors = tensors.map(|(name, stored)| Ok((name, stored.values.to_dtype(DType::F32)?)));
        Ok(Self {
            name: name.to_owned(),
            config: setup.vision,
            selection: setup.selection,
            processor: setup.processor,
            weights: Parameters::from_tensors(tensors.collect::<Result<Vec<_>>>()?)?,
            hub: None,
        })
    }

    /// Opens a published encoder from the files of its repository.
    fn from_published(name: &str, folder: &Path) -> Result<Self> {
        let PublishedTower { encoder, tensors, file } = PublishedTower::open(folder)?;
        let selection = encoder.default_selection();
        let candidate = Self {
            name: name.to_owned(),
            selection,
            weights: Parameters::from_tensors(tensors)?,
            config: encoder.config,
            processor: encoder.processor,
            hub: None,
        };
        // A missing or misshapen tensor is reported now, not after hours of other encoders.
        candidate.tower().with_context(|| file)?;
        Ok(candidate)
    }

    /// Returns the vision tower with frozen weights.
    pub(super) fn tower(&self) -> Result<VisionTower> {
        let frozen = self.weights.freeze(&[String::new()]);
        let vb = frozen.builder();
        let vb = vb.pp("model.vision_tower.vision_model");
        VisionTower::load(&vb, &self.config, self.selection)
            .with_context(|| format!("encoder {}", self.name))
    }

    /// Returns the hash of all names, shapes and values.
    pub(super) fn digest(&self) -> Result<Digest> {
        let mut text = String::new();
        for (name, var) in self.weights.all() {
            let values = var.flatten_all()?.to_vec1::<f32>()?;
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            text.extend([format!("{name} {:?} {}\n", var.dims(), Digest::sha256(&bytes))]);
        }
        Ok(Digest::sha256(text.as_bytes()))
    }

    /// Returns the number of parameters.
    pub(super) fn parameters(&self) -> u64 {
        let weights = self.weights.all();
        weights.iter().map(|(_, v)| v.elem_count() as u64).sum()
    }
}

/// Returns true for the `model_type` of an encoder; other types are checkpoints with a decoder.
fn is_encoder_type(model_type: &str) -> bool {
    let config = serde_json::json!({ "model_type": model_type });
    EncoderNetwork::from_config_file(&config).is_ok()
}

/// Returns true if a folder describes an encoder of `open_clip`.
fn has_open_clip(folder: &Path) -> bool {
    folder.join("open_clip_config.json").is_file()
}

/// Reads a JSON file; `None` if it does not exist.
fn read_json(path: &Path) -> Result<Option<Value>> {
    match regular_file::read(path) {
        Ok(bytes) => {
            let value = serde_json::from_slice(&bytes);
            Ok(Some(value.with_context(|| path.display().to_string())?))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_encoders() {
        let open = |name| Candidate::open(name, &HubArgs::default(), true);
        let embedded = open("embedded").unwrap();
        let random = open("random:3").unwrap();
        assert_eq!(embedded.config, random.config);
        random.tower().unwrap();
        embedded.tower().unwrap();
        // A random tower has only the weights that loading requests; a file may contain more.
        assert!(random.parameters() > 0 && random.parameters() <= embedded.parameters());
        for (name, message) in [("random:x", "`x` is not a seed"), ("nowhere", "no such folder")] {
            let error = format!("{:#}", open(name).err().unwrap());
            assert!(error.contains(message), "{error}");
        }
    }
}
