//! Sentence embeddings compared with sentence-transformers and `SimCSE`.
//! `assets/golden/make_embeddings.py` writes the expected values.

#![expect(clippy::print_stdout, reason = "prints measurements and the reason for skipped tests")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acem3::analysis::metrics::SentenceEncoder;
use acem3::checkpoints::hub::HubArgs;
use acem3::support::device::Placement;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::text_pairs::{generate_pairs, text_golden};

/// Expected embeddings.
#[derive(Deserialize)]
struct Golden {
    texts: Vec<String>,
    entries: Vec<GoldenEntry>,
}

/// A checkpoint with more files, and its embeddings.
#[derive(Deserialize)]
struct GoldenEntry {
    checkpoint: String,
    files: Map<String, Value>,
    embeddings: Vec<Vec<f64>>,
}

fn read_golden() -> Golden {
    let path = text_golden().parent().unwrap().join("embeddings.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Copies a tiny checkpoint to a folder and adds JSON files.
pub(crate) fn write_encoder(
    folder: &Path,
    checkpoint: &str,
    files: &Map<String, Value>,
) -> PathBuf {
    let folder = folder.join(format!("encoder-{}", fs::read_dir(folder).unwrap().count()));
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(text_golden().join(checkpoint)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.to_string()).unwrap();
    }
    folder
}

fn load(folder: &Path) -> anyhow::Result<SentenceEncoder> {
    let hub = HubArgs { offline: true, allow_http: false };
    SentenceEncoder::load(
        "--embeddings",
        &folder.display().to_string(),
        &Placement::cpu(),
        hub,
        true,
    )
}

fn embed(encoder: &SentenceEncoder, texts: &[&str]) -> (Vec<Vec<f64>>, usize) {
    let embeddings = encoder.embed(texts, &mut |_| {}).unwrap();
    (embeddings.vectors, embeddings.truncated)
}

fn assert_near(found: &[Vec<f64>], expected: &[Vec<f64>], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 2e-5, "{what}, text {i}: {found}, not {expected}");
        }
    }
}

#[test]
fn embeddings_match_reference() {
    let golden = read_golden();
    let texts: Vec<&str> = golden.texts.iter().map(String::as_str).collect();
    let dir = tempfile::tempdir().unwrap();
    let mut poolings = Vec::new();
    for entry in &golden.entries {
        let encoder = load(&write_encoder(dir.path(), &entry.checkpoint, &entry.files)).unwrap();
        let (vectors, truncated) = embed(&encoder, &texts);
        let summary = &encoder.summary;
        assert_near(&vectors, &entry.embeddings, &summary.pooling);
        assert_eq!(summary.width, vectors[0].len());
        poolings.push((summary.pooling.clone(), summary.max_tokens, truncated));
    }
    let expected = [
        ("mean of tokens (modules.json)", 20, 2),
        ("first token (modules.json)", 48, 2),
        ("maximum over tokens (modules.json)", 48, 2),
        ("first token and maximum over tokens and mean of tokens (modules.json)", 48, 2),
        ("mean of tokens (modules.json)", 30, 2),
        ("first token through BERT's pooler (as SimCSE; no modules.json)", 48, 2),
    ];
    assert_eq!(poolings, expected.map(|(text, tokens, cut)| (text.to_owned(), tokens, cut)));
}

/// An old repository has a pickle, a vocabulary alone, and other names of the norms.
#[test]
fn old_checkpoint_has_equal_embeddings() {
    let golden = read_golden();
    let texts: Vec<&str> = golden.texts.iter().map(String::as_str).collect();
    let encoder = load(&text_golden().join("bert-old")).unwrap();
    let simcse = golden.entries.last().unwrap();
    assert_near(&embed(&encoder, &texts).0, &simcse.embeddings, "bert-old");
}

#[test]
fn embeddings_do_not_depend_on_other_texts_or_threads() {
    let golden = read_golden();
    let texts: Vec<&str> =
        golden.texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let encoder = load(&text_golden().join("bert")).unwrap();
    let together = embed(&encoder, &texts).0;
    let in_threads = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| embed(&encoder, &texts).0)
    };
    assert_eq!(in_threads(1), together);
    assert_eq!(in_threads(3), together);
    for (text, expected) in texts.iter().zip(&together) {
        assert_eq!(&embed(&encoder, &[text]).0[0], expected);
    }
}

