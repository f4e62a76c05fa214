//! The program judges with GGUF files and inspects them; damaged files are rejected.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::folder::{Folder, ProgramOutput};

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets")
}

fn golden(name: &str) -> PathBuf {
    assets().join("golden/gguf").join(name)
}

fn judge(folder: &Folder, panel: &str, out: &str) -> ProgramOutput {
    let demo = assets().join("demo").display().to_string();
    let args = ["judge", &demo, "--out", out, "--panel", panel];
    let quick = ["--limit", "1", "--scores-only", "--single-order"];
    folder.run(&[&args[..], &quick].concat())
}

fn inspect(folder: &Folder, panel: &str) -> Value {
    let output = folder.run(&["panel", "inspect", panel, "--format", "json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn size(report: &Value, name: &str) -> u64 {
    report["sizes"][name].as_u64().unwrap()
}

#[test]
fn gguf_file_is_a_panel_and_is_inspected() {
    let folder = Folder::empty();
    let path = golden("llama-k.gguf").display().to_string();
    let report = inspect(&folder, &path);
    assert_eq!(report["name"], "llama-k");
    let member = &report["members"][0];
    let dtypes = serde_json::json!(["Q4_K", "Q5_K", "Q6_K", "Q8_0", "f32"]);
    assert_eq!(member["dtypes"], dtypes);
    assert_eq!(member["kind"], "llama");
    assert!(member["encoder"].is_null());
    let hash = member["files"]["llama-k.gguf"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
    // Embedding and output; per layer 2 x 128 x 256, 2 x 64 x 256, 3 x 256 x 256 and 2 norms.
    let layer = 2 * 128 * 256 + 2 * 64 * 256 + 3 * 256 * 256 + 2 * 256;
    let parameters = 2 * 480 * 256 + 2 * layer + 256;
    assert_eq!(size(&report, "parameters_shared"), parameters);
    assert_eq!(size(&report, "parameters"), 4 * parameters);
    // The tensors take the whole file except its header.
    let file = fs::metadata(&path).unwrap().len();
    let bytes = size(&report, "bytes_shared");
    assert!(bytes < file && bytes > file - 20_000, "{bytes} of {file}");
    // They stay quantised in memory. The scales of Q4_K blocks take 4 bytes more.
    let loaded = size(&report, "bytes_loaded");
    assert!(loaded >= bytes && loaded < bytes + bytes / 36, "{loaded}, {bytes} in the file");
    assert_eq!(report["trunks"][0]["shared_layers"], 1);

    let output = judge(&folder, &path, "out");
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
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
    let report = inspect(&folder, "four.toml");
    assert_eq!(report["members"][0]["dtypes"], serde_json::json!(["Q8_0", "f32"]));
    assert_eq!(report["members"][2]["kind"], "qwen2");
    // A file used by two members is stored once, even with different chat templates.
    let parameters = |i: usize| report["members"][i]["parameters"].as_u64().unwrap();
    let distinct = parameters(0) + parameters(2) + parameters(3);
    assert_eq!(parameters(0), parameters(1));
    assert!(size(&report, "parameters_shared") <= distinct);
    let output = judge(&folder, "four.toml", "out");
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert_eq!(folder.records("out")[0]["status"], "judged");
}

#[test]
fn folder_with_one_gguf_file_equals_the_file() {
    let folder = Folder::empty();
    fs::create_dir_all(folder.path("one")).unwrap();
    fs::copy(golden("llama-f16.gguf"), folder.path("one/model.gguf")).unwrap();
    folder.write("one/params.json", "{}");
    let path = golden("llama-f16.gguf").display().to_string();
    let from_folder = inspect(&folder, "one");
    let from_file = inspect(&folder, &path);
    assert_eq!(from_folder["judge_sha256"], from_file["judge_sha256"]);
}

/// Returns the error for a changed copy of a file.
fn error_after(name: &str, damage: impl Fn(&mut Vec<u8>)) -> String {
    let folder = Folder::empty();
    let mut bytes = fs::read(golden(name)).unwrap();
    damage(&mut bytes);
    fs::write(folder.path("broken.gguf"), bytes).unwrap();
    let output = folder.run(&["panel", "inspect", "broken.gguf"]);
    assert_eq!(output.exit_code, 2, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.is_empty() && !output.stderr.contains("panicked"), "{}", output.stderr);
    assert!(output.stderr.contains("broken.gguf"), "{}", output.stderr);
    output.stderr
}

/// Returns the error for a changed copy of a file, and checks that it has a hint.
fn error_with_hint(name: &str, damage: impl Fn(&mut Vec<u8>)) -> String {
    let error = error_after(name, damage);
    assert!(error.contains("hint: "), "{error}");
    error
}

fn assert_contains(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

/// Returns the position after a text in a file.
fn end_of(bytes: &[u8], text: &str) -> usize {
    let start = bytes.windows(text.len()).position(|w| w == text.as_bytes());
    start.unwrap() + text.len()
}

fn overwrite(bytes: &mut [u8], offset: usize, new: &[u8]) {
    bytes[offset..offset + new.len()].copy_from_slice(new);
}

#[test]
fn truncated_and_foreign_files_are_rejected() {
    let truncated = error_with_hint("llama-q8_0.gguf", |bytes| bytes.truncate(bytes.len() - 100));
    assert_contains(&truncated, &["tensor `", "truncated or changed", "hint:"]);
    for length in [0, 3, 10, 24, 100, 5000] {
        let header = error_with_hint("llama-q8_0.gguf", |bytes| bytes.truncate(length));
        assert_contains(&header, &["truncated"]);
    }
    let wrong_magic =
        error_with_hint("llama-q8_0.gguf", |bytes| overwrite(bytes, 0, b"PK\x03\x04"));
    assert_contains(&wrong_magic, &["not a GGUF file", "hint:"]);
    let old_version = error_with_hint("llama-q8_0.gguf", |bytes| overwrite(bytes, 4, &[1]));
    assert_contains(&old_version, &["version 1", "expected 2 or 3", "hint:"]);
}

#[test]
fn wrong_counts_and_lengths_are_rejected() {
    let huge = u64::MAX.to_le_bytes();
    let tensor_count = error_with_hint("llama-f16.gguf", |bytes| overwrite(bytes, 8, &huge));
    assert_contains(&tensor_count, &["tensor_count 18446744073709551615"]);
    let metadata_count = error_after("llama-f16.gguf", |bytes| overwrite(bytes, 16, &[0xff, 0xff]));
    assert_contains(&metadata_count, &["broken.gguf"]);
    let key_length = error_with_hint("llama-f16.gguf", |bytes| overwrite(bytes, 24, &huge));
    assert_contains(&key_length, &["string length 18446744073709551615"]);
    for (list, n) in [("tokens", 1u64 << 60), ("tokens", 1 << 30), ("scores", 1 << 62)] {
        let list = format!("tokenizer.ggml.{list}");
        let wrong_length = error_with_hint("llama-f16.gguf", |bytes| {
            let offset = end_of(bytes, &list) + 8;
            overwrite(bytes, offset, &n.to_le_bytes());
        });
        assert_contains(&wrong_length, &["array", &n.to_string(), "hint:"]);
    }
    // A dimension of a tensor, its offset, and dimensions whose product overflows.
    let shape = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "blk.0.attn_q.weight") + 4;
        overwrite(bytes, offset, &(1u64 << 40).to_le_bytes());
    });
    assert_contains(&shape, &["`blk.0.attn_q.weight`", "bytes at offset", "hint:"]);
    let overflow = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "blk.0.attn_q.weight") + 4;
        overwrite(bytes, offset, &(1u64 << 32).to_le_bytes());
        overwrite(bytes, offset + 8, &(1u64 << 32).to_le_bytes());
    });
    assert_contains(&overflow, &["`blk.0.attn_q.weight`", "does not fit type f16"]);
    let offset = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "blk.0.attn_q.weight") + 24;
        overwrite(bytes, offset, &(u64::MAX - 31).to_le_bytes());
    });
    assert_contains(&offset, &["`blk.0.attn_q.weight`", "bytes at offset"]);
    let overlap = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "blk.1.attn_q.weight") + 24;
        overwrite(bytes, offset, &[0; 8]);
    });
    assert_contains(&overlap, &["overlapping"]);
}

