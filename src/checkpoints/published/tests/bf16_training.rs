//! Tests of training with bf16 matrices and f32 master weights, against PyTorch and on a GPU against the CPU.
//! The script `assets/golden/make_masters.py` generates the expected values.

use std::collections::HashMap;

use acem3_experts::train::{AdamW, Parameters, Student, Trainer};
use candle::{DType, Device, Tensor};

use super::distance;
use super::training::{
    ADAMW, LOSS, Reward, assert_is, preferences, steady, student, student_of, values,
};

/// Returns the tiny LLaVA: its exact initial weights, and its weights in a dtype on a device.
fn placed(device: &Device, dtype: DType) -> (Parameters, Parameters, Student) {
    let mut exact = None;
    let (parameters, student) = student_of(1.0, 1, |start| {
        exact = Some(start.clone());
        let placed = start.placed(device, dtype).unwrap();
        placed.freeze(&["model.vision_tower.".to_owned()])
    });
    (exact.unwrap(), parameters, student)
}

/// Creates an optimizer with f32 master weights for rounded parameters.
fn mastered(exact: &Parameters, parameters: &Parameters) -> AdamW {
    let optimizer = AdamW::new(parameters.trainable(), ADAMW);
    let optimizer = optimizer.with_masters(|name, var| exact.exact(name, var.shape()));
    optimizer.unwrap()
}

fn norm<'a>(all: impl Iterator<Item = &'a Tensor>) -> f64 {
    let squares = all.map(|t| {
        t.sqr()
            .unwrap()
            .sum_all()
            .unwrap()
            .to_scalar::<f32>()
            .unwrap()
    });
    squares.map(f64::from).sum::<f64>().sqrt()
}

/// Returns the change of every master weight.
fn moved(start: &Parameters, optimizer: &AdamW) -> HashMap<String, Tensor> {
    let values = optimizer.values().unwrap().into_iter();
    let moved = values.map(|(name, now)| {
        let before = start.exact(&name, now.shape()).unwrap();
        (name, (now - before).unwrap())
    });
    moved.collect()
}

#[test]
fn ten_steps_with_master_weights_match_torch() {
    let want = values("masters");
    let pairs = preferences(Reward::Target, &student(0.7).1);
    for (kind, rate) in [("usual", 1e-3), ("small", 1e-6)] {
        let (start, parameters, student) = placed(&Device::Cpu, DType::BF16);
        let optimizer = mastered(&start, &parameters);
        let mut trainer = Trainer::new(optimizer, steady(rate), f64::INFINITY);
        let losses = want[&format!("{kind}.losses")].to_vec1::<f32>().unwrap();
        let narrow = want["narrow.losses"].to_vec1::<f32>().unwrap();
        for (i, loss) in losses.into_iter().enumerate() {
            let step = trainer.step(&[()], |()| student.preference_loss(&pairs, LOSS));
            let got = step.unwrap().loss;
            let far = |want: f32| (got / f64::from(want) - 1.0).abs();
            assert!(far(loss) < 1e-3, "{kind}, step {i}: {got} {loss}");
            if kind == "usual" {
                let want = narrow[i];
                assert!(far(want) < 2e-2, "all in bf16, step {i}: {got} {want}");
            }
        }
        let moved = moved(&start, &trainer.optimizer);
        assert_eq!(moved.len(), parameters.trainable().len());
        for (name, got) in &moved {
            let want = &want[&format!("{kind}.{name}")];
            let far = norm([&(got - want).unwrap()].into_iter());
            let far = far / norm([want].into_iter());
            assert!(far < 5e-2, "{kind}: {name}: {far}");
        }
        // Without master weights, few rounded weights change at the small rate, and those by large steps.
        if kind == "small" {
            let without = f64::from(want["without.moved"].to_vec1::<f32>().unwrap()[0]);
            let with = norm(moved.values());
            assert!((without / with - 1.0).abs() > 0.5, "{with} {without}");
        }
        for (name, var) in parameters.trainable() {
            let half = var.rank() == 2;
            assert_eq!(var.dtype() == DType::BF16, half, "{name}");
        }
    }
}

