//! Trainings on preference pairs.

use acem3_experts::BranchJudge;
use acem3_experts::prompt::{BranchPrompts, JudgeInput, Rubric, Slot, TokenStep};
use acem3_experts::train::{Batch, Given, Parameters, Sequence, Student};
use candle::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{config, panel_file, sequence_builder, tokenizer, train_twice};
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::config::reward_token::RewardTokenRole;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::phantom_examples;
use crate::training::preferences::EvaluationRatings;
use crate::training::preferences::preference_sequence::{
    PreferenceSequence, PreferenceSequenceBuilder,
};
use crate::training::stages::context::StageContext;
use crate::training::stages::progress::TrainingProgress;
use crate::training::stages::tasks::preference_cache::PreferenceCache;
use crate::training::stages::tasks::preference_source::PreferenceSource;

#[test]
fn interrupted_preference_training_ends_like_uninterrupted() {
    let dir = tempfile::tempdir().unwrap();
    let out = train_twice(&config(), dir.path()).uninterrupted;
    let spec = panel_file(&out, PANEL_FILE);
    let spec = PanelSpec::parse(std::str::from_utf8(&spec).unwrap()).unwrap();
    assert_eq!(spec.leads(), ["", "[Good]", "", "[Good]"]);
    // Only the checkpoints and metrics of a finished stage remain.
    let files = std::fs::read_dir(&out).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = files.filter(|name| name.starts_with("prefer.")).collect();
    files.sort();
    let expected = [
        "prefer.conclusion.metrics.jsonl",
        "prefer.conclusion.safetensors",
        "prefer.medical_knowledge.metrics.jsonl",
        "prefer.medical_knowledge.safetensors",
    ];
    assert_eq!(files, expected);
    let metrics = std::fs::read_to_string(out.join(expected[2])).unwrap();
    assert!(metrics.contains("\"margin\"") && metrics.contains("\"validation_margin\""));
}

#[test]
fn cached_trunk_equals_computed_trunk() {
    let config = config();
    let builder = sequence_builder(&config);
    let sampler = ExampleSampler::new(&config, None);
    let progress = TrainingProgress::new(true, Interrupt::default());
    let context = StageContext {
        config: &config,
        stage: &config.stages[1],
        sampler: &sampler,
        builder: &builder,
        progress: &progress,
        device: &Device::Cpu,
    };
    let dir = tempfile::tempdir().unwrap();
    let start = Parameters::fresh(9);
    let cache = PreferenceCache::build(context, &start, dir.path())
        .unwrap()
        .unwrap();
    let student = Student::load(&start.builder(), &config.model, 1).unwrap();
    let source = PreferenceSource::open(context).unwrap();
    let sequences = source.sequences(1).unwrap();
    let [PreferenceSequence { sequence, members }] = sequences.as_slice() else {
        panic!("the prompts of all members begin with the case");
    };
    assert_eq!(*members, [1, 3]);
    for (i, member) in [1, 3].into_iter().enumerate() {
        let computed = sequence.part(&PreferenceSequence::branches(i)).unwrap().0;
        let pairs = cache.pairs(Some(member)).training;
        let cached = cache.sequence(pairs[1]).unwrap();
        assert_eq!(cached.tokens, computed.tokens);
        let Given::Hidden(hidden) = &cached.given else {
            panic!("hidden states are cached");
        };
        let top = student
            .trunk_top(&Batch(std::slice::from_ref(&computed)))
            .unwrap();
        let difference = (hidden - &top[0])
            .unwrap()
            .abs()
            .unwrap()
            .max_all()
            .unwrap();
        assert!(
            difference.to_scalar::<f32>().unwrap() < 1e-5,
            "member {member}"
        );
        let likelihoods = |s: Sequence| student.log_likelihoods(&Batch(&[s])).unwrap()[0];
        for (a, b) in likelihoods(cached).into_iter().zip(likelihoods(computed)) {
            assert!((a - b).abs() < 1e-4 * b.abs(), "{a} {b}");
        }
    }
}

/// A chosen completion has the same tokens as in judging with reward tokens. The reward token has a loss as a target and
/// none as context.
#[test]
fn chosen_completion_begins_as_in_judging() {
    let config = config();
    let builder = sequence_builder(&config);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let pair = phantom_examples::pair(1, 2, &config.processor(), &mut rng).unwrap();
    let sequence = |role| {
        let sequences = PreferenceSequenceBuilder::new(&builder, role).unwrap();
        let negative = |ratings: &EvaluationRatings| {
            let mut negative = ratings.clone();
            negative[0].1 = 5 - negative[0].1;
            Some(negative)
        };
        let built = sequences.build(&pair, &pair, &[0], negative).unwrap();
        built[0].sequence.clone()
    };
    let steps = builder.format_tokens(0, "[Good]").unwrap();
    let Some(TokenStep::Feed(fed)) = steps.first() else {
        panic!("a completion begins with a literal");
    };
    let prompt = builder.prompt(0, &pair, &pair).unwrap();
    let slot_length = |slot: &Slot| {
        if *slot == Slot::Image {
            config.model.image_tokens()
        } else {
            1
        }
    };
    let start: usize = prompt.iter().map(slot_length).sum();
    let target = sequence(RewardTokenRole::Target);
    assert_eq!(target.tokens[start..start + fed.len()], *fed);
    let context = sequence(RewardTokenRole::Context);
    let absent = sequence(RewardTokenRole::Absent);
    assert_eq!(target.tokens, context.tokens);
    assert_eq!(target.targets.len(), context.targets.len() + 2);
    assert_eq!(absent.targets.len(), context.targets.len());
    assert_eq!(absent.len() + 2, context.len());
    // The judge feeds the same literal.
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
