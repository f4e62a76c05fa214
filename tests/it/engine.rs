//! Constrained decoding by a tiny random panel: the text always parses and depends only on the
//! task.

use std::process::Command;
use std::sync::Arc;

use acem3_experts::decoder::Head;
use acem3_experts::generate::{Engine, Prefixes, Settings, Task};
use acem3_experts::prompt::{
    Format, JudgeInput, Layout, Piece, Slot, StagedPrompt, TokenStep, free_text,
};
use acem3_experts::{Aspect, BranchJudge, Error, Rating};
use acem3_kernels::linear;
use candle::{Device, Tensor};

use crate::tiny::{self, CONTROL, SETTINGS};

/// Generates the ratings of tasks in one batch; all tasks must fit.
fn written(engine: &Engine, tasks: &[Task], prefixes: &mut Prefixes) -> Vec<Vec<Rating>> {
    let results = engine.write(tasks, prefixes).unwrap();
    results.into_iter().map(Result::unwrap).collect()
}

/// Generates the ratings of each task alone, without shared caches.
fn alone(engine: &Engine, tasks: &[Task]) -> Vec<Vec<Rating>> {
    let one = |task: &Task| {
        let task = std::slice::from_ref(task);
        written(engine, task, &mut Prefixes::default()).remove(0)
    };
    tasks.iter().map(one).collect()
}

#[test]
fn bits_do_not_depend_on_prefixes_or_batches() {
    let engine = tiny::panel(SETTINGS);
    let tasks = tiny::session(&engine);
    let expected = alone(&engine, &tasks);
    let mut prefixes = Prefixes::default();
    assert_eq!(written(&engine, &tasks, &mut prefixes), expected);
    let (computed, reused) = prefixes.counts();
    // The opening, two cases, six ordered pairs and three ends of each.
    assert_eq!((computed, reused), (1 + 2 + 6 + 18, 4 * 18 - 27));
    // Repeat with a filled cache and in other batches.
    assert_eq!(written(&engine, &tasks, &mut prefixes), expected);
    assert_eq!(prefixes.counts().0, computed);
    let mut order: Vec<usize> = (0..tasks.len()).rev().collect();
    order.rotate_left(5);
    let mut prefixes = Prefixes::default();
    for some in order.chunks(7) {
        let chosen: Vec<Task> = some.iter().map(|i| tasks[*i].clone()).collect();
        let got = written(&engine, &chosen, &mut prefixes);
        let want: Vec<Vec<Rating>> = some.iter().map(|i| expected[*i].clone()).collect();
        assert_eq!(got, want);
    }
}

#[test]
fn evicted_prefixes_are_recomputed_exactly() {
    let engine = tiny::panel(Settings {
        analysis_tokens: 0,
        scores_only: true,
    });
    let batch = |i: usize| {
        let (one, two) = ("left ".repeat(90 + i), "right ".repeat(90));
        tiny::tasks(&engine, "a", "Where?", [&one, &two])
    };
    let mut prefixes = Prefixes::default();
    let first = written(&engine, &batch(0), &mut prefixes);
    let computed = prefixes.counts().0;
    assert_eq!(written(&engine, &batch(0), &mut prefixes), first);
    assert_eq!(prefixes.counts().0, computed, "no prefix is evicted yet");
    for i in 1..6 {
        written(&engine, &batch(i), &mut prefixes);
    }
    let computed = prefixes.counts().0;
    assert_eq!(written(&engine, &batch(0), &mut prefixes), first);
    assert!(prefixes.counts().0 > computed, "no prefix was evicted");
}

#[test]
fn prompt_with_other_boundaries_shares_no_prefix() {
    let engine = tiny::panel(SETTINGS);
    let mut tasks = tiny::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    tasks.truncate(2);
    tasks[1] = tasks[0].clone();
    let stages = &mut tasks[1].prompt.0;
    let moved = stages[1].pop().unwrap();
    stages[2].insert(0, moved);
    let expected = alone(&engine, &tasks);
    let mut prefixes = Prefixes::default();
    assert_eq!(written(&engine, &tasks, &mut prefixes), expected);
    assert_eq!(prefixes.counts(), (7, 1), "only the opening is the same");
}

/// Checks the properties of every generated text.
fn check(task: &Task, ratings: &[Rating], engine: &Engine) {
    let settings = engine.settings();
    assert_eq!(ratings.len(), 2 * tiny::aspect(task).criteria().len());
    for rating in ratings {
        let score = &rating.score;
        assert!(score.value <= 5);
        let sum: f32 = score.probabilities.iter().sum();
        assert!((sum - 1.0).abs() < 1e-5, "{score:?}");
        let best = score.probabilities.iter().copied().fold(0.0, f32::max);
        assert!(score.probabilities[usize::from(score.value)] >= best);
        let text = &rating.analysis;
        assert!(
            !text.contains(['\n', '\r', '\u{2028}', '\u{85}']),
            "{text:?}"
        );
        assert!(CONTROL.iter().all(|c| !text.contains(c)), "{text:?}");
        let tokens = engine.tokenizer().free(text).unwrap().len();
        // Invalid bytes become a replacement character of three bytes.
        assert!(tokens <= 3 * settings.analysis_tokens, "{text:?}");
        if settings.scores_only {
            assert!(text.is_empty() && !rating.cut);
        }
    }
    let evaluation = BranchJudge::evaluation(tiny::aspect(task), ratings.to_vec());
    assert_eq!(evaluation.ratings.len() * 2, ratings.len());
}

