//! Weight files of the four members, with equal tensors interned.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acem3_kernels::BLOCK_TYPES;
use anyhow::{Context, Result, bail};
use candle::{DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;

use super::encoding::TensorEncoding;
use crate::checkpoints::gguf;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::safetensors;
use crate::checkpoints::store::tensor_store::{StoredTensor, TensorIdentity, TensorStore};
use crate::checkpoints::torch;
use crate::support::device::Placement;
use crate::support::digest::Digest;

/// Hash and tensors of a file.
pub(crate) type FileTensors = Arc<(Digest, Vec<(String, StoredTensor)>)>;

/// Cache of weight files: each is read once, even if several members use it.
pub(crate) struct WeightFiles {
    /// Downloads of checkpoints given by hub id.
    pub downloads: Downloads,
    store: TensorStore,
    opened: HashMap<PathBuf, FileTensors>,
}

impl WeightFiles {
    /// Creates an empty cache.
    pub(crate) fn new(place: &Placement, downloads: Downloads) -> Self {
        Self {
            downloads,
            store: TensorStore::new(place),
            opened: HashMap::new(),
        }
    }

    /// Reads the hash and tensors of a file in a panel's folder.
    fn of_panel(&mut self, files: &PanelFiles, name: &str) -> Result<FileTensors> {
        let known = PathBuf::from(name);
        if let Some(opened) = self.opened.get(&known) {
            return Ok(opened.clone());
        }
        let file: Arc<str> = files.describe(name).into();
        let (source, len) = files.open(name)?;
        let read = safetensors::read(source, len, &file, &mut self.store, |_| true);
        let read = Arc::new(read.with_context(|| file.to_string())?);
        self.opened.insert(known, read.clone());
        Ok(read)
    }

    /// Reads the hash and tensors of a checkpoint file, without buffers.
    pub(crate) fn of_checkpoint(&mut self, path: &Path) -> Result<FileTensors> {
        let known = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(opened) = self.opened.get(&known) {
            return Ok(opened.clone());
        }
        let file: Arc<str> = path.display().to_string().into();
        let wanted = |name: &str| !is_buffer(name);
        let read = if path.extension().is_some_and(|e| e == "safetensors") {
            let open = || {
                let source = std::fs::File::open(path)?;
                let len = source.metadata()?.len();
                Ok::<_, std::io::Error>((std::io::BufReader::new(source), len))
            };
            let (source, len) = open().with_context(|| format!("{file}: cannot be read"))?;
            safetensors::read(source, len, &file, &mut self.store, wanted)
        } else {
            torch::read(path, &file, &mut self.store, wanted)
        };
        let read = Arc::new(read.with_context(|| file.to_string())?);
        self.opened.insert(known, read.clone());
        Ok(read)
    }

    /// Reads the hash and tensors of a GGUF file, each under the name that `place` returns.
    pub(crate) fn of_gguf(
        &mut self,
        path: &Path,
        place: impl Fn(&gguf::Info) -> Result<gguf::TensorPlacement>,
    ) -> Result<FileTensors> {
        let known = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(opened) = self.opened.get(&known) {
            return Ok(opened.clone());
        }
        let file: Arc<str> = path.display().to_string().into();
        let read = Arc::new(gguf::read(path, &file, &mut self.store, place)?);
        self.opened.insert(known, read.clone());
        Ok(read)
    }
}

/// Reads the tensors of a checkpoint file in f32 on the CPU, without buffers.
pub(crate) fn weights_of(path: &Path) -> Result<HashMap<String, Tensor>> {
    let opened = WeightFiles::new(&Placement::cpu(), Downloads::default()).of_checkpoint(path)?;
    let tensors = opened.1.iter();
    Ok(tensors
        .map(|(name, stored)| (name.clone(), stored.values.clone()))
        .collect())
}

/// Returns true for buffers: tables that older versions of transformers saved with the weights, and that
/// follow from the configuration.
pub(crate) fn is_buffer(name: &str) -> bool {
    let ends = [".inv_freq", ".position_ids", ".masked_bias", ".attn.bias"];
    ends.iter().any(|end| name.ends_with(end))
}

/// Weights of a model: each tensor under the name that layers load it by.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    /// Name of the model for messages, such as `expression member`.
    pub(crate) name: String,
    /// The tensors.
    pub(crate) tensors: BTreeMap<String, StoredTensor>,
    used: Arc<Mutex<BTreeSet<String>>>,
}

impl Checkpoint {
    /// Creates an empty checkpoint for a member.
    pub(crate) fn of_member(name: &str) -> Self {
        Self::new(&format!("{name} member"))
    }

