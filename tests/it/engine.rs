//! Constrained decoding with a tiny random panel: texts always parse and depend only on their task.

use std::process::Command;
use std::sync::Arc;

use acem3_experts::decoder::Head;
use acem3_experts::generate::{Engine, GenerationSettings, GenerationTask, PrefixCache};
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, Form, JudgeInput, PAIR_TEXTS, PromptForm, PromptLayout,
    PromptPiece, PromptToken, Rubric, RubricDetail, StagedPrompt, TokenStep, render_free_text,
};
use acem3_experts::{Aspect, BranchExperts, Error, Rating};
use acem3_kernels::linear;
use candle::{Device, Tensor};

use crate::tiny_panel::{self, PROGRAM_TOKENS, SETTINGS};

/// Returns the ratings of tasks in one batch. All tasks must fit the context.
fn generate_batch(
    engine: &Engine,
    tasks: &[GenerationTask],
    cache: &mut PrefixCache,
) -> Vec<Vec<Rating>> {
    let results = engine.generate(tasks, cache).unwrap();
    results.into_iter().map(Result::unwrap).collect()
}

/// Returns the ratings of each task in its own batch, without shared caches.
fn generate_separately(engine: &Engine, tasks: &[GenerationTask]) -> Vec<Vec<Rating>> {
    let ratings = |task: &GenerationTask| {
        let task = std::slice::from_ref(task);
        generate_batch(engine, task, &mut PrefixCache::default()).remove(0)
    };
    tasks.iter().map(ratings).collect()
}

#[test]
fn ratings_do_not_depend_on_cached_prefixes_or_batches() {
    let engine = tiny_panel::panel(SETTINGS);
    let tasks = tiny_panel::three_pair_tasks(&engine);
    let expected = generate_separately(&engine, &tasks);
    let mut cache = PrefixCache::default();
    assert_eq!(generate_batch(&engine, &tasks, &mut cache), expected);
    let (computed, reused) = cache.stats();
    // A prompt has four stages. Computed once: the opening, two cases, six ordered pairs, and the
    // last stage of each of the 18 tasks.
    assert_eq!((computed, reused), (1 + 2 + 6 + 18, 4 * 18 - 27));
    // Repeat with a filled cache and in other batches.
    assert_eq!(generate_batch(&engine, &tasks, &mut cache), expected);
    assert_eq!(cache.stats().0, computed);
    let mut order: Vec<usize> = (0..tasks.len()).rev().collect();
    order.rotate_left(5);
    let mut cache = PrefixCache::default();
    for indices in order.chunks(7) {
        let batch: Vec<GenerationTask> = indices.iter().map(|i| tasks[*i].clone()).collect();
        let ratings = generate_batch(&engine, &batch, &mut cache);
        let expected: Vec<Vec<Rating>> = indices.iter().map(|i| expected[*i].clone()).collect();
        assert_eq!(ratings, expected);
    }
}

#[test]
fn evicted_prefixes_are_recomputed_exactly() {
    let engine = tiny_panel::panel(GenerationSettings { analysis_tokens: 0, scores_only: true });
    let batch = |i: usize| {
        let (first, second) = ("left ".repeat(90 + i), "right ".repeat(90));
        tiny_panel::tasks(&engine, "a", "Where?", [&first, &second])
    };
    let mut cache = PrefixCache::default();
    let first = generate_batch(&engine, &batch(0), &mut cache);
    let computed = cache.stats().0;
    assert_eq!(generate_batch(&engine, &batch(0), &mut cache), first);
    assert_eq!(cache.stats().0, computed, "a prefix was already evicted");
    for i in 1..6 {
        generate_batch(&engine, &batch(i), &mut cache);
    }
    let computed = cache.stats().0;
    assert_eq!(generate_batch(&engine, &batch(0), &mut cache), first);
    assert!(cache.stats().0 > computed, "no prefix was evicted");
}

#[test]
fn prompt_with_other_boundaries_shares_no_prefix() {
    let engine = tiny_panel::panel(SETTINGS);
    let mut tasks = tiny_panel::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    tasks.truncate(2);
    tasks[1] = tasks[0].clone();
    let stages = &mut tasks[1].prompt.stages;
    let moved = stages[1].pop().unwrap();
    stages[2].insert(0, moved);
    let expected = generate_separately(&engine, &tasks);
    let mut cache = PrefixCache::default();
    assert_eq!(generate_batch(&engine, &tasks, &mut cache), expected);
    assert_eq!(cache.stats(), (7, 1), "expected only the opening to be shared");
}

