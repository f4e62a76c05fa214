//! The program judges with checkpoints of every layout, on images of several sizes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::folder::Folder;

const IMAGES: [&str; 6] = ["wide", "tall", "small", "square", "odd", "strip"];

fn golden(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/checkpoints").join(name)
}

/// Creates a folder with the images and a panel of one checkpoint with short prompts (rubric
/// `names`).
fn panel_folder(checkpoint: &str) -> Folder {
    let folder = Folder::empty();
    for image in IMAGES {
        let file = format!("images/{image}.png");
        fs::copy(golden(&file), folder.path(&format!("cases/{file}"))).unwrap();
    }
    let members = ["expression", "medical_knowledge", "patient_relevance", "conclusion"];
    let members = members.map(|m| format!("{m} = {:?}\n", golden(checkpoint)));
    let panel = format!("schema = 1\nrubric = \"names\"\n[members]\n{}", members.concat());
    folder.write("short-prompts.toml", &panel);
    folder
}

fn image_case(image: &str) -> Value {
    json!({
        "id": image,
        "image": format!("images/{image}.png"),
        "question": "what is it?",
        "responses": [{"model": "a", "text": "a mass"}, {"model": "b", "text": "none"}],
    })
}

fn judge(folder: &Folder, out: &str, batch: &str) -> Vec<Value> {
    let args = [
        "judge",
        "cases",
        "--out",
        out,
        "--panel",
        "short-prompts.toml",
        "--batch-size",
        batch,
        "--scores-only",
        "--single-order",
    ];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let records = folder.records(out);
    for record in &records {
        assert_eq!(record["status"], "judged", "{record}");
    }
    records
}

#[test]
fn verdicts_do_not_depend_on_batch_or_case_order() {
    // With tiles, and with image tokens that attend to later ones.
    for checkpoint in ["llava-next", "llava-onevision", "internvl", "gemma3"] {
        assert_equal_verdicts_in_any_order(checkpoint);
    }
}

/// Checks that batch size and order of cases do not change verdicts on images of several sizes.
fn assert_equal_verdicts_in_any_order(checkpoint: &str) {
    let folder = panel_folder(checkpoint);
    let mut cases: Vec<Value> = IMAGES.map(image_case).into();
    folder.write_cases(&cases);
    judge(&folder, "one", "1");
    judge(&folder, "many", "6");
    assert_eq!(folder.read("one/records.jsonl"), folder.read("many/records.jsonl"));
    let mut expected = folder.records("one");
    cases.reverse();
    folder.write_cases(&cases);
    let reversed = judge(&folder, "reversed", "4");
    expected.reverse();
    assert_eq!(expected.len(), IMAGES.len());
    for (record, other) in expected.iter().zip(&reversed) {
        assert_eq!(record["case"], other["case"]);
        assert_eq!(record["orders"], other["orders"], "{}", record["case"]);
    }
    // Verdicts depend on the image: no two images have equal probabilities.
    for (i, record) in reversed.iter().enumerate() {
        assert!(reversed.iter().take(i).all(|other| other["orders"] != record["orders"]));
    }
}

#[test]
fn every_layout_judges_and_is_inspected() {
    for (name, kind, expected_tokens) in [
        ("llava-next", "llava_next", json!([9, 51])),
        ("llava-siglip", "llava", json!([16, null])),
        ("llava-mistral", "llava_mistral", json!([16, null])),
        ("gemma3", "gemma3", json!([9, null])),
        ("gemma3-text", "gemma3_text", Value::Null),
        // 16 rows of 6 tokens in 6 x 2 tiles are just below the limit.
        ("llava-onevision", "llava_onevision", json!([9, 9 + 16 * 7])),
        ("llava-critic", "llava", json!([9, 9 + 16 * 7])),
        ("huatuo", "llava_qwen2", json!([16, null])),
        ("prometheus", "llava", json!([16, null])),
        // 4 tokens per tile, and at most 6 tiles and the complete image.
        ("internvl", "internvl", json!([4, 28])),
        ("internvl-original", "internvl_chat", json!([4, 28])),
        ("mistral", "mistral", Value::Null),
        ("qwen2", "qwen2", Value::Null),
    ] {
        let folder = panel_folder(name);
        folder.write_cases(&[image_case("odd")]);
        judge(&folder, "out", "1");
        let panel = golden(name).display().to_string();
        let output = folder.run(&["panel", "inspect", &panel, "--format", "json"]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let member = &serde_json::from_str::<Value>(&output.stdout).unwrap()["members"][0];
        assert_eq!(member["kind"], kind);
        let encoder = &member["encoder"];
        let image_tokens = match encoder {
            Value::Null => Value::Null,
            _ => json!([encoder["image_tokens"], encoder["most_image_tokens"]]),
        };
        assert_eq!(image_tokens, expected_tokens, "{name}");
    }
}

/// Returns the error about a checkpoint after a change of one of its JSON files.
fn error_after(name: &str, file: &str, change: impl Fn(&mut Value)) -> String {
    let folder = Folder::empty();
    let checkpoint = folder.path("checkpoint");
    fs::create_dir_all(&checkpoint).unwrap();
    for entry in fs::read_dir(golden(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, checkpoint.join(path.file_name().unwrap())).unwrap();
        }
    }
    let path = checkpoint.join(file);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
    let output = folder.run(&["panel", "inspect", "checkpoint"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    output.stderr
}

#[test]
fn incompatible_resolutions_are_rejected() {
    for name in ["llava-next", "llava-onevision"] {
        let pinpoints = error_after(name, "config.json", |config| {
            config["image_grid_pinpoints"] = json!([[36, 36]]);
        });
        assert!(pinpoints.contains("preprocessor_config.json"), "{pinpoints}");
        assert!(pinpoints.contains("differ from those in config.json"), "{pinpoints}");
    }
    let oblong = error_after("llava-onevision", "preprocessor_config.json", |file| {
        file["image_grid_pinpoints"] = Value::Null;
        file["size"] = json!({"height": 9, "width": 12});
    });
    assert!(oblong.contains("yields 12 x 9 pixels, expected 9 x 9"), "{oblong}");
    let processor = error_after("llava-siglip", "preprocessor_config.json", |file| {
        file["image_processor_type"] = json!("LlavaOnevisionImageProcessorFast");
    });
    assert!(processor.contains("image_processor_type is for llava_onevision"), "{processor}");
    let crop_size = error_after("llava-next", "preprocessor_config.json", |file| {
        file["crop_size"] = json!({"height": 16, "width": 16});
        file["size"] = json!({"shortest_edge": 16});
    });
    assert!(crop_size.contains("yields 16 x 16 pixels, expected 12 x 12"), "{crop_size}");
}

#[test]
fn invalid_numbers_of_tiles_are_rejected() {
    for (name, file, field, range) in [
        ("internvl", "preprocessor_config.json", "max_patches", "1 to 0"),
        ("internvl", "preprocessor_config.json", "min_patches", "0 to 6"),
        ("internvl-original", "config.json", "max_dynamic_patch", "1 to 0"),
    ] {
        let error = error_after(name, file, |config| config[field] = json!(0));
        assert!(error.contains(&format!("the number of tiles is {range}")), "{error}");
        assert!(error.contains(file) && error.contains("hint: "), "{error}");
    }
    let size = error_after("internvl", "preprocessor_config.json", |file| {
        file["size"] = json!({"height": 20, "width": 20});
    });
    assert!(size.contains("yields 20 x 20 pixels, expected 16 x 16"), "{size}");
}
