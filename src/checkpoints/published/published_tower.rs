//! A vision encoder in a folder of its own, in any published layout.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use acem3_experts::ModelConfig;
use acem3_projector::{ProjectorConfig, ProjectorKind};
use acem3_vision::published::EncoderFiles;
use acem3_vision::{ImageProcessor, PublishedEncoder, TensorRenaming};
use anyhow::{Context, Result, bail};
use candle::{DType, Tensor};
use serde_json::Value;

use super::config_json::read_json;
use super::load_weights;
use super::model_names::TOWER_PREFIX;
use crate::checkpoints::store::weight_files::read_weights;
use crate::support::device::Placement;
use crate::support::digest::Digest;
use crate::support::terminal::exit::with_hint;

/// Hint for files that describe no encoder.
const INCOMPLETE_HINT: &str = "check that all files of the encoder's repository are in the folder: config.json \
     and preprocessor_config.json, or open_clip_config.json";

/// A vision encoder with its weights.
pub(crate) struct PublishedTower {
    /// Architecture and preprocessing.
    pub(crate) encoder: PublishedEncoder,
    /// Tensors by the names that layers load.
    pub(crate) tensors: Vec<(String, Tensor)>,
    /// The file of the weights, or of their index.
    pub(crate) file: String,
}

impl PublishedTower {
    /// Opens the folder of an encoder: CLIP, `SigLIP`, `DINOv2`, `InternViT` or `open_clip`.
    ///
    /// # Errors
    /// If the folder has no configuration or weights, or they do not fit each other.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let encoder = read_encoder(folder)?;
        let (stored, path) = read_encoder_weights(folder, &encoder)?;
        let file = path.display().to_string();
        let names = stored.keys().map(String::as_str);
        let renaming = TensorRenaming::find(encoder.layout, names).with_context(|| file.clone())?;
        let renamed = renaming.rename_tensors(&encoder.config, stored);
        let renamed = renamed.with_context(|| file.clone())?.into_iter();
        let mut tensors: Vec<(String, Tensor)> =
            renamed.map(|(name, tensor)| (format!("{TOWER_PREFIX}{name}"), tensor)).collect();
        tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Self { encoder, tensors, file })
    }

    /// Returns the hash of names, shapes and values.
    pub(crate) fn digest(&self) -> Result<Digest> {
        let mut text = String::new();
        for (name, tensor) in &self.tensors {
            writeln!(text, "{name} {:?} {}", tensor.dims(), tensor_digest(tensor)?)?;
        }
        Ok(Digest::sha256(text.as_bytes()))
    }

    /// Returns the image preprocessing.
    pub(crate) fn processor(&self) -> &ImageProcessor {
        &self.encoder.processor
    }

    /// Returns a configuration with this tower, its usual patch features and a projector of this kind.
    /// Images are encoded without tiles.
    pub(crate) fn put_into(&self, model: ModelConfig, projector: ProjectorKind) -> ModelConfig {
        ModelConfig {
            vision: self.encoder.config.clone(),
            selection: self.encoder.default_selection(),
            projector: ProjectorConfig {
                kind: projector,
                vision_hidden_size: self.encoder.config.hidden_size,
                hidden_size: model.decoder.hidden_size,
            },
            tiling: None,
            decoder: model.decoder,
        }
    }
}

/// Returns the hash of the values of a tensor in f32.
pub(crate) fn tensor_digest(tensor: &Tensor) -> Result<Digest> {
    let values = tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Ok(Digest::sha256(&bytes))
}

/// Reads the configuration files of an encoder.
fn read_encoder(folder: &Path) -> Result<PublishedEncoder> {
    let read = |file: &str| -> Result<Option<Value>> {
        let path = folder.join(file);
        if !path.is_file() {
            return Ok(None);
        }
        let map = read_json(&path).with_context(|| path.display().to_string())?;
        Ok(Some(Value::Object(map)))
    };
    let (config, open_clip_config) = (read("config.json")?, read("open_clip_config.json")?);
    let preprocessor_config = match read("preprocessor_config.json")? {
        None => read("processor_config.json")?,
        config => config,
    };
    let encoder = PublishedEncoder::from_files(&EncoderFiles {
        config: config.as_ref(),
        open_clip_config: open_clip_config.as_ref(),
        preprocessor_config: preprocessor_config.as_ref(),
    });
    encoder.map_err(|error| {
        let error = anyhow::Error::new(error).context(folder.display().to_string());
        with_hint(error, INCOMPLETE_HINT)
    })
}

/// Reads the weights of an encoder under their published names. Also returns their file, or the index of
/// several files.
fn read_encoder_weights(
    folder: &Path,
    encoder: &PublishedEncoder,
) -> Result<(HashMap<String, Tensor>, PathBuf)> {
    let names = encoder.layout.weight_files();
    let find = |suffix: &str| {
        let paths = names.iter().map(|name| folder.join(format!("{name}{suffix}")));
        paths.into_iter().find(|path| path.is_file())
    };
    if let Some(path) = find("") {
        return Ok((read_weights(&path)?, path));
    }
    let Some(index) = find(".index.json") else {
        bail!(
            "{}: no weights, expected {}\n\
             hint: download one of these files into the folder",
            folder.display(),
            names.join(" or ")
        );
    };
    let name = folder.display().to_string();
    let stored = load_weights(folder, &name, &Placement::cpu(), |name| Some(name.to_owned()))?;
    let tensors = stored.tensors.into_iter().map(|(name, stored)| (name, stored.values));
    Ok((tensors.collect(), index))
}
