//! The recipes of the papers on tiny stand-ins for their models, from evaluations to verdicts, and
//! other bases of a training: text models, and models with another vision tower.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

/// Aspects of the experts with the names of their criteria.
const EXPERTS: [(&str, &[&str]); 3] = [
    (
        "expression",
        &[
            "Clarity of Response",
            "Language Appropriateness",
            "Tone and Empathy",
            "Expression Integrity",
        ],
    ),
    ("medical_knowledge", &["Factual Accuracy", "Up-to-date Information", "Handling Uncertainty"]),
    (
        "patient_relevance",
        &["Context Awareness", "Relevance to Patient's Condition", "Addressing Multiple Concerns"],
    ),
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden").join(name)
}

/// Copies the tiny Mistral to a folder, without its window of attention, which is shorter than the
/// texts. Returns its path.
pub(crate) fn text_model(folder: &Folder) -> String {
    let source = golden("checkpoints/mistral");
    for file in ["model.safetensors", "tokenizer.json"] {
        folder.write_bytes(&format!("base/{file}"), &std::fs::read(source.join(file)).unwrap());
    }
    let config = std::fs::read_to_string(source.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["sliding_window"] = Value::Null;
    folder.write("base/config.json", &config.to_string());
    folder.path("base").display().to_string()
}

/// Renders an evaluation of a pair.
fn evaluation(criteria: &[&str], first: u8, second: u8) -> String {
    let mut text = String::new();
    for (response, score) in [(1, first), (2, second)] {
        let _ = writeln!(text, "{}Response {response}:", if response > 1 { "\n" } else { "" });
        let rating = format!("Analysis: It is fine.\nScore: {score}");
        let ratings: Vec<String> = match criteria {
            [] => vec![rating],
            names => names.iter().map(|name| format!("Criterion {name}:\n{rating}")).collect(),
        };
        text += &ratings.join("\n");
    }
    text
}

/// Writes `evaluations.jsonl` with 12 evaluations of each member, with or without an image.
pub(crate) fn write_evaluations(folder: &Folder, image: Option<&str>) {
    let mut lines = Vec::new();
    for i in 0..12u8 {
        let members = EXPERTS.into_iter().chain([("conclusion", &[] as &[&str])]);
        for (member, criteria) in members {
            let marker = image.map_or("", |_| "<image>\n");
            let line = json!({
                "prompt": format!("### Question:\n{marker}Is it {i}?\n### {member}:\n"),
                "completion": evaluation(criteria, i % 6, (i + 2) % 6),
                "images": image.iter().collect::<Vec<_>>(),
                "member": member,
                "quality": f64::from(i),
            });
            lines.push(line.to_string());
        }
    }
    folder.write("evaluations.jsonl", &lines.join("\n"));
}

/// Writes a recipe for a stand-in: another model, few steps and no frozen layers beyond its depth.
fn write_recipe(folder: &Folder, recipe: &str, model: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/recipes").join(recipe);
    let text = std::fs::read_to_string(path).unwrap();
    let mut config: toml::Table = toml::from_str(&text).unwrap();
    config.insert("start".to_owned(), model.into());
    config.insert("trunk_layers".to_owned(), 1.into());
    for stage in config["stages"].as_array_mut().unwrap() {
        let stage = stage.as_table_mut().unwrap();
        for (key, value) in [("steps", 2), ("batch", 2), ("warmup", 1)] {
            stage.insert(key.to_owned(), value.into());
        }
        if stage.contains_key("frozen_layers") {
            stage.insert("frozen_layers".to_owned(), 1.into());
        }
    }
    folder.write(recipe, &toml::to_string(&config).unwrap());
}

/// Trains a recipe on evaluations and preferences, and judges a case with the panel.
fn run_recipe(recipe: &str, model: &str, image: Option<&str>) -> Folder {
    let folder = Folder::with_cases(1);
    write_evaluations(&folder, image);
    let model = match model {
        "text" => text_model(&folder),
        name => golden(name).display().to_string(),
    };
    write_recipe(&folder, recipe, &model);
    train_and_judge(&folder, recipe, &[]);
    folder
}

/// Collects the evaluations of a teacher by the recipe of a paper, trains a panel on them, and judges
/// cases with it.
fn run_recipe_of_teacher(recipe: &str, judging: &str, form: &str) -> Folder {
    let folder = Folder::with_cases(6);
    let cases = (0..6).map(|i| {
        let mut case = valid_case(i);
        case["reference"] = json!("a shadow");
        case
    });
    folder.write_cases(&cases.collect::<Vec<_>>());
    let model = text_model(&folder);
    let file = format!("{recipe}.toml");
    write_recipe(&folder, &file, &model);
    folder.write(&file, &format!("{}{judging}", folder.read(&file)));
    let mut args = vec!["data", "evaluations", "cases", "--recipe", recipe, "--panel", "scripted:"];
    args.extend(["--check", "none", "--config", &file, "--out", "data"]);
    let collected = folder.run(&args);
    assert_eq!(collected.exit_code, 0, "{}", collected.stderr);
    let lines = folder.read("data/evaluations.jsonl");
    let rated = lines.lines().enumerate().map(|(i, line)| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["quality"] = json!(i);
        line.to_string()
    });
    folder.write("evaluations.jsonl", &rated.collect::<Vec<_>>().join("\n"));
    let notes = train_and_judge(&folder, &file, &["--form", form]);
    assert!(!notes.contains("the prompts of its file"), "{notes}");
    folder
}

