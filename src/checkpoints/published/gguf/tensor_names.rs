//! Mapping of tensor names in GGUF files to the names that the crates load (`tensor_mapping.py` of
//! the `gguf` package).

use acem3_experts::decoder::DecoderConfig;

/// The table of rotary factors: part of the configuration, not a weight.
pub(super) const ROPE_FACTORS: &str = "rope_freqs.weight";

/// Tensor names within a layer.
const LAYER_TENSORS: [(&str, &str); 9] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// Maps the name of a tensor. An unknown tensor keeps its name, and loading reports it as unused.
pub(super) fn model_tensor_name(name: &str) -> String {
    match name {
        "token_embd.weight" => return "model.embed_tokens.weight".to_owned(),
        "output_norm.weight" => return "model.norm.weight".to_owned(),
        "output.weight" => return "lm_head.weight".to_owned(),
        _ => {}
    }
    let part = || {
        let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
        let (part, kind) = rest.split_once('.')?;
        let (_, model_part) = LAYER_TENSORS.iter().find(|(gguf_part, _)| *gguf_part == part)?;
        Some(format!("model.layers.{layer}.{model_part}.{kind}"))
    };
    part().unwrap_or_else(|| name.to_owned())
}

/// Returns the number of heads of a query or key tensor, weight or bias, whose rows llama.cpp
/// permutes (architecture llama only).
pub(super) fn permuted_heads(
    name: &str,
    architecture: &str,
    decoder: &DecoderConfig,
) -> Option<usize> {
    if architecture != "llama" {
        return None;
    }
    match name.strip_prefix("blk.")?.split_once('.')?.1 {
        "attn_q.weight" | "attn_q.bias" => Some(decoder.num_attention_heads),
        "attn_k.weight" | "attn_k.bias" => Some(decoder.kv_heads()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_tensor_keeps_its_name() {
        for (gguf_name, name) in [
            ("blk.11.attn_q.bias", "model.layers.11.self_attn.q_proj.bias"),
            ("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"),
            ("output.weight", "lm_head.weight"),
            ("blk.0.ffn_gate_exps.weight", "blk.0.ffn_gate_exps.weight"),
            ("mm.0.weight", "mm.0.weight"),
        ] {
            assert_eq!(model_tensor_name(gguf_name), name);
        }
    }
}
