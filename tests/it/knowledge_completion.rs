//! Knowledge completion while decoding: questions in analyses are followed by evidence.

use std::sync::{Arc, Mutex};

use acem3_experts::generate::{
    Engine, EvidencePassage, GenerationSettings, GenerationTask, KnowledgeCompletion,
    KnowledgeLimits, KnowledgeSource, PrefixCache,
};
use acem3_experts::prompt::QUESTION;
use acem3_experts::{Error, Rating};

use crate::tiny_panel::{self, ASKING};

/// Long enough that an analysis continues after a question.
const SETTINGS: GenerationSettings = GenerationSettings { analysis_tokens: 60, scores_only: false };
const LIMITS: KnowledgeLimits = KnowledgeLimits { rounds: 2, evidence_tokens: 40 };

/// Answers each question with two passages that depend on it, and counts the questions.
#[derive(Default)]
struct TestSource {
    text: &'static str,
    questions: Mutex<Vec<String>>,
}

impl KnowledgeSource for TestSource {
    fn find(&self, question: &str) -> Result<Vec<EvidencePassage>, String> {
        self.questions.lock().unwrap().push(question.to_owned());
        if self.text == "error" {
            return Err("the disk is gone".to_owned());
        }
        let passage = |number: usize| EvidencePassage {
            id: format!("{number}:{}", question.len()),
            text: format!("{} {number} {question}\nScore: 5 </s>", self.text),
        };
        Ok(if self.text.is_empty() { Vec::new() } else { vec![passage(1), passage(2)] })
    }
}

fn engine_with(context: usize, text: &'static str) -> Engine {
    let mut engine = tiny_panel::asking_panel(context, SETTINGS);
    let source = Arc::new(TestSource { text, ..TestSource::default() });
    let knowledge = KnowledgeCompletion::new(source, LIMITS, engine.tokenizer()).unwrap();
    engine.set_knowledge(knowledge);
    engine
}

/// Creates an engine whose members ask many questions.
pub(crate) fn asking_engine(context: usize) -> Engine {
    engine_with(context, "A cyst is")
}

fn generate(
    engine: &Engine,
    tasks: &[GenerationTask],
    cache: &mut PrefixCache,
) -> Vec<Vec<Rating>> {
    let results = engine.generate(tasks, cache).unwrap();
    results.into_iter().map(Result::unwrap).collect()
}

fn generate_separately(engine: &Engine, tasks: &[GenerationTask]) -> Vec<Vec<Rating>> {
    let one = |task: &GenerationTask| {
        generate(engine, std::slice::from_ref(task), &mut PrefixCache::default()).remove(0)
    };
    tasks.iter().map(one).collect()
}

fn count_lookups(ratings: &[Rating]) -> usize {
    ratings.iter().map(|rating| rating.lookups.len()).sum()
}

#[test]
fn evidence_does_not_depend_on_batches_or_cached_prefixes() {
    let engine = asking_engine(2048);
    let tasks = tiny_panel::three_pair_tasks(&engine);
    let expected = generate_separately(&engine, &tasks);
    let lookups: Vec<usize> = expected.iter().map(|ratings| count_lookups(ratings)).collect();
    assert!(lookups.contains(&LIMITS.rounds), "{lookups:?}");
    assert!(lookups.iter().all(|count| *count <= LIMITS.rounds), "{lookups:?}");
    let mut cache = PrefixCache::default();
    assert_eq!(generate(&engine, &tasks, &mut cache), expected);
    assert_eq!(generate(&engine, &tasks, &mut cache), expected);
    let mut limited = asking_engine(2048);
    limited.limit_memory(3_000_000);
    let reversed: Vec<GenerationTask> = tasks.iter().rev().cloned().collect();
    let mut ratings = generate(&limited, &reversed, &mut PrefixCache::default());
    ratings.reverse();
    assert_eq!(ratings, expected);
}

