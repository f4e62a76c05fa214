//! Tests of `acem3 panel export --peft`: a panel of LoRA adapters as files that servers load.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use acem3_experts::prompt::{
    BranchPrompts, ChatTemplate, JudgeInput, PAIR_TEXTS, PromptLayout, PromptPiece, PromptToken,
    Rubric, RubricDetail, StagedPrompt,
};
use acem3_experts::{Aspect, TextTokenizer, parse_tokenizer};
use candle::{DType, Device, Tensor};
use serde_json::Value;
use tempfile::TempDir;

use crate::folder::Folder;
use crate::panel::copy_panel;
use crate::served::mock_engine::{EngineSettings, MockEngine};

/// A training whose members have different adapters: of one stage, of two, and none.
const TRAINING: &str = r#"
name = "adapted"
seed = 2
trunk_layers = 1
layout = "case-first"
rubric = "names"

[[stages]]
name = "first"
kind = "heads"
members = ["expression", "medical_knowledge", "patient_relevance"]
steps = 1
batch = 1
rate = 1e-2
[stages.lora]
rank = 3
alpha = 6.0

[[stages]]
name = "second"
kind = "heads"
members = ["expression"]
steps = 1
batch = 1
rate = 1e-2
[stages.lora]
rank = 2
alpha = 3.0
targets = ["q_proj", "down_proj"]
"#;

type Tensors = HashMap<String, Tensor>;

fn load(path: &Path) -> Tensors {
    candle::safetensors::load(path, &Device::Cpu).unwrap()
}

/// Trains a panel in `RUN` and exports it to `served`.
fn train_and_export(folder: &Folder, endpoint: &str) -> String {
    let start = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/checkpoints/llava");
    folder.write("train.toml", &format!("start = {start:?}\n{TRAINING}"));
    let trained = folder.run(&["train", "run", "train.toml", "--out", "RUN"]);
    assert_eq!(trained.exit_code, 0, "{}", trained.stderr);
    let args =
        ["panel", "export", "RUN/panel", "--peft", "--out", "served", "--endpoint", endpoint];
    let exported = folder.run(&args);
    assert_eq!(exported.exit_code, 0, "{}", exported.stderr);
    exported.stdout
}

/// Returns the name that a tensor of the hub has in a panel.
fn panel_name(name: &str) -> String {
    let parts = [
        ("language_model.model.", "model."),
        ("language_model.lm_head.", "lm_head."),
        ("vision_tower.", "model.vision_tower."),
        ("multi_modal_projector.linear_1.", "model.mm_projector.0."),
        ("multi_modal_projector.linear_2.", "model.mm_projector.2."),
    ];
    let part = parts.iter().find_map(|(hub, own)| Some((own, name.strip_prefix(hub)?)));
    let (own, rest) = part.unwrap_or_else(|| panic!("{name}"));
    format!("{own}{rest}")
}

