//! The weights of a model in training: read from a checkpoint, or drawn when training begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle::{DType, Device, Result, Shape, Tensor, Var, bail};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::adamw::set;
use crate::ops::ADAPTER;

/// The endings of the names of adapters' matrices.
const DOWN: &str = ADAPTER[0];
const UP: &str = ADAPTER[1];
const ALPHA: &str = ADAPTER[2];

/// Named weights; some are trained, the others stay as they are.
#[derive(Clone)]
pub struct Parameters {
    pub(super) store: Arc<Mutex<BTreeMap<String, Var>>>,
    pub(super) trained: Trained,
    pub(super) seed: Option<u64>,
    pub(super) device: Device,
    /// The type of matrices; all else is in f32.
    pub(super) dtype: DType,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            store: Arc::default(),
            trained: Trained::default(),
            seed: None,
            device: Device::Cpu,
            dtype: DType::F32,
        }
    }
}

/// Which weights are trained.
#[derive(Clone)]
pub(super) enum Trained {
    /// All but those whose names begin so.
    AllBut(Arc<Vec<String>>),
    /// What is beside a matrix, and nothing else.
    Adapters,
}

impl Default for Trained {
    fn default() -> Self {
        Self::AllBut(Arc::default())
    }
}

impl Parameters {
    /// No weights yet: each is drawn when a layer asks for it, by the seed and its name.
    pub fn fresh(seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..Self::default()
        }
    }

    /// The weights of a checkpoint, in f32 on the CPU; asking for another one is an error.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<Self> {
        let vars = tensors.into_iter().map(|(name, tensor)| {
            let tensor = tensor.to_dtype(DType::F32)?.to_device(&Device::Cpu)?;
            Ok((name, Var::from_tensor(&tensor)?))
        });
        let store = vars.collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Self {
            store: Arc::new(Mutex::new(store)),
            ..Self::default()
        })
    }

    /// The same weights, those whose names begin with one of `frozen` being constants.
    #[must_use]
    pub fn freeze(&self, frozen: &[String]) -> Self {
        Self {
            trained: Trained::AllBut(Arc::new(frozen.to_vec())),
            ..self.clone()
        }
    }

    /// The weights as a model computes with them on a device: matrices rounded to a type, all else in f32. They are
    /// these very weights where nothing changes, and else have values of their own; what is not drawn yet will be
    /// rounded so.
    pub fn placed(&self, device: &Device, dtype: DType) -> Result<Self> {
        if device.same_device(&self.device) && dtype == self.dtype {
            return Ok(self.clone());
        }
        let placed = Self {
            store: Arc::default(),
            device: device.clone(),
            dtype,
            ..self.clone()
        };
        for (name, var) in self.all() {
            let copy = placed.rounded(&var.as_detached_tensor())?;
            placed.lock().insert(name, copy);
        }
        Ok(placed)
    }

    /// A variable of these values, in the type and on the device that weights have here.
    pub(super) fn rounded(&self, values: &Tensor) -> Result<Var> {
        let dtype = if values.rank() == 2 {
            self.dtype
        } else {
            DType::F32
        };
        let values = values.to_dtype(dtype)?.to_device(&self.device)?;
        Var::from_tensor(&values)
    }

    /// The value of a weight of this name and shape before it was rounded: the one that is here, or what would be
    /// drawn.
    pub fn exact(&self, name: &str, shape: &Shape) -> Result<Tensor> {
        let found = self.lock().get(name).map(Var::as_detached_tensor);
        match (found, self.seed) {
            (Some(tensor), _) => Ok(tensor),
            (None, Some(seed)) => draw(shape, name, seed, &Device::Cpu),
            (None, None) => bail!("the checkpoint has no tensor `{name}`"),
        }
    }

    /// The same weights in f32 on the CPU: what was learned, and all others as `start` has them.
    pub fn whole(&self, learned: Vec<(String, Tensor)>, start: &Self) -> Result<Self> {
        let mut learned: BTreeMap<String, Tensor> = learned.into_iter().collect();
        let exact = self.all().into_iter().map(|(name, var)| {
            let value = match learned.remove(&name) {
                Some(value) => value,
                // The one number that belongs to an adapter is never rounded.
                None if name.ends_with(ALPHA) => var.as_detached_tensor(),
                None => start.exact(&name, var.shape())?,
            };
            Ok((name, value))
        });
        Self::from_tensors(exact.collect::<Result<Vec<_>>>()?)
    }

    /// Takes the values of a checkpoint's tensors, whose weights are all here.
    pub fn restore(&self, tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<()> {
        let store = self.lock();
        for (name, tensor) in tensors {
            match store.get(&name) {
                Some(var) if var.shape() == tensor.shape() => set(var, &tensor)?,
                Some(var) => bail!(
                    "tensor `{name}` has shape {:?}, expected {:?}",
                    tensor.shape(),
                    var.shape()
                ),
                None => bail!("the model has no tensor `{name}` of the checkpoint"),
            }
        }
        Ok(())
    }

    /// The same weights, missing ones being drawn by a seed.
    #[must_use]
    pub fn drawing(&self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self.clone()
        }
    }

    /// A builder that layers load from, on the device where the weights are.
    pub fn builder(&self) -> VarBuilder<'static> {
        let device = self.device.clone();
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, device)
    }

    /// The weights that are trained, by name.
    pub fn trainable(&self) -> Vec<(String, Var)> {
        let all = self.all();
        all.into_iter()
            .filter(|(name, _)| !self.is_frozen(name))
            .collect()
    }

    /// All weights, by name.
    pub fn all(&self) -> Vec<(String, Var)> {
        let store = self.lock();
        store
            .iter()
            .map(|(name, var)| (name.clone(), var.clone()))
            .collect()
    }

    /// The weights themselves, while nobody else touches them.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Var>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a layer gets: a variable, or a constant where it is frozen.
    fn weight(&self, name: &str, var: &Var) -> Tensor {
        if self.is_frozen(name) {
            var.as_detached_tensor()
        } else {
            var.as_tensor().clone()
        }
    }

    fn is_frozen(&self, name: &str) -> bool {
        match &self.trained {
            Trained::AllBut(frozen) => frozen.iter().any(|prefix| name.starts_with(prefix)),
            Trained::Adapters => ![DOWN, UP].iter().any(|ending| name.ends_with(ending)),
        }
    }
}