#[test]
fn unknown_and_incompatible_content_is_rejected() {
    let tensor_type = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "blk.0.attn_q.weight") + 20;
        overwrite(bytes, offset, &16u32.to_le_bytes());
    });
    assert_contains(&tensor_type, &["tensor 16", "Q2_K to Q6_K", "hint:"]);
    let row_length = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "blk.0.attn_q.weight") + 20;
        overwrite(bytes, offset, &12u32.to_le_bytes());
    });
    assert_contains(&row_length, &["`blk.0.attn_q.weight`", "does not fit type Q4_K"]);
    let architecture = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "general.architecture") + 12;
        overwrite(bytes, offset, b"gemma");
    });
    assert_contains(&architecture, &["`gemma`", "not supported", "hint:"]);
    let missing_field = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "llama.block_coun") - 1;
        overwrite(bytes, offset, b"m");
    });
    assert_contains(&missing_field, &["llama.block_count is missing"]);
    let unknown_field = error_with_hint("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "llama.rope.dimension_coun") - 1;
        overwrite(bytes, offset, b"m");
    });
    assert_contains(&unknown_field, &["llama.rope.dimension_coumt", "ignore_config"]);
    let heads = error_after("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "llama.attention.head_count") + 4;
        overwrite(bytes, offset, &3u32.to_le_bytes());
    });
    assert_contains(&heads, &["num_attention_heads is 3"]);
    let more_layers = error_after("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "llama.block_count") + 4;
        overwrite(bytes, offset, &3u32.to_le_bytes());
    });
    assert_contains(&more_layers, &["has no tensor", "model.layers.2."]);
    let fewer_layers = error_after("llama-f16.gguf", |bytes| {
        let offset = end_of(bytes, "llama.block_count") + 4;
        overwrite(bytes, offset, &1u32.to_le_bytes());
    });
    assert_contains(&fewer_layers, &["model.layers.1.", "unused tensor"]);
    let pre_tokenizer = error_with_hint("qwen2-k.gguf", |bytes| {
        let offset = end_of(bytes, "tokenizer.ggml.pre") + 12;
        overwrite(bytes, offset, b"qwen9");
    });
    assert_contains(&pre_tokenizer, &["tokenizer.ggml.pre `qwen9`", "hint:"]);
    let scale = error_with_hint("llama-q8_0.gguf", |bytes| {
        // The scale of the last block before the last three norms is NaN.
        let offset = bytes.len() - 3 * 64 * 4 - 34;
        overwrite(bytes, offset, &[0xff, 0x7f]);
    });
    assert_contains(&scale, &["`blk.1.ffn_down.weight`", "32 of 6144 values", "not finite"]);
}
