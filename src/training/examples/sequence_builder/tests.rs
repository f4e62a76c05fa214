//! Training sequences equal the sequences of judging.

use std::path::Path;

use acem3_conclusion::ConclusionModel;
use acem3_experts::generate::GenerationTask;
use acem3_experts::prompt::Form;
use acem3_experts::{BranchEvaluation, BranchExperts, Rating, Score};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::checkpoints::hub::HubDownloads;
use crate::training::examples::example::ResponseExample;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::sequence_builder::*;
use crate::training::examples::sources::phantom_examples;
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::examples::train_tokenizer;

/// Returns the configuration of the embedded panel and its sequence builder.
fn embedded_builder() -> (TrainConfig, SequenceBuilder) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
    let config = TrainConfig::read(&path).unwrap();
    let sampler = ExampleSampler::new(&config, None).unwrap();
    let tokenizer = train_tokenizer::train_tokenizer(&config, sampler.texts(40)).unwrap();
    let builder =
        SequenceBuilder::new(&config, TextTokenizer::parse(tokenizer.as_bytes()).unwrap()).unwrap();
    (config, builder)
}

fn score(value: u8) -> Score {
    let mut logits = [0.0; 6];
    logits[usize::from(value)] = 9.0;
    Score::from_logits(&logits)
}

/// Returns the tokens of a judging task and its completion, with this number of image tokens.
fn task_tokens(
    image_tokens: usize,
    task: &GenerationTask,
    builder: &SequenceBuilder,
    ratings: &[&RatingExample],
) -> Vec<u32> {
    let mut tokens = Vec::new();
    for token in task.prompt.stages.iter().flatten() {
        match token {
            PromptToken::Token(id) => tokens.push(*id),
            PromptToken::Image => tokens.extend(vec![0; image_tokens]),
        }
    }
    tokens.extend(builder.fill_format(&task.format, ratings).unwrap().into_iter().map(|(t, _)| t));
    tokens
}

/// Returns the configuration and sequence builder of a training run that starts from a published
/// checkpoint.
fn builder_from_checkpoint() -> (TrainConfig, SequenceBuilder) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checkpoint = root.join("assets/golden/checkpoints/llava-mistral");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train.toml");
    let text = format!(
        "name = \"x\"\nseed = 1\ntrunk_layers = 1\nlayout = \"case-first\"\nstart = {checkpoint:?}\n\
         [[stages]]\nname = \"s\"\nkind = \"sft\"\nsteps = 1\nbatch = 1\nrate = 1e-3\n"
    );
    std::fs::write(&path, text).unwrap();
    let (config, initial_model) = TrainConfig::load(&path, HubDownloads::default()).unwrap();
    let builder = SequenceBuilder::new(&config, initial_model.unwrap().tokenizer).unwrap();
    (config, builder)
}

#[test]
fn training_sequence_equals_judging_sequence() {
    for (config, builder) in [embedded_builder(), builder_from_checkpoint()] {
        let no_prefixes = [const { String::new() }; 4];
        assert_equals_judging(&config, &builder, &no_prefixes);
        let prefixes = ["", "[Good]", "", "[Good]"].map(str::to_owned);
        let builder = builder.with_prefixes(&prefixes).unwrap();
        assert_equals_judging(&config, &builder, &prefixes);
    }
}

fn assert_equals_judging(config: &TrainConfig, builder: &SequenceBuilder, prefixes: &[String; 4]) {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let images = ImagePreparation::of_training(config).unwrap();
    let pair = phantom_examples::pair_example(1, 2, &images, &mut rng).unwrap();
    let image_tokens = pair.image.as_ref().unwrap().tokens;
    let all_members = LearningMembers { branches: [true; 3], conclusion: true };
    let sequences = builder.build_evaluations(&pair, &pair, all_members).unwrap();
    assert_eq!(sequences.len(), 1, "one sequence for all members");
    let sequence = &sequences[0];

    let input =
        JudgeInput::pair(true, &pair.question, [&pair.responses[0].text, &pair.responses[1].text]);
    let [branches @ .., conclusion_prefix] = prefixes;
    let experts = BranchExperts::new(
        builder.branches.clone(),
        &branches.each_ref().map(String::as_str),
        &builder.tokenizer,
    )
    .unwrap();
    let mut tasks = experts.tasks(&input, None, &builder.tokenizer).unwrap();
    let rubric = Rubric::built_in().unwrap();
    let evaluations: Vec<BranchEvaluation> = (rubric.aspects.iter())
        .map(|aspect| {
            let ratings = pair
                .aspect_ratings(aspect.key)
                .into_iter()
                .map(|r| Rating::new(r.analysis.clone(), score(r.score)));
            BranchExperts::build_evaluation(aspect, ratings.collect())
        })
        .collect();
    let merge = MergePrompts::new(config.layout).unwrap();
    let merge = merge.with_chat_template(config.dialogue.clone());
    let tokenizer = &builder.tokenizer;
    let conclusion =
        ConclusionModel::with_prompts(Form::Pair, merge, conclusion_prefix, tokenizer).unwrap();
    tasks.push(conclusion.task(&input, None, &evaluations, &builder.tokenizer).unwrap());
    for (i, task) in tasks.iter().enumerate() {
        let ratings = pair.member_ratings(i);
        let training_tokens: Vec<u32> = sequence
            .tokens
            .iter()
            .zip(&sequence.branches)
            .filter(|(_, branch)| **branch == 0 || usize::from(**branch) == i + 1)
            .map(|(token, _)| *token)
            .collect();
        assert_eq!(
            training_tokens,
            task_tokens(image_tokens, task, builder, &ratings),
            "member {i}"
        );
    }
}

