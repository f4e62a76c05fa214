//! A tiny random panel in code: byte-level tokenizer with control tokens, shared trunk, three heads.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_experts::decoder::{DecoderConfig, Head, Trunk};
use acem3_experts::generate::{Engine, ImageTokens, Settings, Task};
use acem3_experts::prompt::{BranchPrompts, Detail, Format, JudgeInput, Layout, Rubric, Step};
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
    analysis_tokens: 6,
    scores_only: false,
};
/// What every prompt says, one token each, so that prompts are short.
const PHRASES: [&str; 2] = [
    "\n### Instruction:\n## Evaluation Criterion: (higher score means better performance)\n",
    "\n## Above are two doctors' responses to a patient's question about an image. Now you need to \
     analyze each response one by one then give a score between 0-5 to each response about each \
     criterion above.\n### ",
];
/// Ids that the model knows and the tokenizer does not.
const NAMELESS: usize = 5;

/// Control tokens: what only the program may say, and what it often says.
pub(crate) fn controls() -> Vec<String> {
    let fixed = CONTROL.into_iter().chain(PHRASES).map(str::to_owned);
    let mut all: Vec<String> = fixed.collect();
    for aspect in Aspect::ALL {
        for step in Format::branch(aspect).steps() {
            match step {
                Step::Feed(text) if !all.contains(text) => all.push(text.clone()),
                _ => {}
            }
        }
    }
    all
}

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
    let controls = controls();
    pieces.extend(controls.iter().cloned());
    let vocab: HashMap<&str, usize> = pieces.iter().map(String::as_str).zip(0..).collect();
    let controls = controls.iter().map(String::as_str);
    let added: Vec<_> = (first_control..).zip(controls).map(control).collect();
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
        attention_bias: false,
        output_bias: false,
        rope_scaling: None,
        sliding_window: None,
        max_window_layers: 0,
    }
}

/// Random weights that are not trained. Line breaks are likely tokens, so that some free texts end
/// by themselves; likelier still are those that may not be written.
pub(crate) fn weights(tokenizer: &TextTokenizer, seed: u64) -> HashMap<String, Tensor> {
    let config = config(tokenizer);
    let parameters = Parameters::fresh(seed);
    let vb = parameters.builder();
    Trunk::load(&vb, &config, config.num_hidden_layers).unwrap();
    Head::load(&vb, &config, config.num_hidden_layers).unwrap();
    let weights = parameters.all().into_iter().map(|(name, var)| {
        let mut tensor = var.as_detached_tensor();
        if name == "lm_head.weight" {
            let scales: Vec<f32> = (0..config.vocab_size as u32)
                .map(|token| match tokenizer.piece(token).as_deref() {
                    Some("Ċ" | "č") => 2.5,
                    Some("ĊĊ") | None => 4.0,
                    Some(_) if tokenizer.is_special(token) => 4.0,
                    Some(_) => 1.0,
                })
                .collect();
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

/// The trunk and the three heads of the tiny panel.
pub(crate) fn parts(tokenizer: &TextTokenizer) -> (Trunk, Vec<Head>) {
    let config = config(tokenizer);
    let part = |seed| builder(weights(tokenizer, seed));
    let heads = (2..5).map(|seed| Head::load(&part(seed), &config, 2).unwrap());
    (Trunk::load(&part(1), &config, 2).unwrap(), heads.collect())
}

/// The tiny panel, with a context of its own length.
pub(crate) fn panel_of(context: usize, settings: Settings) -> Engine {
    let tokenizer = tokenizer();
    let (trunk, heads) = parts(&tokenizer);
    let config = DecoderConfig {
        max_position_embeddings: context,
        ..config(&tokenizer)
    };
    Engine::new(trunk, heads, tokenizer, &config, settings).unwrap()
}

/// The tiny panel.
pub(crate) fn panel(settings: Settings) -> Engine {
    panel_of(config(&tokenizer()).max_position_embeddings, settings)
}

/// The experts that ask it.
pub(crate) fn judge(layout: Layout, tokenizer: &TextTokenizer) -> BranchJudge {
    let rubric = Rubric::built_in().unwrap();
    let prompts = BranchPrompts::new(layout, rubric, Detail::Names).unwrap();
    BranchJudge::new(prompts, [""; 3], tokenizer).unwrap()
}

/// Random image tokens.
pub(crate) fn image(key: &str) -> Arc<ImageTokens> {
    let seed = key.bytes().map(u64::from).sum();
    let vb = Parameters::fresh(seed).builder();
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

/// Two pairs about one image, and the first of them about another image: 18 tasks.
pub(crate) fn session(engine: &Engine) -> Vec<Task> {
    let pair = |image, texts| tasks(engine, image, "Is there a mass?", texts);
    let clear = ["Yes, on the left.", "No."];
    let vague = ["No.", "I cannot tell, äöü 肺."];
    [pair("a", clear), pair("a", vague), pair("b", clear)].concat()
}

/// The aspect of a task's member.
pub(crate) fn aspect(task: &Task) -> Aspect {
    Aspect::ALL[task.member]
}
