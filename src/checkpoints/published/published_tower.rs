//! A vision encoder in a folder of its own, in any published layout.

use std::fmt::Write as _;
use std::path::Path;

use acem3_experts::ModelConfig;
use acem3_projector::{ProjectorConfig, ProjectorKind};
use acem3_vision::published::EncoderFiles;
use acem3_vision::{ImageProcessor, PublishedEncoder, TensorRenaming};
use anyhow::{Context, Result, bail};
use candle::{DType, Tensor};
use serde_json::Value;

use super::config_json::read_json;
use super::model_names::TOWER_PREFIX;
use crate::checkpoints::store::weight_files::read_weights;
use crate::support::digest::Digest;

/// A vision encoder with its weights.
pub(crate) struct PublishedTower {
    encoder: PublishedEncoder,
    /// Tensors by the names that layers load, in f32.
    pub(crate) tensors: Vec<(String, Tensor)>,
    /// Name of the file of the weights.
    pub(crate) file: String,
    /// Hash of names, shapes and values.
    pub(crate) digest: Digest,
}

impl PublishedTower {
    /// Opens the folder of an encoder: CLIP, `SigLIP`, `DINOv2`, `InternViT` or `open_clip`.
    ///
    /// # Errors
    /// If the folder has no configuration or weights, or they do not fit each other.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
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
        })
        .with_context(|| folder.display().to_string())?;
        let names = encoder.layout.weight_files();
        let path = names.iter().map(|file| folder.join(file)).find(|path| path.is_file());
        let Some(path) = path else {
            bail!(
                "{}: no weights, expected {}\n\
                 hint: download one of these files into the folder",
                folder.display(),
                names.join(" or ")
            );
        };
        let file = path.display().to_string();
        let stored = read_weights(&path)?;
        let stored_names = stored.keys().map(String::as_str);
        let renaming =
            TensorRenaming::find(encoder.layout, stored_names).with_context(|| file.clone())?;
        let renamed = renaming.rename_tensors(&encoder.config, stored);
        let renamed = renamed.with_context(|| file.clone())?.into_iter();
        let mut tensors: Vec<(String, Tensor)> =
            renamed.map(|(name, tensor)| (format!("{TOWER_PREFIX}{name}"), tensor)).collect();
        tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut text = String::new();
        for (name, tensor) in &tensors {
            writeln!(text, "{name} {:?} {}", tensor.dims(), tensor_digest(tensor)?)?;
        }
        Ok(Self { encoder, tensors, file, digest: Digest::sha256(text.as_bytes()) })
    }

    /// Returns the image preprocessing.
    pub(crate) fn processor(&self) -> &ImageProcessor {
        &self.encoder.processor
    }

    /// Returns a configuration with this tower, its usual patch features and a projector of this kind.
    pub(crate) fn put_into(&self, model: ModelConfig, projector: ProjectorKind) -> ModelConfig {
        ModelConfig {
            vision: self.encoder.config.clone(),
            selection: self.encoder.default_selection(),
            projector: ProjectorConfig {
                kind: projector,
                vision_hidden_size: self.encoder.config.hidden_size,
                hidden_size: model.decoder.hidden_size,
            },
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