/// Writes preferences, trains a recipe, and judges cases with the panel. Returns the notes of the training.
fn train_and_judge(folder: &Folder, recipe: &str, judge_flags: &[&str]) -> String {
    let args = ["data", "preferences", "evaluations.jsonl", "--out", "pairs"];
    let preferences = folder.run(&[&args[..], &["--reward-tokens-of", recipe]].concat());
    assert_eq!(preferences.exit_code, 0, "{}", preferences.stderr);
    let train = folder.run(&["train", "run", recipe, "--out", "run", "--device", "cpu"]);
    assert_eq!(train.exit_code, 0, "{recipe}: {}", train.stderr);
    let args = ["judge", "cases", "--panel", "run/panel", "--out", "out", "--scores-only"];
    let judge = folder.run(&[&args[..], judge_flags].concat());
    assert_eq!(judge.exit_code, 0, "{recipe}: {}", judge.stderr);
    assert_eq!(folder.records("out")[0]["status"], "judged");
    train.stderr
}

/// Each expert has its own reward tokens, from the file of preferences to the panel.
#[test]
fn recipe_of_hdceval_ends_in_verdicts() {
    let folder = run_recipe_of_teacher("hdceval", "", "pair");
    let spec: toml::Table = toml::from_str(&folder.read("run/panel/panel.toml")).unwrap();
    let tokens = &spec["reward_tokens"];
    let expected = [
        ("relevance", "[Good REL]"),
        ("correctness", "[Good COR]"),
        ("expression", "[Good EXP]"),
        ("conclusion", "[Good]"),
    ];
    for (member, token) in expected {
        assert_eq!(tokens[member].as_str(), Some(token));
        let lines = folder.read("pairs/preferences.jsonl");
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut of_member = lines.filter(|line| line["member"] == member);
        assert!(of_member.all(|line| line["chosen"].as_str().unwrap().starts_with(token)));
    }
    // A file with other tokens than the configuration is refused.
    let args = ["data", "preferences", "evaluations.jsonl", "--out", "pairs", "--reward-tokens"];
    assert_eq!(folder.run(&args).exit_code, 0);
    let train = folder.run(&["train", "run", "hdceval.toml", "--out", "other"]);
    assert_eq!(train.exit_code, 2);
    for expected in ["line 1\n", "a completion begins with [Good], expected [Good REL]"] {
        assert!(train.stderr.contains(expected), "{}", train.stderr);
    }
}

#[test]
fn recipe_of_automedeval_ends_in_verdicts() {
    drop(run_recipe("automedeval.toml", "checkpoints/qwen2", None));
}

#[test]
fn recipe_of_automedeval_judges_lists() {
    let judging = "\n[judging]\nrubric = \"automedeval\"\nforms = [\"list\"]\n";
    let folder = run_recipe_of_teacher("automedeval", judging, "list");
    assert_eq!(folder.records("out")[0]["form"], "list");
}

