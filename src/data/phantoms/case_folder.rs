//! Writes phantoms as a case folder for `acem3 judge`: `cases.jsonl` and `images/`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use acem3_experts::{Aspect, Criterion};
use anyhow::{Result, bail};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use super::{Phantom, WrittenResponse, generate_phantom};
use crate::data::cases::{CaseLabels, CaseLine, Response};
use crate::data::phantoms::random_choice::{RandomChoice, stream_rng};
use crate::support::digest::Digest;
use crate::support::files::atomic_file::{self, is_temporary_name};
use crate::support::files::edited_file::EditedFile;
use crate::support::files::folder::{create_folder, list_names, remove_other_files};
use crate::support::files::regular_file;
use crate::support::terminal::interrupt::Interrupt;

/// Marker file of a folder written by this generator.
const MARKER_FILE: &str = "phantoms.json";
/// File of the cases.
const CASES_FILE: &str = "cases.jsonl";
/// Value of the `generator` field of the marker file.
const GENERATOR: &str = "acem3 phantoms";
/// Fictitious model names of the responses.
const MODELS: [&str; 4] = ["aster-7b", "borage-13b", "cistus-8b", "dahlia-34b"];

/// Writes the phantoms `0..n` of a seed to `dir`. Creates the folder if necessary, and replaces an
/// earlier output of this generator. Equal arguments give equal bytes. Returns the `cases.jsonl` of
/// the earlier output under its new name if somebody edited it.
///
/// # Errors
/// If `n` is 0, if the user interrupts, if `dir` contains other files, or if a file
/// cannot be written.
pub fn write_folder(
    dir: &Path,
    n: u64,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Option<EditedFile>> {
    if n == 0 {
        bail!(
            "--count: expected at least 1, found 0\nhint: pass `--count 12` for a small demo folder"
        );
    }
    let earlier = check_folder(dir)?;
    let images = dir.join("images");
    create_folder(&images)?;
    let mut marker = json!({
        "generator": GENERATOR,
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "n": n,
    });
    if earlier.is_none() {
        // Write the marker first, so that an interrupted run can be repeated in the same folder.
        write_marker(dir, &marker)?;
    }
    let mut names = BTreeSet::new();
    let mut lines = String::new();
    for index in 0..n {
        interrupt.bail_if_requested("the cases are not written; run the same command again")?;
        let phantom = generate_phantom(seed, index);
        let id = format!("phantom-{seed}-{index:05}");
        let name = format!("{id}.png");
        phantom.write_image(&images.join(&name))?;
        names.insert(name);
        let mut rng = stream_rng(seed, index, u64::from_le_bytes(*b"models\0\0"));
        let case = case_line(&id, &phantom, &mut rng);
        writeln!(lines, "{}", serde_json::to_string(&case)?)?;
    }
    marker["cases_sha256"] = json!(Digest::sha256(lines.as_bytes()));
    let written = earlier.and_then(|marker| marker["cases_sha256"].as_str()?.parse().ok());
    let cases = dir.join(CASES_FILE);
    let ((), edited) = EditedFile::replace(&cases, written, || {
        write_marker(dir, &marker)?;
        atomic_file::write_atomic(&cases, lines.as_bytes())
    })?;
    // Edited cases of any run may need the other images.
    if !list_names(dir)?.iter().any(|name| EditedFile::is_kept_name(name, CASES_FILE)) {
        remove_other_files(&images, &names)?;
    }
    Ok(edited)
}

fn write_marker(dir: &Path, marker: &Value) -> Result<()> {
    atomic_file::write_atomic(&dir.join(MARKER_FILE), format!("{marker:#}\n").as_bytes())
}

/// Returns true if all of these ids are those of phantoms that this generator wrote to a folder.
/// Cases of other origin that were put into the folder have other ids.
pub fn are_phantoms<'a>(dir: &Path, ids: impl IntoIterator<Item = &'a str>) -> bool {
    let Some(seed) = read_marker(dir).and_then(|marker| marker["seed"].as_u64()) else {
        return false;
    };
    let start = format!("phantom-{seed}-");
    let is_phantom = |id: &str| {
        let index = id.strip_prefix(&start);
        index.is_some_and(|index| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()))
    };
    ids.into_iter().all(is_phantom)
}

