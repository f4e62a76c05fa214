//! Published checkpoints: configurations, and GGUF files.

use std::collections::BTreeMap;

use acem3::analysis::metrics::{AnswerScores, BertSettings, LearnedMetrics, MetricAnswer};
use acem3::checkpoints::hub::{HubArgs, HubDownloads};
use acem3::checkpoints::panel::files::PanelFiles;
use acem3::judging::panel::inspect;
use acem3::support::device::Placement;
use acem3_vision::published::{EncoderFiles, read_any_res, read_dynamic_tiling};
use acem3_vision::{DynamicTiles, ImageProcessor, PublishedEncoder, Tiling};
use serde_json::Value;

use super::bundle::Bundle;

/// Loads a checkpoint with valid weights and tokenizer. The input is its `config.json`, the
/// configuration of the image processor, and the index of the weights.
pub fn read_checkpoint(bytes: &[u8]) -> bool {
    let names = ["config.json", "preprocessor_config.json", "model.safetensors.index.json"];
    let weights = "model-0000";
    let files =
        ["1-of-00002.safetensors", "2-of-00002.safetensors"].map(|end| format!("{weights}{end}"));
    let files = [&files[0], &files[1], "tokenizer.json"];
    let bundle = Bundle::of_parts(&names, bytes).with_golden("checkpoints/llava", &files, "");
    let panel = PanelFiles::Checkpoint(bundle.folder().to_owned());
    inspect(&panel, &Placement::cpu(), HubDownloads::default()).is_ok()
}

/// Loads an adapter of PEFT over a valid base. The input is its `adapter_config.json` and its weights.
pub fn read_adapter(bytes: &[u8]) -> bool {
    let names = ["adapter_config.json", "adapter_model.safetensors"];
    let base = [
        "config.json",
        "preprocessor_config.json",
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "tokenizer.json",
    ];
    let file = "schema = 1\nbase = \"base\"\n[members]\nexpression = \".\"\nmedical_knowledge = \".\"\n\
                patient_relevance = \".\"\nconclusion = \".\"\n";
    let bundle = Bundle::of_parts(&names, bytes).with_golden("checkpoints/llava", &base, "base");
    bundle.with_file("members.toml", file.as_bytes()).read("members.toml", |path| {
        let panel = PanelFiles::Members(path.to_owned());
        inspect(&panel, &Placement::cpu(), HubDownloads::default()).is_ok()
    })
}

/// Loads a GGUF file.
pub fn read_gguf(bytes: &[u8]) -> bool {
    Bundle::of_file("a.gguf", bytes).read("a.gguf", |path| {
        let panel = PanelFiles::Checkpoint(path.to_owned());
        inspect(&panel, &Placement::cpu(), HubDownloads::default()).is_ok()
    })
}

/// Reads the configurations of an image encoder: `config.json`, `open_clip_config.json` and
/// `preprocessor_config.json`.
pub fn read_encoder(bytes: &[u8]) -> bool {
    let names = ["config.json", "open_clip_config.json", "preprocessor_config.json"];
    let bundle = Bundle::of_parts(&names, bytes);
    let json = |name: &str| -> Option<Value> {
        serde_json::from_slice(&std::fs::read(bundle.folder().join(name)).ok()?).ok()
    };
    let [config, open_clip_config, preprocessor_config] = names.map(json);
    let tiles = preprocessor_config.as_ref().and_then(|file| read_any_res(file).ok());
    if let Some(tiles) = &tiles {
        tiles.best_resolution(640, 480);
    }
    let dynamic = preprocessor_config.as_ref().and_then(|file| read_dynamic_tiling(file).ok());
    if let Some(Tiling::Dynamic { min_tiles, max_tiles, thumbnail }) = dynamic {
        let processor = ImageProcessor::square(448);
        if let Ok(tiles) = DynamicTiles::new(processor, min_tiles, max_tiles, thumbnail) {
            tiles.grid(640, 480);
        }
    }
    let files = EncoderFiles {
        config: config.as_ref(),
        open_clip_config: open_clip_config.as_ref(),
        preprocessor_config: preprocessor_config.as_ref(),
    };
    PublishedEncoder::from_files(&files).is_ok() || tiles.is_some()
}

/// Scores an answer with a language model of valid weights. The input is its `config.json`,
/// `tokenizer_config.json`, `tokenizer.json` and `vocab.txt`.
pub fn read_text_model(bytes: &[u8]) -> bool {
    let names = ["config.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt"];
    let bundle =
        Bundle::of_parts(&names, bytes).with_golden("text/bert", &["model.safetensors"], "");
    let mut metrics = LearnedMetrics {
        placement: Placement::cpu(),
        batch_size: 2,
        hub: HubArgs { offline: true, allow_http: false },
        quiet: true,
        progress: &mut |_, _, _| {},
        settings: BTreeMap::new(),
        notes: Vec::new(),
    };
    let answer = MetricAnswer {
        case: "1".to_owned(),
        line: 1,
        model: "a".to_owned(),
        cluster: "1".to_owned(),
        text: "A cyst in the left lung".to_owned(),
        reference: Some("no cyst, \u{e9}\u{4e2d}".to_owned()),
        is_closed: None,
    };
    let settings = BertSettings {
        model: bundle.folder().display().to_string(),
        layer: Some(1),
        uses_idf: false,
        baseline: None,
    };
    metrics.add_bert_score(&[answer], &mut [AnswerScores::default()], &settings).is_ok()
}
