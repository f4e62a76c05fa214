//! The trainer with the tiny student: what a step does, and that it can be repeated.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3_experts::Error;
use acem3_experts::train::{
    AdamW, AdamWConfig, Batch, Loss, Parameters, Schedule, Sequence, StepReport, Student, Trainer,
    in_parallel, load_checkpoint, save_checkpoint,
};
use candle::{DType, Device, Tensor, Var};

use crate::student::{self, FROZEN, fresh, sequence};

/// Four shards of different lengths.
fn shards(step: u64) -> Vec<Vec<Sequence>> {
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

fn trainer(parameters: &Parameters) -> Trainer {
    let schedule = Schedule {
        peak: 1e-2,
        warmup: 2,
        steps: 8,
        floor: 0.1,
    };
    let optimizer = AdamW::new(parameters.trainable(), AdamWConfig::default());
    Trainer::new(optimizer, schedule, 1.0)
}

fn step(trainer: &mut Trainer, student: &Student) -> StepReport {
    let shards = shards(trainer.steps());
    let loss = |shard: &Vec<Sequence>| student.loss(&Batch(shard), |_| true);
    trainer.step(&shards, loss).unwrap()
}

fn bits(vars: &[(String, Var)]) -> HashMap<String, Vec<u32>> {
    let values = |var: &Var| {
        let wide = var.to_dtype(DType::F32).unwrap();
        wide.flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    let bits = |(name, var): &(String, Var)| {
        let bits = values(var).into_iter().map(f32::to_bits);
        (name.clone(), bits.collect())
    };
    vars.iter().map(bits).collect()
}

/// All weights, to be written.
fn tensors(parameters: &Parameters) -> Vec<(String, Tensor)> {
    let all = parameters.all().into_iter();
    all.map(|(name, var)| (name, var.as_detached_tensor()))
        .collect()
}

#[test]
fn results_come_in_the_order_of_the_items() {
    let items: Vec<u64> = (0..13).collect();
    let running = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let results = in_parallel(&items, |i| {
        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
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
        match result {
            Ok(square) => assert_eq!(square, (i * i) as u64),
            Err(error) => assert_eq!(error.to_string(), format!("training: item {i}")),
        }
        assert!(i % 5 != 3 || most.load(Ordering::SeqCst) >= 1);
    }
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(most.into_inner(), processors.min(13));
    assert!(in_parallel(&[0u8; 0], |_| Ok(())).is_empty());
}

#[test]
fn a_worker_that_panics_is_an_error() {
    let items: Vec<u64> = (0..6).collect();
    let results = in_parallel(&items, |i| {
        assert_ne!(*i, 2, "on purpose");
        Ok(*i)
    });
    assert!(results.iter().any(Result::is_err));
}

#[test]
fn the_first_failing_shard_is_the_error_and_changes_nothing() {
    let (parameters, student) = fresh();
    let mut trainer = trainer(&parameters);
    let before = bits(&parameters.all());
    let shards = [0, 1, 2, 3];
    let error = trainer.step(&shards, |i| match i {
        0 => student.loss(&Batch(&[sequence(1, true, &[&[1, 2]])]), |_| true),
        i => Err(Error::Training(format!("shard {i}"))),
    });
    assert_eq!(error.unwrap_err().to_string(), "training: shard 1");
    assert_eq!(trainer.steps(), 0);
    assert_eq!(bits(&parameters.all()), before);
}

#[test]
fn a_trainable_parameter_without_gradient_is_an_error() {
    let (parameters, student) = fresh();
    // A weight of another stage, in the same checkpoint.
    let vb = parameters.builder();
    vb.get((2, 3), "observer.weight").unwrap();
    let mut trainer = trainer(&parameters);
    let before = bits(&parameters.all());
    let loss = |shard: &Vec<Sequence>| student.loss(&Batch(shard), |_| true);
    let error = trainer.step(&shards(0), loss).unwrap_err().to_string();
    assert!(
        error.contains("`observer.weight`") && error.contains("no gradient"),
        "{error}"
    );
    // Without any shard, everything is without.
    assert!(trainer.step(&[] as &[Vec<Sequence>], loss).is_err());
    assert_eq!((trainer.steps(), bits(&parameters.all())), (0, before));
}

#[test]
fn a_loss_that_is_no_number_is_an_error_and_changes_nothing() {
    let (parameters, student) = fresh();
    let mut trainer = trainer(&parameters);
    step(&mut trainer, &student);
    let before = bits(&parameters.all());
    let scaled = |by: f64| {
        move |student: &Student, shard: &[Sequence]| {
            let loss = student.loss(&Batch(shard), |_| true)?;
            let sum = (loss.sum * by)?;
            Ok::<_, Error>(Loss { sum, ..loss })
        }
    };
    for by in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let loss = scaled(by);
        let error = trainer
            .step(&shards(1), |shard| loss(&student, shard))
            .unwrap_err();
        assert!(error.to_string().contains("loss"), "{error}");
        assert_eq!(
            (trainer.steps(), bits(&parameters.all())),
            (1, before.clone())
        );
    }
    // The optimizer's means were not touched either: the next step is that of a run without the accident.
    let (calm, other) = fresh();
    let mut undisturbed = self::trainer(&calm);
    step(&mut undisturbed, &other);
    step(&mut undisturbed, &other);
    step(&mut trainer, &student);
    assert_eq!(bits(&parameters.all()), bits(&calm.all()));
}

/// A model whose matrices are of a type, and its trainer.
fn begun(dtype: DType) -> (Parameters, Student, Trainer) {
    let start = Parameters::fresh(5);
    let parameters = start.placed(&Device::Cpu, dtype).unwrap();
    let parameters = parameters.freeze(&FROZEN.map(str::to_owned));
    let student = student::student(&parameters);
    let mut trainer = trainer(&parameters);
    let exact = |name: &str, var: &Var| start.exact(name, var.shape());
    trainer.optimizer = trainer.optimizer.with_masters(exact).unwrap();
    (parameters, student, trainer)
}

#[test]
fn a_resumed_run_is_an_uninterrupted_one() {
    for dtype in [DType::F32, DType::BF16] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("running.safetensors");
        let (parameters, student, mut trainer) = begun(dtype);
        let start = bits(&parameters.all());
        let mut expected = Vec::new();
        for i in 0..6 {
            if i == 3 {
                save_checkpoint(&file, tensors(&parameters), Some(&trainer.optimizer)).unwrap();
            }
            expected.push(step(&mut trainer, &student));
        }
        assert!(expected[5].loss < expected[0].loss);
        let (resumed, student, mut again) = begun(dtype);
        let kept = load_checkpoint(&file, Some(&mut again.optimizer)).unwrap();
        resumed.restore(kept).unwrap();
        assert_eq!(again.steps(), 3);
        for want in &expected[3..] {
            let got = step(&mut again, &student);
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{dtype:?}");
        }
        assert_eq!(bits(&resumed.all()), bits(&parameters.all()));
        let values = |trainer: &Trainer| {
            let values = trainer.optimizer.values().unwrap().into_iter();
            let vars = values.map(|(name, value)| (name, Var::from_tensor(&value).unwrap()));
            bits(&vars.collect::<Vec<_>>())
        };
        assert_eq!(values(&again), values(&trainer));
        // What is frozen stayed as it was, everything else moved.
        for (name, bits) in bits(&resumed.all()) {
            let frozen = FROZEN.iter().any(|prefix| name.starts_with(prefix));
            assert_eq!(bits == start[&name], frozen, "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_checkpoint_that_does_not_fit_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.safetensors");
    let (parameters, _) = fresh();
    save_checkpoint(&file, tensors(&parameters), None).unwrap();
    let load = |optimizer: &mut AdamW| {
        let error = load_checkpoint(&file, Some(optimizer)).unwrap_err();
        error.to_string()
    };
    let mut optimizer = trainer(&parameters).optimizer;
    let error = load(&mut optimizer);
    assert!(
        error.contains("other.safetensors") && error.contains("optimizer.step"),
        "{error}"
    );
    // Means of another shape.
    let small = Var::from_tensor(&Tensor::zeros(3, DType::F32, &Device::Cpu).unwrap());
    let name = "model.norm.weight".to_owned();
    let other = AdamW::new(vec![(name, small.unwrap())], AdamWConfig::default());
    save_checkpoint(&file, tensors(&parameters), Some(&other)).unwrap();
    let norm = parameters
        .all()
        .into_iter()
        .filter(|(n, _)| n == "model.norm.weight");
    let mut optimizer = AdamW::new(norm.collect(), AdamWConfig::default());
    let error = load(&mut optimizer);
    assert!(error.contains("model.norm.weight"), "{error}");
    let error = load_checkpoint(Path::new("nowhere.safetensors"), None).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

const WEIGHTS_FILE: &str = "ACEM3_TEST_WEIGHTS";

/// In processes that may use one processor or all of them, with any number of threads.
#[test]
fn the_number_of_processors_changes_no_bit() {
    let weights = || {
        let (parameters, student) = fresh();
        let mut trainer = trainer(&parameters);
        let reports: Vec<_> = (0..3).map(|_| step(&mut trainer, &student)).collect();
        let mut bits: Vec<_> = bits(&parameters.all()).into_iter().collect();
        bits.sort();
        format!("{reports:?}\n{bits:?}")
    };
    if let Ok(file) = std::env::var(WEIGHTS_FILE) {
        std::fs::write(file, weights()).unwrap();
        return;
    }
    let want = weights();
    for (processors, threads) in [(Some("0"), "1"), (None, "1"), (None, "2"), (None, "4")] {
        if let Some(got) = trained_elsewhere(processors, threads) {
            assert!(got == want, "processors {processors:?}, threads {threads}");
        }
    }
}

/// What a process of its own trains; none where processors cannot be chosen.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn trained_elsewhere(processors: Option<&str>, threads: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights");
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new(if processors.is_some() {
        "taskset".as_ref()
    } else {
        test.as_path()
    });
    if let Some(list) = processors {
        command.args(["-c", list]).arg(&test);
    }
    let done = command
        .args([
            "trainer::the_number_of_processors_changes_no_bit",
            "--exact",
        ])
        .env("RAYON_NUM_THREADS", threads)
        .env(WEIGHTS_FILE, &file)
        .output();
    let text = std::fs::read_to_string(file).ok();
    if text.is_none() && processors.is_some() {
        eprintln!("skipped: no process with its own processors, {done:?}");
        return None;
    }
    Some(text.unwrap_or_else(|| panic!("{done:?}")))
}