/// Checks gradients in bf16, which has 8 significant bits.
#[test]
fn bf16_gradients_are_close_to_f32() {
    let pairs = preferences(Reward::Target, &student(0.7).1);
    let (_, rounded, narrow) = placed(&Device::Cpu, DType::BF16);
    let (_, exact, wide) = placed(&Device::Cpu, DType::F32);
    let gradients = |student: &Student| {
        let loss = student.preference_loss(&pairs, LOSS).unwrap();
        (loss.value, loss.backward().unwrap())
    };
    let ((a, narrow), (b, wide)) = (gradients(&narrow), gradients(&wide));
    assert!((a / b - 1.0).abs() < 1e-2, "{a} {b}");
    for ((name, var), (_, other)) in rounded.trainable().iter().zip(exact.trainable()) {
        let gradient = narrow.get(var).unwrap();
        assert_eq!(gradient.dtype(), var.dtype(), "{name}");
        let (got, want) = (
            gradient.to_dtype(DType::F32).unwrap(),
            wide.get(&other).unwrap(),
        );
        let far = distance(&got, want);
        assert!(far > 0.0 && far < 0.1, "{name}: {far}");
    }
}

/// Run with `cargo test --features cuda -- --ignored on_a_gpu`.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_losses_and_gradients_match_cpu() {
    let device = Device::new_cuda(0).unwrap();
    let pairs = preferences(Reward::Target, &student(0.7).1);
    for (dtype, most) in [(DType::F32, 1e-3), (DType::BF16, 5e-2)] {
        for recomputing in [false, true] {
            let found = [&Device::Cpu, &device].map(|device| {
                let (_, parameters, student) = placed(device, dtype);
                let student = student.recomputing(recomputing);
                let loss = student.preference_loss(&pairs, LOSS).unwrap();
                let store = loss.backward().unwrap();
                let gradient = |(name, var): (String, candle::Var)| {
                    let near = store.get(&var).unwrap().to_device(&Device::Cpu).unwrap();
                    (name, near.to_dtype(DType::F32).unwrap())
                };
                let gradients = parameters.trainable().into_iter().map(gradient);
                (loss.value, gradients.collect::<Vec<_>>())
            });
            let [(cpu, on_cpu), (gpu, on_gpu)] = found;
            assert!(
                (gpu / cpu - 1.0).abs() < f64::from(most),
                "{dtype:?}: {cpu} {gpu}"
            );
            for ((name, want), (_, got)) in on_cpu.iter().zip(&on_gpu) {
                let far = distance(got, want);
                assert!(far <= most, "{dtype:?}, {name}: {far}");
            }
        }
    }
    // In f32 they match PyTorch too.
    let (_, parameters, student) = placed(&device, DType::F32);
    let loss = student.preference_loss(&pairs, LOSS).unwrap();
    assert_is(&loss, &parameters, &values("rtdpo"), "rtdpo on a GPU");
}

/// Checks that ten steps on a GPU and on the CPU agree up to rounding.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_ten_steps_match_cpu() {
    let device = Device::new_cuda(0).unwrap();
    let pairs = preferences(Reward::Target, &student(0.7).1);
    for (dtype, most) in [(DType::F32, 1e-4), (DType::BF16, 1e-2)] {
        let losses = [&Device::Cpu, &device].map(|device| {
            let (start, parameters, student) = placed(device, dtype);
            let optimizer = mastered(&start, &parameters);
            let mut trainer = Trainer::new(optimizer, steady(1e-3), 1.0);
            let mut step = || trainer.step(&[()], |()| student.preference_loss(&pairs, LOSS));
            (0..10).map(|_| step().unwrap().loss).collect::<Vec<_>>()
        });
        for (cpu, gpu) in losses[0].iter().zip(&losses[1]) {
            assert!((gpu / cpu - 1.0).abs() < most, "{dtype:?}: {cpu} {gpu}");
        }
    }
}
