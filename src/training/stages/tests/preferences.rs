//! Trainings on preference pairs.

use acem3_experts::BranchExperts;
use acem3_experts::prompt::{BranchPrompts, JudgeInput, PromptToken, Rubric, TokenStep};
use acem3_experts::train::{Batch, Parameters, Sequence, SequenceInput, TrainableModel};
use candle::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{config, panel_file, sequence_builder, tokenizer, train_twice};
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::config::reward_tokens::RewardTokens;
use crate::training::config::stage::reward_token::RewardTokenRole;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::sources::phantom_examples;
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::preferences::negatives::EvaluationRatings;
use crate::training::preferences::preference_sequence::{
    PreferenceSequence, PreferenceSequenceBuilder,
};
use crate::training::preferences::{PreferenceFolderConfig, write_phantom_preferences};
use crate::training::stages::context::StageContext;
use crate::training::stages::metrics::progress::TrainingProgress;
use crate::training::stages::tasks::preference_cache::PreferenceCache;
use crate::training::stages::tasks::preference_source::PreferenceSource;

#[test]
fn interrupted_preference_training_ends_like_uninterrupted() {
    let dir = tempfile::tempdir().unwrap();
    let out = train_twice(&config(), dir.path()).uninterrupted;
    let spec = panel_file(&out, PANEL_FILE);
    let spec = PanelSpec::parse(std::str::from_utf8(&spec).unwrap()).unwrap();
    assert_eq!(spec.completion_prefixes(), ["", "[Good]", "", "[Good]"]);
    // A finished stage leaves only its checkpoints and metrics.
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
    let sampler = ExampleSampler::new(&config, None).unwrap();
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
    let initial = Parameters::uninitialized(9);
    let cache = PreferenceCache::build(context, None, &initial, dir.path()).unwrap().unwrap();
    let model = TrainableModel::load(&initial.builder(), &config.model, 1).unwrap();
    let source = PreferenceSource::open(context).unwrap();
    let sequences = source.sequences(1).unwrap();
    let [PreferenceSequence { sequence, members, .. }] = sequences.sequences.as_slice() else {
        panic!("the prompts of all members begin with the case");
    };
    assert_eq!(*members, [1, 3]);
    for (i, member) in [1, 3].into_iter().enumerate() {
        let computed = sequence.select_branches(&PreferenceSequence::branches(i)).unwrap().0;
        let pairs = cache.pairs(Some(member)).training;
        let cached = cache.sequence(pairs[1]).unwrap();
        assert_eq!(cached.tokens, computed.tokens);
        let SequenceInput::Hidden(hidden) = &cached.input else {
            panic!("hidden states are cached");
        };
        let trunk_output = model.trunk_output(&Batch(std::slice::from_ref(&computed))).unwrap();
        let difference = (hidden - &trunk_output[0]).unwrap().abs().unwrap().max_all().unwrap();
        assert!(difference.to_scalar::<f32>().unwrap() < 1e-5, "member {member}");
        let likelihoods = |s: Sequence| model.log_likelihoods(&Batch(&[s])).unwrap()[0];
        for (a, b) in likelihoods(cached).into_iter().zip(likelihoods(computed)) {
            assert!((a - b).abs() < 1e-4 * b.abs(), "{a} {b}");
        }
    }
}

/// A chosen completion begins with the same tokens as in judging with reward tokens. The reward
/// token has a loss as a target but not as context.
#[test]
fn chosen_completion_begins_as_in_judging() {
    let config = config();
    let builder = sequence_builder(&config);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let images = ImagePreparation::of_training(&config).unwrap();
    let pair = phantom_examples::pair_example(1, 2, &images, &mut rng).unwrap();
    let sequence = |role| {
        let sequences =
            PreferenceSequenceBuilder::new(&builder, role, &RewardTokens::default()).unwrap();
        let negative = |_: usize, ratings: &EvaluationRatings| {
            let mut negative = ratings.clone();
            negative[0].1 = 5 - negative[0].1;
            Some(negative)
        };
        let built = sequences.build(&pair, &pair, &[0], negative).unwrap();
        built[0].sequence.clone()
    };
    let steps = builder.format_tokens(0, "[Good]").unwrap();
    let Some(TokenStep::Literal(lead)) = steps.first() else {
        panic!("a completion begins with a literal");
    };
    let prompt = builder.build_prompt(0, &pair, &pair).unwrap();
    let token_count = |token: &PromptToken| {
        if *token == PromptToken::Image { config.model.input_tokens() } else { 1 }
    };
    let start: usize = prompt.iter().map(token_count).sum();
    let target = sequence(RewardTokenRole::Target);
    assert_eq!(target.tokens[start..start + lead.len()], *lead);
    let context = sequence(RewardTokenRole::Context);
    let absent = sequence(RewardTokenRole::Absent);
    assert_eq!(target.tokens, context.tokens);
    assert_eq!(target.targets.len(), context.targets.len() + 2);
    assert_eq!(absent.targets.len(), context.targets.len());
    assert_eq!(absent.len() + 2, context.len());
    // The judge begins with the same literal.
    let prompts = BranchPrompts::new(config.layout, Rubric::built_in().unwrap(), config.rubric);
    let experts = BranchExperts::new(prompts.unwrap(), &["[Good]", "", ""], &tokenizer());
    let input =
        JudgeInput::pair(true, &pair.question, [&pair.responses[0].text, &pair.responses[1].text]);
    let tasks = experts.unwrap().tasks(&input, None, &tokenizer()).unwrap();
    assert_eq!(tasks[0].format[0], TokenStep::Literal(lead.clone()));
}

/// Four members take turns in a file of phantom pairs, and some lines are missing.
#[test]
fn every_member_has_validation_pairs_for_all_seeds() {
    let mut config = config();
    config.stages[1].members.clear();
    for seed in 1..=10 {
        let dir = tempfile::tempdir().unwrap();
        let folder = PreferenceFolderConfig {
            seed,
            reward_tokens: Some(RewardTokens::default()),
            ..PreferenceFolderConfig::of_phantoms(dir.path().join("pairs"), 25)
        };
        write_phantom_preferences(&folder, &Interrupt::default()).unwrap();
        let preferences = config.stages[1].preferences.as_mut().unwrap();
        preferences.cases = 0;
        preferences.file = Some(folder.out.join("preferences.jsonl"));
        let builder = sequence_builder(&config);
        let sampler = ExampleSampler::new(&config, None).unwrap();
        let progress = TrainingProgress::new(true, Interrupt::default());
        let context = StageContext {
            config: &config,
            stage: &config.stages[1],
            sampler: &sampler,
            builder: &builder,
            progress: &progress,
            device: &Device::Cpu,
        };
        let source = PreferenceSource::open(context).unwrap();
        source.check().unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        let ranges = source.index_ranges();
        let mut members: Vec<usize> = ranges
            .validation
            .flat_map(|index| source.sequences(index).unwrap().sequences)
            .flat_map(|pair| pair.members)
            .collect();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members, [0, 1, 2, 3], "seed {seed}");
    }
}
