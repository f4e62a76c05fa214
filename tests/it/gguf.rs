//! The program judges with GGUF files and inspects them; damaged files are rejected.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::folder::{Folder, Said};

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets")
}

fn golden(name: &str) -> PathBuf {
    assets().join("golden/gguf").join(name)
}

fn judge(folder: &Folder, panel: &str, out: &str) -> Said {
    let demo = assets().join("demo").display().to_string();
    let args = ["judge", &demo, "--out", out, "--panel", panel];
    let short = ["--limit", "1", "--scores-only", "--single-order"];
    folder.run(&[&args[..], &short].concat())
}

fn inspect(folder: &Folder, panel: &str) -> Value {
    let said = folder.run(&["panel", "inspect", panel, "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

fn sum(found: &Value, name: &str) -> u64 {
    found["sizes"][name].as_u64().unwrap()
}

#[test]
fn gguf_file_is_a_panel_and_is_inspected() {
    let folder = Folder::empty();
    let path = golden("llama-k.gguf").display().to_string();
    let found = inspect(&folder, &path);
    assert_eq!(found["name"], "llama-k");
    let member = &found["members"][0];
    let types = serde_json::json!(["Q4_K", "Q5_K", "Q6_K", "Q8_0", "f32"]);
    assert_eq!(member["dtypes"], types);
    assert_eq!(member["kind"], "llama");
    assert!(member["encoder"].is_null());
    let hash = member["files"]["llama-k.gguf"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
    // Embedding and output; per layer 2 x 128 x 256, 2 x 64 x 256, 3 x 256 x 256 and 2 norms.
    let layer = 2 * 128 * 256 + 2 * 64 * 256 + 3 * 256 * 256 + 2 * 256;
    let parameters = 2 * 480 * 256 + 2 * layer + 256;
    assert_eq!(sum(&found, "parameters_shared"), parameters);
    assert_eq!(sum(&found, "parameters"), 4 * parameters);
    // The tensors take the whole file except its header.
    let file = fs::metadata(&path).unwrap().len();
    let bytes = sum(&found, "bytes_shared");
    assert!(bytes < file && bytes > file - 20_000, "{bytes} of {file}");
    // They stay quantised in memory.
    assert_eq!(sum(&found, "bytes_loaded"), bytes);
    assert_eq!(found["trunks"][0]["shared_layers"], 1);

    let said = judge(&folder, &path, "out");
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(folder.records("out")[0]["status"], "judged");
}

#[test]
fn panel_combines_files_and_folders() {
    let folder = Folder::empty();
    let llava = assets().join("golden/checkpoints/llava");
    fs::copy(golden("llama-q8_0.gguf"), folder.path("q8.gguf")).unwrap();
    let panel = format!(
        "schema = 1\n[members]\nexpression = \"q8.gguf\"\n\
         medical_knowledge = {{ file = \"q8.gguf\", dialogue = \"llama3\" }}\n\
         patient_relevance = {:?}\nconclusion = {llava:?}\n",
        golden("qwen2-k.gguf")
    );
    folder.write("four.toml", &panel);
    let found = inspect(&folder, "four.toml");
    assert_eq!(
        found["members"][0]["dtypes"],
        serde_json::json!(["Q8_0", "f32"])
    );
    assert_eq!(found["members"][2]["kind"], "qwen2");
    // A file used by two members is stored once, even with different chat templates.
    let parameters = |i: usize| found["members"][i]["parameters"].as_u64().unwrap();
    let once = parameters(0) + parameters(2) + parameters(3);
    assert_eq!(parameters(0), parameters(1));
    assert!(sum(&found, "parameters_shared") <= once);
    let said = judge(&folder, "four.toml", "out");
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(folder.records("out")[0]["status"], "judged");
}

#[test]
fn folder_with_one_gguf_file_equals_the_file() {
    let folder = Folder::empty();
    fs::create_dir_all(folder.path("one")).unwrap();
    fs::copy(golden("llama-f16.gguf"), folder.path("one/model.gguf")).unwrap();
    folder.write("one/params.json", "{}");
    let path = golden("llama-f16.gguf").display().to_string();
    let (one, file) = (inspect(&folder, "one"), inspect(&folder, &path));
    assert_eq!(one["judge_sha256"], file["judge_sha256"]);
}

/// Returns the error for a changed copy of a file.
fn error_after(name: &str, damage: impl Fn(&mut Vec<u8>)) -> String {
    let folder = Folder::empty();
    let mut bytes = fs::read(golden(name)).unwrap();
    damage(&mut bytes);
    fs::write(folder.path("broken.gguf"), bytes).unwrap();
    let said = folder.run(&["panel", "inspect", "broken.gguf"]);
    assert_eq!(said.code, 2, "{}{}", said.out, said.err);
    assert!(
        said.out.is_empty() && !said.err.contains("panicked"),
        "{}",
        said.err
    );
    assert!(said.err.contains("broken.gguf"), "{}", said.err);
    said.err
}

/// Returns the error for a damaged or unsupported file, and checks that it has a hint.
fn hinted(name: &str, damage: impl Fn(&mut Vec<u8>)) -> String {
    let error = error_after(name, damage);
    assert!(error.contains("hint: "), "{error}");
    error
}

fn assert_says(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
}

/// Returns the position after a text in a file.
fn after(bytes: &[u8], text: &str) -> usize {
    let found = bytes.windows(text.len()).position(|w| w == text.as_bytes());
    found.unwrap() + text.len()
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}

#[test]
fn truncated_and_foreign_files_are_rejected() {
    let short = hinted("llama-q8_0.gguf", |bytes| bytes.truncate(bytes.len() - 100));
    assert_says(&short, &["tensor `", "truncated or changed", "hint:"]);
    for keep in [0, 3, 10, 24, 100, 5000] {
        let header = hinted("llama-q8_0.gguf", |bytes| bytes.truncate(keep));
        assert_says(&header, &["truncated"]);
    }
    let other = hinted("llama-q8_0.gguf", |bytes| put(bytes, 0, b"PK\x03\x04"));
    assert_says(&other, &["not a GGUF file", "hint:"]);
    let old = hinted("llama-q8_0.gguf", |bytes| put(bytes, 4, &[1]));
    assert_says(&old, &["version 1", "expected 2 or 3", "hint:"]);
}

#[test]
fn wrong_counts_and_lengths_are_rejected() {
    let huge = u64::MAX.to_le_bytes();
    let tensors = hinted("llama-f16.gguf", |bytes| put(bytes, 8, &huge));
    assert_says(&tensors, &["tensor_count 18446744073709551615"]);
    let pieces = error_after("llama-f16.gguf", |bytes| put(bytes, 16, &[0xff, 0xff]));
    assert_says(&pieces, &["broken.gguf"]);
    let key = hinted("llama-f16.gguf", |bytes| put(bytes, 24, &huge));
    assert_says(&key, &["string length 18446744073709551615"]);
    for (list, n) in [
        ("tokens", 1u64 << 60),
        ("tokens", 1 << 30),
        ("scores", 1 << 62),
    ] {
        let list = format!("tokenizer.ggml.{list}");
        let lied = hinted("llama-f16.gguf", |bytes| {
            let at = after(bytes, &list) + 8;
            put(bytes, at, &n.to_le_bytes());
        });
        assert_says(&lied, &["array", &n.to_string(), "hint:"]);
    }
    // A dimension of a tensor, its offset, and dimensions whose product overflows.
    let shape = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "blk.0.attn_q.weight") + 4;
        put(bytes, at, &(1u64 << 40).to_le_bytes());
    });
    assert_says(
        &shape,
        &["`blk.0.attn_q.weight`", "bytes at offset", "hint:"],
    );
    let wraps = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "blk.0.attn_q.weight") + 4;
        put(bytes, at, &(1u64 << 32).to_le_bytes());
        put(bytes, at + 8, &(1u64 << 32).to_le_bytes());
    });
    assert_says(&wraps, &["`blk.0.attn_q.weight`", "does not fit type f16"]);
    let place = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "blk.0.attn_q.weight") + 24;
        put(bytes, at, &(u64::MAX - 31).to_le_bytes());
    });
    assert_says(&place, &["`blk.0.attn_q.weight`", "bytes at offset"]);
    let inside = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "blk.1.attn_q.weight") + 24;
        put(bytes, at, &[0; 8]);
    });
    assert_says(&inside, &["overlapping"]);
}