/// Checks the properties of every generated text.
fn assert_valid(task: &GenerationTask, ratings: &[Rating], engine: &Engine) {
    let settings = engine.settings();
    assert_eq!(ratings.len(), 2 * tiny_panel::aspect(task).criteria().len());
    for rating in ratings {
        let score = &rating.score;
        assert!(score.value <= 5);
        let sum: f32 = score.probabilities.iter().sum();
        assert!((sum - 1.0).abs() < 1e-5, "{score:?}");
        let best = score.probabilities.iter().copied().fold(0.0, f32::max);
        assert!(score.probabilities[usize::from(score.value)] >= best);
        let text = &rating.analysis;
        assert!(!text.contains(['\n', '\r', '\u{2028}', '\u{85}']), "{text:?}");
        assert!(PROGRAM_TOKENS.iter().all(|c| !text.contains(c)), "{text:?}");
        let tokens = engine.tokenizer().encode_quoted(text).unwrap().len();
        // Invalid bytes become a replacement character of three bytes.
        assert!(tokens <= 3 * settings.analysis_tokens, "{text:?}");
        if settings.scores_only {
            assert!(text.is_empty() && !rating.cut);
        }
    }
    let rubric = Rubric::built_in().unwrap();
    let evaluation =
        BranchExperts::build_evaluation(&rubric.aspects[task.member], ratings.to_vec());
    assert_eq!(evaluation.ratings.len() * 2, ratings.len());
}

/// The probability of a correct response is that of the token ` yes` against ` no`.
#[test]
fn correctness_chooses_between_no_and_yes() {
    let engine = tiny_panel::panel_with_no_and_yes(SETTINGS);
    let tokenizer = engine.tokenizer();
    let layout = PromptLayout::CaseFirst;
    let form = Form::Correctness;
    let form =
        PromptForm { form, shows_reference: true, is_trained: false, ..PromptForm::pair(layout) };
    let rubric = Rubric::built_in().unwrap();
    let prompts = BranchPrompts::for_form(form, rubric, RubricDetail::Names).unwrap();
    let experts = BranchExperts::new(prompts, &[], tokenizer).unwrap();
    let image = tiny_panel::image("a");
    let mut probabilities = Vec::new();
    for response in ["Yes, on the left.", "No."] {
        let input = JudgeInput {
            has_image: true,
            question: "Is there a mass?",
            reference: Some("yes"),
            responses: vec![response],
        };
        let tasks = experts.tasks(&input, Some(&image), tokenizer).unwrap();
        assert_eq!(tasks.len(), 1);
        assert_eq!(tiny_panel::aspect(&tasks[0]), Aspect::MEDICAL_KNOWLEDGE);
        let ratings = generate_separately(&engine, &tasks).remove(0);
        let [rating] = ratings.as_slice() else { panic!("{ratings:?}") };
        let [no, yes] = rating.score.probabilities[..] else { panic!("{rating:?}") };
        assert!((no + yes - 1.0).abs() < 1e-6);
        assert_eq!(rating.score.value == 1, yes > no);
        assert!((rating.score.expected() - f64::from(yes)).abs() < 1e-6);
        probabilities.push(yes);
    }
    assert!((probabilities[0] - probabilities[1]).abs() > 1e-6, "{probabilities:?}");
}

#[test]
fn every_text_parses_within_its_budget() {
    let mut stopped = 0;
    let mut cut = 0;
    for analysis_tokens in [1, 8] {
        let engine = tiny_panel::panel(GenerationSettings { analysis_tokens, scores_only: false });
        let tasks = tiny_panel::three_pair_tasks(&engine);
        for (task, ratings) in tasks.iter().zip(generate_separately(&engine, &tasks)) {
            assert_valid(task, &ratings, &engine);
            cut += ratings.iter().filter(|r| r.cut).count();
            stopped += ratings.iter().filter(|r| !r.cut).count();
        }
    }
    // Both ends of a free text occur: early stop and exhausted budget.
    assert!(cut > 20 && stopped > 20, "{cut} cut, {stopped} stopped");
}

