//! Tests of the trainer with a tiny model: steps, errors, checkpoints and reproducibility.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3_experts::Error;
use acem3_experts::train::{
    Batch, MatrixRule, Optimizer, OptimizerConfig, Parameters, Schedule, Sequence, ShardLoss,
    StepReport, TrainableModel, Trainer, load_checkpoint, parallel_map, save_checkpoint,
};
use candle::{DType, Device, Tensor, Var};

use crate::trainable_model::{self, FROZEN_PREFIXES, new_model, sequence};

/// Generates four shards of different lengths.
fn make_shards(step: u64) -> Vec<Vec<Sequence>> {
    let step = step as u32;
    (0..4)
        .map(|i| {
            let (a, b) = ([i + step, 40, 41, 42 + step], [50 + i, 51]);
            let mut shard = vec![sequence(i + step, true, &[&a, &b])];
            if i % 2 == 0 {
                shard.push(sequence(i, false, &[&b]));
            }
            shard
        })
        .collect()
}

/// Creates a trainer of the trainable parameters.
fn new_trainer(parameters: &Parameters) -> Trainer {
    new_trainer_with(parameters, MatrixRule::AdamW)
}

/// Creates a trainer that updates the matrices by a rule.
fn new_trainer_with(parameters: &Parameters, matrices: MatrixRule) -> Trainer {
    let config = OptimizerConfig { matrices, ..OptimizerConfig::default() };
    let schedule = Schedule { peak: 1e-2, warmup: 2, steps: 8, floor: 0.1 };
    Trainer::new(Optimizer::new(parameters.trainable(), config), schedule, 1.0)
}

/// Runs the next step.
fn run_step(trainer: &mut Trainer, model: &TrainableModel) -> StepReport {
    let shards = make_shards(trainer.steps());
    let loss = |shard: &Vec<Sequence>| model.loss(&Batch(shard), |_| true);
    trainer.step(&shards, loss).unwrap()
}

/// Returns the bit patterns of the f32 values of variables.
fn bits(vars: &[(String, Var)]) -> HashMap<String, Vec<u32>> {
    let values = |var: &Var| {
        let values = var.to_dtype(DType::F32).unwrap();
        values.flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    let bits = |(name, var): &(String, Var)| {
        let bits = values(var).into_iter().map(f32::to_bits);
        (name.clone(), bits.collect())
    };
    vars.iter().map(bits).collect()
}

/// Returns all weights as tensors.
fn tensors(parameters: &Parameters) -> Vec<(String, Tensor)> {
    let weights = parameters.all().into_iter();
    weights.map(|(name, var)| (name, var.as_detached_tensor())).collect()
}

#[test]
fn parallel_map_keeps_item_order() {
    let items: Vec<u64> = (0..13).collect();
    let running = AtomicUsize::new(0);
    let max_running = AtomicUsize::new(0);
    let results = parallel_map(&items, |i| {
        max_running.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(13 - i));
        assert_eq!(rayon::current_num_threads(), 1);
        running.fetch_sub(1, Ordering::SeqCst);
        if i % 5 == 3 {
            return Err(Error::Training(format!("item {i}")));
        }
        Ok(i * i)
    });
    assert_eq!(results.len(), 13);
    for (i, result) in results.into_iter().enumerate() {
        assert_eq!(result.is_err(), i % 5 == 3);
        match result {
            Ok(square) => assert_eq!(square, (i * i) as u64),
            Err(error) => assert_eq!(error.to_string(), format!("training: item {i}")),
        }
    }
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(max_running.into_inner(), processors.min(13));
    assert!(parallel_map(&[0u8; 0], |_| Ok(())).is_empty());
}

#[test]
fn panic_of_worker_is_an_error() {
    let items: Vec<u64> = (0..6).collect();
    let results = parallel_map(&items, |i| {
        assert_ne!(*i, 2, "on purpose");
        Ok(*i)
    });
    assert!(results.iter().any(Result::is_err));
}

#[test]
fn failed_step_returns_first_error_and_changes_nothing() {
    let (parameters, model) = new_model();
    let mut trainer = new_trainer(&parameters);
    let before = bits(&parameters.all());
    let shards = [0, 1, 2, 3];
    let error = trainer.step(&shards, |i| match i {
        0 => model.loss(&Batch(&[sequence(1, true, &[&[1, 2]])]), |_| true),
        i => Err(Error::Training(format!("shard {i}"))),
    });
    assert_eq!(error.unwrap_err().to_string(), "training: shard 1");
    assert_eq!(trainer.steps(), 0);
    assert_eq!(bits(&parameters.all()), before);
}