/// A checkpoint that `RobertaModel` wrote without a pooler.
#[test]
fn checkpoint_without_pooler_uses_the_first_token() {
    let encoder = load(&text_golden().join("roberta")).unwrap();
    let expected = "first token (no modules.json and no pooler in the weights)";
    assert_eq!(encoder.summary.pooling, expected);
    let length: f64 = embed(&encoder, &["left lung"]).0[0].iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-9, "{length}");
}

#[test]
fn unsuitable_folders_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = |folder: &Path| format!("{:#}", load(folder).err().unwrap());
    assert!(error(&dir.path().join("none")).contains("no such folder\nhint: "));
    assert!(error(dir.path()).contains("no config.json in the folder\nhint: "));
    let bart = error(&text_golden().join("bart"));
    assert!(bart.contains("bart/config.json: model_type is bart\nhint: "), "{bart}");
    let with = |files: Value| error(&write_encoder(dir.path(), "bert", files.as_object().unwrap()));
    let modules = |path: &str| json!([{"path": "", "type": "a.Transformer"}, {"path": path, "type": "a.Pooling"}]);
    let missing = with(json!({"modules.json": modules("1_Pooling")}));
    assert!(missing.contains("1_Pooling/config.json: cannot be read\nhint: "), "{missing}");
    let outside = with(json!({"modules.json": modules("../elsewhere")}));
    assert!(outside.contains("modules.json: pooling path `../elsewhere`"), "{outside}");
    let other_width = json!({
        "modules.json": modules("1_Pooling"),
        "1_Pooling/config.json": {"embedding_dimension": 768, "pooling_mode": "mean"},
    });
    let width = with(other_width);
    assert!(width.contains("the pooling expects 768 components, the encoder has 24"), "{width}");
    // Sizes that no memory has: the weights in the file decide what is allocated.
    let text = fs::read_to_string(text_golden().join("bert/config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    for (field, value) in [
        ("hidden_size", json!(1_048_576)),
        ("num_hidden_layers", json!(1_048_576)),
        ("vocab_size", json!(1_048_576)),
        ("intermediate_size", json!(u64::MAX)),
        ("max_position_embeddings", json!(0)),
        ("position_embedding_type", json!("relative_key")),
        ("model_type", json!("gpt2")),
    ] {
        let good = config[field].take();
        config[field] = value;
        let message = with(json!({"config.json": config}));
        assert!(message.contains("encoder-"), "{field}: {message}");
        config[field] = good;
    }
    let long = with(json!({"sentence_bert_config.json": {"max_seq_length": 1}}));
    assert!(long.contains("sentence_bert_config.json: max_seq_length: expected"), "{long}");
}

/// Compares a real encoder with sentence-transformers.
#[test]
#[ignore = "ACEM3_PYTHON names a Python with the packages of make_embeddings.py, ACEM3_SENTENCE_ENCODER a folder"]
fn full_size_embeddings_match_reference() {
    let variables = ["ACEM3_PYTHON", "ACEM3_SENTENCE_ENCODER"].map(std::env::var_os);
    let [Some(python), Some(folder)] = variables else {
        println!("skipped: ACEM3_PYTHON or ACEM3_SENTENCE_ENCODER is not set");
        return;
    };
    let mut texts: Vec<String> = generate_pairs(9).into_iter().flatten().collect();
    texts.push("The response claims the left lung, and the image shows it. ".repeat(30));
    texts.push("left lung ".repeat(400));
    let script = text_golden().parent().unwrap().join("make_embeddings.py");
    let mut command = Command::new(python);
    command.arg(script).arg("--encoder").arg(&folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let input = serde_json::to_vec(&texts).unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let expected: Vec<Vec<f64>> = serde_json::from_slice(&output.stdout).unwrap();
    let encoder = load(Path::new(&folder)).unwrap();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (vectors, truncated) = embed(&encoder, &texts);
    let pairs = vectors.iter().flatten().zip(expected.iter().flatten());
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!(
        "{}: {} texts, {truncated} truncated to {} tokens, largest difference {difference:e}",
        encoder.summary.model,
        texts.len(),
        encoder.summary.max_tokens
    );
    assert_eq!(vectors.iter().flatten().count(), expected.iter().flatten().count());
    assert!(difference < 1e-4);
}
