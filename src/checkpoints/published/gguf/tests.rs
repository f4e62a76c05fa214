//! Tests of GGUF files against the reference implementations. The script
//! `assets/golden/make_gguf.py` generates the files and the expected values.

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_experts::decoder::{BatchLayout, Head, RopeScaling, Trunk};
use acem3_kernels::Matrix;
use candle::{DType, Device};
use candle_nn::VarBuilder;
use serde_json::Value;

use super::tokenizer;
use crate::checkpoints::gguf;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::published::tests::{
    assert_near, decode_greedily, relative_difference, to_token_ids,
};
use crate::checkpoints::store::weight_files::WeightFiles;

const FILES: [&str; 4] = ["llama-f16", "llama-k", "llama-q8_0", "qwen2-k"];

fn golden_path(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/gguf").join(name)
}

fn load_member(name: &str) -> Member {
    let source = CheckpointSource::new(golden_path(&format!("{name}.gguf")));
    let mut weight_files =
        WeightFiles::new(&crate::support::device::Placement::cpu(), HubDownloads::default());
    source.load("conclusion", &mut weight_files).unwrap()
}

/// Returns the tensors of a member with dequantised matrices.
fn dequantised_weights(member: &Member) -> VarBuilder<'static> {
    let tensors = member.weights.tensors.iter().map(|(name, stored)| {
        let values = match (stored.blocks, stored.identity.shape.as_slice()) {
            (Some(block_type), &[rows, columns]) => {
                let bytes = stored.values.clone();
                let matrix = Matrix::Blocks { bytes, block_type, shape: (rows, columns) };
                let rows: Vec<u32> = (0..rows as u32).collect();
                matrix.select_rows(&rows).unwrap()
            }
            _ => stored.values.clone(),
        };
        (name.clone(), values)
    });
    VarBuilder::from_tensors(tensors.collect(), DType::F32, &Device::Cpu)
}

/// Checks half precision, blocks of 32 and 256 values, rotary scaling, tied embeddings and biases
/// against transformers, up to 32 generated tokens.
#[test]
fn logits_and_tokens_match_reference() {
    let expected = golden_path("expected.safetensors");
    let expected = candle::safetensors::load(expected, &Device::Cpu).unwrap();
    for name in FILES {
        let expected_tensor = |part: &str| &expected[&format!("{name}.{part}")];
        let member = load_member(name);
        let vb = dequantised_weights(&member);
        let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
        let head = Head::load(&vb, &member.decoder, 1).unwrap();
        let ids = to_token_ids(expected_tensor("input_ids"));
        let x = trunk.embed(&ids).unwrap();
        let layout = BatchLayout::causal(ids.len());
        let middle = trunk.forward(&x, &layout).unwrap();
        let logits = head.forward(&middle, &layout).unwrap();
        let logits = head.logits(&logits).unwrap();
        assert_near(&logits, expected_tensor("logits"), name);

        let expected_tokens = to_token_ids(expected_tensor("greedy"));
        let (_, generated) = decode_greedily((&trunk, &head), x, expected_tokens.len());
        assert_eq!(generated, expected_tokens, "{name}");
    }
}

/// Products with quantised weights may round their inputs to 8 bits. The logits stay close.
#[test]
fn logits_of_quantised_weights_are_close_to_reference() {
    let expected = golden_path("expected.safetensors");
    let expected = candle::safetensors::load(expected, &Device::Cpu).unwrap();
    for name in FILES {
        let member = load_member(name);
        let vb = member.weights.builder(&Device::Cpu);
        let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
        let head = Head::load(&vb, &member.decoder, 1).unwrap();
        member.weights.check_all_used().unwrap();
        let ids = to_token_ids(&expected[&format!("{name}.input_ids")]);
        let layout = BatchLayout::causal(ids.len());
        let middle = trunk.forward(&trunk.embed(&ids).unwrap(), &layout).unwrap();
        let logits = head.forward(&middle, &layout).unwrap();
        let logits = head.logits(&logits).unwrap();
        let difference = relative_difference(&logits, &expected[&format!("{name}.logits")]);
        assert!(difference < 0.05, "{name}: relative difference {difference}");
    }
}

#[test]
fn unusual_texts_are_tokenized_like_reference() {
    let rows = std::fs::read(golden_path("pieces.json")).unwrap();
    let rows: HashMap<String, Vec<Value>> = serde_json::from_slice(&rows).unwrap();
    for name in FILES {
        let header = gguf::read_header(&golden_path(&format!("{name}.gguf"))).unwrap();
        let mut tokenizer = tokenizer::read(&header, usize::MAX).unwrap();
        let is_sentencepiece = header.string("tokenizer.ggml.model").unwrap() == Some("llama");
        // `SentencePiece` does not recognize control tokens in text.
        tokenizer.set_encode_special_tokens(is_sentencepiece);
        assert!(rows[name].len() > 20);
        for row in &rows[name] {
            let text = row["text"].as_str().unwrap();
            let expected_ids: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
            let ids = tokenizer.encode(text, false).unwrap().get_ids().to_vec();
            assert_eq!(ids, expected_ids, "{name}: {text:?}");
        }
    }
}

#[test]
fn start_tokens_follow_the_file() {
    let bos_tokens = FILES.map(|name| load_member(name).tokenizer.text.bos_tokens().to_vec());
    let llama3 = load_member("llama-q8_0").tokenizer.text.encode_trusted("<|start|>").unwrap();
    assert_eq!(llama3.len(), 1);
    assert_eq!(bos_tokens, [vec![1], vec![1], llama3, vec![]]);
}

#[test]
fn decoder_settings_are_read() {
    let f16 = load_member("llama-f16").decoder;
    assert_eq!(f16.rope_scaling, Some(RopeScaling::Linear { factor: 2.0 }));
    // The original f64 value, not its f32 rounding.
    assert!((f16.rms_norm_eps - 1e-5).abs() < f64::EPSILON);
    assert!(!f16.tie_word_embeddings && f16.head_dim.is_none());
    let k_quants = load_member("llama-k").decoder;
    assert_eq!((k_quants.head_size(), k_quants.kv_heads()), (32, 2));
    let q8 = load_member("llama-q8_0").decoder;
    assert!(q8.tie_word_embeddings);
    assert!(matches!(q8.rope_scaling, Some(RopeScaling::Table { factors }) if factors.len() == 8));
    let qwen2 = load_member("qwen2-k").decoder;
    assert!(qwen2.attention_bias && !qwen2.output_bias && qwen2.tie_word_embeddings);
}