#[test]
fn trainable_parameter_without_gradient_is_an_error() {
    let (parameters, model) = new_model();
    // A weight of another stage in the same checkpoint.
    let vb = parameters.builder();
    vb.get((2, 3), "observer.weight").unwrap();
    let mut trainer = new_trainer(&parameters);
    let before = bits(&parameters.all());
    let loss = |shard: &Vec<Sequence>| model.loss(&Batch(shard), |_| true);
    let error = trainer.step(&make_shards(0), loss).unwrap_err().to_string();
    assert!(error.contains("`observer.weight`") && error.contains("no gradient"), "{error}");
    // Without shards, no parameter has a gradient.
    assert!(trainer.step(&[] as &[Vec<Sequence>], loss).is_err());
    assert_eq!((trainer.steps(), bits(&parameters.all())), (0, before));
}

#[test]
fn non_finite_loss_is_an_error_and_changes_nothing() {
    let (parameters, model) = new_model();
    let mut trainer = new_trainer(&parameters);
    run_step(&mut trainer, &model);
    let before = bits(&parameters.all());
    let scaled_loss = |factor: f64| {
        move |model: &TrainableModel, shard: &[Sequence]| {
            let loss = model.loss(&Batch(shard), |_| true)?;
            let sum = (loss.surrogate * factor)?;
            Ok::<_, Error>(ShardLoss { surrogate: sum, ..loss })
        }
    };
    for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let loss = scaled_loss(factor);
        let error = trainer.step(&make_shards(1), |shard| loss(&model, shard)).unwrap_err();
        assert!(error.to_string().contains("loss"), "{error}");
        assert_eq!((trainer.steps(), bits(&parameters.all())), (1, before.clone()));
    }
    // The optimizer state is unchanged too: the next step equals that of an undisturbed run.
    let (undisturbed_parameters, other) = new_model();
    let mut undisturbed = new_trainer(&undisturbed_parameters);
    run_step(&mut undisturbed, &other);
    run_step(&mut undisturbed, &other);
    run_step(&mut trainer, &model);
    assert_eq!(bits(&parameters.all()), bits(&undisturbed_parameters.all()));
}

/// Creates a model with matrices in `dtype`, and its trainer.
fn start_training(dtype: DType, matrices: MatrixRule) -> (Parameters, TrainableModel, Trainer) {
    let start = Parameters::uninitialized(5);
    let parameters = start.to_device(&Device::Cpu, dtype).unwrap();
    let parameters = parameters.freeze(&FROZEN_PREFIXES.map(str::to_owned));
    let model = trainable_model::load_model(&parameters);
    let mut trainer = new_trainer_with(&parameters, matrices);
    let master_value = |name: &str, var: &Var| start.master_value(name, var.shape());
    trainer.optimizer = trainer.optimizer.with_master_weights(master_value).unwrap();
    (parameters, model, trainer)
}

