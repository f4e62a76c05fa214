//! Training with matrices in bf16 and masters in f32 against PyTorch (`assets/golden/make_masters.py` says what was
//! computed), and on a GPU against the CPU.

use std::collections::HashMap;

use acem3_experts::train::{AdamW, Parameters, Student, Trainer};
use candle::{DType, Device, Tensor};

use super::distance;
use super::training::{
    ADAMW, LOSS, Reward, assert_is, preferences, steady, student, student_of, values,
};

/// The tiny LLaVA in a type and on a device: what it begins with, and what it computes with.
fn placed(device: &Device, dtype: DType) -> (Parameters, Parameters, Student) {
    let mut exact = None;
    let (parameters, student) = student_of(1.0, 1, |start| {
        exact = Some(start.clone());
        let placed = start.placed(device, dtype).unwrap();
        placed.freeze(&["model.vision_tower.".to_owned()])
    });
    (exact.unwrap(), parameters, student)
}

/// The optimizer of a model that computes with rounded copies.
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

/// How far every master moved.
fn moved(start: &Parameters, optimizer: &AdamW) -> HashMap<String, Tensor> {
    let values = optimizer.values().unwrap().into_iter();
    let moved = values.map(|(name, now)| {
        let before = start.exact(&name, now.shape()).unwrap();
        (name, (now - before).unwrap())
    });
    moved.collect()
}

#[test]
fn ten_steps_on_masters_are_those_of_torch() {
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
        // Rounded weights alone would hardly move at the small rate, and those that do would jump.
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

/// In bf16 a gradient has 8 binary digits, wherever it was computed.
#[test]
fn gradients_of_rounded_weights_are_near_those_of_the_exact() {
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

/// `cargo test --features cuda -- --ignored on_a_gpu`, where there is one.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_losses_and_gradients_are_those_of_the_cpu() {
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
    // In f32 they are PyTorch's as well.
    let (_, parameters, student) = placed(&device, DType::F32);
    let loss = student.preference_loss(&pairs, LOSS).unwrap();
    assert_is(&loss, &parameters, &values("rtdpo"), "rtdpo on a GPU");
}

/// A training goes on wherever it was begun, in the same ten steps but for rounding.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_ten_steps_are_those_of_the_cpu() {
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
