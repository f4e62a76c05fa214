//! Tests of adapters of PEFT against peft itself. The script `assets/golden/make_adapters.py` generates the
//! folders and the expected values.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use acem3_experts::decoder::BatchLayout;
use candle::{Device, Tensor};
use serde_json::{Value, json};

use super::{
    assert_near, encode_image_and_load_decoder, expected_values, golden_path, to_token_ids,
};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::safetensors;
use crate::checkpoints::store::weight_files::WeightFiles;
use crate::support::device::Placement;

fn adapter_folder(name: &str) -> PathBuf {
    golden_path("adapters").join(name)
}

fn load(folder: PathBuf, weight_files: &mut WeightFiles) -> anyhow::Result<Member> {
    let source = CheckpointSource::locate(folder, None, &mut weight_files.downloads)?;
    source.load("conclusion", weight_files)
}

fn new_files() -> WeightFiles {
    WeightFiles::new(&Placement::cpu(), HubDownloads::default())
}

/// Returns the logits of the last tokens of the reference prompt.
fn last_logits(member: &Member, count: usize) -> Tensor {
    let expected = expected_values();
    let (image, trunk, head) = encode_image_and_load_decoder(member, &expected["pixel_values"]);
    member.weights.check_all_used().unwrap();
    let text = |name: &str| trunk.embed(&to_token_ids(&expected[name])).unwrap();
    let x = Tensor::cat(&[text("head"), image, text("tail")], 0).unwrap();
    let layout = BatchLayout::causal(x.dim(0).unwrap());
    let hidden = head.forward(&trunk.forward(&x, &layout).unwrap(), &layout).unwrap();
    let logits = head.logits(&hidden).unwrap();
    logits.narrow(0, logits.dim(0).unwrap() - count, count).unwrap()
}

#[test]
fn adapters_reproduce_logits_of_peft() {
    let expected =
        candle::safetensors::load(adapter_folder("expected.safetensors"), &Device::Cpu).unwrap();
    for (folder, values) in [
        ("plain", "plain"),
        ("pickled", "plain"),
        ("ranks", "ranks"),
        ("outside", "outside"),
        ("upper", "upper"),
    ] {
        let member = load(adapter_folder(folder), &mut new_files()).unwrap();
        let expected = &expected[values];
        assert_near(&last_logits(&member, expected.dim(0).unwrap()), expected, folder);
    }
}

/// TRL's DPO trainer made this adapter (`assets/golden/make_trl_adapter.py`).
#[test]
fn adapter_of_trl_reproduces_its_logits() {
    let folder = adapter_folder("trl");
    let values = candle::safetensors::load(folder.join("values.safetensors"), &Device::Cpu);
    let member = load(folder, &mut new_files()).unwrap();
    assert_near(&last_logits(&member, 4), &values.unwrap()["logits"], "trl");
}

#[test]
fn members_of_one_base_share_its_weights() {
    let mut files = new_files();
    let [plain, ranks] =
        ["plain", "ranks"].map(|name| load(adapter_folder(name), &mut files).unwrap());
    let base = super::load_member("llava");
    for name in base.weights.tensors.keys() {
        let [a, b] = [&plain, &ranks].map(|member| &member.weights.tensors[name]);
        assert_eq!(a.values.id(), b.values.id(), "{name}");
        assert_eq!(a.identity, base.weights.tensors[name].identity);
    }
    assert_ne!(plain.weights.digest(), ranks.weights.digest());
    assert_eq!(plain.weights.tensors.len() - base.weights.tensors.len(), 2 * 7 * 3);
}

/// A copy of an adapter, to change.
struct AdapterCopy {
    folder: tempfile::TempDir,
    tensors: HashMap<String, Tensor>,
    config: Value,
}

impl AdapterCopy {
    fn of(name: &str) -> Self {
        let golden = adapter_folder(name);
        let config = std::fs::read(golden.join("adapter_config.json")).unwrap();
        let mut config: Value = serde_json::from_slice(&config).unwrap();
        config["base_model_name_or_path"] = json!(golden_path("checkpoints/llava"));
        let file = golden.join("adapter_model.safetensors");
        let tensors = candle::safetensors::load(file, &Device::Cpu).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), tensors, config }
    }

    fn load(&self) -> anyhow::Result<Member> {
        let folder = self.folder.path();
        let file = folder.join("adapter_model.safetensors");
        safetensors::write(self.tensors.iter(), &file).unwrap();
        std::fs::write(folder.join("adapter_config.json"), self.config.to_string()).unwrap();
        load(folder.to_owned(), &mut new_files())
    }

    fn error(&self) -> String {
        let error = format!("{:#}", self.load().err().unwrap());
        assert!(error.contains("\nhint: "), "{error}");
        error
    }

    fn rename(&mut self, rename: impl Fn(&str) -> String) {
        let tensors = std::mem::take(&mut self.tensors);
        self.tensors = tensors.into_iter().map(|(name, t)| (rename(&name), t)).collect();
    }
}