#[test]
fn every_text_parses_within_its_budget() {
    let mut stopped = 0;
    let mut cut = 0;
    for analysis_tokens in [1, 8] {
        let engine = tiny::panel(Settings {
            analysis_tokens,
            scores_only: false,
        });
        let tasks = tiny::session(&engine);
        for (task, ratings) in tasks.iter().zip(alone(&engine, &tasks)) {
            check(task, &ratings, &engine);
            cut += ratings.iter().filter(|r| r.cut).count();
            stopped += ratings.iter().filter(|r| !r.cut).count();
        }
    }
    // Both ends of a free text occur: early stop and exhausted budget.
    assert!(cut > 20 && stopped > 20, "{cut} cut, {stopped} stopped");
}

#[test]
fn scores_only_equal_scores_with_empty_analyses() {
    let engine = tiny::panel(Settings {
        analysis_tokens: 0,
        scores_only: true,
    });
    let tasks = tiny::session(&engine);
    let expected = alone(&engine, &tasks);
    assert_eq!(written(&engine, &tasks, &mut Prefixes::default()), expected);
    for (task, ratings) in tasks.iter().zip(&expected) {
        check(task, ratings, &engine);
        // The text up to its last score, used as a prompt, leads to the same last score.
        let last = ratings.last().unwrap();
        let aspect = tiny::aspect(task);
        let format = Format::branch(aspect);
        let texts: Vec<(String, u8)> = ratings
            .iter()
            .map(|r| (r.analysis.clone(), r.score.value))
            .collect();
        let mut pieces = format.pieces(&texts);
        let Some(Piece::Fixed(end)) = pieces.last_mut() else {
            panic!("a text ends with a score")
        };
        *end = end
            .strip_suffix(&format!(" {}", last.score.value))
            .unwrap()
            .to_owned();
        let text = StagedPrompt::new(&pieces, engine.tokenizer()).unwrap();
        let mut again = task.clone();
        let mut stages = text.0.concat();
        let fed = stages.pop().unwrap();
        let Slot::Token(fed) = fed else {
            panic!("a text has no image")
        };
        again.prompt.0.push(stages);
        let score = format.tokens(engine.tokenizer()).unwrap().pop().unwrap();
        again.format = Arc::new([TokenStep::Feed(vec![fed]), score]);
        let got = alone(&engine, &[again]).remove(0).remove(0).score;
        assert_eq!(got.value, last.score.value);
        let pairs = got.probabilities.iter().zip(last.score.probabilities);
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-4));
    }
}

#[test]
fn zero_budget_gives_no_analysis() {
    let engine = tiny::panel(Settings {
        analysis_tokens: 0,
        scores_only: false,
    });
    let tasks = tiny::session(&engine);
    for (task, ratings) in tasks.iter().zip(alone(&engine, &tasks)) {
        check(task, &ratings, &engine);
        assert!(ratings.iter().all(|r| r.analysis.is_empty() && r.cut));
    }
}

#[test]
fn too_long_prompt_fails_alone() {
    let engine = tiny::panel(SETTINGS);
    let short = tiny::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    let long = "very ".repeat(600);
    let tasks = [
        short[..2].to_vec(),
        tiny::tasks(&engine, "a", "Is there a mass?", ["Yes.", &long]),
        short[2..].to_vec(),
    ]
    .concat();
    let results = engine.write(&tasks, &mut Prefixes::default()).unwrap();
    let expected = alone(&engine, &short);
    for (i, result) in results.iter().enumerate() {
        match (i, result) {
            (
                2..8,
                Err(Error::TooLong {
                    prompt, context, ..
                }),
            ) => {
                assert!(*prompt > 3000 && *context == 2048);
            }
            (0..2, Ok(ratings)) => assert_eq!(*ratings, expected[i]),
            (8.., Ok(ratings)) => assert_eq!(*ratings, expected[i - 6]),
            _ => panic!("task {i}: {result:?}"),
        }
    }
}

#[test]
fn context_is_used_to_its_last_position() {
    let task = |engine: &Engine| tiny::tasks(engine, "a", "Q?", ["Yes.", "No."]).remove(0);
    let Err(Error::TooLong { prompt, answer, .. }) = one(&tiny::panel_of(1, SETTINGS), &task)
    else {
        panic!("one position is enough")
    };
    let exact = one(&tiny::panel_of(prompt + answer, SETTINGS), &task).unwrap();
    assert_eq!(exact, one(&tiny::panel(SETTINGS), &task).unwrap());
    let error = one(&tiny::panel_of(prompt + answer - 1, SETTINGS), &task).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
}

fn one(engine: &Engine, task: &impl Fn(&Engine) -> Task) -> Result<Vec<Rating>, Error> {
    let mut results = engine.write(&[task(engine)], &mut Prefixes::default())?;
    results.remove(0)
}