#[test]
fn resume_reproduces_uninterrupted_run() {
    for (dtype, matrices) in [
        (DType::F32, MatrixRule::AdamW),
        (DType::BF16, MatrixRule::AdamW),
        (DType::F32, MatrixRule::Muon),
        (DType::BF16, MatrixRule::Muon),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("running.safetensors");
        let (parameters, model, mut trainer) = start_training(dtype, matrices);
        let start = bits(&parameters.all());
        let mut expected = Vec::new();
        for i in 0..6 {
            if i == 3 {
                save_checkpoint(&file, tensors(&parameters), Some(&trainer.optimizer)).unwrap();
            }
            expected.push(run_step(&mut trainer, &model));
        }
        assert!(expected[5].loss < expected[0].loss);
        let (resumed, model, mut resumed_trainer) = start_training(dtype, matrices);
        let weights = load_checkpoint(&file, Some(&mut resumed_trainer.optimizer)).unwrap();
        resumed.restore(weights).unwrap();
        assert_eq!(resumed_trainer.steps(), 3);
        for expected_report in &expected[3..] {
            let report = run_step(&mut resumed_trainer, &model);
            assert_eq!(
                format!("{report:?}"),
                format!("{expected_report:?}"),
                "{dtype:?}, {matrices:?}"
            );
        }
        assert_eq!(bits(&resumed.all()), bits(&parameters.all()));
        let values = |trainer: &Trainer| {
            let values = trainer.optimizer.f32_values().unwrap().into_iter();
            let vars = values.map(|(name, value)| (name, Var::from_tensor(&value).unwrap()));
            bits(&vars.collect::<Vec<_>>())
        };
        assert_eq!(values(&resumed_trainer), values(&trainer));
        // Frozen weights are unchanged, all others have changed.
        for (name, bits) in bits(&resumed.all()) {
            let is_frozen = FROZEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            assert_eq!(bits == start[&name], is_frozen, "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn checkpoint_of_muon_lacks_a_moment_of_adamw() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("running.safetensors");
    let (parameters, _) = new_model();
    let muon = new_trainer_with(&parameters, MatrixRule::Muon).optimizer;
    save_checkpoint(&file, tensors(&parameters), Some(&muon)).unwrap();
    let mut adamw = new_trainer(&parameters).optimizer;
    let error = load_checkpoint(&file, Some(&mut adamw)).unwrap_err().to_string();
    assert!(error.contains("optimizer.square"), "{error}");
}

#[test]
fn mismatched_checkpoint_error_names_file_and_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.safetensors");
    let (parameters, _) = new_model();
    save_checkpoint(&file, tensors(&parameters), None).unwrap();
    let load = |optimizer: &mut Optimizer| {
        let error = load_checkpoint(&file, Some(optimizer)).unwrap_err();
        error.to_string()
    };
    let mut optimizer = new_trainer(&parameters).optimizer;
    let error = load(&mut optimizer);
    assert!(error.contains("other.safetensors") && error.contains("optimizer.step"), "{error}");
    // Optimizer state of another shape.
    let small_var = Var::from_tensor(&Tensor::zeros(3, DType::F32, &Device::Cpu).unwrap());
    let name = "model.norm.weight".to_owned();
    let other = Optimizer::new(vec![(name, small_var.unwrap())], OptimizerConfig::default());
    save_checkpoint(&file, tensors(&parameters), Some(&other)).unwrap();
    let norm = parameters.all().into_iter().filter(|(n, _)| n == "model.norm.weight");
    let mut optimizer = Optimizer::new(norm.collect(), OptimizerConfig::default());
    let error = load(&mut optimizer);
    assert!(error.contains("model.norm.weight"), "{error}");
    let error = load_checkpoint(Path::new("nowhere.safetensors"), None).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

/// Environment variable with the output file of a child process.
const WEIGHTS_FILE: &str = "ACEM3_TEST_WEIGHTS";

/// Trains in processes with one processor or all of them, and with several numbers of threads.
#[test]
fn number_of_processors_does_not_change_weights() {
    let train = || {
        let (parameters, model) = new_model();
        let mut trainer = new_trainer(&parameters);
        let reports: Vec<_> = (0..3).map(|_| run_step(&mut trainer, &model)).collect();
        let mut bits: Vec<_> = bits(&parameters.all()).into_iter().collect();
        bits.sort();
        format!("{reports:?}\n{bits:?}")
    };
    if let Ok(file) = std::env::var(WEIGHTS_FILE) {
        std::fs::write(file, train()).unwrap();
        return;
    }
    let expected = train();
    for (processors, threads) in [(Some("0"), "1"), (None, "1"), (None, "2"), (None, "4")] {
        if let Some(trained) = train_in_process(processors, threads) {
            assert!(trained == expected, "processors {processors:?}, threads {threads}");
        }
    }
}

/// Trains in a new process. Returns `None` if `taskset` cannot select the processors.
#[expect(clippy::print_stderr, reason = "a skipped test prints a message")]
fn train_in_process(processors: Option<&str>, threads: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights");
    let test = std::env::current_exe().unwrap();
    let mut command =
        Command::new(if processors.is_some() { "taskset".as_ref() } else { test.as_path() });
    if let Some(list) = processors {
        command.args(["-c", list]).arg(&test);
    }
    let output = command
        .args(["trainer::number_of_processors_does_not_change_weights", "--exact"])
        .env("RAYON_NUM_THREADS", threads)
        .env(WEIGHTS_FILE, &file)
        .output();
    let text = std::fs::read_to_string(file).ok();
    if text.is_none() && processors.is_some() {
        eprintln!("skipped: cannot start a process on selected processors, {output:?}");
        return None;
    }
    Some(text.unwrap_or_else(|| panic!("{output:?}")))
}