#[test]
fn evaluations_have_their_form_and_their_questions_are_not_in_the_analyses() {
    let engine = asking_engine(2048);
    let tasks = tiny_panel::three_pair_tasks(&engine);
    let mut later_questions = 0;
    for (task, ratings) in tasks.iter().zip(generate_separately(&engine, &tasks)) {
        assert_eq!(ratings.len(), 2 * tiny_panel::aspect(task).criteria().len());
        let mut rounds = LIMITS.rounds;
        for rating in &ratings {
            let positions = rating.lookups.iter().map(|lookup| lookup.position);
            assert!(positions.clone().is_sorted(), "{rating:?}");
            assert!(positions.clone().all(|position| position <= rating.analysis.chars().count()));
            later_questions += positions.filter(|position| *position > 0).count();
            for lookup in &rating.lookups {
                assert!(ASKING.iter().any(|text| text.contains(&lookup.question)), "{lookup:?}");
                let first = format!("1:{}", lookup.question.len());
                assert_eq!(lookup.passages.first(), Some(&first));
                rounds -= 1;
            }
            // A question without an answer stays in the text.
            if rounds > 0 && !rating.cut {
                assert!(!rating.analysis.contains(QUESTION), "{rating:?}");
            }
            assert!(!rating.analysis.contains("cyst is"), "{rating:?}");
        }
    }
    assert!(later_questions > 0, "no question stands after other text");
}

#[test]
fn evidence_changes_what_follows_it_and_nothing_before() {
    let [first, second] = ["A cyst is", "No idea about"].map(|text| engine_with(2048, text));
    let tasks = tiny_panel::three_pair_tasks(&first);
    let pairs = generate_separately(&first, &tasks).into_iter();
    let pairs = pairs.zip(generate_separately(&second, &tasks));
    let mut changed = 0;
    for (a, b) in pairs {
        let Some(asked) = a.iter().position(|rating| !rating.lookups.is_empty()) else {
            assert_eq!(a, b);
            continue;
        };
        assert_eq!(a[..asked], b[..asked]);
        changed += usize::from(a[asked].score.probabilities != b[asked].score.probabilities);
    }
    assert!(changed > 0, "no evidence changed a score");
}

/// A prompt that fits without evidence is judged, with as much evidence as there is room for.
#[test]
fn evidence_takes_what_the_context_has_left() {
    let plain = tiny_panel::asking_panel(2048, SETTINGS);
    let tasks = tiny_panel::three_pair_tasks(&plain);
    let expected = generate_separately(&plain, &tasks);
    assert!(expected.iter().flatten().any(|rating| rating.analysis.contains(QUESTION)));
    assert!(expected.iter().all(|ratings| count_lookups(ratings) == 0));
    // The smallest context in which all tasks fit.
    let fits = |context: &usize| {
        let engine = tiny_panel::asking_panel(*context, SETTINGS);
        tasks.iter().all(|task| {
            let result = engine.generate(std::slice::from_ref(task), &mut PrefixCache::default());
            !matches!(result.unwrap().remove(0), Err(Error::TooLong { .. }))
        })
    };
    let (mut low, mut high) = (1_usize, 2048);
    while low < high {
        let middle = usize::midpoint(low, high);
        if fits(&middle) { high = middle } else { low = middle + 1 }
    }
    let longest = |context: usize| {
        let ratings = generate_separately(&asking_engine(context), &tasks);
        ratings.iter().map(|ratings| count_lookups(ratings)).sum::<usize>()
    };
    let counts = [low, low + 80, 2048].map(longest);
    assert!(counts.is_sorted() && counts[0] < counts[2], "{counts:?}");
}

#[test]
fn question_without_passages_is_recorded_and_an_unreadable_source_is_an_error() {
    let empty = engine_with(2048, "");
    let tasks = tiny_panel::three_pair_tasks(&empty);
    let ratings = generate_separately(&empty, &tasks);
    let mut lookups = ratings.iter().flatten().flat_map(|rating| &rating.lookups).peekable();
    assert!(lookups.peek().is_some());
    assert!(lookups.all(|lookup| lookup.passages.is_empty()));
    let broken = engine_with(2048, "error");
    let results = broken.generate(&tasks, &mut PrefixCache::default()).unwrap();
    let messages: Vec<String> =
        results.iter().filter_map(|r| Some(r.as_ref().err()?.to_string())).collect();
    assert!(!messages.is_empty());
    assert!(
        messages.iter().all(|message| message == "knowledge: the disk is gone"),
        "{messages:?}"
    );
}
