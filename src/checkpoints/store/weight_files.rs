//! Weight files of the four members, with equal tensors interned.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acem3_kernels::{BLOCK_TYPES, ROUNDED_SUFFIX, has_byte_products};
use anyhow::{Context, Result, bail};
use candle::quantized::GgmlDType;
use candle::{DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;

use crate::checkpoints::gguf;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::safetensors;
use crate::checkpoints::store::tensor_store::{
    FileTensors, StoredTensor, TensorIdentity, TensorStore,
};
use crate::checkpoints::torch;
use crate::support::device::Placement;
use crate::support::digest::Digest;
use crate::support::files::regular_file;

/// Cache of weight files: each is read once, even if several members use it.
pub(crate) struct WeightFiles {
    /// Downloads of checkpoints given by hub id.
    pub downloads: HubDownloads,
    store: TensorStore,
    files: HashMap<PathBuf, Arc<FileTensors>>,
    /// Selects the tensors of checkpoint files by name; `None` for all except buffers.
    selection: Option<TensorSelection>,
}

/// Function that returns true for the names of tensors that are read.
type TensorSelection = Box<dyn Fn(&str) -> bool>;

impl WeightFiles {
    /// Creates an empty cache.
    pub(crate) fn new(placement: &Placement, downloads: HubDownloads) -> Self {
        let store = TensorStore::new(placement);
        Self { downloads, store, files: HashMap::new(), selection: None }
    }

    /// Reads only tensors of checkpoint files whose name `wanted` accepts.
    pub(crate) fn with_selection(self, wanted: impl Fn(&str) -> bool + 'static) -> Self {
        Self { selection: Some(Box::new(wanted)), ..self }
    }

    /// Returns true if a tensor of a checkpoint file is read.
    pub(crate) fn reads(&self, name: &str) -> bool {
        !is_buffer(name) && self.selection.as_ref().is_none_or(|wanted| wanted(name))
    }

    /// Reads the hash and tensors of a file in a panel's folder.
    fn read_panel_file(&mut self, files: &PanelFiles, name: &str) -> Result<Arc<FileTensors>> {
        let key = PathBuf::from(name);
        if let Some(loaded) = self.files.get(&key) {
            return Ok(loaded.clone());
        }
        let file: Arc<str> = files.describe(name).into();
        let (source, len) = files.open(name)?;
        let read = safetensors::read(source, len, &file, &mut self.store, |_| true);
        let read = Arc::new(read.with_context(|| file.to_string())?);
        self.files.insert(key, read.clone());
        Ok(read)
    }

    /// Reads the hash and tensors of a checkpoint file, without buffers.
    pub(crate) fn read_checkpoint_file(&mut self, path: &Path) -> Result<Arc<FileTensors>> {
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(loaded) = self.files.get(&key) {
            return Ok(loaded.clone());
        }
        let file: Arc<str> = path.display().to_string().into();
        let selection = self.selection.as_ref();
        let wanted = |name: &str| !is_buffer(name) && selection.is_none_or(|wanted| wanted(name));
        let read = if path.extension().is_some_and(|e| e == "safetensors") {
            let open = || {
                let source = regular_file::open(path)?;
                let len = source.metadata()?.len();
                Ok::<_, std::io::Error>((std::io::BufReader::new(source), len))
            };
            let (source, len) = open().with_context(|| format!("{file}: cannot be read"))?;
            safetensors::read(source, len, &file, &mut self.store, wanted)
        } else {
            torch::read(path, &file, &mut self.store, wanted)
        };
        let read = Arc::new(read.with_context(|| file.to_string())?);
        self.files.insert(key, read.clone());
        Ok(read)
    }

    /// Reads the hash and tensors of a GGUF file, each under the name that `map_tensor`
    /// returns.
    pub(crate) fn read_gguf_file(
        &mut self,
        path: &Path,
        map_tensor: impl Fn(&gguf::GgufTensorInfo) -> Result<gguf::TensorMapping>,
    ) -> Result<Arc<FileTensors>> {
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(loaded) = self.files.get(&key) {
            return Ok(loaded.clone());
        }
        let file: Arc<str> = path.display().to_string().into();
        let read = Arc::new(gguf::read(path, &file, &mut self.store, map_tensor)?);
        self.files.insert(key, read.clone());
        Ok(read)
    }
}

/// Reads the tensors of a checkpoint file (safetensors, or a file of PyTorch) in f32 on the CPU,
/// without buffers.
///
/// # Errors
/// The file cannot be read, is damaged, or has tensors of an unsupported type. The message names
/// the file.
pub fn read_weights(path: &Path) -> Result<HashMap<String, Tensor>> {
    let loaded =
        WeightFiles::new(&Placement::cpu(), HubDownloads::default()).read_checkpoint_file(path)?;
    let tensors = loaded.tensors.iter();
    Ok(tensors.map(|(name, stored)| (name.clone(), stored.values.clone())).collect())
}

/// Returns true for buffers: tables that older versions of transformers saved with the weights, and
/// that follow from the configuration.
pub(crate) fn is_buffer(name: &str) -> bool {
    let suffixes = [".inv_freq", ".position_ids", ".masked_bias", ".attn.bias"];
    suffixes.iter().any(|suffix| name.ends_with(suffix))
}

/// Weights of a model: each tensor under the name that layers load it by.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    /// Name of the model for messages, such as `expression member`.
    pub(crate) name: String,
    /// The tensors by name.
    pub(crate) tensors: BTreeMap<String, StoredTensor>,
    used: Arc<Mutex<BTreeSet<String>>>,
    /// True to load matrices in bf16 as [`acem3_kernels::Matrix::Rounded`].
    rounds_inputs: bool,
}

