//! What is taught is what is asked.

use std::path::Path;

use acem3_conclusion::ConclusionModel;
use acem3_experts::generate::Task;
use acem3_experts::{BranchEvaluation, BranchJudge, Rating, Score};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::checkpoints::hub::Downloads;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::sequence_builder::*;
use crate::training::examples::{phantom_examples, train_tokenizer};

/// The recipe of the embedded panel, and its texts' writer.
fn scribe() -> (TrainConfig, SequenceBuilder) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
    let config = TrainConfig::read(&path).unwrap();
    let teacher = ExampleSampler::new(&config, None);
    let trained = train_tokenizer::train_tokenizer(&config, teacher.texts(40)).unwrap();
    let scribe = SequenceBuilder::new(
        &config,
        TextTokenizer::parse(trained.as_bytes()).unwrap(),
        5,
    )
    .unwrap();
    (config, scribe)
}

fn score(value: u8) -> Score {
    let mut logits = [0.0; 6];
    logits[usize::from(value)] = 9.0;
    Score::from_logits(logits)
}

/// The tokens of a task with its text filled in, image places as in a sequence.
fn whole(task: &Task, scribe: &SequenceBuilder, ratings: &[&RatingExample]) -> Vec<u32> {
    let mut tokens = Vec::new();
    for slot in task.prompt.0.iter().flatten() {
        match slot {
            Slot::Token(token) => tokens.push(*token),
            Slot::Image => tokens.extend(vec![0; scribe.image_tokens]),
        }
    }
    tokens.extend(
        scribe
            .fill_format(&task.format, ratings)
            .unwrap()
            .into_iter()
            .map(|(t, _)| t),
    );
    tokens
}

/// The writer of a training that begins with a published checkpoint.
fn begun() -> (TrainConfig, SequenceBuilder) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let start = root.join("assets/golden/checkpoints/llava-mistral");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train.toml");
    let text = format!(
        "name = \"x\"\nseed = 1\ntrunk_layers = 1\nlayout = \"case-first\"\nstart = {start:?}\n\
         [[stages]]\nname = \"s\"\nkind = \"sft\"\nsteps = 1\nbatch = 1\nrate = 1e-3\n"
    );
    std::fs::write(&path, text).unwrap();
    let (config, start) = TrainConfig::load(&path, Downloads::default()).unwrap();
    let scribe = SequenceBuilder::new(&config, start.unwrap().tokenizer, 5).unwrap();
    (config, scribe)
}

/// What is taught is, token by token, what is asked and answered when a pair is judged.
#[test]
fn a_lesson_reads_as_the_judging_it_prepares_for() {
    for (config, scribe) in [scribe(), begun()] {
        let none = [const { String::new() }; 4];
        assert_a_lesson_reads_as_judging(&config, &scribe, &none);
        let leads = ["", "[Good]", "", "[Good]"].map(str::to_owned);
        let scribe = scribe.with_prefixes(&leads).unwrap();
        assert_a_lesson_reads_as_judging(&config, &scribe, &leads);
    }
}

fn assert_a_lesson_reads_as_judging(
    config: &TrainConfig,
    scribe: &SequenceBuilder,
    leads: &[String; 4],
) {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let pair = phantom_examples::pair(1, 2, &config.processor(), &mut rng).unwrap();
    let all = LearningMembers {
        branches: [true; 3],
        conclusion: true,
    };
    let sequences = scribe.evaluations(&pair, &pair, all).unwrap();
    assert_eq!(sequences.len(), 1, "the case is computed once for all four");
    let sequence = &sequences[0];

    let input = JudgeInput {
        image: true,
        question: &pair.question,
        responses: [&pair.responses[0].text, &pair.responses[1].text],
    };
    let [branches @ .., lead] = leads;
    let judge = BranchJudge::new(
        scribe.branches.clone(),
        branches.each_ref().map(String::as_str),
        &scribe.tokenizer,
    )
    .unwrap();
    let mut tasks = judge.tasks(&input, None, &scribe.tokenizer).unwrap();
    let evaluations: Vec<BranchEvaluation> = Aspect::ALL
        .into_iter()
        .map(|aspect| {
            let ratings = pair.aspect_ratings(aspect).into_iter().map(|r| Rating {
                analysis: r.analysis.clone(),
                cut: false,
                score: score(r.score),
            });
            BranchJudge::evaluation(aspect, ratings.collect())
        })
        .collect();
    let dialogue = config.dialogue.clone();
    let conclusion =
        ConclusionModel::inside(config.layout, dialogue, lead, &scribe.tokenizer).unwrap();
    tasks.push(
        conclusion
            .task(&input, None, &evaluations, &scribe.tokenizer)
            .unwrap(),
    );
    for (i, task) in tasks.iter().enumerate() {
        let ratings = pair.member_ratings(i);
        let taught: Vec<u32> = sequence
            .tokens
            .iter()
            .zip(&sequence.branches)
            .filter(|(_, branch)| **branch == 0 || usize::from(**branch) == i + 1)
            .map(|(token, _)| *token)
            .collect();
        assert_eq!(taught, whole(task, scribe, &ratings), "member {i}");
    }
}

/// Of a doubted analysis the claim and the agreement are learned, not the finding between them.
#[test]
fn a_doubted_finding_is_read_alone() {
    let (_, scribe) = scribe();
    let rating = RatingExample {
        criterion: Some(Criterion::FactualAccuracy),
        analysis: "Claims left side; the image shows right side: they differ.".to_owned(),
        score: 1,
        trains_finding: false,
    };
    let tokens = scribe
        .fill_format(&scribe.formats[1].tokens, &[&rating])
        .unwrap();
    let learned = |wanted: bool| {
        let tokens = tokens
            .iter()
            .filter(|(_, weight)| (*weight > 0.0) == wanted);
        let tokens: Vec<u32> = tokens.map(|(token, _)| *token).collect();
        scribe.tokenizer.decode(&tokens).unwrap()
    };
    let text = learned(true);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text, "claims left side; the image shows: they differ. 1");
    assert!(learned(false).contains("right side"));
}
