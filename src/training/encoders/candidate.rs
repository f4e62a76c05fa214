//! An encoder that takes part in a comparison.

use std::path::Path;

use acem3_experts::train::Parameters;
use acem3_vision::published::Files;
use acem3_vision::{ImageProcessor, Published, Renaming, Selection, VisionConfig, VisionTower};
use anyhow::{Context, Result, bail};
use candle::{Device, Tensor};
use serde_json::Value;

use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub;
use crate::checkpoints::hub::{HubFlags, HubStamp};
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::checkpoints::store::weight_files::weights_of;

/// Where a vision tower lies in a member's weights, and in a training's.
pub(super) const TOWER: &str = "model.vision_tower.";

/// A vision encoder with its weights and its own preprocessing.
pub struct Candidate {
    /// The name in tables: as it was asked for.
    pub name: String,
    /// The sizes of the encoder.
    pub config: VisionConfig,
    /// Which of its states and tokens are features.
    pub selection: Selection,
    /// How images are prepared for it.
    pub processor: ImageProcessor,
    /// Its weights, under the names of a panel's member.
    pub weights: Parameters,
    /// Where on the hub it was taken from.
    pub hub: Option<HubStamp>,
}

impl Candidate {
    /// The encoder that a name means: `embedded`, `random` or `random:SEED` (the embedded one's sizes
    /// with weights that were never trained), the folder of a panel, that of a published encoder
    /// (`config.json` or `open_clip_config.json`, and its weights), or the id of either on the hub,
    /// from where it is downloaded. `quiet` takes the bar of the download away.
    pub fn open(name: &str, flags: &HubFlags, quiet: bool) -> Result<Self> {
        if let Some(seed) = name.strip_prefix("random:") {
            let seed = seed.parse().with_context(|| {
                format!(
                    "encoder {name}: `{seed}` is not a seed\nhint: a whole number, as in random:7"
                )
            })?;
            return Self::random(name, seed);
        }
        match name {
            "random" => return Self::random(name, 0),
            "embedded" => return Self::of_panel(name, &PanelFiles::Embedded),
            _ => {}
        }
        let found = hub::snapshot_unless_path(name, &FileFilter::Encoder, *flags, quiet);
        let found = found.with_context(|| format!("encoder {name}: cannot be had"))?;
        match found {
            Some(snapshot) => Ok(Self {
                hub: Some(snapshot.stamp),
                ..Self::in_folder(name, &snapshot.folder)?
            }),
            None => Self::in_folder(name, Path::new(name)),
        }
    }

    fn random(name: &str, seed: u64) -> Result<Self> {
        Ok(Self {
            weights: Parameters::fresh(seed),
            ..Self::of_panel(name, &PanelFiles::Embedded)?
        })
    }

    fn in_folder(name: &str, folder: &Path) -> Result<Self> {
        if folder.is_dir() && !folder.join(PANEL_FILE).exists() {
            return Self::of_folder(name, folder);
        }
        if !folder.exists() {
            bail!(
                "encoder {name}: there is no such folder, and it is no encoder's name or hub id \
                 (owner/name[@revision])\n\
                 hint: embedded and random:SEED need no files"
            );
        }
        let files = PanelFiles::find("encoder", &folder.display().to_string());
        Self::of_panel(name, &files.with_context(|| format!("encoder {name}"))?)
    }

    fn of_panel(name: &str, files: &PanelFiles) -> Result<Self> {
        let text = files.read(PANEL_FILE)?;
        let spec = std::str::from_utf8(&text)
            .context("it is not UTF-8")
            .and_then(PanelSpec::parse)
            .with_context(|| files.describe(PANEL_FILE))?;
        let mut tensors: Vec<(String, Tensor)> = Vec::new();
        for file in &spec.members.medical_knowledge {
            let bytes = files.read(file)?;
            let read = candle::safetensors::load_buffer(&bytes, &Device::Cpu)
                .with_context(|| files.describe(file))?;
            tensors.extend(read.into_iter().filter(|(name, _)| name.starts_with(TOWER)));
        }
        if tensors.is_empty() {
            bail!(
                "{}: the panel has no vision tower",
                files.describe(PANEL_FILE)
            );
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

    /// A published encoder as its repository holds it.
    fn of_folder(name: &str, folder: &Path) -> Result<Self> {
        let read = |file: &str| json(&folder.join(file));
        let (config, open_clip_config) = (read("config.json")?, read("open_clip_config.json")?);
        let preprocessor_config = match read("preprocessor_config.json")? {
            None => read("processor_config.json")?,
            found => found,
        };
        let published = Published::open(&Files {
            config: config.as_ref(),
            open_clip_config: open_clip_config.as_ref(),
            preprocessor_config: preprocessor_config.as_ref(),
        })
        .with_context(|| folder.display().to_string())?;
        let known = published.layout.files();
        let path = known.iter().map(|file| folder.join(file));
        let path = path.into_iter().find(|path| path.is_file());
        let path = path.with_context(|| {
            format!(
                "{}: none of its weights is here, expected {}\n\
                 hint: download one of them into the folder",
                folder.display(),
                known.join(" or ")
            )
        })?;
        let at = || path.display().to_string();
        let stored = weights_of(&path)?;
        let names = stored.keys().map(String::as_str);
        let renaming = Renaming::find(published.layout, names).with_context(at)?;
        let weights = renaming
            .weights(&published.config, stored)
            .with_context(at)?;
        let ours = weights
            .into_iter()
            .map(|(name, tensor)| (format!("{TOWER}vision_model.{name}"), tensor));
        Ok(Self {
            name: name.to_owned(),
            selection: published.selection(),
            weights: Parameters::from_tensors(ours)?,
            config: published.config,
            processor: published.processor,
            hub: None,
        })
    }

    /// The tower, frozen.
    pub(super) fn tower(&self) -> Result<VisionTower> {
        let frozen = self.weights.freeze(&[String::new()]);
        let vb = frozen.builder();
        let vb = vb.pp("model.vision_tower.vision_model");
        VisionTower::load(&vb, &self.config, self.selection)
            .with_context(|| format!("encoder {}", self.name))
    }

    /// How many numbers its weights are.
    pub(super) fn parameters(&self) -> u64 {
        let weights = self.weights.all();
        weights.iter().map(|(_, v)| v.elem_count() as u64).sum()
    }
}

/// The JSON of a file, where there is one.
fn json(path: &Path) -> Result<Option<Value>> {
    match std::fs::read(path) {
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
    fn names_mean_encoders() {
        let open = |name| Candidate::open(name, &HubFlags::default(), true);
        let embedded = open("embedded").unwrap();
        let random = open("random:3").unwrap();
        assert_eq!(embedded.config, random.config);
        random.tower().unwrap();
        embedded.tower().unwrap();
        // A tower that was drawn has the weights that were asked for; a file may hold more.
        assert!(random.parameters() > 0 && random.parameters() <= embedded.parameters());
        for (name, fault) in [
            ("random:x", "`x` is not a seed"),
            ("nowhere", "no such folder"),
        ] {
            let error = format!("{:#}", open(name).err().unwrap());
            assert!(error.contains(fault), "{error}");
        }
    }
}
