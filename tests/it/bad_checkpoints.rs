//! Damaged, incompatible and malicious checkpoints: the error names file and tensor, and the exit
//! code is 2.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use candle::{DType, Device, Tensor};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use crate::folder::Folder;

fn golden(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/checkpoints").join(name)
}

fn copy_golden(name: &str, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(golden(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
    }
}

/// Returns the error for a damaged copy of the checkpoint `llava`.
fn error_after(damage: impl Fn(&Path)) -> String {
    error_of_checkpoint("llava", damage)
}

/// Returns the error for a damaged copy of a checkpoint.
fn error_of_checkpoint(name: &str, damage: impl Fn(&Path)) -> String {
    let folder = Folder::empty();
    let checkpoint = folder.path("checkpoint");
    copy_golden(name, &checkpoint);
    copy_golden("clip-tiny", &folder.path("clip-tiny"));
    damage(&checkpoint);
    let output = folder.run(&["panel", "inspect", "checkpoint"]);
    assert_eq!(output.exit_code, 2, "{}{}", output.stdout, output.stderr);
    assert!(
        output.stdout.is_empty()
            && !output.stderr.contains("panicked")
            && output.stderr.contains("\nhint: "),
        "{}",
        output.stderr
    );
    output.stderr
}

fn assert_contains(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

fn edit_json(path: &Path, change: impl Fn(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Returns the first shard with this file extension.
fn first_shard(folder: &Path, extension: &str) -> PathBuf {
    let paths = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut shards: Vec<PathBuf> =
        paths.filter(|p| p.to_string_lossy().ends_with(extension)).collect();
    shards.sort();
    shards.remove(0)
}

/// Merges the shards into one file after changing the tensors.
fn rewrite_weights(folder: &Path, change: impl Fn(&mut HashMap<String, Tensor>)) {
    let mut tensors = HashMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "safetensors") {
            tensors.extend(candle::safetensors::load(&path, &Device::Cpu).unwrap());
            fs::remove_file(path).unwrap();
        }
    }
    let _ = fs::remove_file(folder.join("model.safetensors.index.json"));
    change(&mut tensors);
    candle::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
}

/// Returns the name of the tensor with this suffix; the prefix depends on the layout version.
fn name_with_suffix(tensors: &HashMap<String, Tensor>, suffix: &str) -> String {
    let mut names = tensors.keys();
    names.find(|name| name.ends_with(suffix)).unwrap().clone()
}

#[test]
fn truncated_and_missing_files_are_rejected() {
    let truncated = error_after(|folder| {
        let path = first_shard(folder, ".safetensors");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    });
    assert_contains(
        &truncated,
        &["model-00001-of-", "malformed or incomplete safetensors file", "hint:"],
    );
    let header_size = error_after(|folder| {
        let path = first_shard(folder, ".safetensors");
        let mut bytes = fs::read(&path).unwrap();
        bytes[..8].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        fs::write(&path, bytes).unwrap();
    });
    assert_contains(&header_size, &["model-00001-of-", "invalid header size"]);
    let missing_shard =
        error_after(|folder| fs::remove_file(first_shard(folder, ".safetensors")).unwrap());
    assert_contains(
        &missing_shard,
        &["model.safetensors.index.json", "model-00001-of-", "missing file"],
    );
    let missing_tensor = error_after(|folder| {
        edit_json(&folder.join("model.safetensors.index.json"), |index| {
            let weight_map = index["weight_map"].as_object_mut().unwrap();
            let first = weight_map.values().next().unwrap().clone();
            weight_map.insert("model.extra.weight".to_owned(), first);
        });
    });
    assert_contains(
        &missing_tensor,
        &["missing tensor `model.extra.weight`", "model.safetensors.index.json"],
    );
    let outside = error_after(|folder| {
        edit_json(&folder.join("model.safetensors.index.json"), |index| {
            index["weight_map"]["lm_head.weight"] = json!("../other.safetensors");
        });
    });
    assert_contains(&outside, &["../other.safetensors", "expected the name of a file"]);
    let no_weights = error_after(|folder| {
        rewrite_weights(folder, |_| {});
        fs::remove_file(folder.join("model.safetensors")).unwrap();
    });
    assert_contains(&no_weights, &["no weights, expected model.safetensors", "hint:"]);
    let tokenizer = error_after(|folder| fs::remove_file(folder.join("tokenizer.json")).unwrap());
    assert_contains(&tokenizer, &["tokenizer.json", "tokenizer.model"]);
}

#[test]
fn incompatible_tensors_are_rejected() {
    let shape = error_after(|folder| {
        rewrite_weights(folder, |tensors| {
            let name = name_with_suffix(tensors, "layers.1.mlp.up_proj.weight");
            tensors.insert(name, Tensor::zeros((47, 32), DType::F16, &Device::Cpu).unwrap());
        });
    });
    assert_contains(
        &shape,
        &["model.safetensors", "layers.1.mlp.up_proj.weight", "[47, 32]", "[48, 32]"],
    );
    let missing = error_after(|folder| {
        rewrite_weights(folder, |tensors| {
            let name = name_with_suffix(tensors, "layers.0.input_layernorm.weight");
            tensors.remove(&name);
        });
    });
    assert_contains(&missing, &["config.json", "has no tensor", "layers.0.input_layernorm.weight"]);
    let unused = error_after(|folder| {
        rewrite_weights(folder, |tensors| {
            let extra = Tensor::zeros(3, DType::F16, &Device::Cpu).unwrap();
            tensors.insert("lm_head.bias".to_owned(), extra);
        });
    });
    assert_contains(&unused, &["model.safetensors", "unused tensor `lm_head.bias`"]);
    let nan = error_after(|folder| {
        rewrite_weights(folder, |tensors| {
            let name = name_with_suffix(tensors, "layers.1.post_attention_layernorm.weight");
            let mut values = vec![1f32; 32];
            values[3] = f32::NAN;
            values[4] = f32::INFINITY;
            let tensor = Tensor::new(values, &Device::Cpu).unwrap();
            tensors.insert(name, tensor);
        });
    });
    assert_contains(
        &nan,
        &["model.safetensors", "layers.1.post_attention_layernorm.weight", "2 of 32 values"],
    );
    let integers = error_after(|folder| {
        rewrite_weights(folder, |tensors| {
            let name = name_with_suffix(tensors, "layers.1.post_attention_layernorm.weight");
            tensors.insert(name, Tensor::zeros(32, DType::U32, &Device::Cpu).unwrap());
        });
    });
    assert_contains(&integers, &["model.safetensors", "type u32 is not supported"]);
}

#[test]
fn incompatible_settings_are_rejected() {
    let config = |change: fn(&mut Value)| {
        error_after(|folder| edit_json(&folder.join("config.json"), change))
    };
    let model_type = config(|c| c["model_type"] = json!("mamba"));
    assert_contains(&model_type, &["config.json", "`mamba`", "hint:"]);
    let unknown_field = config(|c| c["text_config"]["logit_cap"] = json!(30.0));
    assert_contains(&unknown_field, &["config.json", "text_config.logit_cap", "ignore_config"]);
    let vocabulary = config(|c| c["text_config"]["vocab_size"] = json!(100));
    assert_contains(&vocabulary, &["tokenizer.json", "vocab_size", "100"]);
    let head_size = config(|c| c["text_config"]["head_dim"] = json!(1u64 << 40));
    assert_contains(&head_size, &["config.json", "head size"]);
    let image_size = config(|c| c["vision_config"]["image_size"] = json!(1u64 << 40));
    assert_contains(&image_size, &["config.json"]);
    let incomplete = error_after(|folder| fs::write(folder.join("config.json"), "{").unwrap());
    assert_contains(&incomplete, &["config.json", "not a JSON object"]);
    let tokenizer = error_after(|folder| fs::write(folder.join("tokenizer.json"), "{}").unwrap());
    assert_contains(&tokenizer, &["tokenizer.json"]);
    let sentencepiece = error_of_checkpoint("llava-original", |folder| {
        fs::write(folder.join("tokenizer.model"), b"\x0a\xff\xff\xff\xff\xff").unwrap();
    });
    assert_contains(&sentencepiece, &["tokenizer.model", "not a SentencePiece model"]);
}

/// Writes a file in the format of `torch.save`, with this pickle and one storage of 64 bytes.
fn write_torch_file(path: &Path, pickle: &[u8]) {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in [("archive/data.pkl", pickle), ("archive/data/0", &[0; 64])] {
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

/// Returns the pickle of `{"w": tensor}`, a tensor of this shape over the storage.
fn tensor_pickle(shape: &[u8]) -> Vec<u8> {
    let mut pickle = b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((".to_vec();
    pickle.extend(b"X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000");
    pickle.extend(b"X\x03\x00\x00\x00cpuK\x10tQK\x00(");
    pickle.extend(shape);
    pickle.extend(b"t(K\x01t\x89ccollections\nOrderedDict\n)RtRs.");
    pickle
}

fn error_of_pickle(pickle: &[u8]) -> String {
    error_of_checkpoint("llava-original", |folder| {
        write_torch_file(&first_shard(folder, ".bin"), pickle);
    })
}

#[test]
fn malicious_pickles_are_rejected() {
    let shard = "pytorch_model-00001-of-00002.bin";
    let system_call = error_of_pickle(b"\x80\x02cposix\nsystem\nX\x08\x00\x00\x00touch /x\x85R.");
    assert_contains(&system_call, &[shard, "`posix.system`", "nothing was executed", "hint:"]);
    let string_length = error_of_pickle(b"\x80\x02X\xff\xff\xff\x7fa");
    assert_contains(&string_length, &[shard, "unexpected end of the pickle"]);
    let nested = [b"\x80\x02)".to_vec(), vec![0x85; 1 << 20], b".".to_vec()].concat();
    assert_contains(&error_of_pickle(&nested), &[shard, "expected a dict of tensors"]);
    let bomb = [b"\x80\x02)".to_vec(), b"q\x00h\x00\x86".repeat(100_000), b".".to_vec()].concat();
    assert_contains(&error_of_pickle(&bomb), &[shard, "expected a dict of tensors"]);
    // A tensor of 2^31 - 1 values over a storage of 16.
    let large_tensor = error_of_pickle(&tensor_pickle(b"J\xff\xff\xff\x7f"));
    assert_contains(&large_tensor, &[shard, "`w`", "does not fit into its storage of 64 bytes"]);
    let small_tensor = error_of_pickle(&tensor_pickle(b"K\x10"));
    assert_contains(&small_tensor, &[shard, "unexpected tensor `w`"]);
    let not_an_archive = error_of_checkpoint("llava-original", |folder| {
        fs::write(first_shard(folder, ".bin"), b"\x80\x02cposix\nsystem\n").unwrap();
    });
    assert_contains(&not_an_archive, &[shard, "malformed or incomplete zip archive"]);
    let truncated = error_of_checkpoint("llava-original", |folder| {
        let path = first_shard(folder, ".bin");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    });
    assert_contains(&truncated, &[shard, "malformed or incomplete zip archive"]);
}
