//! Tests of training with bf16 matrices and f32 master weights, against PyTorch and on a GPU
//! against the CPU. The script `assets/golden/make_masters.py` generates the expected values.

use std::collections::HashMap;

use acem3_experts::train::{Optimizer, Parameters, TrainableModel, Trainer};
use candle::{DType, Device, Tensor};

use super::relative_difference;
use super::training::{
    ADAMW, LOSS, assert_loss_and_gradients, constant_schedule, load_preferences,
    load_training_values, tiny_llava, tiny_llava_with,
};
use crate::training::RewardTokenRole;

/// Returns the tiny LLaVA: its exact initial weights, and its weights in a dtype on a device.
fn tiny_llava_on(device: &Device, dtype: DType) -> (Parameters, Parameters, TrainableModel) {
    let mut exact = None;
    let (parameters, model) = tiny_llava_with(1.0, 1, |start| {
        exact = Some(start.clone());
        let converted = start.to_device(device, dtype).unwrap();
        converted.freeze(&["model.vision_tower.".to_owned()])
    });
    (exact.unwrap(), parameters, model)
}

/// Creates an optimizer with f32 master weights for rounded parameters.
fn optimizer_with_master_weights(exact: &Parameters, parameters: &Parameters) -> Optimizer {
    let optimizer = Optimizer::new(parameters.trainable(), ADAMW);
    let optimizer =
        optimizer.with_master_weights(|name, var| exact.master_value(name, var.shape()));
    optimizer.unwrap()
}

fn norm<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> f64 {
    let squares = tensors.map(|t| t.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap());
    squares.map(f64::from).sum::<f64>().sqrt()
}

/// Returns the change of every master weight.
fn master_weight_changes(start: &Parameters, optimizer: &Optimizer) -> HashMap<String, Tensor> {
    let values = optimizer.f32_values().unwrap().into_iter();
    let changes = values.map(|(name, now)| {
        let before = start.master_value(&name, now.shape()).unwrap();
        (name, (now - before).unwrap())
    });
    changes.collect()
}

#[test]
fn ten_steps_with_master_weights_match_torch() {
    let expected = load_training_values("masters");
    let pairs = load_preferences(RewardTokenRole::Target, &tiny_llava(0.7).1);
    for (kind, rate) in [("usual", 1e-3), ("small", 1e-6)] {
        let (start, parameters, model) = tiny_llava_on(&Device::Cpu, DType::BF16);
        let optimizer = optimizer_with_master_weights(&start, &parameters);
        let mut trainer = Trainer::new(optimizer, constant_schedule(rate), f64::INFINITY);
        let losses = expected[&format!("{kind}.losses")].to_vec1::<f32>().unwrap();
        let bf16_losses = expected["narrow.losses"].to_vec1::<f32>().unwrap();
        for (i, loss) in losses.into_iter().enumerate() {
            let step = trainer.step(&[()], |()| model.preference_loss(&pairs, LOSS));
            let actual = step.unwrap().loss;
            let difference = |expected: f32| (actual / f64::from(expected) - 1.0).abs();
            assert!(difference(loss) < 1e-3, "{kind}, step {i}: {actual} {loss}");
            if kind == "usual" {
                let expected = bf16_losses[i];
                assert!(difference(expected) < 2e-2, "all in bf16, step {i}: {actual} {expected}");
            }
        }
        let changes = master_weight_changes(&start, &trainer.optimizer);
        assert_eq!(changes.len(), parameters.trainable().len());
        for (name, actual) in &changes {
            let expected = &expected[&format!("{kind}.{name}")];
            let difference = norm([&(actual - expected).unwrap()].into_iter());
            let difference = difference / norm([expected].into_iter());
            assert!(difference < 5e-2, "{kind}: {name}: {difference}");
        }
        // Without master weights, few rounded weights change at the small rate, and those by large
        // steps.
        if kind == "small" {
            let without = f64::from(expected["without.moved"].to_vec1::<f32>().unwrap()[0]);
            let with = norm(changes.values());
            assert!((without / with - 1.0).abs() > 0.5, "{with} {without}");
        }
        for (name, var) in parameters.trainable() {
            let is_matrix = var.rank() == 2;
            assert_eq!(var.dtype() == DType::BF16, is_matrix, "{name}");
        }
    }
}