/// The wrong finding ("right side") has no loss. The claim ("left side"), the agreement ("they
/// differ") and the score have a loss.
#[test]
fn wrong_finding_has_no_loss() {
    let (_, builder) = embedded_builder();
    let rating = RatingExample {
        criterion: Some(Criterion::FACTUAL_ACCURACY),
        analysis: "The image shows right side; the response claims left side: they differ."
            .to_owned(),
        score: 1,
        trains_finding: false,
    };
    let tokens = builder.fill_format(&builder.formats[1].tokens, &[&rating]).unwrap();
    let text_of_tokens = |has_loss: bool| {
        let tokens = tokens.iter().filter(|(_, weight)| (*weight > 0.0) == has_loss);
        let tokens: Vec<u32> = tokens.map(|(token, _)| *token).collect();
        builder.tokenizer.decode(&tokens).unwrap()
    };
    let text = text_of_tokens(true);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text, "the image shows; the response claims left side: they differ. 1");
    assert!(text_of_tokens(false).contains("right side"));
}

#[test]
fn only_the_second_time_a_text_is_copied_has_a_loss() {
    let (_, builder) = embedded_builder();
    let texts = ["left lung", "no"].map(str::to_owned);
    let sequence = builder.build_copies(&texts).unwrap();
    for (branch, text) in (1..).zip(&texts) {
        let tokens = builder.tokenizer.encode_quoted(&render_free_text(text)).unwrap();
        let targets = sequence.targets.iter().filter(|target| target.branch == branch);
        let targets: Vec<u32> = targets.map(|target| target.token).collect();
        assert_eq!(targets, tokens);
        let in_branch = sequence.branches.iter().filter(|b| **b == branch);
        assert_eq!(in_branch.count(), 2 * tokens.len());
    }
}

/// Both branches continue the prompt of one presentation order with the first finding, and are compared at
/// every token of the finding.
#[test]
fn both_orders_are_compared_at_the_finding() {
    let (config, builder) = embedded_builder();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let images = ImagePreparation::of_training(&config).unwrap();
    let mut pair = phantom_examples::pair_example(1, 2, &images, &mut rng).unwrap();
    let texts = [
        "The image shows upper right side; the response claims left side: they differ.",
        "The image shows upper right side; the response claims lower right side: they agree.",
    ];
    let rating = |response: &mut ResponseExample, text: &str| {
        let mut ratings = response.ratings.iter_mut();
        let rating = ratings.find(|r| r.criterion == Some(Criterion::FACTUAL_ACCURACY)).unwrap();
        *rating = rating.with_text(text.to_owned(), 1);
    };
    for (response, text) in pair.responses.iter_mut().zip(texts) {
        rating(response, text);
    }
    let sequence = builder.build_both_orders(&pair).unwrap().unwrap();
    let decode = |tokens: &[u32]| {
        let text = builder.tokenizer.decode(tokens).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (branch, shown) in [pair.clone(), pair.exchanged()].iter().enumerate() {
        let own = branch as u16 + 1;
        let context: Vec<usize> =
            (0..sequence.len()).filter(|i| [0, own].contains(&sequence.branches[*i])).collect();
        let tokens: Vec<u32> = context.iter().map(|i| sequence.tokens[*i]).collect();
        let rated = shown.responses[0].factual_rating().unwrap();
        let start = rated.analysis.split(';').next().unwrap().to_lowercase();
        assert!(decode(&tokens).ends_with(&start), "{}", decode(&tokens));
        // The tokens before each token of the finding: "shows", "upper", "right".
        let sources = sequence.equal_predictions.iter().map(|equal| equal.source_indices[branch]);
        let finding: Vec<u32> = sources.map(|source| sequence.tokens[source + 1]).collect();
        assert_eq!(decode(&finding), "upper right side");
        let targets = sequence.targets.iter().filter(|target| target.branch == own);
        let targets: Vec<u32> = targets.map(|target| target.token).collect();
        assert_eq!(decode(&targets), start.split(" upper").next().unwrap());
    }
    let mut claimed = pair.clone();
    claimed.take_finding_from_claim(1);
    let finding = |response: &ResponseExample| response.factual_rating().unwrap().analysis.clone();
    assert_eq!(
        claimed.responses.each_ref().map(finding),
        [
            "The image shows lower right side; the response claims left side: they differ.",
            "The image shows lower right side; the response claims lower right side: they agree.",
        ]
    );
    rating(
        &mut pair.responses[0],
        "The image shows left side; the response claims left side: they agree.",
    );
    assert!(builder.build_both_orders(&pair).unwrap().is_none(), "different findings");
    rating(&mut pair.responses[0], "States nothing.");
    assert!(builder.build_both_orders(&pair).unwrap().is_none(), "no finding");
}