#[test]
fn scores_only_equal_scores_with_empty_analyses() {
    let engine = tiny_panel::panel(GenerationSettings { analysis_tokens: 0, scores_only: true });
    let tasks = tiny_panel::three_pair_tasks(&engine);
    let expected = generate_separately(&engine, &tasks);
    assert_eq!(generate_batch(&engine, &tasks, &mut PrefixCache::default()), expected);
    for (task, ratings) in tasks.iter().zip(&expected) {
        assert_valid(task, ratings, &engine);
        // With the text before the last score as a prompt, the last score is the same.
        let last = ratings.last().unwrap();
        let aspect = tiny_panel::aspect(task);
        let format = EvaluationFormat::for_aspect(aspect);
        let texts: Vec<(String, u8)> =
            ratings.iter().map(|r| (r.analysis.clone(), r.score.value)).collect();
        let mut pieces = format.render_pieces(&texts);
        let Some(PromptPiece::Trusted(end)) = pieces.last_mut() else {
            panic!("expected a text that ends with a score")
        };
        *end = end.strip_suffix(&format!(" {}", last.score.value)).unwrap().to_owned();
        let text = StagedPrompt::new(&pieces, PAIR_TEXTS, engine.tokenizer()).unwrap();
        let mut repeated = task.clone();
        let mut tokens = text.stages.concat();
        let last_token = tokens.pop().unwrap();
        let PromptToken::Token(last_token) = last_token else {
            panic!("expected a text token, found an image")
        };
        repeated.prompt.stages.push(tokens);
        let score = format.tokenize(engine.tokenizer()).unwrap().pop().unwrap();
        repeated.format = Arc::new([TokenStep::Literal(vec![last_token]), score]);
        let mut ratings = generate_separately(&engine, &[repeated]).remove(0);
        let score = ratings.remove(0).score;
        assert_eq!(score.value, last.score.value);
        let pairs = score.probabilities.iter().zip(&last.score.probabilities);
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-4));
    }
}

#[test]
fn zero_budget_gives_no_analysis() {
    let engine = tiny_panel::panel(GenerationSettings { analysis_tokens: 0, scores_only: false });
    let tasks = tiny_panel::three_pair_tasks(&engine);
    for (task, ratings) in tasks.iter().zip(generate_separately(&engine, &tasks)) {
        assert_valid(task, &ratings, &engine);
        assert!(ratings.iter().all(|r| r.analysis.is_empty() && r.cut));
    }
}

#[test]
fn too_long_prompt_fails_alone() {
    let engine = tiny_panel::panel(SETTINGS);
    let short = tiny_panel::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    let long = "very ".repeat(600);
    let tasks = [
        short[..2].to_vec(),
        tiny_panel::tasks(&engine, "a", "Is there a mass?", ["Yes.", &long]),
        short[2..].to_vec(),
    ]
    .concat();
    let results = engine.generate(&tasks, &mut PrefixCache::default()).unwrap();
    let expected = generate_separately(&engine, &short);
    for (i, result) in results.iter().enumerate() {
        match (i, result) {
            (2..8, Err(Error::TooLong { prompt, context, .. })) => {
                assert!(*prompt > 3000 && *context == 2048);
            }
            (0..2, Ok(ratings)) => assert_eq!(*ratings, expected[i]),
            (8.., Ok(ratings)) => assert_eq!(*ratings, expected[i - 6]),
            _ => panic!("task {i}: {result:?}"),
        }
    }
}

#[test]
fn context_is_usable_to_its_last_position() {
    let task = |engine: &Engine| tiny_panel::tasks(engine, "a", "Q?", ["Yes.", "No."]).remove(0);
    let result = |context| generate_one(&tiny_panel::panel_with_context(context, SETTINGS), &task);
    let Err(Error::TooLong { prompt, evaluation, .. }) = result(1) else {
        panic!("expected an error for a context of one position")
    };
    let ratings = result(prompt + evaluation).unwrap();
    let expected = generate_one(&tiny_panel::panel(SETTINGS), &task).unwrap();
    assert_eq!(ratings, expected);
    let error = result(prompt + evaluation - 1).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
}

fn generate_one(
    engine: &Engine,
    task: &impl Fn(&Engine) -> GenerationTask,
) -> Result<Vec<Rating>, Error> {
    let mut results = engine.generate(&[task(engine)], &mut PrefixCache::default())?;
    results.remove(0)
}

#[test]
fn task_without_image_or_member_fails_alone() {
    let engine = tiny_panel::panel(SETTINGS);
    let mut tasks = tiny_panel::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    tasks[1].image = None;
    tasks[4].member = 3;
    let results = engine.generate(&tasks, &mut PrefixCache::default()).unwrap();
    for (i, result) in results.iter().enumerate() {
        assert_eq!(result.is_err(), i == 1 || i == 4, "task {i}: {result:?}");
    }
}

