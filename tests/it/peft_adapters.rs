//! Tests of adapters of PEFT as members of a panel and as the start of a training.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::folder::Folder;

/// Returns the path of a file of the golden set.
fn golden(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden").join(name).display().to_string()
}

/// Returns a panel file with these members over the tiny LLaVA.
fn panel_file(members: [&str; 4]) -> String {
    let [expression, medical_knowledge, patient_relevance, conclusion] = members.map(|name| {
        if name.starts_with('{') { name.to_owned() } else { format!("{:?}", golden(name)) }
    });
    format!(
        "schema = 1\nname = \"adapted\"\nbase = {:?}\nanalysis_tokens = 8\n[members]\n\
         expression = {expression}\nmedical_knowledge = {medical_knowledge}\n\
         patient_relevance = {patient_relevance}\nconclusion = {conclusion}\n",
        golden("checkpoints/llava")
    )
}

fn inspect(folder: &Folder, panel: &str) -> Value {
    let output = folder.run(&["panel", "inspect", panel, "--format", "json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn error(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(args);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("\nhint: "), "{}", output.stderr);
    output.stderr
}

#[test]
fn four_adapters_judge_over_one_base() {
    let folder = Folder::with_cases(2);
    let table = format!(
        "{{ folder = {:?}, adapter = {:?} }}",
        golden("checkpoints/llava"),
        golden("adapters/ranks")
    );
    let members = ["adapters/plain", table.as_str(), "adapters/upper", "adapters/outside"];
    folder.write("panel.members.toml", &panel_file(members));
    let report = inspect(&folder, "panel.members.toml");
    let base = inspect(&folder, &golden("checkpoints/llava"));
    let size = |report: &Value, key: &str| report["sizes"][key].as_u64().unwrap();
    // Adapters, one merged matrix for each of the seven outside of the decoder, and the projector's second
    // layer.
    let values = |name: &str| {
        let file = golden(&format!("adapters/{name}/adapter_model.safetensors"));
        let tensors = candle::safetensors::load(file, &candle::Device::Cpu).unwrap();
        tensors.values().map(candle::Tensor::elem_count).sum::<usize>() as u64
    };
    let apart = size(&report, "parameters_shared") - size(&base, "parameters_shared");
    let factors = values("plain") + values("ranks") + values("upper");
    let outside = 484 * 32 + 32 * 32 * 2 + 32 + 2 * (48 * 32 + 32 * 32);
    // At most one alpha for each adapted matrix.
    assert!((factors + outside..=factors + outside + 14 + 6 + 2).contains(&apart), "{apart}");
    let digests: BTreeSet<&str> = ["expression", "medical_knowledge", "patient_relevance"]
        .map(|name| report["hashes"][format!("{name} weights")].as_str().unwrap())
        .into();
    assert_eq!(digests.len(), 3);
    let files = report["members"][1]["files"].as_object().unwrap();
    assert!(files.contains_key("ranks/adapter_model.safetensors"), "{files:?}");
    let judged = folder.run(&["judge", "cases", "--panel", "panel.members.toml", "--out", "out"]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    // Another adapter of one member is another judge.
    folder.write(
        "other.members.toml",
        &panel_file(["adapters/upper", table.as_str(), "adapters/upper", "adapters/outside"]),
    );
    let other = folder.run(&["judge", "cases", "--panel", "other.members.toml", "--out", "other"]);
    assert_eq!(other.exit_code, 0, "{}", other.stderr);
    for (record, other) in folder.records("out").iter().zip(&folder.records("other")) {
        assert_eq!(record["status"], "judged", "{record}");
        assert_ne!(record["key"], other["key"]);
        assert_ne!(record["orders"], other["orders"]);
    }
}

#[test]
fn folder_of_an_adapter_is_a_panel_with_its_recorded_base() {
    let folder = Folder::with_cases(1);
    let panel = golden("adapters/trl");
    let judged =
        folder.run(&["judge", "cases", "--panel", &panel, "--scores-only", "--out", "out"]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    let report = inspect(&folder, &panel);
    assert_eq!(report["trunks"][0]["members"].as_array().unwrap().len(), 4);
    let base = inspect(&folder, &golden("checkpoints/llava"));
    assert_ne!(report["panel_sha256"], base["panel_sha256"]);
}

/// A training that starts from an adapter starts from its sum with the base.
#[test]
fn training_starts_from_an_adapter() {
    let folder = Folder::empty();
    let training = "name = \"more\"\nseed = 2\ntrunk_layers = 1\nlayout = \"case-first\"\n\
                    rubric = \"names\"\n[[stages]]\nname = \"heads\"\nkind = \"heads\"\n\
                    members = [\"expression\"]\nsteps = 1\nbatch = 1\nrate = 1e-2\nfrozen_layers = 1\n";
    folder.write("train.toml", &format!("start = {:?}\n{training}", golden("adapters/plain")));
    let trained = folder.run(&["train", "run", "train.toml", "--out", "RUN"]);
    assert_eq!(trained.exit_code, 0, "{}", trained.stderr);
    let load = |path: &Path| candle::safetensors::load(path, &candle::Device::Cpu).unwrap();
    let trunk = load(&folder.path("RUN/panel/trunk.safetensors"));
    let adapter = load(Path::new(&golden("adapters/plain/adapter_model.safetensors")));
    let factor = |name: &str| {
        let prefix = "base_model.model.model.language_model.layers.0.mlp.up_proj";
        adapter[&format!("{prefix}.{name}.weight")].clone()
    };
    let change = (factor("lora_B").matmul(&factor("lora_A")).unwrap() * 2.0).unwrap();
    let shards = ["1", "2"]
        .map(|n| golden(&format!("checkpoints/llava/model-0000{n}-of-00002.safetensors")));
    let base = shards.iter().find_map(|shard| {
        let tensors = load(Path::new(shard));
        let mut names = tensors.into_iter();
        names.find(|(name, _)| name.ends_with("language_model.model.layers.0.mlp.up_proj.weight"))
    });
    let sum = (base.unwrap().1.to_dtype(candle::DType::F32).unwrap() + change).unwrap();
    let found = trunk["model.layers.0.mlp.up_proj.weight"].to_dtype(candle::DType::F32).unwrap();
    let difference = (sum - found).unwrap().abs().unwrap().max_all().unwrap();
    assert!(difference.to_scalar::<f32>().unwrap() < 1e-3);
}

#[test]
fn errors_say_how_to_name_the_base() {
    let folder = Folder::with_cases(1);
    std::fs::create_dir(folder.path("adapter")).unwrap();
    let copy = |file: &str| {
        let source = golden(&format!("adapters/plain/{file}"));
        std::fs::copy(source, folder.path(&format!("adapter/{file}"))).unwrap();
    };
    copy("adapter_config.json");
    let without_base = error(&folder, &["panel", "inspect", "adapter"]);
    assert!(
        without_base.contains("the base `../../checkpoints/llava` was not found"),
        "{without_base}"
    );
    assert!(without_base.contains("name it in a panel file"), "{without_base}");
    let local = "{ adapter = \"adapter\" }";
    folder.write("panel.members.toml", &panel_file([local; 4]));
    let without_weights = error(&folder, &["panel", "inspect", "panel.members.toml"]);
    assert!(without_weights.contains("no weights of the adapter"), "{without_weights}");
    copy("adapter_model.safetensors");
    inspect(&folder, "panel.members.toml");
    let unused = panel_file(["checkpoints/llava"; 4]);
    folder.write("unused.members.toml", &unused);
    let unused = error(&folder, &["panel", "inspect", "unused.members.toml"]);
    assert!(unused.contains("is not used, because no member is an adapter"), "{unused}");
    let swapped =
        format!("{{ folder = \"adapter\", adapter = {:?} }}", golden("checkpoints/llava"));
    folder.write("swapped.members.toml", &panel_file([&swapped, local, local, local]));
    let swapped = error(&folder, &["panel", "inspect", "swapped.members.toml"]);
    assert!(
        swapped.contains("members.expression") && swapped.contains("not an adapter"),
        "{swapped}"
    );
    let served = "{ adapter = \"adapter\", model = \"judge\" }";
    folder.write("served.members.toml", &panel_file([served, local, local, local]));
    let served = error(&folder, &["panel", "inspect", "served.members.toml"]);
    assert!(served.contains("the member has adapter and model"), "{served}");
}

/// The members of a training that keeps adapters are adapters of the base that they started from, and judge
/// as members do into which they are merged.
#[test]
fn kept_adapters_judge_like_merged_ones() {
    let folder = Folder::with_cases(2);
    folder.write(
        "start.members.toml",
        &panel_file(["adapters/plain", "adapters/ranks", "adapters/upper", "adapters/plain"]),
    );
    let training = "start = \"start.members.toml\"\nname = \"more\"\nseed = 2\ntrunk_layers = 1\n\
                    layout = \"case-first\"\nrubric = \"names\"\n[[stages]]\nname = \"heads\"\n\
                    kind = \"heads\"\nmembers = [\"conclusion\"]\nsteps = 1\nbatch = 1\nrate = 1e-2\n\
                    [stages.lora]\nrank = 2\n\
                    alpha = 4.0\n";
    folder.write("merged.toml", training);
    folder.write("kept.toml", &format!("keep_adapters = true\n{training}"));
    for run in ["merged", "kept"] {
        let config = format!("{run}.toml");
        let trained = folder.run(&["train", "run", &config, "--out", run]);
        assert_eq!(trained.exit_code, 0, "{}", trained.stderr);
        let has_sizes = trained.stderr.contains(" of the base and ");
        assert_eq!(has_sizes, run == "kept", "{}", trained.stderr);
        let panel = format!("{run}/panel");
        let out = format!("{run}-out");
        let judged =
            folder.run(&["judge", "cases", "--panel", &panel, "--scores-only", "--out", &out]);
        assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    }
    for (kept, merged) in folder.records("kept-out").iter().zip(&folder.records("merged-out")) {
        for response in 0..2 {
            let score = |record: &Value| record["expected"][response].as_f64().unwrap();
            assert!((score(kept) - score(merged)).abs() < 2e-2, "{kept}\n{merged}");
        }
    }
    // The base is in the panel once, with the values of its file.
    let load = |path: &Path| candle::safetensors::load(path, &candle::Device::Cpu).unwrap();
    let trunk = load(&folder.path("kept/panel/trunk.safetensors"));
    let shard = load(Path::new(&golden("checkpoints/llava/model-00002-of-00002.safetensors")));
    let (name, values) =
        shard.iter().find(|(name, _)| name.ends_with("layers.1.mlp.up_proj.weight")).unwrap();
    let found = &trunk["model.layers.1.mlp.up_proj.weight"];
    assert_eq!(
        found.flatten_all().unwrap().to_vec1::<half::f16>().unwrap(),
        values.flatten_all().unwrap().to_vec1::<half::f16>().unwrap(),
        "{name}"
    );
    for member in ["expression", "medical_knowledge", "patient_relevance", "conclusion"] {
        let head = load(&folder.path(&format!("kept/panel/{member}.safetensors")));
        assert!(head.keys().all(|name| name.contains(".lora_")), "{member}");
    }
    let size = |run: &str| {
        let path = folder.path(&format!("{run}/heads.conclusion.safetensors"));
        std::fs::metadata(path).unwrap().len()
    };
    assert!(8 * size("kept") < size("merged"));
    let exported = folder.run(&["panel", "export", "kept/panel", "--peft", "--out", "served"]);
    assert_eq!(exported.exit_code, 0, "{}", exported.stderr);
    let other = format!("keep_adapters = true\nstart = {:?}\n", "two.members.toml");
    folder.write("other.toml", &training.replace("start = \"start.members.toml\"\n", &other));
    let two =
        panel_file(["adapters/plain", "adapters/ranks", "adapters/upper", "adapters/outside"]);
    folder.write("two.members.toml", &two);
    let refused = folder.run(&["train", "run", "other.toml", "--out", "other"]);
    let expected = "conclusion starts with other weights than expression";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
}
