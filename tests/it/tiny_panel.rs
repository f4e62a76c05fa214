//! A tiny panel with random weights: byte-level tokenizer, shared trunk and three heads.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_experts::decoder::{DecoderConfig, Head, Trunk};
use acem3_experts::generate::{Engine, GenerationSettings, GenerationTask, ImageTokens};
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, FormatStep, JudgeInput, PromptLayout, Rubric, RubricDetail,
};
use acem3_experts::train::Parameters;
use acem3_experts::{Aspect, BranchExperts, TextTokenizer};
use candle::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use serde_json::json;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// Special tokens that only the program may write.
pub(crate) const PROGRAM_TOKENS: [&str; 8] = [
    "</s>",
    "<image>",
    "### Image And Question:\n",
    "\n### Response 1:\n",
    "\n### Response 2:\n",
    "\n### Conclusion:\n",
    "\nResponse 2:\n",
    "Score:",
];
/// Generation settings with a short token budget.
pub(crate) const SETTINGS: GenerationSettings =
    GenerationSettings { analysis_tokens: 6, scores_only: false };
/// Texts of every prompt. Each is one token, which keeps the prompts short.
const PHRASES: [&str; 2] = [
    "\n### Instruction:\n## Evaluation Criterion: (higher score means better performance)\n",
    "\n## Above are two doctors' responses to a patient's question about an image. Now you need to \
     analyze each response one by one then give a score between 0-5 to each response about each \
     criterion above.\n### ",
];
/// Tokens of [`asking_panel`], each of which ends with a question and its line.
pub(crate) const ASKING: [&str; 3] =
    ["[Question]: mass or cyst?\n", "So. [Question]: which lobe?\n", "[Question]: a stent?\n"];
/// Number of token ids of the model that the tokenizer does not have.
const EXTRA_TOKEN_IDS: usize = 5;

/// Returns all special tokens: [`PROGRAM_TOKENS`], the phrases and the literals of the evaluation
/// formats.
pub(crate) fn special_tokens() -> Vec<String> {
    let constants = PROGRAM_TOKENS.into_iter().chain(PHRASES).map(str::to_owned);
    let mut tokens: Vec<String> = constants.collect();
    for aspect in Aspect::ALL {
        for step in EvaluationFormat::for_aspect(aspect).steps() {
            match step {
                FormatStep::Literal(text) if !tokens.contains(text) => tokens.push(text.clone()),
                _ => {}
            }
        }
    }
    tokens
}

/// Merges that make ` no` and ` yes` one token each.
const NO_YES_MERGES: [[&str; 2]; 5] =
    [["Ġ", "n"], ["Ġn", "o"], ["Ġ", "y"], ["Ġy", "e"], ["Ġye", "s"]];

/// Creates a tokenizer of all bytes, the scores with a leading space, and the special tokens.
pub(crate) fn tokenizer() -> TextTokenizer {
    tokenizer_with_merges(&[])
}

/// Creates the tokenizer with more merges.
fn tokenizer_with_merges(more: &[[&str; 2]]) -> TextTokenizer {
    tokenizer_with(more, &[])
}

/// Creates the tokenizer with more merges, and with whole texts as further tokens that free texts
/// may contain.
fn tokenizer_with(more: &[[&str; 2]], texts: &[&str]) -> TextTokenizer {
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    let mut tokens: Vec<String> = alphabet.into_iter().map(String::from).collect();
    // In the byte-level alphabet Ġ is the space and Ċ the line break.
    let merges: Vec<[String; 2]> = (0..=5).map(|s| ["Ġ".to_owned(), s.to_string()]).collect();
    let double_break = ["Ċ".to_owned(), "Ċ".to_owned()];
    let words = more.iter().map(|pair| pair.map(str::to_owned));
    let merges: Vec<[String; 2]> = merges.into_iter().chain([double_break]).chain(words).collect();
    tokens.extend(merges.iter().map(|pair| pair.concat()));
    let first_special = tokens.len();
    let special = special_tokens();
    tokens.extend(special.iter().cloned());
    let first_text = tokens.len();
    tokens.extend(texts.iter().map(|text| (*text).to_owned()));
    let vocab: HashMap<&str, usize> = tokens.iter().map(String::as_str).zip(0..).collect();
    let special = special.iter().map(String::as_str);
    let mut added_tokens: Vec<_> =
        (first_special..).zip(special).map(special_token_entry).collect();
    for (id, text) in (first_text..).zip(texts) {
        let mut entry = special_token_entry((id, text));
        entry["special"] = json!(false);
        added_tokens.push(entry);
    }
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": added_tokens, "pre_tokenizer": byte_level, "post_processor": null,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": null},
    });
    TextTokenizer::parse(json.to_string().as_bytes()).unwrap()
}

/// Returns the entry of a special token in a tokenizer file.
pub(crate) fn special_token_entry((id, content): (usize, &str)) -> serde_json::Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": true})
}

/// Returns the configuration of the tiny decoder.
pub(crate) fn config(tokenizer: &TextTokenizer) -> DecoderConfig {
    DecoderConfig {
        vocab_size: tokenizer.vocab_size() + EXTRA_TOKEN_IDS,
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
        gemma: None,
    }
}

