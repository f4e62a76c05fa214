//! Weights of a model in training, read from a checkpoint or initialised randomly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle::{DType, Device, Result, Shape, Tensor, Var, bail};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::optimizer::assign_rounded;
use crate::ops::ADAPTER_SUFFIXES;

// Name suffixes of the tensors of an adapter.
const LORA_A: &str = ADAPTER_SUFFIXES[0];
const LORA_B: &str = ADAPTER_SUFFIXES[1];
const LORA_ALPHA: &str = ADAPTER_SUFFIXES[2];

/// Named weights. Some are trainable, the others are frozen.
#[derive(Clone)]
pub struct Parameters {
    pub(super) weights: Arc<Mutex<BTreeMap<String, Weight>>>,
    pub(super) trainable_set: TrainableSet,
    /// Seed of missing weights. If `None`, loading a missing weight is an error.
    pub(super) init_seed: Option<u64>,
    pub(super) device: Device,
    /// Dtype of the matrices. All other weights are in f32.
    pub(super) dtype: DType,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            weights: Arc::default(),
            trainable_set: TrainableSet::default(),
            init_seed: None,
            device: Device::Cpu,
            dtype: DType::F32,
        }
    }
}

/// A weight.
#[derive(Clone)]
pub(super) enum Weight {
    /// A weight of its own, which a trainer may change.
    Variable(Var),
    /// Values that other owners share, so that a frozen weight is in memory once.
    Shared(Tensor),
}

impl Weight {
    /// Returns the values, without a link to the variable.
    pub(super) fn values(&self) -> Tensor {
        match self {
            Self::Variable(var) => var.as_detached_tensor(),
            Self::Shared(tensor) => tensor.clone(),
        }
    }

    fn shape(&self) -> &Shape {
        match self {
            Self::Variable(var) => var.shape(),
            Self::Shared(tensor) => tensor.shape(),
        }
    }
}

/// The trainable weights.
#[derive(Clone)]
pub(super) enum TrainableSet {
    /// All weights except those with one of these name prefixes.
    AllExcept(Arc<Vec<String>>),
    /// Only the matrices of adapters.
    Adapters,
}

impl Default for TrainableSet {
    fn default() -> Self {
        Self::AllExcept(Arc::default())
    }
}

impl Parameters {
    /// Creates an empty set. Each weight is initialised from `seed` and its name when a layer loads
    /// it.
    pub fn uninitialized(seed: u64) -> Self {
        Self { init_seed: Some(seed), ..Self::default() }
    }

