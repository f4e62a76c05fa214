//! The weights of four members, equal tensors held once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use candle::safetensors::Load as _;
use candle::{DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use safetensors::SafeTensors;

use super::files::PanelFiles;
use super::spec::Members;
use crate::key::Digest;

/// One member's checkpoint: each tensor with the hash of its bytes.
#[derive(Clone)]
pub(super) struct Checkpoint {
    name: &'static str,
    tensors: BTreeMap<String, (Digest, Tensor)>,
    used: Arc<Mutex<BTreeSet<String>>>,
}

/// Reads the members' files. A file that several members name is read once, and equal tensors of
/// different files become one. Also gives the hash of each file.
pub(super) fn read_members(
    files: &PanelFiles,
    members: &Members,
    device: &Device,
) -> Result<(Vec<Checkpoint>, BTreeMap<String, Digest>)> {
    let mut hashes = BTreeMap::new();
    let mut opened: HashMap<&str, Vec<(String, Digest, Tensor)>> = HashMap::new();
    let mut interned: HashMap<(Digest, Vec<usize>), Tensor> = HashMap::new();
    let mut checkpoints = Vec::new();
    for (member, names) in members.all() {
        let mut tensors = BTreeMap::new();
        for name in names {
            if !opened.contains_key(name.as_str()) {
                let bytes = files.read(name)?;
                hashes.insert(name.clone(), Digest::of(&bytes));
                let read = read_file(&bytes, device, &mut interned)
                    .with_context(|| files.describe(name))?;
                opened.insert(name, read);
            }
            for (tensor, digest, values) in opened.get(name.as_str()).into_iter().flatten() {
                if tensors
                    .insert(tensor.clone(), (*digest, values.clone()))
                    .is_some()
                {
                    bail!(
                        "{}: tensor `{tensor}` is in another file of the {member} member too",
                        files.describe(name)
                    );
                }
            }
        }
        checkpoints.push(Checkpoint {
            name: member,
            tensors,
            used: Arc::default(),
        });
    }
    Ok((checkpoints, hashes))
}

fn read_file(
    bytes: &[u8],
    device: &Device,
    interned: &mut HashMap<(Digest, Vec<usize>), Tensor>,
) -> Result<Vec<(String, Digest, Tensor)>> {
    let file = SafeTensors::deserialize(bytes).context("it is not a whole safetensors file")?;
    let mut tensors = Vec::new();
    for (name, view) in file.tensors() {
        let digest = Digest::of(view.data());
        let key = (digest, view.shape().to_vec());
        let tensor = if let Some(tensor) = interned.get(&key) {
            tensor.clone()
        } else {
            let tensor = view
                .load(device)
                .with_context(|| format!("tensor `{name}`"))?;
            let tensor = tensor.to_dtype(DType::F32)?;
            interned.insert(key, tensor.clone());
            tensor
        };
        tensors.push((name, digest, tensor));
    }
    Ok(tensors)
}

impl Checkpoint {
    /// A builder that layers load from.
    pub(super) fn builder(&self, device: &Device) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, device.clone())
    }

    /// An error when a tensor was never asked for: a panel with weights that do nothing is not the
    /// panel its maker thinks it is.
    pub(super) fn all_used(&self) -> Result<()> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match self.tensors.keys().find(|name| !used.contains(*name)) {
            Some(name) => bail!(
                "the {} member has a tensor `{name}` that its model does not use",
                self.name
            ),
            None => Ok(()),
        }
    }

    /// Whether both hold equal tensors under names that begin so, and the same names.
    pub(super) fn agrees_with(&self, other: &Self, prefix: &str) -> bool {
        let under = |c: &Self| -> Vec<(String, Digest)> {
            let all = c
                .tensors
                .iter()
                .filter(|(name, _)| name.starts_with(prefix));
            all.map(|(name, (digest, _))| (name.clone(), *digest))
                .collect()
        };
        under(self) == under(other)
    }
}

/// How many of the decoder's lower layers, embedding included, are equal in all members.
pub(super) fn shared_layers(checkpoints: &[Checkpoint], layers: usize) -> usize {
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
            candle::bail!(
                "the {} member's tensor `{name}` has shape {:?}, expected {shape:?}",
                self.name,
                tensor.shape()
            );
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle::Result<Tensor> {
        let Some((_, tensor)) = self.tensors.get(name) else {
            candle::bail!("the {} member has no tensor `{name}`", self.name);
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(name.to_owned());
        Ok(tensor.clone())
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }
}