#[test]
fn unknown_and_incompatible_content_is_rejected() {
    let kind = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "blk.0.attn_q.weight") + 20;
        put(bytes, at, &16u32.to_le_bytes());
    });
    assert_says(&kind, &["tensor 16", "Q2_K to Q6_K", "hint:"]);
    let rows = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "blk.0.attn_q.weight") + 20;
        put(bytes, at, &12u32.to_le_bytes());
    });
    assert_says(&rows, &["`blk.0.attn_q.weight`", "does not fit type Q4_K"]);
    let architecture = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "general.architecture") + 12;
        put(bytes, at, b"gemma");
    });
    assert_says(&architecture, &["`gemma`", "not supported", "hint:"]);
    let missing = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "llama.block_coun") - 1;
        put(bytes, at, b"m");
    });
    assert_says(&missing, &["llama.block_count is missing"]);
    let unknown = hinted("llama-f16.gguf", |bytes| {
        let at = after(bytes, "llama.rope.dimension_coun") - 1;
        put(bytes, at, b"m");
    });
    assert_says(&unknown, &["llama.rope.dimension_coumt", "ignore_config"]);
    let heads = error_after("llama-f16.gguf", |bytes| {
        let at = after(bytes, "llama.attention.head_count") + 4;
        put(bytes, at, &3u32.to_le_bytes());
    });
    assert_says(&heads, &["num_attention_heads 3"]);
    let layers = error_after("llama-f16.gguf", |bytes| {
        let at = after(bytes, "llama.block_count") + 4;
        put(bytes, at, &3u32.to_le_bytes());
    });
    assert_says(&layers, &["has no tensor", "model.layers.2."]);
    let fewer = error_after("llama-f16.gguf", |bytes| {
        let at = after(bytes, "llama.block_count") + 4;
        put(bytes, at, &1u32.to_le_bytes());
    });
    assert_says(&fewer, &["model.layers.1.", "unused tensor"]);
    let words = hinted("qwen2-k.gguf", |bytes| {
        let at = after(bytes, "tokenizer.ggml.pre") + 12;
        put(bytes, at, b"qwen9");
    });
    assert_says(&words, &["tokenizer.ggml.pre `qwen9`", "hint:"]);
    let scale = hinted("llama-q8_0.gguf", |bytes| {
        // The scale of the last block before the last three norms is NaN.
        let at = bytes.len() - 3 * 64 * 4 - 34;
        put(bytes, at, &[0xff, 0x7f]);
    });
    assert_says(
        &scale,
        &["`blk.1.ffn_down.weight`", "32 of 6144 values", "not finite"],
    );
}
