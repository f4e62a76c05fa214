//! Phantoms as a folder of cases that `judge` reads: `cases.jsonl` and `images/`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use acem3_experts::{Aspect, Criterion};
use anyhow::{Context, Result, bail};
use image::ImageFormat;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use super::{Phantom, WrittenResponse, phantom};
use crate::data::cases::{CaseLabels, CaseLine, Response};
use crate::data::phantoms::random_choice::{RandomChoice, dice};
use crate::support::files::atomic_file;
use crate::support::files::folder::{create_folder, list_names};
use crate::support::terminal::interrupt::Interrupt;

/// The file that marks a folder as this generator's.
const MARK: &str = "phantoms.json";
/// What the mark's `generator` field says.
const GENERATOR: &str = "acem3 phantoms";
/// The names under which the two responses of a case appear; they stand for no real model.
const MODELS: [&str; 4] = ["aster-7b", "borage-13b", "cistus-8b", "dahlia-34b"];

/// Writes the phantoms `0..n` of a seed into `dir`, which is made if need be. Equal arguments
/// give equal bytes. An earlier output of this generator in `dir` is replaced.
///
/// # Errors
/// When `n` is 0, when the person asked to stop, when `dir` holds anything that this generator did not write, and when a file
/// cannot be written.
pub fn folder(dir: &Path, n: u64, seed: u64, interrupt: &Interrupt) -> Result<()> {
    if n == 0 {
        bail!("--count: expected at least 1, got 0\nhint: `--count 12` makes a small demo folder");
    }
    clear(dir)?;
    let images = dir.join("images");
    create_folder(&images)?;
    // The mark comes first, so that a broken-off run can be repeated into the same folder.
    let mark = json!({
        "generator": GENERATOR,
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "n": n,
    });
    atomic_file::write(&dir.join(MARK), format!("{mark:#}\n").as_bytes())?;
    let mut lines = String::new();
    for index in 0..n {
        interrupt.check("the folder is not complete, and the same command makes it anew")?;
        let phantom = phantom(seed, index);
        let id = format!("phantom-{seed}-{index:05}");
        let path = images.join(format!("{id}.png"));
        phantom
            .image
            .save_with_format(&path, ImageFormat::Png)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let mut rng = dice(seed, index, u64::from_le_bytes(*b"models\0\0"));
        let case = case(&id, &phantom, &mut rng);
        writeln!(lines, "{}", serde_json::to_string(&case)?)?;
    }
    atomic_file::write(&dir.join("cases.jsonl"), lines.as_bytes())
}