impl SimpleBackend for Parameters {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        _: DType,
        _: &Device,
    ) -> Result<Tensor> {
        let mut store = self.lock();
        let var = match (store.get(name), self.seed) {
            (Some(var), _) => var.clone(),
            (None, Some(seed)) => {
                let var = self.rounded(&draw(&shape, name, seed, &Device::Cpu)?)?;
                store.insert(name.to_owned(), var.clone());
                var
            }
            (None, None) => bail!("the checkpoint has no tensor `{name}`"),
        };
        if var.shape() != &shape {
            bail!(
                "tensor `{name}` has shape {:?}, expected {shape:?}",
                var.shape()
            );
        }
        Ok(self.weight(name, &var))
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        let store = self.lock();
        match store.get(name) {
            Some(var) => Ok(self.weight(name, var)),
            None => bail!("the checkpoint has no tensor `{name}`"),
        }
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }
}

/// Norm weights are one, biases zero; embeddings are drawn with 0.02, matrices with `0.7/√fan_in`,
/// and those that write into the residual stream with a third of it, so that depth does not blow up
/// the first steps. Of an adapter (`reset_lora_parameters` in peft's `tuners/lora/layer.py`), `B` is zero
/// and `A` uniform within `±1/√fan_in`, which is `kaiming_uniform_(a=√5)`.
pub(super) fn draw(shape: &Shape, name: &str, seed: u64, device: &Device) -> Result<Tensor> {
    if name.ends_with("bias") || name.ends_with(UP) {
        return Tensor::zeros(shape, DType::F32, device);
    }
    if shape.rank() == 1 && !name.ends_with("class_embedding") {
        return Tensor::ones(shape, DType::F32, device);
    }
    let fan_in: usize = shape.dims().iter().skip(1).product();
    let salt = name.bytes().fold(seed, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut rng = ChaCha8Rng::seed_from_u64(salt);
    if name.ends_with(DOWN) {
        let most = 1.0 / (fan_in as f64).sqrt();
        let values = (0..shape.elem_count()).map(|_| rng.random_range(-most..most) as f32);
        return Tensor::from_vec(values.collect(), shape.clone(), device);
    }
    let residual = ["o_proj", "down_proj", "out_proj", "fc2"]
        .iter()
        .any(|n| name.contains(n));
    let std = match () {
        () if name.contains("embed") && !name.contains("patch") => 0.02,
        () if residual => 0.25 / (fan_in as f64).sqrt(),
        () => 0.7 / (fan_in as f64).sqrt(),
    };
    // Box–Muller: normal values without another dependency.
    let values = (0..shape.elem_count()).map(|_| {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos() * std) as f32
    });
    Tensor::from_vec(values.collect(), shape.clone(), device)
}