/// Reads the marker file of a folder that this generator wrote.
fn read_marker(dir: &Path) -> Option<Value> {
    let marker = regular_file::read(&dir.join(MARKER_FILE)).ok()?;
    let marker: Value = serde_json::from_slice(&marker).ok()?;
    (marker["generator"] == GENERATOR).then_some(marker)
}

/// Returns the marker of an earlier output of this generator, and `None` for an empty or new folder.
/// Returns an error if the folder contains other files.
fn check_folder(dir: &Path) -> Result<Option<Value>> {
    if !dir.exists() {
        return Ok(None);
    }
    let names = list_names(dir)?;
    if names.is_empty() {
        return Ok(None);
    }
    let marker = read_marker(dir);
    let images = dir.join("images");
    let image_names = if images.is_dir() { list_names(&images)? } else { Vec::new() };
    let is_known = |name: &&String| {
        ["images", MARKER_FILE, CASES_FILE].contains(&name.as_str())
            || is_temporary_name(name)
            || EditedFile::is_kept_name(name, CASES_FILE)
    };
    let foreign = names.iter().find(|name| !is_known(name));
    let is_image = |name: &&String| is_generated_name(name) || is_temporary_name(name);
    let foreign = foreign.or_else(|| image_names.iter().find(|name| !is_image(name)));
    let (Some(marker), None) = (marker, foreign) else {
        bail!(
            "--out {}: expected an empty folder or an earlier output of this command, found {}\n\
             hint: choose a folder that does not exist yet",
            dir.display(),
            foreign.or(names.first()).map_or("other files", String::as_str)
        );
    };
    atomic_file::remove_temporary_files(dir)?;
    if images.is_dir() {
        atomic_file::remove_temporary_files(&images)?;
    }
    Ok(Some(marker))
}

