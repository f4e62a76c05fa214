//! Whole trainings of a panel too small to learn anything.

use std::path::Path;
use std::time::Duration;

use acem3_experts::prompt::{BranchPrompts, JudgeInput, Rubric, Slot, TokenStep};
use acem3_experts::train::{Batch, Given, Sequence, Student};
use acem3_experts::{BranchJudge, TextTokenizer};
use acem3_vision::VisionConfig;
use candle::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::checkpoints::panel::spec::PanelSpec;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::preference_sequence::{
    PreferenceSequence, PreferenceSequenceBuilder,
};
use crate::training::*;

mod bf16;
mod evaluation_file;
mod frozen_cache;
mod initial_model;
mod preflight;

const CONFIG: &str = concat!(
    include_str!("../../../../tests/tiny.toml"),
    r#"
[[stages]]
name = "sft"
kind = "sft"
steps = 2
batch = 2
rate = 1e-3
warmup = 1

[[stages]]
name = "prefer"
kind = "rtdpo"
members = ["medical_knowledge", "conclusion"]
steps = 8
batch = 2
rate = 1e-2
warmup = 1
frozen_layers = 1
validate_every = 3
[stages.preferences]
cases = 3
store = "f32"
"#
);

/// What makes adapters of its last stage.
const LORA: &str = "[stages.lora]\nrank = 2\nalpha = 4.0\n";

fn config() -> TrainConfig {
    toml::from_str(CONFIG).unwrap()
}

fn adapted() -> TrainConfig {
    toml::from_str(&format!("{CONFIG}{LORA}")).unwrap()
}

fn mini(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("assets/mini")
        .join(name)
}

fn tokenizer() -> TextTokenizer {
    TextTokenizer::parse(&std::fs::read(mini(TOKENIZER_FILE)).unwrap()).unwrap()
}

fn scribe(config: &TrainConfig) -> SequenceBuilder {
    SequenceBuilder::new(config, tokenizer(), config.model.image_tokens()).unwrap()
}

/// Trains in a folder; false where it was interrupted.
fn run(config: &TrainConfig, out: &Path, interrupt: &Interrupt) -> Result<bool> {
    let paths = TrainPaths {
        out: out.to_owned(),
        data: None,
        device: Device::Cpu,
    };
    train(
        config,
        None,
        &paths,
        &TrainingProgress::new(true, interrupt.clone()),
    )
}

/// The folder of a training that has the tokenizer of the embedded panel.
fn prepared(config: &TrainConfig, out: &Path) {
    drop(crate::training::stages::run_folder::claim_folder(config, out).unwrap());
    std::fs::copy(mini(TOKENIZER_FILE), out.join(TOKENIZER_FILE)).unwrap();
}

/// Trains once at a stretch, and once with an interruption; holds the panels equal.
fn trained_twice(config: &TrainConfig, [whole, broken]: [&Path; 2]) {
    prepared(config, whole);
    prepared(config, broken);
    assert!(run(config, whole, &Interrupt::default()).unwrap());
    let interrupt = Interrupt::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = broken.join("prefer.rows.json");
            while !begun.exists() && !broken.join("panel").exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            interrupt.request();
        });
        run(config, broken, &interrupt).unwrap();
    });
    assert!(run(config, broken, &Interrupt::default()).unwrap());
    let panel = |folder: &Path, file: &str| std::fs::read(folder.join("panel").join(file)).unwrap();
    let files = MEMBERS.map(|member| format!("{member}.safetensors"));
    for file in files
        .iter()
        .map(String::as_str)
        .chain(["trunk.safetensors"])
    {
        assert!(panel(whole, file) == panel(broken, file), "{file}");
    }
}

#[test]
fn an_interrupted_training_of_preferences_ends_as_one_that_was_not() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    trained_twice(&config(), [&whole, &broken]);
    let panel = |folder: &Path, file: &str| std::fs::read(folder.join("panel").join(file)).unwrap();
    let spec = panel(&whole, crate::checkpoints::panel::spec::PANEL_FILE);
    let spec = PanelSpec::parse(std::str::from_utf8(&spec).unwrap()).unwrap();
    assert_eq!(spec.leads(), ["", "[Good]", "", "[Good]"]);
    // Nothing of a finished stage is left but its checkpoint and its metrics.
    let left = std::fs::read_dir(&whole).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut left: Vec<String> = left.filter(|name| name.starts_with("prefer.")).collect();
    left.sort();
    let expected = [
        "prefer.conclusion.metrics.jsonl",
        "prefer.conclusion.safetensors",
        "prefer.medical_knowledge.metrics.jsonl",
        "prefer.medical_knowledge.safetensors",
    ];
    assert_eq!(left, expected);
    let metrics = std::fs::read_to_string(whole.join(expected[2])).unwrap();
    assert!(metrics.contains("\"margin\"") && metrics.contains("\"validation_margin\""));
}

