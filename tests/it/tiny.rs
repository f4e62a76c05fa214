//! A tiny random panel in code: byte-level tokenizer with control tokens, shared trunk, three heads.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_experts::decoder::{DecoderConfig, Head, Trunk};
use acem3_experts::generate::{Engine, ImageTokens, Settings, Task};
use acem3_experts::prompt::{BranchPrompts, Detail, JudgeInput, Layout, Rubric};
use acem3_experts::train::Parameters;
use acem3_experts::{Aspect, BranchJudge, TextTokenizer};
use candle::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use serde_json::json;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// What only the program may say.
pub(crate) const CONTROL: [&str; 8] = [
    "</s>",
    "<image>",
    "### Image And Question:\n",
    "\n### Response 1:\n",
    "\n### Response 2:\n",
    "\n### Conclusion:\n",
    "\nResponse 2:\n",
    "Score:",
];
/// Settings that leave room for a few words.
pub(crate) const SETTINGS: Settings = Settings {
    analysis_tokens: 12,
    scores_only: false,
};
/// Ids that the model knows and the tokenizer does not.
const NAMELESS: usize = 5;

/// All bytes, the scores with a space before them, and the control tokens.
pub(crate) fn tokenizer() -> TextTokenizer {
    let mut letters: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    letters.sort_unstable();
    let mut pieces: Vec<String> = letters.into_iter().map(String::from).collect();
    // Ġ is the space, Ċ the line break of the byte-level alphabet.
    let merges: Vec<[String; 2]> = (0..=5).map(|s| ["Ġ".to_owned(), s.to_string()]).collect();
    let double = ["Ċ".to_owned(), "Ċ".to_owned()];
    let merges: Vec<[String; 2]> = merges.into_iter().chain([double]).collect();
    pieces.extend(merges.iter().map(|pair| pair.concat()));
    let first_control = pieces.len();
    pieces.extend(CONTROL.map(str::to_owned));
    let vocab: HashMap<&str, usize> = pieces.iter().map(String::as_str).zip(0..).collect();
    let added: Vec<_> = (first_control..).zip(CONTROL).map(control).collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": added, "pre_tokenizer": byte_level, "post_processor": null,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": null},
    });
    TextTokenizer::parse(json.to_string().as_bytes()).unwrap()
}

/// The entry of a control token in a tokenizer's file.
pub(crate) fn control((id, content): (usize, &str)) -> serde_json::Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": true})
}

/// The tiny decoder's shape for a tokenizer.
pub(crate) fn config(tokenizer: &TextTokenizer) -> DecoderConfig {
    DecoderConfig {
        vocab_size: tokenizer.vocabulary() + NAMELESS,
        hidden_size: 32,
        intermediate_size: 48,
        num_hidden_layers: 3,
        num_attention_heads: 4,
        num_key_value_heads: Some(2),
        head_dim: None,
        max_position_embeddings: 2048,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.0,
        tie_word_embeddings: false,
    }
}

/// Random weights that are not trained. A line break is a likely token, so that some free texts
/// end by themselves; ids without a text are the likeliest of all.
pub(crate) fn weights(config: &DecoderConfig, seed: u64, stop: u32) -> HashMap<String, Tensor> {
    let parameters = Parameters::fresh(seed);
    let vb = parameters.builder(&Device::Cpu);
    Trunk::load(&vb, config, config.num_hidden_layers).unwrap();
    Head::load(&vb, config, config.num_hidden_layers).unwrap();
    let weights = parameters.all().into_iter().map(|(name, var)| {
        let mut tensor = var.as_detached_tensor();
        if name == "lm_head.weight" {
            let named = config.vocab_size - NAMELESS;
            let scale = |token| match token {
                token if token == stop as usize => 2.5f32,
                token if token >= named => 4.0,
                _ => 1.0,
            };
            let scales: Vec<f32> = (0..config.vocab_size).map(scale).collect();
            let scales = Tensor::from_vec(scales, (config.vocab_size, 1), &Device::Cpu).unwrap();
            tensor = tensor.broadcast_mul(&scales).unwrap();
        }
        (name, tensor)
    });
    weights.collect()
}

/// A builder over plain tensors, as a loaded checkpoint gives.
pub(crate) fn builder(weights: HashMap<String, Tensor>) -> VarBuilder<'static> {
    VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu)
}

/// A panel of three heads on one trunk of two layers.
pub(crate) fn engine(config: &DecoderConfig, settings: Settings) -> Engine {
    let tokenizer = tokenizer();
    let stop = tokenizer.free("\n").unwrap()[0];
    let part = |seed| builder(weights(config, seed, stop));
    let trunk = Trunk::load(&part(1), config, 2).unwrap();
    let heads = (2..5).map(|seed| Head::load(&part(seed), config, 2).unwrap());
    Engine::new(trunk, heads.collect(), tokenizer, config, settings).unwrap()
}

/// The tiny panel.
pub(crate) fn panel(settings: Settings) -> Engine {
    engine(&config(&tokenizer()), settings)
}

/// The experts that ask it.
pub(crate) fn judge(layout: Layout, tokenizer: &TextTokenizer) -> BranchJudge {
    let rubric = Rubric::built_in().unwrap();
    let prompts = BranchPrompts::new(layout, rubric, Detail::Names).unwrap();
    BranchJudge::new(prompts, tokenizer).unwrap()
}

/// Random image tokens.
pub(crate) fn image(key: &str) -> Arc<ImageTokens> {
    let seed = key.bytes().map(u64::from).sum();
    let vb = Parameters::fresh(seed).builder(&Device::Cpu);
    Arc::new(ImageTokens {
        key: key.to_owned(),
        tokens: vb.get((5, 32), "image.weight").unwrap().detach(),
    })
}

/// The three tasks of a pair about an image, in both orders.
pub(crate) fn tasks(
    engine: &Engine,
    image_key: &str,
    question: &str,
    texts: [&str; 2],
) -> Vec<Task> {
    let judge = judge(Layout::CaseFirst, engine.tokenizer());
    let image = image(image_key);
    let orders = [texts, [texts[1], texts[0]]].map(|responses| {
        let input = JudgeInput {
            image: true,
            question,
            responses,
        };
        judge
            .tasks(&input, Some(&image), engine.tokenizer())
            .unwrap()
    });
    orders.into_iter().flatten().collect()
}

/// Two pairs about one image and one about another: 18 tasks.
pub(crate) fn session(engine: &Engine) -> Vec<Task> {
    [
        tasks(
            engine,
            "a",
            "Is there a mass?",
            ["Yes, on the left.", "No."],
        ),
        tasks(engine, "a", "Is there a mass?", ["No.", "I cannot tell."]),
        tasks(
            engine,
            "b",
            "How many lesions?",
            ["Two", "There are 3 of them, äöü 肺."],
        ),
    ]
    .concat()
}

/// The aspect of a task's member.
pub(crate) fn aspect(task: &Task) -> Aspect {
    Aspect::ALL[task.member]
}