    /// Creates the weights of a checkpoint, in f32 on the CPU. Loading any other weight is an
    /// error.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<Self> {
        let vars = tensors.into_iter().map(|(name, tensor)| {
            let tensor = tensor.to_dtype(DType::F32)?.to_device(&Device::Cpu)?;
            Ok((name, Weight::Variable(Var::from_tensor(&tensor)?)))
        });
        let weights = vars.collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Self { weights: Arc::new(Mutex::new(weights)), ..Self::default() })
    }

    /// Creates weights that share the values of CPU tensors instead of copying them. Matrices in bf16
    /// stay in bf16, all other weights are in f32. Loading any other weight is an error.
    ///
    /// The weights are frozen. [`Self::with_variables`] copies those that a stage trains.
    pub fn from_shared(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<Self> {
        let shared = tensors.into_iter().map(|(name, tensor)| {
            let keeps = tensor.rank() == 2 && tensor.dtype() == DType::BF16;
            let tensor = if keeps { tensor } else { tensor.to_dtype(DType::F32)? };
            Ok((name, Weight::Shared(tensor.to_device(&Device::Cpu)?.detach())))
        });
        let weights = shared.collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Self { weights: Arc::new(Mutex::new(weights)), ..Self::default() })
    }

    /// Returns the weights with a copy of each one that is not frozen, so that a trainer can change
    /// it. Copies have the dtype and device of the weights.
    pub fn with_variables(&self) -> Result<Self> {
        let weights = self.lock_weights().clone();
        let weights = weights.into_iter().map(|(name, weight)| {
            let weight = match weight {
                Weight::Shared(tensor) if !self.is_frozen(&name) => {
                    Weight::Variable(self.to_model_dtype(&tensor)?)
                }
                other => other,
            };
            Ok((name, weight))
        });
        let weights = weights.collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Self { weights: Arc::new(Mutex::new(weights)), ..self.clone() })
    }

    /// Returns the same weights, frozen if their name has one of the prefixes `frozen`.
    #[must_use]
    pub fn freeze(&self, frozen: &[String]) -> Self {
        Self { trainable_set: TrainableSet::AllExcept(Arc::new(frozen.to_vec())), ..self.clone() }
    }

    /// Returns the weights on a device, with matrices in `dtype` and all others in f32. Shares the
    /// weights if neither changes, and copies them otherwise. Weights that are initialised later
    /// get the same device and dtype.
    pub fn to_device(&self, device: &Device, dtype: DType) -> Result<Self> {
        let is_same_place = device.same_device(&self.device) && dtype == self.dtype;
        if is_same_place && self.lock_weights().values().all(|weight| self.has_model_dtype(weight))
        {
            return Ok(self.clone());
        }
        let converted =
            Self { weights: Arc::default(), device: device.clone(), dtype, ..self.clone() };
        let weights = self.lock_weights().clone();
        for (name, weight) in weights {
            let weight = match weight {
                Weight::Shared(tensor) => Weight::Shared(converted.convert(&tensor)?),
                Weight::Variable(var) => {
                    Weight::Variable(converted.to_model_dtype(&var.as_detached_tensor())?)
                }
            };
            converted.lock_weights().insert(name, weight);
        }
        Ok(converted)
    }

    /// Returns true if a weight has the dtype of the weights.
    fn has_model_dtype(&self, weight: &Weight) -> bool {
        match weight {
            Weight::Shared(tensor) => tensor.rank() != 2 || tensor.dtype() == self.dtype,
            Weight::Variable(_) => true,
        }
    }

    /// Converts values to the dtype and device of the weights. Equal values are shared.
    fn convert(&self, values: &Tensor) -> Result<Tensor> {
        let dtype = if values.rank() == 2 { self.dtype } else { DType::F32 };
        values.to_dtype(dtype)?.to_device(&self.device)
    }

    /// Creates a variable from values, with the dtype and device of the weights.
    pub(super) fn to_model_dtype(&self, values: &Tensor) -> Result<Var> {
        Var::from_tensor(&self.convert(values)?)
    }

    /// Returns the unrounded value of a weight in f32. Call it on the weights from which the model
    /// was converted. A missing weight is initialised from the seed.
    pub fn master_value(&self, name: &str, shape: &Shape) -> Result<Tensor> {
        self.initial_value(name, shape)?.to_dtype(DType::F32)
    }

    /// Returns the value of a weight in its dtype. A missing weight is initialised from the seed.
    fn initial_value(&self, name: &str, shape: &Shape) -> Result<Tensor> {
        let known = self.lock_weights().get(name).map(Weight::values);
        match (known, self.init_seed) {
            (Some(tensor), _) => Ok(tensor),
            (None, Some(seed)) => init_weight(shape, name, seed, &Device::Cpu),
            (None, None) => bail!("the checkpoint has no tensor `{name}`"),
        }
    }

    /// Returns the weights on the CPU: the values of `learned`, in f32, and those of `start` for all
    /// other weights, which are shared and keep their dtype.
    pub fn to_trained(&self, learned: Vec<(String, Tensor)>, start: &Self) -> Result<Self> {
        let mut learned: BTreeMap<String, Tensor> = learned.into_iter().collect();
        let weights = self.lock_weights().clone();
        let values = weights.into_iter().map(|(name, weight)| {
            let value = match learned.remove(&name) {
                Some(value) => value,
                // The `alpha` of an adapter is a scalar in f32, so it is never rounded.
                None if name.ends_with(LORA_ALPHA) => weight.values(),
                None => start.initial_value(&name, weight.shape())?,
            };
            Ok((name, value))
        });
        Self::from_shared(values.collect::<Result<Vec<_>>>()?)
    }

    /// Copies the tensors of a checkpoint into the weights of the same name.
    ///
    /// # Errors
    /// A tensor without a weight of its name and shape.
    pub fn restore(&self, tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<()> {
        let weights = self.lock_weights();
        for (name, tensor) in tensors {
            match weights.get(&name) {
                Some(Weight::Variable(var)) if var.shape() == tensor.shape() => {
                    assign_rounded(var, &tensor)?;
                }
                Some(Weight::Shared(_)) => bail!("tensor `{name}` is frozen"),
                Some(Weight::Variable(var)) => bail!(
                    "tensor `{name}` has shape {:?}, expected {:?}",
                    tensor.shape(),
                    var.shape()
                ),
                None => bail!("the model has no tensor `{name}` of the checkpoint"),
            }
        }
        Ok(())
    }

    /// Returns the same weights. Missing weights are initialised from `seed`.
    #[must_use]
    pub fn with_init_seed(&self, seed: u64) -> Self {
        Self { init_seed: Some(seed), ..self.clone() }
    }

    /// Returns a builder from which layers load the weights, on their device.
    pub fn builder(&self) -> VarBuilder<'static> {
        let device = self.device.clone();
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, device)
    }

    /// Returns the trainable weights with their names.
    pub fn trainable(&self) -> Vec<(String, Var)> {
        let all = self.all();
        all.into_iter().filter(|(name, _)| !self.is_frozen(name)).collect()
    }

    /// Returns all variables with their names. Shared weights are none.
    pub fn all(&self) -> Vec<(String, Var)> {
        let weights = self.lock_weights();
        let variables = weights.iter().filter_map(|(name, weight)| match weight {
            Weight::Variable(var) => Some((name.clone(), var.clone())),
            Weight::Shared(_) => None,
        });
        variables.collect()
    }

    /// Returns the values of all weights with their names.
    pub fn tensors(&self) -> Vec<(String, Tensor)> {
        let weights = self.lock_weights();
        weights.iter().map(|(name, weight)| (name.clone(), weight.values())).collect()
    }

    /// Locks the weights.
    pub(super) fn lock_weights(&self) -> MutexGuard<'_, BTreeMap<String, Weight>> {
        self.weights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tensor for a layer: a variable, or a constant if the weight is frozen.
    fn layer_tensor(&self, name: &str, weight: &Weight) -> Tensor {
        match weight {
            Weight::Variable(var) if !self.is_frozen(name) => var.as_tensor().clone(),
            frozen => frozen.values(),
        }
    }

    pub(super) fn is_frozen(&self, name: &str) -> bool {
        match &self.trainable_set {
            TrainableSet::AllExcept(frozen) => frozen.iter().any(|prefix| name.starts_with(prefix)),
            TrainableSet::Adapters => ![LORA_A, LORA_B].iter().any(|suffix| name.ends_with(suffix)),
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
        let mut weights = self.lock_weights();
        let weight = match (weights.get(name), self.init_seed) {
            (Some(weight), _) => weight.clone(),
            (None, Some(seed)) => {
                let var = self.to_model_dtype(&init_weight(&shape, name, seed, &Device::Cpu)?)?;
                let weight = Weight::Variable(var);
                weights.insert(name.to_owned(), weight.clone());
                weight
            }
            (None, None) => bail!("the checkpoint has no tensor `{name}`"),
        };
        if weight.shape() != &shape {
            bail!("tensor `{name}` has shape {:?}, expected {shape:?}", weight.shape());
        }
        Ok(self.layer_tensor(name, &weight))
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        let weights = self.lock_weights();
        match weights.get(name) {
            Some(weight) => Ok(self.layer_tensor(name, weight)),
            None => bail!("the checkpoint has no tensor `{name}`"),
        }
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.lock_weights().contains_key(name)
    }
}

