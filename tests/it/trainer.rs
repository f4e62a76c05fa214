//! The trainer with a tiny student that sees: what a step does, and that it can be repeated.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acem3_experts::prompt::Slot;
use acem3_experts::train::{
    AdamW, AdamWConfig, Batch, Loss, Parameters, Schedule, Sequence, StepReport, Student, Trainer,
    in_parallel, load_checkpoint, save_checkpoint,
};
use acem3_experts::{Error, ModelConfig};
use acem3_projector::{ProjectorConfig, ProjectorKind};
use acem3_vision::{HiddenAct, SelectFeature, Selection, VisionConfig};
use candle::{Device, Tensor, Var};

use crate::tiny;

fn config() -> ModelConfig {
    ModelConfig {
        vision: VisionConfig {
            hidden_size: 16,
            intermediate_size: 20,
            num_hidden_layers: 2,
            num_attention_heads: 2,
            image_size: 12,
            patch_size: 6,
            num_channels: 3,
            layer_norm_eps: 1e-5,
            hidden_act: HiddenAct::QuickGelu,
        },
        selection: Selection {
            select_layer: -1,
            select_feature: SelectFeature::Patch,
        },
        projector: ProjectorConfig {
            kind: ProjectorKind::Mlp2xGelu,
            vision_hidden_size: 16,
            hidden_size: 32,
        },
        decoder: tiny::config(&tiny::tokenizer()),
    }
}

/// Not trained: they lie above the state that is used, or beside it.
const FROZEN: [&str; 1] = ["model.vision_tower.vision_model.post_layernorm."];

fn student(parameters: &Parameters) -> Student {
    let student = Student::load(&parameters.builder(&Device::Cpu), &config(), 2);
    student.unwrap()
}

/// A sequence about a picture: its prompt, and branches whose tokens are all learned.
fn sequence(salt: u32, image: bool, branches: &[&[u32]]) -> Sequence {
    let prompt = [
        Slot::Token(7),
        Slot::Image,
        Slot::Token(salt),
        Slot::Token(9),
    ];
    let pixels: Arc<[f32]> = (0..3 * 12 * 12)
        .map(|i| ((i as u32 * (salt + 3)) as f32 * 0.11).sin())
        .collect();
    let mut sequence = if image {
        Sequence::new(&prompt, Some(pixels), config().image_tokens())
    } else {
        Sequence::new(&[prompt[0], prompt[2]], None, 0)
    };
    for branch in branches {
        sequence.branch(branch.iter().map(|token| (*token, 1.0)));
    }
    sequence
}

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
    let values = |var: &Var| var.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let bits = |(name, var): &(String, Var)| {
        let bits = values(var).into_iter().map(f32::to_bits);
        (name.clone(), bits.collect())
    };
    vars.iter().map(bits).collect()
}

