//! Writes a model with random weights for all engines: safetensors for transformers and this
//! program, GGUF for llama.cpp.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use candle::quantized::gguf_file::{self, Value};
use candle::quantized::{GgmlDType, QTensor};
use candle::{DType, Device, Tensor};
use serde_json::json;

/// Width of the model.
pub(crate) const HIDDEN: usize = 1024;
const INTERMEDIATE: usize = 2816;
pub(crate) const LAYERS: usize = 12;
const HEADS: usize = 16;
pub(crate) const VOCABULARY: usize = 32_000;
const CONTEXT: usize = 4096;
const NORM_EPSILON: f32 = 1e-5;

/// Types of the GGUF files, with the ends of their names.
const GGUF_TYPES: [(GgmlDType, &str); 4] = [
    (GgmlDType::F32, "f32"),
    (GgmlDType::BF16, "bf16"),
    (GgmlDType::Q8_0, "q8_0"),
    (GgmlDType::Q4K, "q4_k"),
];

/// Returns the configuration of the decoder.
pub(crate) fn decoder_config() -> serde_json::Value {
    json!({"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
        "max_position_embeddings": CONTEXT, "rms_norm_eps": NORM_EPSILON, "rope_theta": 1e4,
        "tie_word_embeddings": false})
}

/// Returns the configuration in the form of transformers.
pub(crate) fn published_config() -> serde_json::Value {
    let mut config = decoder_config();
    config["architectures"] = json!(["LlamaForCausalLM"]);
    config["model_type"] = json!("llama");
    config["hidden_act"] = json!("silu");
    config["bos_token_id"] = json!(1);
    config["eos_token_id"] = json!(2);
    config
}

/// Writes all files to a folder, unless they are there.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let last = folder.join("model-q4_k.gguf");
    if last.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::write(folder.join("config.json"), published_config().to_string())?;
    let tensors = random_tensors()?;
    candle::safetensors::save(&tensors, folder.join("model.safetensors"))?;
    for (dtype, suffix) in GGUF_TYPES {
        write_gguf(&tensors, dtype, &folder.join(format!("model-{suffix}.gguf")))?;
    }
    Ok(())
}

/// Creates the tensors under their names in transformers.
fn random_tensors() -> Result<HashMap<String, Tensor>> {
    random_part(0..LAYERS, &["model.embed_tokens", "lm_head"], &["model.norm"])
}

/// Creates the tensors of some layers, and of matrices of the size of the vocabulary and norms
/// outside the layers.
pub(crate) fn random_part(
    layers: Range<usize>,
    matrices: &[&str],
    norms: &[&str],
) -> Result<HashMap<String, Tensor>> {
    let mut shapes: Vec<_> =
        matrices.iter().map(|name| ((*name).to_owned(), VOCABULARY, HIDDEN)).collect();
    let mut norms: Vec<String> = norms.iter().map(|name| (*name).to_owned()).collect();
    for layer in layers {
        let layer = format!("model.layers.{layer}");
        for name in ["q_proj", "k_proj", "v_proj", "o_proj"] {
            shapes.push((format!("{layer}.self_attn.{name}"), HIDDEN, HIDDEN));
        }
        shapes.push((format!("{layer}.mlp.gate_proj"), INTERMEDIATE, HIDDEN));
        shapes.push((format!("{layer}.mlp.up_proj"), INTERMEDIATE, HIDDEN));
        shapes.push((format!("{layer}.mlp.down_proj"), HIDDEN, INTERMEDIATE));
        norms.push(format!("{layer}.input_layernorm"));
        norms.push(format!("{layer}.post_attention_layernorm"));
    }
    let mut tensors = HashMap::new();
    for (name, rows, columns) in shapes {
        let values = Tensor::randn(0f32, 0.05, (rows, columns), &Device::Cpu)?;
        tensors.insert(format!("{name}.weight"), values);
    }
    for name in norms {
        let ones = Tensor::ones(HIDDEN, DType::F32, &Device::Cpu)?;
        tensors.insert(format!("{name}.weight"), ones);
    }
    Ok(tensors)
}

/// Writes a GGUF file with matrices in one type.
fn write_gguf(tensors: &HashMap<String, Tensor>, dtype: GgmlDType, path: &Path) -> Result<()> {
    let number = |value: usize| Value::U32(value as u32);
    let metadata = [
        ("general.architecture", Value::String("llama".to_owned())),
        ("llama.context_length", number(CONTEXT)),
        ("llama.embedding_length", number(HIDDEN)),
        ("llama.block_count", number(LAYERS)),
        ("llama.feed_forward_length", number(INTERMEDIATE)),
        ("llama.attention.head_count", number(HEADS)),
        ("llama.attention.head_count_kv", number(HEADS)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(NORM_EPSILON)),
        ("llama.rope.dimension_count", number(HIDDEN / HEADS)),
        ("llama.rope.freq_base", Value::F32(1e4)),
        ("llama.vocab_size", number(VOCABULARY)),
        ("tokenizer.ggml.model", Value::String("none".to_owned())),
    ];
    let converted = tensors.iter().map(|(name, values)| {
        let values = if name.contains("q_proj") || name.contains("k_proj") {
            interleave_halves(values)?
        } else {
            values.clone()
        };
        let dtype = if values.rank() == 1 { GgmlDType::F32 } else { dtype };
        Ok((gguf_name(name), QTensor::quantize(&values, dtype)?))
    });
    let converted = converted.collect::<Result<Vec<_>>>()?;
    let metadata: Vec<_> = metadata.iter().map(|(name, value)| (*name, value)).collect();
    let tensors: Vec<_> = converted.iter().map(|(name, values)| (name.as_str(), values)).collect();
    Ok(gguf_file::write(&mut File::create(path)?, &metadata, &tensors)?)
}

/// Reorders the rows of each head: llama.cpp rotates neighbours, transformers rotates halves.
fn interleave_halves(weight: &Tensor) -> Result<Tensor> {
    let halves = weight.reshape((HEADS, 2, HIDDEN / HEADS / 2, HIDDEN))?;
    Ok(halves.transpose(1, 2)?.contiguous()?.reshape((HIDDEN, HIDDEN))?)
}

/// Returns the name of a tensor in GGUF files.
fn gguf_name(name: &str) -> String {
    let names = [
        ("model.layers.", "blk."),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("post_attention_layernorm", "ffn_norm"),
        ("input_layernorm", "attn_norm"),
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
    ];
    names.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}