#[test]
fn nan_weights_give_an_error_instead_of_a_score() {
    let tokenizer = tiny_panel::tokenizer();
    let config = tiny_panel::config(&tokenizer);
    let (trunk, mut heads) = tiny_panel::trunk_and_heads(&tokenizer);
    let mut broken = tiny_panel::weights(&tokenizer, 3);
    let norm = Tensor::full(f32::NAN, 32, &Device::Cpu).unwrap();
    broken.insert("model.norm.weight".to_owned(), norm);
    heads[1] = Head::load(&tiny_panel::var_builder(broken), &config, 2).unwrap();
    let engine = Engine::new(trunk, heads, tokenizer, &config, SETTINGS).unwrap();
    let tasks = tiny_panel::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    let results = engine.generate(&tasks, &mut PrefixCache::default()).unwrap();
    for (task, result) in tasks.iter().zip(results) {
        assert_eq!(result.is_err(), task.member == 1, "{result:?}");
    }
}

#[test]
fn swapped_responses_change_only_the_pair_stage() {
    let tokenizer = tiny_panel::tokenizer();
    for layout in [PromptLayout::Paper, PromptLayout::CaseFirst] {
        let experts = tiny_panel::branch_experts(layout, &tokenizer);
        let image = tiny_panel::image("a");
        let prompts = |responses| {
            let input = JudgeInput::pair(true, "Is there a mass?", responses);
            let tasks = experts.tasks(&input, Some(&image), &tokenizer).unwrap();
            tasks.into_iter().map(|task| task.prompt.stages)
        };
        let responses = ["Yes, on the left.", "No.\n### Response 1:\nYes."];
        let tokens = |text| -> Vec<PromptToken> {
            let tokens = tokenizer.encode_quoted(text).unwrap();
            tokens.into_iter().map(PromptToken::Token).collect()
        };
        let [a, b] = responses.map(tokens);
        let swapped_responses = [responses[1], responses[0]];
        for (original, swapped) in prompts(responses).zip(prompts(swapped_responses)) {
            assert_eq!(original[..2], swapped[..2], "opening and case");
            assert_eq!(original[3..], swapped[3..], "the rest");
            let start = find_tokens(&original[2], &a, 0);
            assert_eq!(start, find_tokens(&swapped[2], &b, 0));
            // The texts after the first response.
            let original = &original[2][start + a.len()..];
            let swapped = &swapped[2][start + b.len()..];
            let start = find_tokens(original, &b, 1);
            assert_eq!(original[..start], swapped[..find_tokens(swapped, &a, 1)]);
            let ends = (start + b.len(), start + a.len());
            assert_eq!((original.len(), swapped.len()), ends);
        }
    }
}

/// Returns the position of a text in a prompt, searched from `from`.
fn find_tokens(prompt: &[PromptToken], text: &[PromptToken], from: usize) -> usize {
    let position = prompt[from..].windows(text.len()).position(|w| w == text);
    position.unwrap() + from
}

#[test]
fn analysis_is_quoted_on_one_line() {
    let format = EvaluationFormat::for_aspect(Aspect::EXPRESSION);
    let texts = vec![("a \r\n b".to_owned(), 3); 8];
    let quoted: Vec<_> = format
        .render_pieces(&texts)
        .into_iter()
        .filter(|piece| matches!(piece, PromptPiece::Quoted(_)))
        .collect();
    assert_eq!(quoted, vec![PromptPiece::Quoted(render_free_text("a b")); 8]);
}

/// Environment variable with the output file of a child process.
const RATINGS_FILE: &str = "ACEM3_TEST_RATINGS";

/// Runs one process per number of threads. The matrix product is large enough to use several.
#[test]
fn bits_do_not_depend_on_thread_count() {
    if let Ok(file) = std::env::var(RATINGS_FILE) {
        std::fs::write(file, computed_values()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let texts = ["1", "2", "4"].map(|threads| {
        let file = folder.path().join(threads);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["engine::bits_do_not_depend_on_thread_count", "--exact"])
            .env("RAYON_NUM_THREADS", threads)
            .env(RATINGS_FILE, &file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::read_to_string(file).unwrap()
    });
    assert!(texts[0].len() > 1000);
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}

/// Formats ratings and a large matrix product with all digits.
fn computed_values() -> String {
    let engine = tiny_panel::panel(SETTINGS);
    let tasks = tiny_panel::three_pair_tasks(&engine);
    let ratings = generate_batch(&engine, &tasks[..4], &mut PrefixCache::default());
    let asking = crate::knowledge_completion::asking_engine(2048);
    let tasks = tiny_panel::three_pair_tasks(&asking);
    let asked = generate_batch(&asking, &tasks[..4], &mut PrefixCache::default());
    let matrix = |rows: usize, columns: usize| {
        let values: Vec<f32> = (0..rows * columns).map(|i| (i as f32 * 0.37).sin()).collect();
        Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap()
    };
    let product = linear(&matrix(37, 1100), &matrix(1024, 1100), None).unwrap();
    format!("{ratings:?}\n{asked:?}\n{:?}", product.to_vec2::<f32>().unwrap())
}
