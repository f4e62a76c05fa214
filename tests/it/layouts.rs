//! Checkpoints of every layout judged with by the program itself, images of all sizes among them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::folder::Folder;

const IMAGES: [&str; 6] = ["wide", "tall", "small", "square", "odd", "strip"];

fn golden(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("assets/golden/checkpoints").join(name)
}

/// A folder with a case about each image and a panel of one checkpoint that is asked in few words.
fn folder(checkpoint: &str) -> Folder {
    let folder = Folder::empty();
    for image in IMAGES {
        let file = format!("images/{image}.png");
        fs::copy(golden(&file), folder.path(&format!("cases/{file}"))).unwrap();
    }
    let members = [
        "expression",
        "medical_knowledge",
        "patient_relevance",
        "conclusion",
    ];
    let members = members.map(|m| format!("{m} = {:?}\n", golden(checkpoint)));
    let panel = format!(
        "schema = 1\nrubric = \"names\"\n[members]\n{}",
        members.concat()
    );
    folder.write("few-words.toml", &panel);
    folder
}

fn case(image: &str) -> Value {
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
        "few-words.toml",
        "--batch-size",
        batch,
        "--scores-only",
        "--single-order",
    ];
    let said = folder.run(&args);
    assert_eq!(said.code, 0, "{}", said.err);
    let records = folder.records(out);
    for record in &records {
        assert_eq!(record["status"], "judged", "{record}");
    }
    records
}

#[test]
fn tiles_of_images_of_all_sizes_are_judged_alike_in_every_batch_and_order() {
    let folder = folder("llava-next");
    let mut cases: Vec<Value> = IMAGES.map(case).into();
    folder.write_cases(&cases);
    judge(&folder, "one", "1");
    judge(&folder, "many", "6");
    assert_eq!(
        folder.read("one/records.jsonl"),
        folder.read("many/records.jsonl")
    );
    let mut forth = folder.records("one");
    cases.reverse();
    folder.write_cases(&cases);
    let back = judge(&folder, "back", "4");
    forth.reverse();
    assert_eq!(forth.len(), IMAGES.len());
    for (one, other) in forth.iter().zip(&back) {
        assert_eq!(one["case"], other["case"]);
        assert_eq!(one["orders"], other["orders"], "{}", one["case"]);
    }
    // What is seen moves what is written: no two images have the same probabilities.
    for (i, one) in back.iter().enumerate() {
        assert!(
            back.iter()
                .take(i)
                .all(|other| other["orders"] != one["orders"])
        );
    }
}

#[test]
fn every_layout_judges_and_is_inspected() {
    for (name, kind, tokens) in [
        ("llava-next", "llava_next", json!([9, 51])),
        ("llava-siglip", "llava", json!([16, null])),
        ("llava-mistral", "llava_mistral", json!([16, null])),
        ("mistral", "mistral", Value::Null),
        ("qwen2", "qwen2", Value::Null),
    ] {
        let folder = folder(name);
        folder.write_cases(&[case("odd")]);
        judge(&folder, "out", "1");
        let panel = golden(name).display().to_string();
        let said = folder.run(&["panel", "inspect", &panel, "--format", "json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let member = &serde_json::from_str::<Value>(&said.out).unwrap()["members"][0];
        assert_eq!(member["kind"], kind);
        let encoder = &member["encoder"];
        let found = match encoder {
            Value::Null => Value::Null,
            _ => json!([encoder["image_tokens"], encoder["most_image_tokens"]]),
        };
        assert_eq!(found, tokens, "{name}");
    }
}

#[test]
fn resolutions_that_do_not_fit_are_named() {
    let folder = Folder::empty();
    let damaged = |file: &str, change: &dyn Fn(&mut Value)| {
        let to = folder.path("checkpoint");
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(golden("llava-next")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
        let path = to.join(file);
        let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, value.to_string()).unwrap();
        let said = folder.run(&["panel", "inspect", "checkpoint"]);
        assert_eq!(said.code, 2, "{}", said.out);
        said.err
    };
    let differ = damaged("config.json", &|config| {
        config["image_grid_pinpoints"] = json!([[12, 12]]);
    });
    assert!(differ.contains("preprocessor_config.json"), "{differ}");
    assert!(
        differ.contains("differ from those in config.json"),
        "{differ}"
    );
    let other = damaged("preprocessor_config.json", &|file| {
        file["crop_size"] = json!({"height": 16, "width": 16});
        file["size"] = json!({"shortest_edge": 16});
    });
    assert!(
        other.contains("yields 16 x 16 pixels, expected 12 x 12"),
        "{other}"
    );
}