/// Initialises a weight from its name, shape and seed.
///
/// Norm weights are one and biases zero. Embeddings are normal with standard deviation 0.02,
/// matrices with `0.7/√fan_in`. Matrices whose output is added to the residual stream have
/// `0.25/√fan_in`, which limits the activations of deep models in the first steps. Adapters follow
/// `reset_lora_parameters` in peft's `tuners/lora/layer.py`: `B` is zero and `A` uniform within
/// `±1/√fan_in`, which is `kaiming_uniform_(a=√5)`.
pub(super) fn init_weight(shape: &Shape, name: &str, seed: u64, device: &Device) -> Result<Tensor> {
    if name.ends_with("bias") || name.ends_with(LORA_B) {
        return Tensor::zeros(shape, DType::F32, device);
    }
    if shape.rank() == 1 && !name.ends_with("class_embedding") {
        return Tensor::ones(shape, DType::F32, device);
    }
    let fan_in: usize = shape.dims().iter().skip(1).product();
    // FNV-1a of the name, starting from the seed.
    let name_seed =
        name.bytes().fold(seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut rng = ChaCha8Rng::seed_from_u64(name_seed);
    if name.ends_with(LORA_A) {
        let bound = 1.0 / (fan_in as f64).sqrt();
        let values = (0..shape.elem_count()).map(|_| rng.random_range(-bound..bound) as f32);
        return Tensor::from_vec(values.collect(), shape.clone(), device);
    }
    let writes_residual =
        ["o_proj", "down_proj", "out_proj", "fc2"].iter().any(|n| name.contains(n));
    let std = match () {
        () if name.contains("embed") && !name.contains("patch") => 0.02,
        () if writes_residual => 0.25 / (fan_in as f64).sqrt(),
        () => 0.7 / (fan_in as f64).sqrt(),
    };
    // Box–Muller transform: normal values without another dependency.
    let values = (0..shape.elem_count()).map(|_| {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos() * std) as f32
    });
    Tensor::from_vec(values.collect(), shape.clone(), device)
}