/// Reads the base and adds an adapter as PEFT does: `W + lora_alpha / r · B · A` for the modules that
/// `target_modules` matches as a whole.
fn apply_adapter(served: &Path, member: &str) -> Tensors {
    let mut base = load(&served.join("base/model.safetensors"));
    let config = std::fs::read_to_string(served.join(member).join("adapter_config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["peft_type"], "LORA");
    assert_eq!(config["bias"], "none");
    let pattern = format!("^(?:{})$", config["target_modules"].as_str().unwrap());
    let pattern = regex::Regex::new(&pattern).unwrap();
    let rank = config["r"].as_u64().unwrap();
    let scale = config["lora_alpha"].as_f64().unwrap() / rank as f64;
    let adapter = load(&served.join(member).join("adapter_model.safetensors"));
    let mut adapted = BTreeSet::new();
    for (name, a) in &adapter {
        let Some(matrix) = name.strip_suffix(".lora_A.weight") else {
            continue;
        };
        let module = matrix.strip_prefix("base_model.model.").unwrap();
        assert!(pattern.is_match(module), "{module} for {pattern}");
        let b = &adapter[&format!("{matrix}.lora_B.weight")];
        assert_eq!((a.dims()[0] as u64, b.dims()[1] as u64), (rank, rank), "{name}");
        let decoder = module.strip_prefix("model.language_model.").unwrap();
        let weight = format!("language_model.model.{decoder}.weight");
        let change = (b.matmul(a).unwrap() * scale).unwrap();
        let sum = (base[&weight].to_dtype(DType::F32).unwrap() + change).unwrap();
        base.insert(weight.clone(), sum);
        adapted.insert(weight);
    }
    assert_eq!(adapter.len(), 2 * adapted.len());
    // As in a model of transformers 5.
    for name in base.keys().filter_map(|name| name.strip_suffix(".weight")) {
        let module = name.replace("language_model.model.", "model.language_model.");
        let module = module.replace("vision_tower.vision_model.", "model.vision_tower.");
        assert_eq!(
            pattern.is_match(&module),
            adapted.contains(&format!("{name}.weight")),
            "{name}"
        );
    }
    base.into_iter().map(|(name, tensor)| (panel_name(&name), tensor)).collect()
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
    let [a, b] = [a, b].map(|t| t.to_dtype(DType::F32).unwrap());
    (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

/// The start is in f16, and the base has its values. So the sum differs from the trained weights by
/// rounding of f32 only.
fn check_weights(folder: &Folder) {
    let served = folder.path("served");
    let start = apply_adapter(&served, "conclusion");
    for (member, checkpoint) in [
        ("expression", "second.expression"),
        ("medical_knowledge", "first.medical_knowledge"),
        ("patient_relevance", "first.patient_relevance"),
    ] {
        let adapted = apply_adapter(&served, member);
        let trained = load(&folder.path(&format!("RUN/{checkpoint}.safetensors")));
        let mut changed = 0;
        for (name, tensor) in &trained {
            let difference = largest_difference(&adapted[name], tensor);
            assert!(difference < 1e-6, "{member}, {name}: {difference}");
            changed += usize::from(largest_difference(&start[name], tensor) > 0.0);
        }
        assert_eq!(changed, 2 * 7, "{member}");
    }
    let added: Vec<&String> =
        start.keys().filter(|name| !name.contains("post_layernorm")).collect();
    let trained = load(&folder.path("RUN/first.patient_relevance.safetensors"));
    assert!(added.iter().all(|name| trained.contains_key(*name)));
}

/// Judging with adapters gives the scores of weights into which they are merged.
fn check_merged_scores(folder: &Folder) {
    let spec = folder.read("RUN/panel/panel.toml");
    let mut spec: toml::Table = toml::from_str(&spec).unwrap();
    let members = spec["members"].as_table_mut().unwrap();
    for (member, files) in members.iter_mut() {
        *files = toml::Value::Array(vec![format!("{member}.safetensors").into()]);
        let mut weights = apply_adapter(&folder.path("served"), member);
        weights.retain(|name, _| !name.contains("post_layernorm"));
        std::fs::create_dir_all(folder.path("merged")).unwrap();
        let path = folder.path(&format!("merged/{member}.safetensors"));
        candle::safetensors::save(&weights, path).unwrap();
    }
    // The export may add rows for tokens of servers.
    let rows =
        load(&folder.path("merged/conclusion.safetensors"))["model.embed_tokens.weight"].dims()[0];
    spec["model"]["decoder"]["vocab_size"] = toml::Value::try_from(rows).unwrap();
    folder.write("merged/panel.toml", &toml::to_string(&spec).unwrap());
    std::fs::copy(folder.path("RUN/panel/tokenizer.json"), folder.path("merged/tokenizer.json"))
        .unwrap();
    for (panel, out) in [("RUN/panel", "adapted"), ("merged", "merged-out")] {
        let judged =
            folder.run(&["judge", "cases", "--panel", panel, "--scores-only", "--out", out]);
        assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    }
    let [adapted, merged] = ["adapted", "merged-out"].map(|out| folder.records(out));
    for (adapted, merged) in adapted.iter().zip(&merged) {
        for response in 0..2 {
            let score = |record: &Value| record["expected"][response].as_f64().unwrap();
            assert!((score(adapted) - score(merged)).abs() < 2e-3, "{adapted}\n{merged}");
        }
    }
}

/// A server gets the prompts and formats of the local panel.
fn check_served_prompts(folder: &Folder, engine: &MockEngine) {
    let served = folder.read("served/served.toml");
    assert!(
        served.contains("trained = true") && served.contains("model = \"expression\""),
        "{served}"
    );
    assert!(served.contains(&format!("endpoint = \"{}\"", engine.url)), "{served}");
    let mut file: toml::Table = toml::from_str(&served).unwrap();
    // The mock writes texts, not tokens.
    assert_eq!(file.remove("tokenizer").unwrap().as_str(), Some("base/tokenizer.json"));
    let members = file["members"].as_table_mut().unwrap();
    for (_, entry) in members.iter_mut() {
        entry.as_table_mut().unwrap().insert("model".to_owned(), "judge".into());
    }
    folder.write("mock.toml", &toml::to_string(&file).unwrap());
    engine.keep_bodies();
    let judged =
        folder.run(&["judge", "cases", "--panel", "mock.toml", "--limit", "1", "--out", "mocked"]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    let prompts =
        folder.run(&["panel", "prompts", "cases", "--panel", "RUN/panel", "--format", "json"]);
    let prompts: Value = serde_json::from_str(&prompts.stdout).unwrap();
    let template = folder.read("served/base/chat_template.jinja");
    let expert = prompts[0]["prompt"].as_str().unwrap();
    let bodies = engine.bodies();
    let texts = bodies.iter().map(|body| {
        let parts = body["messages"][0]["content"].as_array().unwrap().iter();
        parts.map(|part| part["text"].as_str().unwrap_or("<image>")).collect::<String>()
    });
    let texts: Vec<String> = texts.collect();
    let is_sent = texts
        .iter()
        .any(|text| expert.contains(text.trim_end()) && text.contains("### Response 2:"));
    assert!(is_sent, "{expert}\n{texts:#?}");
    let close = " ASSISTANT:";
    assert!(expert.ends_with(close) && template.contains(close), "{template}");
    let starts_with_lead = |body: &Value| {
        let regex = body["structured_outputs"]["regex"].as_str();
        regex.is_some_and(|regex| regex.starts_with(" Response 1:"))
    };
    assert!(bodies.iter().any(starts_with_lead), "{bodies:#?}");
}

/// A server tokenises a prompt as a whole, and a local member piece by piece.
fn check_prompt_tokens(folder: &Folder) {
    let read = |name: &str| std::fs::read(folder.path(name)).unwrap();
    let local = TextTokenizer::parse(&read("RUN/panel/tokenizer.json")).unwrap();
    let served = parse_tokenizer(&read("served/base/tokenizer.json")).unwrap();
    let rubric = Rubric::built_in().unwrap();
    let prompts = BranchPrompts::new(PromptLayout::CaseFirst, rubric, RubricDetail::Names).unwrap();
    let prompts = prompts.with_chat_template(ChatTemplate::by_name("vicuna").unwrap());
    let input = JudgeInput::pair(true, "Is it large?", ["Yes, 3 cm.", " A mass (left)!\n"]);
    let pieces = prompts.pieces(Aspect::EXPRESSION, &input).unwrap();
    let staged = StagedPrompt::new(&pieces, PAIR_TEXTS, &local).unwrap();
    let image = served.token_to_id("<image>").unwrap();
    let local_ids = staged.tokens().map(|token| match token {
        PromptToken::Image => image,
        PromptToken::Token(id) => id,
    });
    let texts = pieces.iter().map(|piece| match piece {
        PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text.as_str(),
        PromptPiece::Image => "<image>",
    });
    let text: String = std::iter::once("<s>").chain(texts).collect();
    let served_ids = served.encode(text, false).unwrap();
    assert_eq!(served_ids.get_ids(), local_ids.collect::<Vec<u32>>());
}

/// A training that starts from adapters starts from their sum with the base.
fn check_start_from_adapters(folder: &Folder) {
    let more = TRAINING.split("[[stages]]\nname = \"second\"").next().unwrap();
    let more = more
        .replace("\"expression\", \"medical_knowledge\", \"patient_relevance\"", "\"conclusion\"");
    folder.write("more.toml", &format!("start = \"RUN/panel\"\n{more}"));
    let trained = folder.run(&["train", "run", "more.toml", "--out", "MORE"]);
    assert_eq!(trained.exit_code, 0, "{}", trained.stderr);
    let head = load(&folder.path("MORE/panel/expression.safetensors"));
    let adapted = apply_adapter(&folder.path("served"), "expression");
    assert_eq!(head.len(), 2 * 7);
    for (name, tensor) in &head {
        assert!(largest_difference(&adapted[name], tensor) < 1e-3, "{name}");
    }
    let exported = folder.run(&["panel", "export", "MORE/panel", "--peft", "--out", "more"]);
    assert_eq!(exported.exit_code, 2);
    let expected = "expected members that differ by adapters only";
    assert!(exported.stderr.contains(expected), "{}", exported.stderr);
}

#[test]
fn exported_files_have_the_weights_and_prompts_of_the_panel() {
    let folder = Folder::with_cases(2);
    let engine = MockEngine::start(EngineSettings { owner: "vllm", ..EngineSettings::default() });
    let commands = train_and_export(&folder, &engine.url);
    let port = engine.url.rsplit([':', '/']).nth(1).unwrap();
    let expected = format!(
        "VLLM_XGRAMMAR_CACHE_MB=0 vllm serve served/base --host 127.0.0.1 --port {port} --enable-lora --max-loras 4 \
         --max-lora-rank 8 --lora-modules expression=served/expression \
         medical_knowledge=served/medical_knowledge patient_relevance=served/patient_relevance \
         conclusion=served/conclusion\n\
         acem3 judge CASES --panel served/served.toml --out OUT\n"
    );
    assert_eq!(commands, expected);
    check_weights(&folder);
    check_merged_scores(&folder);
    check_served_prompts(&folder, &engine);
    check_prompt_tokens(&folder);
    check_start_from_adapters(&folder);
    // The base is a checkpoint that acem3 reads, with all its tensors.
    let base = folder.run(&[
        "judge",
        "cases",
        "--panel",
        "served/base",
        "--scores-only",
        "--out",
        "based",
    ]);
    assert_eq!(base.exit_code, 0, "{}", base.stderr);
    let again = folder.run(&["panel", "export", "RUN/panel", "--peft", "--out", "served"]);
    assert_eq!(again.exit_code, 0, "{}", again.stderr);
    let other = folder.run(&["panel", "export", "RUN/panel", "--peft", "--out", "cases"]);
    assert_eq!(other.exit_code, 2);
    assert!(other.stderr.contains("is no file of an export\nhint: "), "{}", other.stderr);
}

/// Returns a copy of the embedded panel in which each member has its own last two layers.
fn panel_with_own_layers() -> TempDir {
    let copy = copy_panel();
    let load = |file: &str| {
        candle::safetensors::load(copy.path().join(file), &Device::Cpu).unwrap().into_iter()
    };
    let save = |tensors: &HashMap<String, Tensor>, file: &str| {
        candle::safetensors::save(tensors, copy.path().join(file)).unwrap();
    };
    let is_own =
        |name: &str| ["model.layers.4.", "model.layers.5."].iter().any(|p| name.starts_with(p));
    let (common_layers, trunk): (HashMap<_, _>, HashMap<_, _>) =
        load("trunk.safetensors").partition(|(name, _)| is_own(name));
    for (member, scale) in [
        ("expression", 1.0),
        ("medical_knowledge", 1.5),
        ("patient_relevance", 1.0),
        ("conclusion", 1.0),
    ] {
        let file = format!("{member}.safetensors");
        let own = common_layers.clone().into_iter().chain(load(&file));
        let scaled = own.map(|(name, tensor)| (name, (tensor * scale).unwrap()));
        save(&scaled.collect(), &file);
    }
    save(&trunk, "trunk.safetensors");
    copy
}

#[test]
fn panels_without_common_base_are_rejected() {
    let folder = Folder::empty();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
    let error = |panel: &str| {
        let output = folder.run(&["panel", "export", panel, "--peft", "--out", "served"]);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains("\nhint: "), "{}", output.stderr);
        assert!(!folder.path("served").exists());
        output.stderr
    };
    let copy = panel_with_own_layers();
    let own_layers = error(copy.path().to_str().unwrap());
    assert!(
        own_layers
            .contains("expression and medical_knowledge have different values of `model.layers.4."),
        "{own_layers}"
    );
    let published = error(root.join("golden/checkpoints/llava").to_str().unwrap());
    assert!(published.contains("published checkpoints, expected a panel"), "{published}");
    let without_format = folder.run(&["panel", "export", "x", "--out", "served"]);
    assert_eq!(without_format.exit_code, 2);
    assert!(without_format.stderr.contains("--peft"), "{}", without_format.stderr);
    folder.write(
        "checkpoints.toml",
        "schema = 1\ntrained = true\n[members]\nexpression = \"a\"\nmedical_knowledge = \"a\"\n\
         patient_relevance = \"a\"\nconclusion = \"a\"\n",
    );
    let trained = folder.run(&["panel", "inspect", "checkpoints.toml"]);
    assert!(trained.stderr.contains("trained = true is for served members"), "{}", trained.stderr);
}
