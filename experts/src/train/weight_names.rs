//! Names of the weights that layers load, determined without the weights.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle::{DType, Device, Result, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;

use crate::Error;

/// Backend that records the requested names and returns zeros. A tensor of any shape takes the
/// memory of one number.
struct NameRecorder {
    known: BTreeSet<String>,
    requested: Arc<Mutex<BTreeSet<String>>>,
}

/// Returns the names of all weights that `load` requests. `known`: names in the checkpoint, from
/// which some layers infer their variant.
pub fn weight_names(
    known: &BTreeSet<String>,
    load: impl FnOnce(&VarBuilder) -> std::result::Result<(), Error>,
) -> std::result::Result<BTreeSet<String>, Error> {
    let requested = Arc::default();
    let recorder = NameRecorder { known: known.clone(), requested: Arc::clone(&requested) };
    let vb = VarBuilder::from_backend(Box::new(recorder), DType::F32, Device::Cpu);
    load(&vb)?;
    let names = std::mem::take(&mut *lock_names(&requested));
    Ok(names)
}

fn lock_names(names: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimpleBackend for NameRecorder {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        _: DType,
        _: &Device,
    ) -> Result<Tensor> {
        lock_names(&self.requested).insert(name.to_owned());
        Tensor::zeros(1, DType::F32, &Device::Cpu)?.broadcast_as(shape)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        lock_names(&self.requested).insert(name.to_owned());
        Tensor::zeros(1, DType::F32, &Device::Cpu)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.known.contains(name)
    }
}