    /// Creates an empty checkpoint.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            tensors: BTreeMap::new(),
            used: Arc::default(),
        }
    }

    /// Reads files of a panel's folder. Also returns the hash of each file.
    pub(crate) fn of_panel(
        name: &str,
        files: &PanelFiles,
        names: &[String],
        library: &mut WeightFiles,
    ) -> Result<(Self, BTreeMap<String, Digest>)> {
        let mut checkpoint = Self::of_member(name);
        let mut hashes = BTreeMap::new();
        for file in names {
            let opened = library.of_panel(files, file)?;
            hashes.insert(file.clone(), opened.0);
            for (tensor, stored) in &opened.1 {
                checkpoint.add(tensor, stored.clone())?;
            }
        }
        Ok((checkpoint, hashes))
    }

    /// Returns a checkpoint with the same tensors for another member.
    pub(crate) fn renamed(&self, name: &str) -> Self {
        Self {
            tensors: self.tensors.clone(),
            ..Self::of_member(name)
        }
    }

    /// Returns the hash of all names, encodings, shapes and values, independent of the split into files.
    pub(crate) fn digest(&self) -> Digest {
        let mut text = String::new();
        for (name, stored) in &self.tensors {
            let TensorIdentity {
                digest,
                encoding,
                shape,
            } = &*stored.identity;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} {} {shape:?} {digest}", encoding.name());
        }
        Digest::of(text.as_bytes())
    }

    /// Adds a tensor. Returns an error if the name exists.
    pub(crate) fn add(&mut self, name: &str, stored: StoredTensor) -> Result<()> {
        let file = stored.file.clone();
        match self.tensors.insert(name.to_owned(), stored) {
            Some(_) => bail!("{file}: duplicate tensor `{name}` in the {}", self.name),
            None => Ok(()),
        }
    }

    /// Returns a builder that layers load from.
    pub(crate) fn builder(&self, device: &Device) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, device.clone())
    }

    /// Returns an error if a tensor was never loaded: unused weights indicate a wrong configuration.
    pub(crate) fn all_used(&self) -> Result<()> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match self.tensors.iter().find(|(name, _)| !used.contains(*name)) {
            Some((name, stored)) => bail!(
                "{}: the {} has an unused tensor `{name}`",
                stored.file,
                self.name
            ),
            None => Ok(()),
        }
    }

    /// Returns true if both have the same names with this prefix, and equal tensors under them.
    pub(crate) fn agrees_with(&self, other: &Self, prefix: &str) -> bool {
        let under = |c: &Self| -> Vec<(String, Arc<TensorIdentity>)> {
            let all = c
                .tensors
                .iter()
                .filter(|(name, _)| name.starts_with(prefix));
            all.map(|(name, stored)| (name.clone(), stored.identity.clone()))
                .collect()
        };
        under(self) == under(other)
    }
}

impl Checkpoint {
    /// Describes the files of its tensors: the first, and the number of others.
    fn files(&self) -> String {
        let all: BTreeSet<&str> = self.tensors.values().map(|stored| &*stored.file).collect();
        match (all.first(), all.len()) {
            (None, _) => "no file".to_owned(),
            (Some(first), 1) => (*first).to_owned(),
            (Some(first), n) => format!("{first} and {} more", n - 1),
        }
    }
}

/// Returns the number of lower decoder layers that are equal in all members; 0 if the embeddings differ.
pub(crate) fn shared_layers(checkpoints: &[&Checkpoint], layers: usize) -> usize {
    let Some((first, others)) = checkpoints.split_first() else {
        return 0;
    };
    let equal = |prefix: &str| others.iter().all(|other| first.agrees_with(other, prefix));
    if !equal("model.embed_tokens.") {
        return 0;
    }
    (0..layers)
        .take_while(|i| equal(&format!("model.layers.{i}.")))
        .count()
}

/// Splits the name of a request for quantised blocks (`Matrix::load`) into tensor name and block type.
fn split_block_name(name: &str) -> Option<(&str, TensorEncoding)> {
    BLOCK_TYPES.iter().find_map(|(blocks, ending)| {
        let own = name.strip_suffix(ending)?.strip_suffix('.')?;
        Some((own, TensorEncoding::Blocks(*blocks)))
    })
}

impl SimpleBackend for Checkpoint {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        _: DType,
        _: &Device,
    ) -> candle::Result<Tensor> {
        let tensor = self.get_unchecked(name, DType::F32, &Device::Cpu)?;
        if tensor.shape() != &shape {
            let own = split_block_name(name).map_or(name, |(own, _)| own);
            let file = self.tensors.get(own).map_or("", |stored| &stored.file);
            candle::bail!(
                "{file}: the {}'s tensor `{name}` has shape {:?}, expected {shape:?}",
                self.name,
                tensor.shape()
            );
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle::Result<Tensor> {
        let own = split_block_name(name).map_or(name, |(own, _)| own);
        let Some(stored) = self.tensors.get(own) else {
            candle::bail!("{}: the {} has no tensor `{name}`", self.files(), self.name);
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(own.to_owned());
        Ok(stored.values.clone())
    }

    fn contains_tensor(&self, name: &str) -> bool {
        match split_block_name(name) {
            Some((own, encoding)) => self.tensors.get(own).is_some_and(|stored| {
                stored.identity.encoding == encoding && stored.values.dtype() == DType::U8
            }),
            None => self.tensors.contains_key(name),
        }
    }
}