impl Checkpoint {
    /// Creates an empty checkpoint for a member.
    pub(crate) fn for_member(name: &str) -> Self {
        Self::new(&format!("{name} member"))
    }

    /// Creates an empty checkpoint.
    pub(crate) fn new(name: &str) -> Self {
        let name = name.to_owned();
        Self { name, tensors: BTreeMap::new(), used: Arc::default(), rounds_inputs: false }
    }

    /// Reads files of a panel's folder. Also returns the hash of each file.
    pub(crate) fn from_panel_files(
        name: &str,
        files: &PanelFiles,
        names: &[String],
        weight_files: &mut WeightFiles,
    ) -> Result<(Self, BTreeMap<String, Digest>)> {
        let mut checkpoint = Self::for_member(name);
        let mut hashes = BTreeMap::new();
        for file in names {
            let loaded = weight_files.read_panel_file(files, file)?;
            hashes.insert(file.clone(), loaded.digest);
            for (tensor, stored) in &loaded.tensors {
                checkpoint.add(tensor, stored.clone())?;
            }
        }
        Ok((checkpoint, hashes))
    }

    /// Returns a checkpoint with the same tensors for another member.
    pub(crate) fn with_owner(&self, name: &str) -> Self {
        Self { tensors: self.tensors.clone(), ..Self::for_member(name) }
    }

    /// Returns the hash of all names, encodings, shapes and values, independent of the split into
    /// files.
    pub(crate) fn digest(&self) -> Digest {
        let mut text = String::new();
        for (name, stored) in &self.tensors {
            let TensorIdentity { digest, encoding, shape } = &*stored.identity;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} {} {shape:?} {digest}", encoding.name());
        }
        Digest::sha256(text.as_bytes())
    }

    /// Returns true if products with a matrix are computed with 8-bit integers.
    pub(crate) fn has_byte_products(&self) -> bool {
        self.tensors.values().any(|stored| stored.blocks.is_some_and(has_byte_products))
    }

    /// Adds a tensor. Returns an error if the name exists.
    pub(crate) fn add(&mut self, name: &str, stored: StoredTensor) -> Result<()> {
        let file = stored.file.clone();
        match self.tensors.insert(name.to_owned(), stored) {
            Some(_) => bail!("{file}: duplicate tensor `{name}` in the {}", self.name),
            None => Ok(()),
        }
    }

    /// Returns the tensors for judging. Products with matrices in bf16 round their inputs if
    /// [`Placement::rounds_inputs`].
    pub(crate) fn for_judging(&self, placement: &Placement) -> Self {
        Self { rounds_inputs: placement.rounds_inputs(), ..self.clone() }
    }

    /// Returns a builder that layers load from.
    pub(crate) fn builder(&self, device: &Device) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, device.clone())
    }

    /// Returns an error if a tensor was never loaded: unused weights indicate a wrong
    /// configuration.
    pub(crate) fn check_all_used(&self) -> Result<()> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match self.tensors.iter().find(|(name, _)| !used.contains(*name)) {
            Some((name, stored)) => {
                bail!("{}: the {} has an unused tensor `{name}`", stored.file, self.name)
            }
            None => Ok(()),
        }
    }

    /// Returns true if the tensors with this name prefix are equal in both.
    pub(crate) fn has_equal_tensors(&self, other: &Self, prefix: &str) -> bool {
        let tensors_of = |checkpoint: &Self| -> Vec<(String, Arc<TensorIdentity>)> {
            let all = checkpoint.tensors.iter().filter(|(name, _)| name.starts_with(prefix));
            all.map(|(name, stored)| (name.clone(), stored.identity.clone())).collect()
        };
        tensors_of(self) == tensors_of(other)
    }
}