/// Returns true if this generator gives an image this name.
fn is_generated_name(name: &str) -> bool {
    let number = name.strip_prefix("phantom-");
    let number = number.and_then(|rest| rest.strip_suffix(".png"));
    number.is_some_and(|n| n.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

/// Converts a phantom to a line of `cases.jsonl`.
fn case_line(id: &str, phantom: &Phantom, rng: &mut ChaCha8Rng) -> CaseLine {
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
        labels: Some(case_labels(&phantom.responses)),
        meta: case_meta(phantom),
    }
}

fn case_labels(responses: &[WrittenResponse; 2]) -> CaseLabels {
    let both = |value: &dyn Fn(&WrittenResponse) -> f64| responses.iter().map(value).collect();
    let mean = |aspect| both(&|r| (r.aspect_mean(aspect) * 10_000.0).round() / 10_000.0);
    let score = |criterion| both(&|r| f64::from(r.score(criterion)));
    CaseLabels {
        final_scores: Some(both(&|r| f64::from(r.conclusion.score))),
        aspects: Aspect::ALL.map(|aspect| (aspect, mean(aspect))).into(),
        criteria: Criterion::ALL.map(|c| (c, score(c))).into(),
    }
}

fn case_meta(phantom: &Phantom) -> Map<String, Value> {
    let scene = &phantom.scene;
    let fields = [
        ("kind", json!(scene.kind.key())),
        ("count", json!(scene.lesion_count())),
        ("side", json!(scene.side.map_or("none", |side| side.key()))),
        ("size", json!(scene.size.map_or("none", |size| size.key()))),
        ("tone", json!(scene.tone.map_or("none", |tone| tone.key()))),
        ("question", json!(phantom.question.kind.key())),
        ("defects", json!(phantom.responses.each_ref().map(defect_keys))),
    ];
    let named = fields.map(|(name, value)| (name.to_owned(), value));
    named.into_iter().collect()
}

/// Returns the keys of a response's defects, including wrong facts and unanswered concerns.
fn defect_keys(response: &WrittenResponse) -> Vec<&'static str> {
    let accuracy = response.score(Criterion::FACTUAL_ACCURACY);
    let fact = match accuracy {
        1 => Some("wrong"),
        3 => Some("half_wrong"),
        _ => None,
    };
    let partly = (response.score(Criterion::ADDRESSING_MULTIPLE_CONCERNS) == 2).then_some("partly");
    let named = response.defects.iter().map(|defect| defect.key());
    fact.into_iter().chain(partly).chain(named).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn make_folder(dir: &Path, n: u64, seed: u64) -> Result<Option<EditedFile>> {
        write_folder(dir, n, seed, &Interrupt::default())
    }

    fn read_files(dir: &Path) -> Vec<Vec<u8>> {
        let mut names = list_names(&dir.join("images")).unwrap();
        names.sort();
        let images = names.iter().map(|name| dir.join("images").join(name));
        let files = images.chain([dir.join("cases.jsonl"), dir.join(MARKER_FILE)]);
        files.map(|file| fs::read(file).unwrap()).collect()
    }

    #[test]
    fn equal_arguments_give_equal_files() {
        let dir = tempfile::tempdir().unwrap();
        make_folder(&dir.path().join("a"), 5, 9).unwrap();
        make_folder(&dir.path().join("b"), 5, 9).unwrap();
        assert_eq!(read_files(&dir.path().join("a")), read_files(&dir.path().join("b")));
    }

    #[test]
    fn earlier_output_is_replaced() {
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
    fn edited_cases_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(make_folder(dir.path(), 2, 9).unwrap(), None);
        assert_eq!(make_folder(dir.path(), 3, 9).unwrap(), None);
        fs::write(dir.path().join(CASES_FILE), "mine").unwrap();
        let edited = make_folder(dir.path(), 2, 9).unwrap().unwrap();
        assert_eq!(fs::read_to_string(edited.path()).unwrap(), "mine");
        assert_eq!(make_folder(dir.path(), 2, 9).unwrap(), None);
        assert_eq!(fs::read_to_string(edited.path()).unwrap(), "mine");
        let cases = fs::read_to_string(dir.path().join(CASES_FILE)).unwrap();
        assert_eq!(cases.lines().count(), 2);
        // The kept cases still have their images.
        assert_eq!(list_names(&dir.path().join("images")).unwrap().len(), 3);
    }

    #[test]
    fn temporary_images_of_a_killed_run_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        make_folder(dir.path(), 1, 9).unwrap();
        let part = dir.path().join("images/phantom-9-00000.png.99d95b3432258471.part");
        fs::write(&part, "half").unwrap();
        make_folder(dir.path(), 1, 9).unwrap();
        assert!(!part.exists());
    }

    #[test]
    fn folder_with_other_files_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = make_folder(dir.path(), 2, 8).unwrap_err().to_string();
        assert!(error.contains("--out") && error.contains("hint:"), "{error}");
        assert_eq!(list_names(dir.path()).unwrap(), ["thesis.txt"]);
    }

    #[test]
    fn foreign_files_among_phantoms_are_kept() {
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
    fn phantoms_are_known_by_marker_and_id() {
        let dir = tempfile::tempdir().unwrap();
        make_folder(dir.path(), 2, 4).unwrap();
        let ids = ["phantom-4-00000", "phantom-4-00001"];
        assert!(are_phantoms(dir.path(), ids));
        for other in ["phantom-5-00000", "phantom-4-", "c1"] {
            assert!(!are_phantoms(dir.path(), [ids[0], other]), "{other}");
        }
        fs::remove_file(dir.path().join(MARKER_FILE)).unwrap();
        assert!(!are_phantoms(dir.path(), ids));
    }

    #[test]
    fn zero_cases_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        assert!(make_folder(&dir.path().join("new"), 0, 1).is_err());
        assert!(!dir.path().join("new").exists());
    }

    #[test]
    fn cases_have_all_fields_of_case_format() {
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
