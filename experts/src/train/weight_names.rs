//! The names of the weights that layers load, without the weights.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle::{DType, Device, Result, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;

use crate::Error;

/// Notes what it is asked for, and gives zeros, which take the place of one number whatever their shape.
struct Names {
    known: BTreeSet<String>,
    asked: Arc<Mutex<BTreeSet<String>>>,
}

/// The names of all weights that `load` asks a builder for. `known`: those that a checkpoint has, by which some layers
/// tell their form.
pub fn weight_names(
    known: &BTreeSet<String>,
    load: impl FnOnce(&VarBuilder) -> std::result::Result<(), Error>,
) -> std::result::Result<BTreeSet<String>, Error> {
    let asked = Arc::default();
    let names = Names {
        known: known.clone(),
        asked: Arc::clone(&asked),
    };
    let vb = VarBuilder::from_backend(Box::new(names), DType::F32, Device::Cpu);
    load(&vb)?;
    let asked = std::mem::take(&mut *lock(&asked));
    Ok(asked)
}

fn lock(names: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimpleBackend for Names {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        _: DType,
        _: &Device,
    ) -> Result<Tensor> {
        lock(&self.asked).insert(name.to_owned());
        Tensor::zeros(1, DType::F32, &Device::Cpu)?.broadcast_as(shape)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        lock(&self.asked).insert(name.to_owned());
        Tensor::zeros(1, DType::F32, &Device::Cpu)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.known.contains(name)
    }
}