fn fresh() -> (Parameters, Student) {
    let parameters = Parameters::fresh(5).freeze(&FROZEN.map(str::to_owned));
    let student = student(&parameters);
    (parameters, student)
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
    let parameters = Parameters::fresh(5);
    let student = student(&parameters);
    let mut trainer = trainer(&parameters);
    let before = bits(&parameters.all());
    let loss = |shard: &Vec<Sequence>| student.loss(&Batch(shard), |_| true);
    let error = trainer.step(&shards(0), loss).unwrap_err().to_string();
    assert!(
        error.contains("post_layernorm") && error.contains("no gradient"),
        "{error}"
    );
    // Without any picture, all of the tower is without.
    let text = [vec![sequence(1, false, &[&[1, 2]])]];
    let error = trainer.step(&text, loss).unwrap_err().to_string();
    assert!(error.contains("no gradient"), "{error}");
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

#[test]
fn a_resumed_run_is_an_uninterrupted_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("running.safetensors");
    let (parameters, student) = fresh();
    let mut trainer = trainer(&parameters);
    let mut expected = Vec::new();
    for i in 0..6 {
        if i == 3 {
            save_checkpoint(&file, &parameters.all(), Some(&trainer.optimizer)).unwrap();
        }
        expected.push(step(&mut trainer, &student));
    }
    assert!(expected[5].loss < expected[0].loss);
    let resumed = Parameters::from_tensors(load_checkpoint(&file, None).unwrap()).unwrap();
    let resumed = resumed.freeze(&FROZEN.map(str::to_owned));
    let student = self::student(&resumed);
    let mut again = self::trainer(&resumed);
    load_checkpoint(&file, Some(&mut again.optimizer)).unwrap();
    assert_eq!(again.steps(), 3);
    for want in &expected[3..] {
        let got = step(&mut again, &student);
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
    }
    assert_eq!(bits(&resumed.all()), bits(&parameters.all()));
    // Nothing but the checkpoint lies there, and nothing of the optimizer is taken for a weight.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_checkpoint_that_does_not_fit_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.safetensors");
    let (parameters, _) = fresh();
    save_checkpoint(&file, &parameters.all(), None).unwrap();
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
    let small = Var::from_tensor(&Tensor::zeros(3, candle::DType::F32, &Device::Cpu).unwrap());
    let name = "model.norm.weight".to_owned();
    let other = AdamW::new(vec![(name, small.unwrap())], AdamWConfig::default());
    save_checkpoint(&file, &parameters.all(), Some(&other)).unwrap();
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

fn sum(student: &Student, sequences: &[Sequence]) -> f64 {
    let loss = student.loss(&Batch(sequences), |_| true).unwrap();
    f64::from(loss.sum.to_scalar::<f32>().unwrap())
}

#[test]
fn branches_and_batches_cost_what_their_plain_sequences_cost() {
    let (_, student) = fresh();
    let (a, b, c) = ([1, 2, 3], [4, 5], [6, 7, 8, 9]);
    let joined = [
        sequence(1, true, &[&a, &b]),
        sequence(2, false, &[&c]),
        sequence(3, true, &[&c, &a, &b]),
    ];
    let plain = [
        sequence(1, true, &[&a]),
        sequence(1, true, &[&b]),
        sequence(2, false, &[&c]),
        sequence(3, true, &[&c]),
        sequence(3, true, &[&a]),
        sequence(3, true, &[&b]),
    ];
    let want: f64 = plain
        .iter()
        .map(|s| sum(&student, std::slice::from_ref(s)))
        .sum();
    for got in [sum(&student, &joined), sum(&student, &plain)] {
        assert!((got - want).abs() / want < 1e-6, "{got}, expected {want}");
    }
    // Branches are not equal to one text in which they follow each other.
    let one: Vec<u32> = [&a[..], &b[..]].concat();
    let chained = sum(&student, &[sequence(1, true, &[&one])]);
    assert!((chained - sum(&student, &joined[..1])).abs() > 1e-3);
}

#[test]
fn every_sequence_sees_its_own_picture() {
    let (_, student) = fresh();
    let seeing = sequence(1, true, &[&[1, 2, 3]]);
    let alone = sum(&student, std::slice::from_ref(&seeing));
    // A picture that is in no prompt must not move the others.
    let mut blind = sequence(2, false, &[&[4, 5]]);
    let expected = alone + sum(&student, std::slice::from_ref(&blind));
    blind.pixels = sequence(9, true, &[]).pixels;
    let got = sum(&student, &[blind, seeing.clone()]);
    assert!(
        (got - expected).abs() / expected < 1e-6,
        "{got}, expected {expected}"
    );
    // A prompt with a place for a picture and none to put there.
    let mut without = seeing.clone();
    without.pixels = None;
    assert!(student.loss(&Batch(&[without]), |_| true).is_err());
    // A place of the wrong size.
    let mut small = seeing;
    small.image_at = Some(small.len() - 1);
    assert!(student.loss(&Batch(&[small]), |_| true).is_err());
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
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights");
    let test = std::env::current_exe().unwrap();
    let name = [
        "trainer::the_number_of_processors_changes_no_bit",
        "--exact",
    ];
    let want = weights();
    for (processors, threads) in [(Some("0"), "1"), (None, "1"), (None, "2"), (None, "4")] {
        let mut command = match processors {
            Some(list) => {
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", list]).arg(&test);
                taskset
            }
            None => Command::new(&test),
        };
        let command = command.args(name).env("RAYON_NUM_THREADS", threads);
        let Ok(done) = command.env(WEIGHTS_FILE, &file).output() else {
            eprintln!("skipped processors {processors:?}: no taskset here");
            continue;
        };
        if processors.is_some() && !file.exists() {
            eprintln!("skipped processors {processors:?}: {done:?}");
            continue;
        }
        assert!(done.status.success(), "{done:?}");
        let got = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(got == want, "processors {processors:?}, threads {threads}");
    }
}
