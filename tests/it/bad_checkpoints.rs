//! Damaged, incompatible and malicious checkpoints: the error names file and tensor, and the exit code is 2.

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

fn copy(name: &str, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(golden(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Returns the error for a copy of the hub layout after `damage`.
fn error_after(damage: impl Fn(&Path)) -> String {
    error_of("llava", damage)
}

fn error_of(name: &str, damage: impl Fn(&Path)) -> String {
    let folder = Folder::empty();
    let checkpoint = folder.path("checkpoint");
    copy(name, &checkpoint);
    copy("clip-tiny", &folder.path("clip-tiny"));
    damage(&checkpoint);
    let said = folder.run(&["panel", "inspect", "checkpoint"]);
    assert_eq!(said.code, 2, "{}{}", said.out, said.err);
    assert!(
        said.out.is_empty() && !said.err.contains("panicked") && said.err.contains("\nhint: "),
        "{}",
        said.err
    );
    said.err
}

fn assert_says(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
}

fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Returns the first shard with this file extension.
fn shard(folder: &Path, end: &str) -> PathBuf {
    let paths = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut shards: Vec<PathBuf> = paths
        .filter(|p| p.to_string_lossy().ends_with(end))
        .collect();
    shards.sort();
    shards.remove(0)
}

/// Merges the shards into one file after changing the tensors.
fn rewrite(folder: &Path, change: impl Fn(&mut std::collections::HashMap<String, Tensor>)) {
    let mut all = std::collections::HashMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "safetensors") {
            all.extend(candle::safetensors::load(&path, &Device::Cpu).unwrap());
            fs::remove_file(path).unwrap();
        }
    }
    let _ = fs::remove_file(folder.join("model.safetensors.index.json"));
    change(&mut all);
    candle::safetensors::save(&all, folder.join("model.safetensors")).unwrap();
}

/// Returns the name of the tensor with this suffix; the prefix depends on the layout version.
fn named(all: &std::collections::HashMap<String, Tensor>, end: &str) -> String {
    all.keys().find(|name| name.ends_with(end)).unwrap().clone()
}

#[test]
fn truncated_and_missing_files_are_rejected() {
    let cut = error_after(|folder| {
        let path = shard(folder, ".safetensors");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    });
    assert_says(
        &cut,
        &[
            "model-00001-of-",
            "malformed or incomplete safetensors file",
            "hint:",
        ],
    );
    let header = error_after(|folder| {
        let path = shard(folder, ".safetensors");
        let mut bytes = fs::read(&path).unwrap();
        bytes[..8].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        fs::write(&path, bytes).unwrap();
    });
    assert_says(&header, &["model-00001-of-", "invalid header size"]);
    let absent = error_after(|folder| fs::remove_file(shard(folder, ".safetensors")).unwrap());
    assert_says(
        &absent,
        &[
            "model.safetensors.index.json",
            "model-00001-of-",
            "missing file",
        ],
    );
    let nowhere = error_after(|folder| {
        edit(&folder.join("model.safetensors.index.json"), |index| {
            let places = index["weight_map"].as_object_mut().unwrap();
            let first = places.values().next().unwrap().clone();
            places.insert("model.extra.weight".to_owned(), first);
        });
    });
    assert_says(
        &nowhere,
        &[
            "missing tensor `model.extra.weight`",
            "model.safetensors.index.json",
        ],
    );
    let outside = error_after(|folder| {
        edit(&folder.join("model.safetensors.index.json"), |index| {
            index["weight_map"]["lm_head.weight"] = json!("../other.safetensors");
        });
    });
    assert_says(
        &outside,
        &["../other.safetensors", "expected the name of a file"],
    );
    let nothing = error_after(|folder| {
        rewrite(folder, |_| {});
        fs::remove_file(folder.join("model.safetensors")).unwrap();
    });
    assert_says(
        &nothing,
        &["no weights, expected model.safetensors", "hint:"],
    );
    let tokenizer = error_after(|folder| fs::remove_file(folder.join("tokenizer.json")).unwrap());
    assert_says(&tokenizer, &["tokenizer.json", "tokenizer.model"]);
}

#[test]
fn incompatible_tensors_are_rejected() {
    let shape = error_after(|folder| {
        rewrite(folder, |all| {
            let name = named(all, "layers.1.mlp.up_proj.weight");
            all.insert(
                name,
                Tensor::zeros((47, 32), DType::F16, &Device::Cpu).unwrap(),
            );
        });
    });
    assert_says(
        &shape,
        &[
            "model.safetensors",
            "layers.1.mlp.up_proj.weight",
            "[47, 32]",
            "[48, 32]",
        ],
    );
    let missing = error_after(|folder| {
        rewrite(folder, |all| {
            let name = named(all, "layers.0.input_layernorm.weight");
            all.remove(&name);
        });
    });
    assert_says(
        &missing,
        &[
            "config.json",
            "has no tensor",
            "layers.0.input_layernorm.weight",
        ],
    );
    let surplus = error_after(|folder| {
        rewrite(folder, |all| {
            let extra = Tensor::zeros(3, DType::F16, &Device::Cpu).unwrap();
            all.insert("lm_head.bias".to_owned(), extra);
        });
    });
    assert_says(
        &surplus,
        &["model.safetensors", "unused tensor `lm_head.bias`"],
    );
    let nan = error_after(|folder| {
        rewrite(folder, |all| {
            let name = named(all, "layers.1.post_attention_layernorm.weight");
            let mut values = vec![1f32; 32];
            values[3] = f32::NAN;
            values[4] = f32::INFINITY;
            let tensor = Tensor::new(values, &Device::Cpu).unwrap();
            all.insert(name, tensor);
        });
    });
    assert_says(
        &nan,
        &[
            "model.safetensors",
            "layers.1.post_attention_layernorm.weight",
            "2 of 32 values",
        ],
    );
    let counted = error_after(|folder| {
        rewrite(folder, |all| {
            let name = named(all, "layers.1.post_attention_layernorm.weight");
            all.insert(name, Tensor::zeros(32, DType::U32, &Device::Cpu).unwrap());
        });
    });
    assert_says(
        &counted,
        &["model.safetensors", "type u32 is not supported"],
    );
}

#[test]
fn incompatible_settings_are_rejected() {
    let config =
        |change: fn(&mut Value)| error_after(|folder| edit(&folder.join("config.json"), change));
    let unknown = config(|c| c["model_type"] = json!("mamba"));
    assert_says(&unknown, &["config.json", "`mamba`", "hint:"]);
    let field = config(|c| c["text_config"]["logit_cap"] = json!(30.0));
    assert_says(
        &field,
        &["config.json", "text_config.logit_cap", "ignore_config"],
    );
    let vocabulary = config(|c| c["text_config"]["vocab_size"] = json!(100));
    assert_says(&vocabulary, &["tokenizer.json", "vocab_size", "100"]);
    let huge = config(|c| c["text_config"]["head_dim"] = json!(1u64 << 40));
    assert_says(&huge, &["config.json", "head size"]);
    let wide = config(|c| c["vision_config"]["image_size"] = json!(1u64 << 40));
    assert_says(&wide, &["config.json"]);
    let torn = error_after(|folder| fs::write(folder.join("config.json"), "{").unwrap());
    assert_says(&torn, &["config.json", "not a JSON object"]);
    let tokenizer = error_after(|folder| fs::write(folder.join("tokenizer.json"), "{}").unwrap());
    assert_says(&tokenizer, &["tokenizer.json"]);
    let model = error_of("llava-original", |folder| {
        fs::write(folder.join("tokenizer.model"), b"\x0a\xff\xff\xff\xff\xff").unwrap();
    });
    assert_says(&model, &["tokenizer.model", "not a SentencePiece model"]);
}

/// Writes a file in the format of `torch.save`, with this pickle and one storage of 64 bytes.
fn torch_file(path: &Path, pickle: &[u8]) {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in [("archive/data.pkl", pickle), ("archive/data/0", &[0; 64])] {
        zip.start_file(name, stored).unwrap();
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
    error_of("llava-original", |folder| {
        torch_file(&shard(folder, ".bin"), pickle);
    })
}

#[test]
fn malicious_pickles_are_rejected() {
    let shard = "pytorch_model-00001-of-00002.bin";
    let system = error_of_pickle(b"\x80\x02cposix\nsystem\nX\x08\x00\x00\x00touch /x\x85R.");
    assert_says(
        &system,
        &[shard, "`posix.system`", "nothing was executed", "hint:"],
    );
    let long = error_of_pickle(b"\x80\x02X\xff\xff\xff\x7fa");
    assert_says(&long, &[shard, "unexpected end of the pickle"]);
    let nested = [b"\x80\x02)".to_vec(), vec![0x85; 1 << 20], b".".to_vec()].concat();
    assert_says(
        &error_of_pickle(&nested),
        &[shard, "expected a dict of tensors"],
    );
    let bomb = [
        b"\x80\x02)".to_vec(),
        b"q\x00h\x00\x86".repeat(100_000),
        b".".to_vec(),
    ]
    .concat();
    assert_says(
        &error_of_pickle(&bomb),
        &[shard, "expected a dict of tensors"],
    );
    // A tensor of 2^31 - 1 values over 16.
    let large = error_of_pickle(&tensor_pickle(b"J\xff\xff\xff\x7f"));
    assert_says(
        &large,
        &[shard, "`w`", "does not fit into its storage of 64 bytes"],
    );
    let small = error_of_pickle(&tensor_pickle(b"K\x10"));
    assert_says(&small, &[shard, "unexpected tensor `w`"]);
    let text = error_of("llava-original", |folder| {
        fs::write(self::shard(folder, ".bin"), b"\x80\x02cposix\nsystem\n").unwrap();
    });
    assert_says(&text, &[shard, "malformed or incomplete zip archive"]);
    let cut = error_of("llava-original", |folder| {
        let path = self::shard(folder, ".bin");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    });
    assert_says(&cut, &[shard, "malformed or incomplete zip archive"]);
}