impl Checkpoint {
    /// Describes the files of its tensors: the first, and the number of others.
    fn describe_files(&self) -> String {
        let all: BTreeSet<&str> = self.tensors.values().map(|stored| &*stored.file).collect();
        match (all.first(), all.len()) {
            (None, _) => "no file".to_owned(),
            (Some(first), 1) => (*first).to_owned(),
            (Some(first), n) => format!("{first} and {} more", n - 1),
        }
    }
}

/// Returns the number of lower decoder layers that are equal in all members; 0 if the embeddings
/// differ.
pub(crate) fn count_shared_layers(checkpoints: &[&Checkpoint], layers: usize) -> usize {
    let Some((first, others)) = checkpoints.split_first() else {
        return 0;
    };
    let equal = |prefix: &str| others.iter().all(|other| first.has_equal_tensors(other, prefix));
    if !equal("model.embed_tokens.") {
        return 0;
    }
    (0..layers).take_while(|i| equal(&format!("model.layers.{i}."))).count()
}

/// Removes [`ROUNDED_SUFFIX`] from a requested name; `None` if the name does not end with it.
fn rounded_name(name: &str) -> Option<&str> {
    name.strip_suffix(ROUNDED_SUFFIX)?.strip_suffix('.')
}

/// Returns the name of the tensor that a request is for.
fn requested_tensor(name: &str) -> &str {
    let blocks = split_block_name(name).map(|(tensor_name, _)| tensor_name);
    blocks.or_else(|| rounded_name(name)).unwrap_or(name)
}

/// Splits the name of a request for quantised blocks (`Matrix::load`) into tensor name and block
/// type.
fn split_block_name(name: &str) -> Option<(&str, GgmlDType)> {
    BLOCK_TYPES.iter().find_map(|(blocks, suffix)| {
        let tensor_name = name.strip_suffix(suffix)?.strip_suffix('.')?;
        Some((tensor_name, *blocks))
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
            let file = self.tensors.get(requested_tensor(name)).map_or("", |stored| &stored.file);
            candle::bail!(
                "{file}: the {}'s tensor `{name}` has shape {:?}, expected {shape:?}",
                self.name,
                tensor.shape()
            );
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle::Result<Tensor> {
        let tensor_name = requested_tensor(name);
        let Some(stored) = self.tensors.get(tensor_name) else {
            candle::bail!("{}: the {} has no tensor `{name}`", self.describe_files(), self.name);
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(tensor_name.to_owned());
        Ok(stored.values.clone())
    }

    fn contains_tensor(&self, name: &str) -> bool {
        if let Some(tensor_name) = rounded_name(name) {
            let stored = self.tensors.get(tensor_name);
            return self.rounds_inputs
                && stored.is_some_and(|stored| stored.values.dtype() == DType::BF16);
        }
        match split_block_name(name) {
            Some((tensor_name, blocks)) => {
                self.tensors.get(tensor_name).is_some_and(|stored| stored.blocks == Some(blocks))
            }
            None => self.tensors.contains_key(name),
        }
    }
}