#[test]
fn names_of_other_versions_give_the_same_weights() {
    let digest = AdapterCopy::of("ranks").load().unwrap().weights.digest();
    // transformers before 4.52, and peft's names before it removes that of the adapter.
    for (from, to) in [
        ("model.model.language_model.", "model.language_model.model."),
        (".weight", ".default.weight"),
        ("base_model.model.", ""),
    ] {
        let mut copy = AdapterCopy::of("ranks");
        copy.rename(|name| name.replace(from, to));
        assert_eq!(copy.load().unwrap().weights.digest(), digest, "{to}");
    }
}

#[test]
fn adapters_that_do_not_fit_are_refused() {
    let q_proj = "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight";
    let b = q_proj.replace("lora_A", "lora_B");
    let changed = |change: &dyn Fn(&mut AdapterCopy)| {
        let mut copy = AdapterCopy::of("plain");
        change(&mut copy);
        copy.error()
    };
    let alone = changed(&|copy| drop(copy.tensors.remove(&b)));
    assert!(
        alone.contains(&format!("adapter_model.safetensors: tensor `{q_proj}` is alone")),
        "{alone}"
    );
    let unknown = changed(&|copy| copy.rename(|name| name.replace("up_proj", "fc1")));
    assert!(unknown.contains("has no matrix `model.layers.0.mlp.fc1.weight`"), "{unknown}");
    let rank = changed(&|copy| copy.config["r"] = json!(4));
    assert!(rank.contains("has shape [3, 48], expected [4, 48]"), "{rank}");
    let shape = changed(&|copy| {
        let a = copy.tensors[q_proj].narrow(1, 0, 16).unwrap().contiguous().unwrap();
        copy.tensors.insert(q_proj.to_owned(), a);
    });
    assert!(shape.contains("has shape [3, 16], expected [3, 32]"), "{shape}");
    let nan = changed(&|copy| {
        let nan = Tensor::full(f32::NAN, (3, 32), &Device::Cpu).unwrap();
        copy.tensors.insert(q_proj.to_owned(), nan);
    });
    assert!(nan.contains(q_proj) && nan.contains("96 of 96 values are not finite"), "{nan}");
    let dora = changed(&|copy| {
        let name = b.replace("lora_B.weight", "lora_magnitude_vector");
        let values = Tensor::ones(32, candle::DType::F32, &Device::Cpu).unwrap();
        copy.tensors.insert(name, values);
    });
    assert!(dora.contains("expected lora_A, lora_B or a replaced weight"), "{dora}");
    let missing = changed(&|copy| copy.config["modules_to_save"] = json!(["lm_head"]));
    assert!(missing.contains("modules_to_save contains `lm_head`"), "{missing}");
    let vocabulary = changed(&|copy| {
        let table = Tensor::ones((490, 32), candle::DType::F32, &Device::Cpu).unwrap();
        copy.tensors.insert("base_model.model.lm_head.weight".to_owned(), table);
    });
    assert!(vocabulary.contains("the vocabulary was changed"), "{vocabulary}");
    let base = changed(&|copy| copy.config["base_model_name_or_path"] = json!("no/such/base"));
    assert!(base.contains("the base `no/such/base` was not found"), "{base}");
    let unnamed = changed(&|copy| copy.config["base_model_name_or_path"] = json!(null));
    assert!(unnamed.contains("the base is unknown"), "{unnamed}");
    let empty = changed(&|copy| copy.tensors.clear());
    assert!(empty.contains("no tensors of an adapter"), "{empty}");
    let copy = AdapterCopy::of("plain");
    copy.load().unwrap();
    std::fs::write(copy.folder.path().join("model.safetensors"), "").unwrap();
    assert!(copy.error().contains("a model and an adapter"));
}

/// LLaVA's own code saves the configuration of the complete model and the projector next to an adapter of
/// its language model.
#[test]
fn adapter_of_llava_adds_its_projector_to_the_language_model() {
    let dir = tempfile::tempdir().unwrap();
    let [base, adapter] = ["vicuna", "llava-lora"].map(|name| dir.path().join(name));
    let (original, golden) =
        (golden_path("checkpoints/llava-original"), golden_path("checkpoints"));
    write_language_model(&base, &original);
    std::fs::create_dir(&adapter).unwrap();
    std::fs::copy(original.join("config.json"), adapter.join("config.json")).unwrap();
    let trained = adapter_folder("llava");
    for file in ["adapter_config.json", "adapter_model.safetensors", "non_lora_trainables.bin"] {
        std::fs::copy(trained.join(file), adapter.join(file)).unwrap();
    }
    let mut files = new_files();
    let source = CheckpointSource {
        vision_tower: Some(golden.join("clip-tiny")),
        ..CheckpointSource::locate(adapter, Some(&base), &mut files.downloads).unwrap()
    };
    let member = source.load("conclusion", &mut files).unwrap();
    let values = candle::safetensors::load(adapter_folder("expected.safetensors"), &Device::Cpu);
    let expected = &values.unwrap()["llava"];
    assert_near(&last_logits(&member, expected.dim(0).unwrap()), expected, "llava");
}