/// Checks gradients in bf16, which has 8 significant bits.
#[test]
fn bf16_gradients_are_close_to_f32() {
    let pairs = load_preferences(RewardTokenRole::Target, &tiny_llava(0.7).1);
    let (_, rounded, bf16_model) = tiny_llava_on(&Device::Cpu, DType::BF16);
    let (_, exact, f32_model) = tiny_llava_on(&Device::Cpu, DType::F32);
    let gradients = |model: &TrainableModel| {
        let loss = model.preference_loss(&pairs, LOSS).unwrap();
        (loss.loss_sum, loss.backward().unwrap())
    };
    let (bf16_loss, bf16_gradients) = gradients(&bf16_model);
    let (f32_loss, f32_gradients) = gradients(&f32_model);
    assert!((bf16_loss / f32_loss - 1.0).abs() < 1e-2, "{bf16_loss} {f32_loss}");
    for ((name, var), (_, other)) in rounded.trainable().iter().zip(exact.trainable()) {
        let gradient = bf16_gradients.get(var).unwrap();
        assert_eq!(gradient.dtype(), var.dtype(), "{name}");
        let (actual, expected) =
            (gradient.to_dtype(DType::F32).unwrap(), f32_gradients.get(&other).unwrap());
        let difference = relative_difference(&actual, expected);
        assert!(difference > 0.0 && difference < 0.1, "{name}: {difference}");
    }
}

/// Run with `cargo test --features cuda -- --ignored on_a_gpu`.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_losses_and_gradients_match_cpu() {
    let device = Device::new_cuda_with_stream(0).unwrap();
    let pairs = load_preferences(RewardTokenRole::Target, &tiny_llava(0.7).1);
    for (dtype, tolerance) in [(DType::F32, 1e-3), (DType::BF16, 5e-2)] {
        for recomputes in [false, true] {
            let results = [&Device::Cpu, &device].map(|device| {
                let (_, parameters, model) = tiny_llava_on(device, dtype);
                let model = model.with_recomputation(recomputes);
                let loss = model.preference_loss(&pairs, LOSS).unwrap();
                let store = loss.backward().unwrap();
                let gradient = |(name, var): (String, candle::Var)| {
                    let gradient_on_cpu = store.get(&var).unwrap().to_device(&Device::Cpu).unwrap();
                    (name, gradient_on_cpu.to_dtype(DType::F32).unwrap())
                };
                let gradients = parameters.trainable().into_iter().map(gradient);
                (loss.loss_sum, gradients.collect::<Vec<_>>())
            });
            let [(cpu, on_cpu), (gpu, on_gpu)] = results;
            assert!((gpu / cpu - 1.0).abs() < f64::from(tolerance), "{dtype:?}: {cpu} {gpu}");
            for ((name, expected), (_, actual)) in on_cpu.iter().zip(&on_gpu) {
                let difference = relative_difference(actual, expected);
                assert!(difference <= tolerance, "{dtype:?}, {name}: {difference}");
            }
        }
    }
    // In f32 they match PyTorch too.
    let (_, parameters, model) = tiny_llava_on(&device, DType::F32);
    let loss = model.preference_loss(&pairs, LOSS).unwrap();
    assert_loss_and_gradients(&loss, &parameters, &load_training_values("rtdpo"), "rtdpo on a GPU");
}

/// Checks that ten steps on a GPU and on the CPU agree up to rounding.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_ten_steps_match_cpu() {
    let device = Device::new_cuda_with_stream(0).unwrap();
    let pairs = load_preferences(RewardTokenRole::Target, &tiny_llava(0.7).1);
    for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::BF16, 1e-2)] {
        let losses = [&Device::Cpu, &device].map(|device| {
            let (start, parameters, model) = tiny_llava_on(device, dtype);
            let optimizer = optimizer_with_master_weights(&start, &parameters);
            let mut trainer = Trainer::new(optimizer, constant_schedule(1e-3), 1.0);
            let mut step = || trainer.step(&[()], |()| model.preference_loss(&pairs, LOSS));
            (0..10).map(|_| step().unwrap().loss).collect::<Vec<_>>()
        });
        for (cpu, gpu) in losses[0].iter().zip(&losses[1]) {
            assert!((gpu / cpu - 1.0).abs() < tolerance, "{dtype:?}: {cpu} {gpu}");
        }
    }
}