/// Makes room: refuses what is not this generator's, removes what is.
fn clear(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    let names = list_names(dir)?;
    if names.is_empty() {
        return Ok(());
    }
    let mark = fs::read(dir.join(MARK)).ok();
    let mark = mark.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let ours = mark.is_some_and(|mark| mark["generator"] == GENERATOR);
    let images = dir.join("images");
    let drawn = if images.is_dir() {
        list_names(&images)?
    } else {
        Vec::new()
    };
    let known = |name: &&String| {
        let part = name.strip_suffix(".part").unwrap_or(name);
        part == "images"
            || [MARK, "cases.jsonl"]
                .iter()
                .any(|file| file.starts_with(part))
    };
    let strange = names.iter().find(|name| !known(name));
    let strange = strange.or_else(|| drawn.iter().find(|name| !is_drawn(name)));
    if !ours || strange.is_some() {
        bail!(
            "--out {}: expected an empty folder or an earlier output of this command, found {}\n\
             hint: choose a folder that does not exist yet",
            dir.display(),
            strange
                .or(names.first())
                .map_or("other files", String::as_str)
        );
    }
    for name in &drawn {
        let path = images.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Whether an image is named as this generator names its own.
fn is_drawn(name: &str) -> bool {
    let number = name.strip_prefix("phantom-");
    let number = number.and_then(|rest| rest.strip_suffix(".png"));
    number.is_some_and(|n| n.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

/// One line of `cases.jsonl`.
fn case(id: &str, phantom: &Phantom, rng: &mut ChaCha8Rng) -> CaseLine {
    let first = rng.below(MODELS.len());
    let second = (first + 1 + rng.below(MODELS.len() - 1)) % MODELS.len();
    let models = [first, second].map(|i| MODELS.get(i).copied().unwrap_or_default());
    let responses = models.iter().zip(&phantom.responses);
    let responses = responses.map(|(model, response)| Response {
        model: (*model).to_owned(),
        text: response.text.clone(),
    });
    CaseLine {
        id: id.to_owned(),
        image: Some(format!("images/{id}.png")),
        question: phantom.question.text.clone(),
        responses: responses.collect(),
        reference: Some(phantom.reference.clone()),
        labels: Some(labels(&phantom.responses)),
        meta: meta(phantom),
    }
}

fn labels(responses: &[WrittenResponse; 2]) -> CaseLabels {
    let both = |value: &dyn Fn(&WrittenResponse) -> f64| responses.iter().map(value).collect();
    let mean = |aspect| both(&|r| (r.aspect(aspect) * 10_000.0).round() / 10_000.0);
    let score = |criterion| both(&|r| f64::from(r.score(criterion)));
    CaseLabels {
        last: Some(both(&|r| f64::from(r.conclusion.score))),
        aspects: Aspect::ALL.map(|aspect| (aspect, mean(aspect))).into(),
        criteria: Criterion::ALL.map(|c| (c, score(c))).into(),
    }
}

fn meta(phantom: &Phantom) -> Map<String, Value> {
    let scene = &phantom.scene;
    let fields = [
        ("kind", json!(scene.kind.key())),
        ("count", json!(scene.count())),
        ("side", json!(scene.side.map_or("none", |side| side.key()))),
        ("size", json!(scene.size.map_or("none", |size| size.key()))),
        ("tone", json!(scene.tone.map_or("none", |tone| tone.key()))),
        ("question", json!(phantom.question.kind.key())),
        ("defects", json!(phantom.responses.each_ref().map(defects))),
    ];
    let named = fields.map(|(name, value)| (name.to_owned(), value));
    named.into_iter().collect()
}

/// What is wrong with a response, its facts included.
fn defects(response: &WrittenResponse) -> Vec<&'static str> {
    let accuracy = response.score(Criterion::FactualAccuracy);
    let fact = match accuracy {
        1 => Some("wrong"),
        3 => Some("half_wrong"),
        _ => None,
    };
    let partly = (response.score(Criterion::AddressingMultipleConcerns) == 2).then_some("partly");
    let named = response.defects.iter().map(|defect| defect.key());
    fact.into_iter().chain(partly).chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_folder(dir: &Path, n: u64, seed: u64) -> Result<()> {
        folder(dir, n, seed, &Interrupt::default())
    }

    fn bytes(dir: &Path) -> Vec<Vec<u8>> {
        let mut names = list_names(&dir.join("images")).unwrap();
        names.sort();
        let images = names.iter().map(|name| dir.join("images").join(name));
        let files = images.chain([dir.join("cases.jsonl"), dir.join(MARK)]);
        files.map(|file| fs::read(file).unwrap()).collect()
    }

    #[test]
    fn equal_arguments_give_equal_files() {
        let dir = tempfile::tempdir().unwrap();
        make_folder(&dir.path().join("a"), 5, 9).unwrap();
        make_folder(&dir.path().join("b"), 5, 9).unwrap();
        assert_eq!(bytes(&dir.path().join("a")), bytes(&dir.path().join("b")));
    }

    #[test]
    fn an_earlier_output_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        make_folder(dir.path(), 5, 9).unwrap();
        make_folder(dir.path(), 2, 8).unwrap();
        let mut images = list_names(&dir.path().join("images")).unwrap();
        images.sort();
        assert_eq!(images, ["phantom-8-00000.png", "phantom-8-00001.png"]);
        let cases = fs::read_to_string(dir.path().join("cases.jsonl")).unwrap();
        assert_eq!(cases.lines().count(), 2);
    }

    #[test]
    fn a_folder_of_something_else_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = make_folder(dir.path(), 2, 8).unwrap_err().to_string();
        assert!(
            error.contains("--out") && error.contains("hint:"),
            "{error}"
        );
        assert_eq!(list_names(dir.path()).unwrap(), ["thesis.txt"]);
    }

    #[test]
    fn what_somebody_put_among_the_phantoms_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        make_folder(dir.path(), 1, 3).unwrap();
        for name in ["notes.txt", "images/phantom-mine.png"] {
            let path = dir.path().join(name);
            fs::write(&path, "mine").unwrap();
            let error = make_folder(dir.path(), 1, 4).unwrap_err().to_string();
            let name = name.rsplit('/').next().unwrap();
            assert!(error.contains(name) && error.contains("hint:"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
            fs::remove_file(path).unwrap();
        }
        make_folder(dir.path(), 1, 4).unwrap();
    }

    #[test]
    fn no_cases_at_all_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(make_folder(&dir.path().join("new"), 0, 1).is_err());
        assert!(!dir.path().join("new").exists());
    }

    #[test]
    fn a_case_has_the_fields_of_the_case_form() {
        let dir = tempfile::tempdir().unwrap();
        make_folder(dir.path(), 3, 4).unwrap();
        let cases = fs::read_to_string(dir.path().join("cases.jsonl")).unwrap();
        for line in cases.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let image = case["image"].as_str().unwrap();
            assert!(dir.path().join(image).is_file());
            assert_ne!(case["responses"][0]["model"], case["responses"][1]["model"]);
            assert_eq!(case["labels"]["final"].as_array().unwrap().len(), 2);
            assert_eq!(case["labels"]["aspects"].as_object().unwrap().len(), 3);
            assert_eq!(case["labels"]["criteria"].as_object().unwrap().len(), 10);
        }
    }
}
