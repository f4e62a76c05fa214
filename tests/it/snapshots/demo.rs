//! Outputs of all commands on the demo, which the embedded panel judges once.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Snapshots, transcript};
use crate::folder::Folder;

/// Names of snapshots and their commands, in the order in which they run.
///
/// The scores of the embedded panel on the demo equal the labels, so statistics that need
/// disagreement run on `other`, the records of another judge. Few bootstrap resamples keep the test
/// short.
const COMMANDS: &[(&str, &str)] = &[
    ("judge", "judge assets/demo --out demo"),
    ("judge-again-json", "judge assets/demo --out demo --format json"),
    ("judge-another", "judge assets/demo --out other --panel scripted:"),
    ("agree", "agree demo --resamples 100"),
    ("agree-two-raters", "agree other --labels ratings.csv --resamples 100"),
    ("agree-markdown", "agree other --target final --format markdown --resamples 100"),
    ("agree-csv", "agree other --target final --format csv --resamples 100"),
    ("agree-by-kind", "agree other --target medical_knowledge --group-by kind --resamples 100"),
    ("agree-against", "agree demo --target final --against other --resamples 100"),
    ("rank", "rank demo"),
    ("rank-markdown", "rank other --format markdown"),
    ("rank-csv", "rank other --format csv"),
    ("audit", "audit demo"),
    ("audit-markdown", "audit other --format markdown"),
    ("audit-csv", "audit other --format csv"),
    ("audit-of-cases", "audit assets/demo --panel scripted: --resamples 100 --out audit.json"),
    ("audit-that-fails", "audit other --max-asymmetry 0.01"),
    ("calibrate-fit", "calibrate fit other --resamples 100 --out map.json"),
    ("calibrate-fit-linear", "calibrate fit other --method linear --resamples 100"),
    ("calibrate-fit-markdown", "calibrate fit other --resamples 100 --format markdown"),
    ("calibrate-fit-csv", "calibrate fit other --resamples 100 --format csv"),
    (
        "calibrate-apply",
        "calibrate apply other --calibration map.json --resamples 100 --out mapped.jsonl",
    ),
    (
        "calibrate-apply-csv",
        "calibrate apply other --calibration map.json --resamples 100 --format csv",
    ),
    ("report-markdown", "report demo --resamples 100 --format markdown"),
    ("report-csv", "report demo --resamples 100 --format csv"),
    (
        "report-of-two-judges",
        "report demo other --audit audit.json --calibration map.json --resamples 100 \
         --format markdown",
    ),
    ("report-to-a-file", "report demo --resamples 100 --out demo.md"),
    ("metrics", "metrics assets/demo"),
    ("metrics-markdown", "metrics assets/demo --metrics f1,bleu --format markdown"),
    ("metrics-csv", "metrics demo --metrics f1,rouge --format csv"),
    ("panel-inspect", "panel inspect"),
    ("panel-inspect-json", "panel inspect --format json"),
    ("data-phantoms", "data phantoms --out toy --count 3"),
];

/// Copies the demo to the path that the README uses.
fn copy_demo(folder: &Folder) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo");
    for part in ["", "images"] {
        let to = folder.path("assets/demo").join(part);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(demo.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
}

/// Writes a label file of two raters who disagree on every third response.
fn write_ratings(folder: &Folder) {
    let text = folder.read("assets/demo/cases.jsonl");
    let mut table = "case,model,rater,score\n".to_owned();
    for (i, line) in text.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        for (r, response) in case["responses"].as_array().unwrap().iter().enumerate() {
            let (id, model) = (case["id"].as_str().unwrap(), response["model"].as_str().unwrap());
            let score = case["labels"]["final"][r].as_f64().unwrap().round();
            let lower = if (2 * i + r) % 3 == 0 { (score - 1.0).max(0.0) } else { score };
            let _ = write!(table, "{id},{model},first,{score}\n{id},{model},second,{lower}\n");
        }
    }
    folder.write("ratings.csv", &table);
}

#[test]
fn demo_outputs_match_snapshots() {
    let folder = Folder::empty();
    copy_demo(&folder);
    write_ratings(&folder);
    let mut snapshots = Snapshots::open("demo");
    for (name, command) in COMMANDS {
        snapshots.check(name, &transcript(&folder, command));
    }
    snapshots.finish();
}