/// Adapters are merged into what a stage leaves; all that they are not beside stays as it was.
#[test]
fn an_interrupted_training_of_adapters_ends_as_one_that_was_not() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    let config = adapted();
    // Of the layer that stays as it is, nothing is computed twice.
    assert_eq!(
        config.stages[1].frozen_part(3),
        crate::training::config::frozen_part::FrozenPart::Trunk(1)
    );
    trained_twice(&config, [&whole, &broken]);
    let weights = |name: &str| load_checkpoint(&whole.join(name), None).unwrap();
    let before = weights("sft.safetensors");
    for member in ["medical_knowledge", "conclusion"] {
        let after = weights(&format!("prefer.{member}.safetensors"));
        assert_eq!(after.len(), before.len());
        for (name, tensor) in &after {
            let upper = ["model.layers.1.", "model.layers.2."];
            let beside = name.contains("_proj.") && upper.iter().any(|l| name.starts_with(l));
            assert_eq!(
                !crate::training::stages::member_state::is_equal(tensor, &before[name]),
                beside,
                "{name}"
            );
        }
    }
}

/// A checkpoint of a stage in progress is as small as what is learned.
#[test]
fn a_checkpoint_of_adapters_in_progress_holds_them_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = adapted();
    let stage = &mut config.stages[1];
    (stage.kind, stage.preferences) = (StageKind::Sft, None);
    stage.members.clear();
    prepared(&config, dir.path());
    let interrupt = Interrupt::default();
    interrupt.request();
    // After one step of the first stage, then after one of the second.
    for _ in 0..2 {
        assert!(!run(&config, dir.path(), &interrupt).unwrap());
    }
    let running = dir.path().join("prefer.running.safetensors");
    let names = load_checkpoint(&running, None).unwrap().into_keys();
    let mut names: Vec<String> = names.collect();
    assert_eq!(names.len(), 2 * 2 * 7);
    names.retain(|name| !name.contains("_proj.lora_"));
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn adapters_of_weights_that_are_not_there_yet_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = adapted();
    config.stages[0].lora = config.stages[1].lora.clone();
    prepared(&config, dir.path());
    let error = run(&config, dir.path(), &Interrupt::default()).unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("stage sft: [stages.lora] has no trained weights"),
        "{error}"
    );
    assert!(error.contains("hint: put a stage without"), "{error}");
}

/// What is kept of a frozen trunk is what the trunk computes, whichever member asks for it.
#[test]
fn a_kept_trunk_is_the_trunk() {
    let config = config();
    let scribe = scribe(&config);
    let teacher = ExampleSampler::new(&config, None);
    let live = TrainingProgress::new(true, Interrupt::default());
    let lectern = StageContext {
        config: &config,
        stage: &config.stages[1],
        sampler: &teacher,
        builder: &scribe,
        progress: &live,
        device: &Device::Cpu,
    };
    let dir = tempfile::tempdir().unwrap();
    let start = Parameters::fresh(9);
    let stored = PreferenceCache::build(lectern, &start, dir.path())
        .unwrap()
        .unwrap();
    let student = Student::load(&start.builder(), &config.model, 1).unwrap();
    let contrasts = PreferenceSequenceBuilder::new(&scribe, RewardTokenRole::Target).unwrap();
    let drawn = teacher.contrasts(&contrasts, lectern.settings, 1).unwrap();
    let [PreferenceSequence { sequence, members }] = drawn.as_slice() else {
        panic!("the prompts of all members begin with the case");
    };
    assert_eq!(*members, [1, 3]);
    for (i, member) in [1, 3].into_iter().enumerate() {
        let whole = sequence.part(&PreferenceSequence::branches(i)).unwrap().0;
        let places = stored.pairs(Some(member)).training;
        let kept = stored.sequence(places[1]).unwrap();
        assert_eq!(kept.tokens, whole.tokens);
        let Given::Hidden(hidden) = &kept.given else {
            panic!("hidden states are kept");
        };
        let top = student
            .trunk_top(&Batch(std::slice::from_ref(&whole)))
            .unwrap();
        let far = (hidden - &top[0])
            .unwrap()
            .abs()
            .unwrap()
            .max_all()
            .unwrap();
        assert!(far.to_scalar::<f32>().unwrap() < 1e-5, "member {member}");
        let likely = |s: Sequence| student.log_likelihoods(&Batch(&[s])).unwrap()[0];
        for (a, b) in likely(kept).into_iter().zip(likely(whole)) {
            assert!((a - b).abs() < 1e-4 * b.abs(), "{a} {b}");
        }
    }
}

