//! Adapters of a member: those of all stages that trained it, as one adapter per matrix.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use acem3_experts::ops::ADAPTER_SUFFIXES;
use acem3_experts::train::load_checkpoint;
use anyhow::{Context, Result};
use candle::{Device, Tensor};

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::training::stages::files::finished_weights::check_finished_weights;

/// Where adapters of a member are.
#[derive(Clone)]
pub(crate) enum AdapterSource<'a> {
    /// A file of a stage.
    File(PathBuf),
    /// The member of the initial model, by index.
    Initial(&'a InitialModel, usize),
}

impl AdapterSource<'_> {
    /// Returns true if both are the same adapters by their location.
    pub(crate) fn is_same_location(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) => a == b,
            (Self::Initial(initial_model, a), Self::Initial(_, b)) => {
                a == b || initial_model.is_single_model()
            }
            _ => false,
        }
    }

    /// Describes the location for messages.
    fn describe(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Initial(..) => "start".to_owned(),
        }
    }
}

/// Tensors of one adapter: `A`, `B` and `alpha` (`experts/src/ops/adapted_linear.rs`).
struct AdapterTensors {
    a: Tensor,
    b: Tensor,
    alpha: f32,
}

/// Reads the adapters of stages, each trained on the result of the one before, and returns their sum
/// by tensor name. The rank of a sum is the sum of the ranks.
pub(crate) fn read_member_adapters(sources: &[AdapterSource]) -> Result<HashMap<String, Tensor>> {
    let mut by_matrix: BTreeMap<String, AdapterTensors> = BTreeMap::new();
    for source in sources {
        for (matrix, adapter) in read_adapters(source)? {
            let sum = match by_matrix.remove(&matrix) {
                Some(earlier) => earlier.add(&adapter).with_context(|| matrix.clone())?,
                None => adapter,
            };
            by_matrix.insert(matrix, sum);
        }
    }
    let mut tensors = HashMap::new();
    for (matrix, AdapterTensors { a, b, alpha }) in by_matrix {
        let alpha = Tensor::new(alpha, &Device::Cpu)?;
        for (suffix, tensor) in ADAPTER_SUFFIXES.iter().zip([a, b, alpha]) {
            tensors.insert(format!("{matrix}.{suffix}"), tensor);
        }
    }
    Ok(tensors)
}

/// Reads the adapters of a stage by the name of their matrix.
fn read_adapters(source: &AdapterSource) -> Result<Vec<(String, AdapterTensors)>> {
    let mut tensors: HashMap<String, Tensor> = match source {
        AdapterSource::File(file) => {
            let tensors = load_checkpoint(file, None)?;
            check_finished_weights(file, &tensors)?;
            tensors
        }
        AdapterSource::Initial(initial_model, member) => {
            initial_model.adapters(*member)?.into_iter().collect()
        }
    };
    let [a, b, alpha] = ADAPTER_SUFFIXES;
    let end = format!(".{a}");
    let matrices: Vec<String> =
        tensors.keys().filter_map(|name| Some(name.strip_suffix(&end)?.to_owned())).collect();
    let adapters = matrices.into_iter().map(|matrix| {
        let mut take = |suffix: &str| {
            let name = format!("{matrix}.{suffix}");
            tensors.remove(&name).with_context(|| format!("{}: no `{name}`", source.describe()))
        };
        let adapter =
            AdapterTensors { a: take(a)?, b: take(b)?, alpha: take(alpha)?.to_scalar::<f32>()? };
        Ok((matrix, adapter))
    });
    adapters.collect()
}

impl AdapterTensors {
    /// Returns the adapter whose product is the sum of both products.
    fn add(&self, other: &Self) -> Result<Self> {
        let scaled = |adapter: &Self| -> Result<Tensor> {
            Ok((&adapter.b * (f64::from(adapter.alpha) / adapter.a.dim(0)? as f64))?)
        };
        let a = Tensor::cat(&[&self.a, &other.a], 0)?;
        let b = Tensor::cat(&[&scaled(self)?, &scaled(other)?], 1)?;
        let alpha = a.dim(0)? as f32;
        Ok(Self { a, b, alpha })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::path::Path;

    use acem3_experts::train::{Parameters, save_checkpoint};
    use candle::DType;

    /// Writes an adapter of rank 2 of a matrix (3, 4), with all values of `B` equal.
    fn write_adapter(file: &Path, value: f32, alpha: f32) {
        let a = Tensor::arange(0f32, 8.0, &Device::Cpu).unwrap().reshape((2, 4)).unwrap();
        let b = Tensor::full(value, (3, 2), &Device::Cpu).unwrap();
        let alpha = Tensor::new(alpha, &Device::Cpu).unwrap();
        let named = ADAPTER_SUFFIXES.iter().zip([a, b, alpha]);
        let named = named.map(|(suffix, tensor)| (format!("model.m.{suffix}"), tensor));
        save_checkpoint(file, named, None).unwrap();
    }

    #[test]
    fn adapters_of_two_stages_sum_to_one() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| dir.path().join(name));
        write_adapter(&files[0], 0.5, 4.0);
        write_adapter(&files[1], 0.25, 8.0);
        let merged = |files: &[PathBuf]| {
            let files: Vec<_> = files.iter().cloned().map(AdapterSource::File).collect();
            let zero = Tensor::zeros((3, 4), DType::F32, &Device::Cpu).unwrap();
            let adapters = read_member_adapters(&files).unwrap();
            let all = adapters.into_iter().chain([("model.m.weight".to_owned(), zero)]);
            let merged = Parameters::from_tensors(all).unwrap().merge_adapters().unwrap();
            merged[0].1.to_vec2::<f32>().unwrap()
        };
        let sum = merged(&files);
        let (first, second) = (merged(&files[..1]), merged(&files[1..]));
        for row in 0..3 {
            for column in 0..4 {
                let expected = first[row][column] + second[row][column];
                assert!((sum[row][column] - expected).abs() < 1e-6);
            }
        }
        // 4 / 2 · ½ · (0 + 4).
        assert!((first[0][0] - 4.0).abs() < 1e-6);
        assert!(read_member_adapters(&[]).unwrap().is_empty());
    }
}