#[test]
fn recipe_of_ace_m3_ends_in_verdicts() {
    drop(run_recipe("ace_m3.toml", "checkpoints/llava", Some("cases/images/0.png")));
}

/// The image becomes several tiles in training and in judging.
#[test]
fn recipe_of_ace_m3_takes_tiles() {
    run_recipe("ace_m3.toml", "checkpoints/llava-next", Some("cases/images/0.png"));
}

/// A training configuration with one stage.
fn one_stage(start: &str, top: &str, stage: &str) -> String {
    format!(
        "name = \"tiny\"\nstart = {start:?}\nseed = 1\ntrunk_layers = 1\n{top}\n\
         [[stages]]\nname = \"only\"\nsteps = 2\nbatch = 2\nrate = 1e-3\nwarmup = 1\n{stage}\n"
    )
}

#[test]
fn text_model_gets_a_vision_tower() {
    let folder = Folder::with_cases(1);
    let mistral = text_model(&folder);
    for (encoder, projector) in [("clip", "mlp2x_gelu"), ("siglip", "linear"), ("dinov2", "linear")]
    {
        let tower = golden("encoders").join(encoder).display().to_string();
        let top = format!("vision_tower = {tower:?}\nprojector = \"{projector}\"");
        let align = "kind = \"align\"\nfrozen = [\"model.vision_tower.\", \"model.embed_tokens.\", \"model.layers.\"]";
        folder.write("train.toml", &one_stage(&mistral, &top, align));
        let out = format!("run-{encoder}");
        let train = folder.run(&["train", "run", "train.toml", "--out", &out, "--device", "cpu"]);
        assert_eq!(train.exit_code, 0, "{encoder}: {}", train.stderr);
        let panel = format!("{out}/panel");
        let judge =
            folder.run(&["judge", "cases", "--panel", &panel, "--out", &format!("j-{encoder}")]);
        assert_eq!(judge.exit_code, 0, "{encoder}: {}", judge.stderr);
        let spec = folder.read(&format!("{panel}/panel.toml"));
        assert!(spec.contains(&format!("kind = \"{projector}\"")), "{spec}");
    }
    // The new projector must be trained first.
    let tower = golden("encoders/clip").display().to_string();
    let heads = "kind = \"heads\"\nfrozen_layers = 1";
    folder.write("frozen.toml", &one_stage(&mistral, &format!("vision_tower = {tower:?}"), heads));
    let frozen = folder.run(&["train", "run", "frozen.toml", "--out", "frozen"]);
    assert_eq!(frozen.exit_code, 2);
    assert!(frozen.stderr.contains("the projector of `vision_tower` is new"), "{}", frozen.stderr);
    folder.write("missing.toml", &one_stage(&mistral, "vision_tower = \"none\"", heads));
    let missing = folder.run(&["train", "run", "missing.toml", "--out", "missing", "--offline"]);
    assert_eq!(missing.exit_code, 2);
    assert!(
        missing.stderr.contains("none") && missing.stderr.contains("hint: "),
        "{}",
        missing.stderr
    );
}

/// Phantoms, like the images of files, are encoded in tiles.
#[test]
fn models_with_tiles_train_on_phantoms() {
    for (model, tiling) in
        [("llava-next", "pinpoints"), ("llava-onevision", "any_res_max"), ("internvl", "dynamic")]
    {
        let folder = Folder::with_cases(1);
        let path = golden("checkpoints").join(model).display().to_string();
        let heads = "kind = \"sft\"\nfrozen_layers = 1";
        folder.write("train.toml", &one_stage(&path, "", heads));
        let train = folder.run(&["train", "run", "train.toml", "--out", "run", "--device", "cpu"]);
        assert_eq!(train.exit_code, 0, "{model}: {}", train.stderr);
        let spec = folder.read("run/panel/panel.toml");
        assert!(spec.contains("tiling") && spec.contains(tiling), "{model}: {spec}");
        let args = ["judge", "cases", "--panel", "run/panel", "--out", "out", "--scores-only"];
        let judge = folder.run(&args);
        assert_eq!(judge.exit_code, 0, "{model}: {}", judge.stderr);
        assert_eq!(folder.records("out")[0]["status"], "judged", "{model}");
    }
}