/// Generates random weights. Line breaks are probable tokens, so some free texts end before their
/// token budget. Tokens that free text must not contain are even more probable.
pub(crate) fn weights(tokenizer: &TextTokenizer, seed: u64) -> HashMap<String, Tensor> {
    let config = config(tokenizer);
    let parameters = Parameters::uninitialized(seed);
    let vb = parameters.builder();
    Trunk::load(&vb, &config, config.num_hidden_layers).unwrap();
    Head::load(&vb, &config, config.num_hidden_layers).unwrap();
    let weights = parameters.all().into_iter().map(|(name, var)| {
        let mut tensor = var.as_detached_tensor();
        if name == "lm_head.weight" {
            let scales: Vec<f32> = (0..config.vocab_size as u32)
                .map(|token| match tokenizer.token_text(token).as_deref() {
                    Some("Ċ" | "č") => 2.5,
                    Some(text) if ASKING.contains(&text) => 5.0,
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

/// Returns a builder that loads tensors, as from a checkpoint.
pub(crate) fn var_builder(weights: HashMap<String, Tensor>) -> VarBuilder<'static> {
    VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu)
}

/// Loads the trunk and the three heads of the tiny panel.
pub(crate) fn trunk_and_heads(tokenizer: &TextTokenizer) -> (Trunk, Vec<Head>) {
    let config = config(tokenizer);
    let weights_of = |seed| var_builder(weights(tokenizer, seed));
    let heads = (2..5).map(|seed| Head::load(&weights_of(seed), &config, 2).unwrap());
    (Trunk::load(&weights_of(1), &config, 2).unwrap(), heads.collect())
}

/// Creates the tiny panel with a context length.
pub(crate) fn panel_with_context(context_length: usize, settings: GenerationSettings) -> Engine {
    let tokenizer = tokenizer();
    let (trunk, heads) = trunk_and_heads(&tokenizer);
    let config = DecoderConfig { max_position_embeddings: context_length, ..config(&tokenizer) };
    Engine::new(trunk, heads, tokenizer, &config, settings).unwrap()
}

/// Creates the tiny panel with the tokens ` no` and ` yes`.
pub(crate) fn panel_with_no_and_yes(settings: GenerationSettings) -> Engine {
    let tokenizer = tokenizer_with_merges(&NO_YES_MERGES);
    let (trunk, heads) = trunk_and_heads(&tokenizer);
    let config = config(&tokenizer);
    Engine::new(trunk, heads, tokenizer, &config, settings).unwrap()
}

/// Creates the tiny panel with [`ASKING`] as frequent tokens, so that many analyses ask.
pub(crate) fn asking_panel(context_length: usize, settings: GenerationSettings) -> Engine {
    let tokenizer = tokenizer_with(&[], &ASKING);
    let (trunk, heads) = trunk_and_heads(&tokenizer);
    let config = DecoderConfig { max_position_embeddings: context_length, ..config(&tokenizer) };
    Engine::new(trunk, heads, tokenizer, &config, settings).unwrap()
}

/// Creates the tiny panel.
pub(crate) fn panel(settings: GenerationSettings) -> Engine {
    panel_with_context(config(&tokenizer()).max_position_embeddings, settings)
}

/// Creates the branch experts with a prompt layout.
pub(crate) fn branch_experts(layout: PromptLayout, tokenizer: &TextTokenizer) -> BranchExperts {
    let rubric = Rubric::built_in().unwrap();
    let prompts = BranchPrompts::new(layout, rubric, RubricDetail::Names).unwrap();
    BranchExperts::new(prompts, &[], tokenizer).unwrap()
}

/// Generates random image tokens, seeded by the key.
pub(crate) fn image(key: &str) -> Arc<ImageTokens> {
    let seed = key.bytes().map(u64::from).sum();
    let vb = Parameters::uninitialized(seed).builder();
    Arc::new(ImageTokens {
        key: key.to_owned(),
        tokens: vb.get((5, 32), "image.weight").unwrap().detach(),
    })
}

/// Creates the tasks of the three branch experts for a pair, in both presentation orders.
pub(crate) fn tasks(
    engine: &Engine,
    image_key: &str,
    question: &str,
    responses: [&str; 2],
) -> Vec<GenerationTask> {
    let experts = branch_experts(PromptLayout::CaseFirst, engine.tokenizer());
    let image = image(image_key);
    let orders = [responses, [responses[1], responses[0]]].map(|responses| {
        let input = JudgeInput::pair(true, question, responses);
        experts.tasks(&input, Some(&image), engine.tokenizer()).unwrap()
    });
    orders.into_iter().flatten().collect()
}

/// Creates 18 tasks: two pairs about one image, and the first of them about another image.
pub(crate) fn three_pair_tasks(engine: &Engine) -> Vec<GenerationTask> {
    let pair = |image, responses| tasks(engine, image, "Is there a mass?", responses);
    let clear = ["Yes, on the left.", "No."];
    let vague = ["No.", "I cannot tell, äöü 肺."];
    [pair("a", clear), pair("a", vague), pair("b", clear)].concat()
}

/// Returns the aspect of a task.
pub(crate) fn aspect(task: &GenerationTask) -> Aspect {
    Aspect::ALL[task.member]
}
