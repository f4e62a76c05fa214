//! Free answers against transformers' greedy tokens. The scripts `assets/golden/make_gemma.py`,
//! `make_internvl.py` and `make_onevision.py` generate the checkpoints and the expected values.

use std::sync::Arc;

use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::generate::{
    AnswerTask, Engine, FreeAnswer, GenerationSettings, ImageTokens, PrefixCache,
};
use acem3_experts::prompt::{PromptToken, StagedPrompt};
use candle::{Device, Tensor};

use super::llava_variants::{Values, load_values, prompt_names};
use super::{load_member, to_token_ids};

/// The prompt of the reference with an image, in two stages.
fn task(values: &Values, name: &str) -> AnswerTask {
    let text = |key: &str| to_token_ids(&values[key]).into_iter().map(PromptToken::Token);
    let image = values.get(&format!("{name}.image_tokens"));
    let place = image.map(|_| PromptToken::Image);
    let stages = vec![text("head").chain(place).collect(), text("tail").collect()];
    let stages = stages.into_iter().filter(|stage: &Vec<_>| !stage.is_empty()).collect();
    let to_tokens =
        |tokens: &Tensor| Arc::new(ImageTokens { key: name.to_owned(), tokens: tokens.clone() });
    AnswerTask { prompt: StagedPrompt { stages }, image: image.map(to_tokens) }
}

fn answers(engine: &Engine, tasks: &[AnswerTask], max_tokens: usize) -> Vec<FreeAnswer> {
    let results = engine.answer(0, tasks, max_tokens, &mut PrefixCache::default()).unwrap();
    results.into_iter().map(Result::unwrap).collect()
}

/// Checks answers against the reference. `compared_tokens`: tokens before special ones, in all answers.
fn assert_answers(folder: &str, compared_tokens: usize) {
    let (member, values) = (load_member(folder), load_values(folder));
    let vb = member.weights.builder(&Device::Cpu);
    let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
    let heads = vec![Head::load(&vb, &member.decoder, 1).unwrap()];
    let tokenizer = member.tokenizer.text.clone();
    let settings = GenerationSettings { analysis_tokens: 8, scores_only: false };
    let engine = Engine::new(trunk, heads, tokenizer, &member.decoder, settings).unwrap();
    let names = prompt_names(&values);
    let tasks: Vec<AnswerTask> = names.iter().map(|name| task(&values, name)).collect();
    let batch = answers(&engine, &tasks, 16);
    let mut total = 0;
    for ((name, task), answer) in names.iter().zip(&tasks).zip(&batch) {
        let expected = to_token_ids(&values[&format!("{name}.greedy")]);
        assert_eq!(expected.len(), 16, "{folder}, {name}");
        // An answer ends where the reference writes a special token.
        let end = expected.iter().position(|token| engine.tokenizer().is_special(*token));
        // The random model may write padding of its embeddings, which is no token.
        let known = engine.tokenizer().vocab_size() as u32;
        let unknown = expected.iter().position(|token| *token >= known).unwrap_or(16);
        let compared = end.unwrap_or(16).min(unknown);
        total += compared;
        assert_eq!(answer.tokens[..compared], expected[..compared], "{folder}, {name}");
        if unknown == 16 {
            assert_eq!((answer.tokens.len(), answer.is_cut), (compared, end.is_none()), "{name}");
        }
        assert_eq!(answer.text, engine.tokenizer().decode(&answer.tokens).unwrap());
        // An answer depends neither on the batch nor on the budget.
        let alone = answers(&engine, std::slice::from_ref(task), 16);
        assert_eq!(alone, std::slice::from_ref(answer), "{folder}, {name}");
        let short = answers(&engine, std::slice::from_ref(task), 1);
        let first = &answer.tokens[..answer.tokens.len().min(1)];
        assert_eq!(short[0].tokens, first, "{folder}, {name}");
    }
    assert_eq!(total, compared_tokens, "{folder}");
}

#[test]
fn answers_to_images_are_the_greedy_tokens_of_the_reference() {
    // Each answer of the reference begins with a special token, so these are empty.
    assert_answers("gemma3", 0);
    assert_answers("internvl", 4 * 16);
    assert_answers("llava-onevision", 5 * 16);
}

#[test]
fn answers_to_texts_are_the_greedy_tokens_of_the_reference() {
    assert_answers("gemma3-text", 3);
}