/// A preferred text is, token by token, what a panel with reward tokens is made to begin with, and
/// the reward counts as written in one kind of training and as given in the other.
#[test]
fn a_preferred_text_begins_as_it_will_be_judged() {
    let config = config();
    let scribe = scribe(&config);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let pair =
        crate::training::examples::phantom_examples::pair(1, 2, &config.processor(), &mut rng)
            .unwrap();
    let counted = |reward| {
        let contrasts = PreferenceSequenceBuilder::new(&scribe, reward).unwrap();
        let worse = |ratings: &crate::training::preferences::EvaluationRatings| {
            let mut worse = ratings.clone();
            worse[0].1 = 5 - worse[0].1;
            Some(worse)
        };
        let drawn = contrasts.build(&pair, &pair, &[0], worse).unwrap();
        drawn[0].sequence.clone()
    };
    let steps = scribe.format_tokens(0, "[Good]").unwrap();
    let Some(TokenStep::Feed(fed)) = steps.first() else {
        panic!("a text begins with what is fed");
    };
    let prompt = scribe.prompt(0, &pair, &pair).unwrap();
    let image = |slot: &Slot| {
        if *slot == Slot::Image {
            config.model.image_tokens()
        } else {
            1
        }
    };
    let begin: usize = prompt.iter().map(image).sum();
    let written = counted(RewardTokenRole::Target);
    assert_eq!(written.tokens[begin..begin + fed.len()], *fed);
    let (given, none) = (
        counted(RewardTokenRole::Context),
        counted(RewardTokenRole::Absent),
    );
    assert_eq!(written.tokens, given.tokens);
    assert_eq!(written.targets.len(), given.targets.len() + 2);
    assert_eq!(none.targets.len(), given.targets.len());
    assert_eq!(none.len() + 2, given.len());
    // The judge is told to begin so.
    let prompts = BranchPrompts::new(config.layout, Rubric::built_in().unwrap(), config.rubric);
    let judge = BranchJudge::new(prompts.unwrap(), ["[Good]", "", ""], &tokenizer());
    let input = JudgeInput {
        image: true,
        question: &pair.question,
        responses: [&pair.responses[0].text, &pair.responses[1].text],
    };
    let tasks = judge.unwrap().tasks(&input, None, &tokenizer()).unwrap();
    assert_eq!(tasks[0].format[0], TokenStep::Feed(fed.clone()));
}

/// A training of one small stage, with the tokenizer of the embedded panel at hand.
fn supervised(rate: f64, out: &Path) -> TrainConfig {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini");
    let mut config = TrainConfig::read(&assets.join("train.toml")).unwrap();
    config.stages.drain(..2);
    config.stages.truncate(1);
    let stage = &mut config.stages[0];
    (stage.steps, stage.batch, stage.warmup, stage.learning_rate) = (2, 1, 0, rate);
    config.trunk_layers = 1;
    let decoder = &mut config.model.decoder;
    (decoder.num_hidden_layers, decoder.intermediate_size) = (2, 8);
    config.model.vision = VisionConfig {
        num_hidden_layers: 1,
        intermediate_size: 8,
        ..config.model.vision
    };
    prepared(&config, out);
    config
}

#[test]
fn a_loss_that_is_no_number_is_the_engine_s_and_blocks_no_mended_start() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path();
    let error = run(&supervised(1e38, out), out, &Interrupt::default()).unwrap_err();
    assert!(error.downcast_ref::<EngineFailure>().is_some(), "{error:#}");
    assert!(format!("{error:#}").contains("NaN"), "{error:#}");
    assert!(run(&supervised(1e-4, out), out, &Interrupt::default()).unwrap());
    assert!(out.join("panel/panel.toml").is_file());
}

/// A stage that fails late is not lost: with a lower rate it goes on where it was last validated.
#[test]
fn a_lower_rate_goes_on_from_the_last_validation() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path();
    let slow = |out: &Path| {
        let mut config = supervised(1e-3, out);
        (config.stages[0].steps, config.stages[0].validate_every) = (6, Some(1));
        config
    };
    let config = slow(out);
    let interrupt = Interrupt::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !out.join("sft.best.json").exists() && !out.join("panel").exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            interrupt.request();
        });
        run(&config, out, &interrupt).unwrap();
    });
    let mut config = slow(&dir.path().join("other"));
    config.stages[0].learning_rate = 1e-4;
    assert!(run(&config, out, &Interrupt::default()).unwrap());
    let text = std::fs::read_to_string(out.join("sft.metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        Some((line["step"].as_u64()?, line["rate"].as_f64()?))
    });
    let rates: Vec<(u64, f64)> = lines.flatten().collect();
    let steps: Vec<u64> = rates.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [1, 2, 3, 4, 5, 6], "{text}");
    assert!(rates[0].1 > 5e-4 && rates[5].1 < 1e-4, "{rates:?}");
}