/// Writes the language model of a LLaVA checkpoint as one of its own.
fn write_language_model(folder: &Path, original: &Path) {
    std::fs::create_dir(folder).unwrap();
    let shards = ["1", "2"].map(|n| format!("pytorch_model-0000{n}-of-00002.bin"));
    let weights = shards.iter().flat_map(|shard| {
        crate::checkpoints::store::weight_files::read_weights(&original.join(shard)).unwrap()
    });
    let weights: HashMap<String, Tensor> =
        weights.filter(|(name, _)| !name.contains("mm_projector")).collect();
    safetensors::write(weights.iter(), &folder.join("model.safetensors")).unwrap();
    let config = std::fs::read(original.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_slice(&config).unwrap();
    let fields = config.as_object_mut().unwrap();
    fields.retain(|name, _| !name.starts_with("mm_") && name != "image_aspect_ratio");
    fields.insert("model_type".to_owned(), json!("llama"));
    fields.insert("architectures".to_owned(), json!(["LlamaForCausalLM"]));
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    std::fs::copy(original.join("tokenizer.model"), folder.join("tokenizer.model")).unwrap();
}

/// Returns a matrix with the same values, −1 to 1, in every run.
fn wave(shape: (usize, usize)) -> Tensor {
    let end = (shape.0 * shape.1) as f32;
    Tensor::arange(0f32, end, &Device::Cpu).unwrap().sin().unwrap().reshape(shape).unwrap()
}

/// The base may be quantised.
#[test]
fn adapter_applies_to_a_gguf_file() {
    let gguf = golden_path("gguf/llama-k.gguf");
    let base = super::load_member_from(gguf.clone(), &Placement::cpu());
    let adapter = |matrix: &str, prefix: &str| {
        let shape = &base.weights.tensors[&format!("{matrix}.weight")].identity.shape;
        let a = wave((2, shape[1]));
        let b = wave((shape[0], 2));
        let name = format!("base_model.model.{}", matrix.replace("model.", prefix));
        [(format!("{name}.lora_A.weight"), a), (format!("{name}.lora_B.weight"), b)]
    };
    let load = |tensors: Vec<(String, Tensor)>| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("adapter_model.safetensors");
        safetensors::write(tensors.iter().map(|(name, tensor)| (name, tensor)), &file).unwrap();
        let config = json!({"peft_type": "LORA", "r": 2, "lora_alpha": 4});
        std::fs::write(dir.path().join("adapter_config.json"), config.to_string()).unwrap();
        let source = CheckpointSource::new(gguf.clone()).with_adapter(dir.path().to_owned())?;
        source.load("conclusion", &mut new_files())
    };
    let logits = |member: &Member| {
        let vb = member.weights.builder(&Device::Cpu);
        let trunk = acem3_experts::decoder::Trunk::load(&vb, &member.decoder, 1).unwrap();
        let head = acem3_experts::decoder::Head::load(&vb, &member.decoder, 1).unwrap();
        member.weights.check_all_used().unwrap();
        let layout = BatchLayout::causal(3);
        let x = trunk.embed(&[5, 6, 7]).unwrap();
        let hidden = head.forward(&trunk.forward(&x, &layout).unwrap(), &layout).unwrap();
        head.logits(&hidden).unwrap()
    };
    let before = logits(&base);
    // The names of a language model, and of the language model in a model of images.
    for prefix in ["model.", "model.language_model."] {
        let tensors = adapter("model.layers.0.self_attn.q_proj", prefix);
        let member = load(tensors.into()).unwrap();
        assert!(super::relative_difference(&logits(&member), &before) > 1e-3, "{prefix}");
    }
    // The adapter of the output layer is merged into the dequantised matrix.
    let [(_, a), (_, b)] = adapter("lm_head", "model.");
    let member = load(adapter("lm_head", "model.").into()).unwrap();
    let output_layer = |member: &Member| member.weights.tensors["lm_head.weight"].to_f32().unwrap();
    let expected = (output_layer(&base) + (b.matmul(&a).unwrap() * 2.).unwrap()).unwrap();
    assert_near(&output_layer(&member), &expected, "output layer");
    assert!(super::relative_difference(&logits(&member), &before) > 1e-3);
}
