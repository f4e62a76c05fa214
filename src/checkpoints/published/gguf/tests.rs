//! Tests of GGUF files against the reference implementations. The script `assets/golden/make_gguf.py`
//! generates the files and the expected values.

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_experts::decoder::{Head, RopeScaling, Sight, Trunk};
use candle::Device;
use serde_json::Value;

use super::tokenizer;
use crate::checkpoints::gguf;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::published::tests::{assert_near, greedy, numbers};
use crate::checkpoints::store::weight_files::WeightFiles;

const FILES: [&str; 4] = ["llama-f16", "llama-k", "llama-q8_0", "qwen2-k"];

fn golden(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/gguf").join(name)
}

fn member(name: &str) -> Member {
    let source = CheckpointSource::plain(golden(&format!("{name}.gguf")));
    let mut library = WeightFiles::new(
        &crate::support::device::Placement::cpu(),
        Downloads::default(),
    );
    source.load("conclusion", &mut library).unwrap()
}

/// Checks half precision, blocks of 32 and 256 values, rotary scaling, tied embeddings and biases against
/// transformers, up to 32 generated tokens.
#[test]
fn logits_and_tokens_match_reference() {
    let expected = golden("expected.safetensors");
    let expected = candle::safetensors::load(expected, &Device::Cpu).unwrap();
    for name in FILES {
        let want = |part: &str| &expected[&format!("{name}.{part}")];
        let member = member(name);
        let vb = member.weights.builder(&Device::Cpu);
        let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
        let head = Head::load(&vb, &member.decoder, 1).unwrap();
        member.weights.all_used().unwrap();
        let ids = numbers(want("input_ids"));
        let x = trunk.embed(&ids).unwrap();
        let sight = Sight::causal(ids.len());
        let middle = trunk.forward(&x, &sight).unwrap();
        let logits = head.forward(&middle, &sight).unwrap();
        let logits = head.logits(&logits).unwrap();
        assert_near(&logits, want("logits"), name);

        let want_tokens = numbers(want("greedy"));
        let (_, written) = greedy((&trunk, &head), x, want_tokens.len());
        assert_eq!(written, want_tokens, "{name}");
    }
}

#[test]
fn unusual_texts_are_tokenized_like_reference() {
    let rows = std::fs::read(golden("pieces.json")).unwrap();
    let rows: HashMap<String, Vec<Value>> = serde_json::from_slice(&rows).unwrap();
    for name in FILES {
        let header = gguf::header(&golden(&format!("{name}.gguf"))).unwrap();
        let mut plain = tokenizer::read(&header, usize::MAX).unwrap();
        let pieces = header.text("tokenizer.ggml.model").unwrap() == Some("llama");
        // `SentencePiece` does not recognize control tokens in text.
        plain.set_encode_special_tokens(pieces);
        assert!(rows[name].len() > 20);
        for row in &rows[name] {
            let text = row["text"].as_str().unwrap();
            let want: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
            let got = plain.encode(text, false).unwrap().get_ids().to_vec();
            assert_eq!(got, want, "{name}: {text:?}");
        }
    }
}

#[test]
fn start_tokens_follow_the_file() {
    let starts = FILES.map(|name| member(name).tokenizer.text.start().to_vec());
    let llama3 = member("llama-q8_0")
        .tokenizer
        .text
        .fixed("<|start|>")
        .unwrap();
    assert_eq!(llama3.len(), 1);
    assert_eq!(starts, [vec![1], vec![1], llama3, vec![]]);
}

#[test]
fn decoder_settings_are_read() {
    let half = member("llama-f16").decoder;
    assert_eq!(half.rope_scaling, Some(RopeScaling::Linear { factor: 2.0 }));
    // The original f64 value, not its f32 rounding.
    assert!((half.rms_norm_eps - 1e-5).abs() < f64::EPSILON);
    assert!(!half.tie_word_embeddings && half.head_dim.is_none());
    let mixed = member("llama-k").decoder;
    assert_eq!((mixed.head_size(), mixed.kv_heads()), (32, 2));
    let eight = member("llama-q8_0").decoder;
    assert!(eight.tie_word_embeddings);
    assert!(
        matches!(eight.rope_scaling, Some(RopeScaling::Table { factors }) if factors.len() == 8)
    );
    let qwen2 = member("qwen2-k").decoder;
    assert!(qwen2.attention_bias && !qwen2.output_bias && qwen2.tie_word_embeddings);
}
