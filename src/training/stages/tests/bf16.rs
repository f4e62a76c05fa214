//! Whole trainings of a model that computes in bf16.

use super::*;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::judging::panel::Panel;
use crate::support::device::Placement;

fn halved(text: &str) -> TrainConfig {
    toml::from_str(&format!("dtype = \"bf16\"\nrecompute = true\n{text}")).unwrap()
}

fn rounded(tensor: &Tensor) -> Tensor {
    let narrow = tensor.to_dtype(candle::DType::BF16).unwrap();
    narrow.to_dtype(tensor.dtype()).unwrap()
}

/// Interrupted trainings end as those that were not, to the bit; what is frozen keeps its values and what is
/// learned is not rounded; and the panel is one.
#[test]
fn a_training_in_bf16_leaves_single_precision() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    let config = halved(CONFIG);
    trained_twice(&config, [&whole, &broken]);
    let weights = |name: &str| load_checkpoint(&whole.join(name), None).unwrap();
    let before = weights("sft.safetensors");
    for member in ["medical_knowledge", "conclusion"] {
        let file = format!("prefer.{member}.safetensors");
        let bytes = |folder: &Path| std::fs::read(folder.join(&file)).unwrap();
        assert!(bytes(&whole) == bytes(&broken), "{file}");
        let after = weights(&file);
        assert_eq!(after.len(), before.len());
        for (name, tensor) in &after {
            assert_eq!(tensor.dtype(), candle::DType::F32, "{name}");
            let frozen = [
                "model.layers.0.",
                "model.embed_",
                "model.vision",
                "model.mm_",
            ];
            let frozen = frozen.iter().any(|f| name.starts_with(f));
            assert_eq!(
                crate::training::stages::member_state::is_equal(tensor, &before[name]),
                frozen,
                "{name}"
            );
            if tensor.rank() == 2 {
                assert!(
                    !crate::training::stages::member_state::is_equal(tensor, &rounded(tensor)),
                    "{name} is rounded"
                );
            }
        }
    }
    let files = PanelFiles::Folder(whole.join("panel"));
    Panel::load(&files, false, &Placement::cpu(), Downloads::default()).unwrap();
    // The same in single precision learns nearly the same.
    let single = dir.path().join("single");
    prepared(&super::config(), &single);
    assert!(run(&super::config(), &single, &Interrupt::default()).unwrap());
    let loss = |out: &Path| {
        let text = std::fs::read_to_string(out.join("prefer.conclusion.metrics.jsonl")).unwrap();
        let last = text
            .lines()
            .rfind(|l| l.contains("validation_loss"))
            .unwrap();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        last["validation_loss"].as_f64().unwrap()
    };
    let (narrow, wide) = (loss(&whole), loss(&single));
    let far = (narrow - wide).abs();
    assert!(far > 0.0 && far < 0.05 * wide, "{narrow} {wide}");
}

/// Adapters are added to the exact weights, not to the rounded ones that they were learned beside.
#[test]
fn adapters_in_bf16_are_merged_into_single_precision() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    trained_twice(&halved(&format!("{CONFIG}{LORA}")), [&whole, &broken]);
    let weights = |name: &str| load_checkpoint(&whole.join(name), None).unwrap();
    let before = weights("sft.safetensors");
    let after = weights("prefer.conclusion.safetensors");
    let name = "model.layers.2.mlp.down_proj.weight";
    let change = (&after[name] - &before[name]).unwrap();
    let rounding = (rounded(&before[name]) - &before[name]).unwrap();
    let largest = |t: &Tensor| {
        t.abs()
            .unwrap()
            .max_all()
            .unwrap()
            .to_scalar::<f32>()
            .unwrap()
    };
    assert!(largest(&change) > 0.0);
    // Two narrow matrices: the change has no more than two independent rows, which rounding has not.
    let volume = |t: &Tensor| {
        let rows: Vec<Vec<f32>> = t.narrow(0, 0, 3).unwrap().to_vec2().unwrap();
        least(&rows) / largest(t)
    };
    assert!(volume(&change) < 1e-2 && volume(&rounding) > 0.1);
}

/// What is left of the last of some rows when those before it are taken out (Gram and Schmidt), at its largest.
fn least(rows: &[Vec<f32>]) -> f32 {
    let mut rows = rows.to_vec();
    for i in 0..rows.len() {
        let (done, rest) = rows.split_at_mut(i + 1);
        let own = &done[i];
        let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        for row in rest {
            let share = dot(own, row) / dot(own, own);
            row.iter_mut().zip(own).for_each(|(v, o)| *v -= share * o);
        }
    }
    let last = rows.last().unwrap();
    last.iter().fold(0f32, |most, v| most.max(v.abs()))
}

#[test]
fn a_configuration_without_a_type_is_written_as_it_was() {
    let text = toml::to_string(&config()).unwrap();
    assert!(!text.contains("dtype"), "{text}");
    let text = toml::to_string(&halved(CONFIG)).unwrap();
    assert!(text.contains("dtype = \"bf16\""), "{text}");
    let other = toml::from_str::<TrainConfig>(&format!("dtype = \"f16\"\n{CONFIG}"));
    let error = other.unwrap_err().to_string();
    assert!(error.contains("`f32` or `bf16`"), "{error}");
}