/// An example must fit into the window of attention.
#[test]
fn examples_beyond_a_sliding_window_are_left_out() {
    let folder = Folder::empty();
    write_evaluations(&folder, None);
    let mistral = golden("checkpoints/mistral").display().to_string();
    let heads =
        "kind = \"heads\"\nfrozen_layers = 1\n[stages.evaluations]\nfile = \"evaluations.jsonl\"";
    folder.write("train.toml", &one_stage(&mistral, "", heads));
    let train = folder.run(&["train", "run", "train.toml", "--out", "run"]);
    assert_eq!(train.exit_code, 4, "{}", train.stdout);
    for part in ["24 tokens, the sliding window", "all examples are longer than the context or the"]
    {
        assert!(train.stderr.contains(part), "{part}: {}", train.stderr);
    }
}

/// An adapter with a projector does not fit a text model.
#[test]
fn adapter_of_a_model_with_images_needs_its_base() {
    let folder = Folder::empty();
    let [base, adapter] = ["checkpoints/qwen2", "adapters/llava"].map(golden);
    let members = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let members = members.map(|member| format!("{member} = {adapter:?}\n")).concat();
    folder.write("members.toml", &format!("schema = 1\nbase = {base:?}\n[members]\n{members}"));
    let inspect = folder.run(&["panel", "inspect", "members.toml"]);
    assert_eq!(inspect.exit_code, 2, "{}", inspect.stdout);
    assert!(inspect.stderr.contains("belongs to a model that sees images"), "{}", inspect.stderr);
}

/// LLaVA reads the output of the block before the last, so the last one gets no gradient.
#[test]
fn unused_blocks_of_the_tower_are_left_out() {
    let folder = Folder::empty();
    let llava = golden("checkpoints/llava").display().to_string();
    folder.write("train.toml", &one_stage(&llava, "", "kind = \"align\""));
    let train = folder.run(&["train", "run", "train.toml", "--out", "run", "--device", "cpu"]);
    assert_eq!(train.exit_code, 0, "{}", train.stderr);
    assert!(
        train.stderr.contains("blocks 2 to 2 of the vision tower stay as they are"),
        "{}",
        train.stderr
    );
}

#[test]
fn text_model_needs_files() {
    let folder = Folder::empty();
    let mistral = golden("checkpoints/mistral").display().to_string();
    folder.write("train.toml", &one_stage(&mistral, "", "kind = \"sft\""));
    let train = folder.run(&["train", "run", "train.toml", "--out", "run"]);
    assert_eq!(train.exit_code, 2);
    assert!(
        train.stderr.contains("the model is a text model\nhint: set `file`"),
        "{}",
        train.stderr
    );
    let lone = "name = \"a\"\nvision_tower = \"b\"\nseed = 1\nstages = []\n";
    folder.write("lone.toml", lone);
    let lone = folder.run(&["train", "run", "lone.toml", "--out", "run"]);
    assert!(lone.stderr.contains("expected only with `start`"), "{}", lone.stderr);
}

/// The recipes state the values of the papers.
#[test]
fn recipes_have_the_values_of_the_papers() {
    let read = |recipe: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/recipes").join(recipe);
        let config: toml::Table = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        serde_json::to_value(config).unwrap()
    };
    let hdceval = read("hdceval.toml");
    let stages = &hdceval["stages"];
    assert_eq!((&stages[0]["rate"], &stages[1]["rate"]), (&json!(2e-5), &json!(5e-7)));
    assert_eq!((&stages[0]["batch"], &stages[1]["frozen_layers"]), (&json!(128), &json!(24)));
    assert_eq!(stages[1]["kind"], "adto");
    let automedeval = read("automedeval.toml");
    let stage = &automedeval["stages"][0];
    assert_eq!((&stage["rate"], &stage["batch"]), (&json!(2e-5), &json!(128)));
    assert_eq!(stage["evaluations"]["curriculum"], "disjoint");
    assert_eq!(read("ace_m3.toml")["stages"][1]["kind"], "rtdpo");
}