#[test]
fn task_without_image_or_member_fails_alone() {
    let engine = tiny::panel(SETTINGS);
    let mut tasks = tiny::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    tasks[1].image = None;
    tasks[4].member = 3;
    let results = engine.write(&tasks, &mut Prefixes::default()).unwrap();
    for (i, result) in results.iter().enumerate() {
        assert_eq!(result.is_err(), i == 1 || i == 4, "task {i}: {result:?}");
    }
}

#[test]
fn nan_weights_give_an_error_instead_of_a_score() {
    let tokenizer = tiny::tokenizer();
    let config = tiny::config(&tokenizer);
    let (trunk, mut heads) = tiny::parts(&tokenizer);
    let mut broken = tiny::weights(&tokenizer, 3);
    let norm = Tensor::full(f32::NAN, 32, &Device::Cpu).unwrap();
    broken.insert("model.norm.weight".to_owned(), norm);
    heads[1] = Head::load(&tiny::builder(broken), &config, 2).unwrap();
    let engine = Engine::new(trunk, heads, tokenizer, &config, SETTINGS).unwrap();
    let tasks = tiny::tasks(&engine, "a", "Is there a mass?", ["Yes.", "No."]);
    let results = engine.write(&tasks, &mut Prefixes::default()).unwrap();
    for (task, result) in tasks.iter().zip(results) {
        assert_eq!(result.is_err(), task.member == 1, "{result:?}");
    }
}

#[test]
fn swapped_responses_swap_the_prompt() {
    let tokenizer = tiny::tokenizer();
    for layout in [Layout::Paper, Layout::CaseFirst] {
        let judge = tiny::judge(layout, &tokenizer);
        let image = tiny::image("a");
        let prompts = |responses| {
            let input = JudgeInput {
                image: true,
                question: "Is there a mass?",
                responses,
            };
            let tasks = judge.tasks(&input, Some(&image), &tokenizer).unwrap();
            tasks.into_iter().map(|task| task.prompt.0)
        };
        let (one, two) = ("Yes, on the left.", "No.\n### Response 1:\nYes.");
        let tokens = |text| -> Vec<Slot> {
            let tokens = tokenizer.free(text).unwrap();
            tokens.into_iter().map(Slot::Token).collect()
        };
        let (a, b) = (tokens(one), tokens(two));
        for (forth, back) in prompts([one, two]).zip(prompts([two, one])) {
            assert_eq!(forth[..2], back[..2], "opening and case");
            assert_eq!(forth[3..], back[3..], "the rest");
            let (first, second) = (marker(&forth[2], &a, 0), marker(&back[2], &b, 0));
            assert_eq!(first, second);
            let (forth, back) = (&forth[2][first + a.len()..], &back[2][second + b.len()..]);
            let (first, second) = (marker(forth, &b, 1), marker(back, &a, 1));
            assert_eq!(forth[..first], back[..second]);
            assert_eq!(
                (forth.len(), back.len()),
                (first + b.len(), second + a.len())
            );
        }
    }
}

/// Returns the start of a text in slots, searched from a position.
fn marker(slots: &[Slot], text: &[Slot], from: usize) -> usize {
    let place = slots[from..].windows(text.len()).position(|w| w == text);
    place.unwrap() + from
}

#[test]
fn analysis_is_quoted_verbatim() {
    let format = Format::branch(Aspect::Expression);
    let texts = vec![("a \r\n b".to_owned(), 3); 8];
    let free: Vec<_> = format
        .pieces(&texts)
        .into_iter()
        .filter(|p| matches!(p, Piece::Free(_)))
        .collect();
    assert_eq!(free, vec![Piece::Free(free_text("a b")); 8]);
}

const RATINGS_FILE: &str = "ACEM3_TEST_RATINGS";

/// Runs one process per number of threads, with a product large enough to use several threads.
#[test]
fn bits_do_not_depend_on_thread_count() {
    if let Ok(file) = std::env::var(RATINGS_FILE) {
        std::fs::write(file, at_work()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let texts = ["1", "2", "4"].map(|threads| {
        let file = folder.path().join(threads);
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["engine::bits_do_not_depend_on_thread_count", "--exact"])
            .env("RAYON_NUM_THREADS", threads)
            .env(RATINGS_FILE, &file)
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
        std::fs::read_to_string(file).unwrap()
    });
    assert!(texts[0].len() > 1000);
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}

/// Returns ratings and a large product with all digits.
fn at_work() -> String {
    let engine = tiny::panel(SETTINGS);
    let tasks = tiny::session(&engine);
    let ratings = written(&engine, &tasks[..4], &mut Prefixes::default());
    let wave = |n: usize, c: usize| {
        let values: Vec<f32> = (0..n * c).map(|i| (i as f32 * 0.37).sin()).collect();
        Tensor::from_vec(values, (n, c), &Device::Cpu).unwrap()
    };
    let product = linear(&wave(37, 1100), &wave(1024, 1100), None).unwrap();
    format!("{ratings:?}\n{:?}", product.to_vec2::<f32>().unwrap())
}
