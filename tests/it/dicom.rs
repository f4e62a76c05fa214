//! DICOM objects. `assets/golden/make_dicom.py` generates them and the expected pixels.

use std::path::{Path, PathBuf};
use std::process::Command;

use acem3_vision::{DecodeError, DecodedImage, Limits, View, Window, WindowSource, decode_view};
use serde_json::{Value, json};

use crate::folder::{Folder, case};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/dicom")
}

fn object(name: &str) -> Vec<u8> {
    std::fs::read(golden().join(name)).unwrap()
}

fn view(window: Option<&str>, frame: Option<u32>) -> View {
    let window = window.map_or(Window::File, |text| text.parse().unwrap());
    View { window, frame }
}

fn see(bytes: &[u8], view: &View) -> Result<DecodedImage, DecodeError> {
    decode_view(bytes, &Limits::default(), view)
}

#[test]
fn dicom_pixels_match_reference() {
    let expected: Vec<Value> = serde_json::from_slice(&object("expected.json")).unwrap();
    assert!(expected.len() > 20);
    for entry in &expected {
        let name = entry["file"].as_str().unwrap();
        let frame = entry["frame"].as_u64().map(|n| u32::try_from(n).unwrap());
        let view = view(entry["window"].as_str(), frame);
        let image = see(&object(name), &view).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((image.width(), image.height()), (12, 10), "{name}");
        let wanted: Vec<i64> = serde_json::from_value(entry["pixels"].clone()).unwrap();
        let wanted: Vec<i64> = match wanted.len() {
            120 => wanted.iter().flat_map(|v| [*v; 3]).collect(),
            _ => wanted,
        };
        assert_eq!(wanted.len(), image.data().len(), "{name}");
        // JPEG decoders differ in rounding.
        let most = if entry["lossy"] == true { 3 } else { 1 };
        let far = wanted
            .iter()
            .zip(image.data())
            .map(|(a, b)| (a - i64::from(*b)).abs())
            .max()
            .unwrap();
        assert!(far <= most, "{name} {view:?}: off by {far}");
    }
}

#[test]
fn frame_and_window_are_reported() {
    let shown = |name: &str, view: &View| *see(&object(name), view).unwrap().shown().unwrap();
    let own = shown("ct.dcm", &View::default());
    assert_eq!(
        serde_json::to_value(own).unwrap(),
        json!({"frame": 1, "frames": 1, "window": {"source": "file", "center": -600.0, "width": 1500.0}})
    );
    let named = shown("ct.dcm", &view(Some("Soft Tissue"), None))
        .window
        .unwrap();
    assert_eq!((named.center, named.width), (Some(40.0), Some(400.0)));
    assert_eq!(shown("frames.dcm", &View::default()).frame, 3);
    assert_eq!(
        shown("frames.dcm", &View::default()).window.unwrap().source,
        WindowSource::Auto
    );
    assert_eq!(
        shown("voi.dcm", &View::default()).window.unwrap().source,
        WindowSource::Table
    );
    assert_eq!(shown("rgb.dcm", &View::default()).window, None);
}

#[test]
fn missing_frames_and_windows_are_rejected() {
    let error = |name: &str, window, frame| {
        see(&object(name), &view(window, frame))
            .unwrap_err()
            .to_string()
    };
    assert!(error("frames.dcm", None, Some(6)).contains("no frame 6, its frames are 1 to 5"));
    assert!(error("ct.dcm", Some("bone"), None).contains("none of its 2 windows"));
    assert!(error("rgb.dcm", Some("40,80"), None).contains("in colour"));
}

#[test]
fn stream_deeper_than_its_samples_is_rejected() {
    let deep = object("jpeg2000.dcm");
    assert!(see(&deep, &View::default()).is_ok());
    // Change bits allocated, bits stored and high bit from 16 to 8 bits; the encoded stream keeps 16 bits.
    let mut shallow = deep;
    for (element, from, to) in [(0, 16, 8), (1, 16, 8), (2, 15, 7)] {
        let mut wanted = vec![0x28, 0, element, 1, b'U', b'S', 2, 0, from, 0];
        let at = shallow.windows(10).position(|w| w == wanted).unwrap();
        wanted[8] = to;
        shallow[at..at + 10].copy_from_slice(&wanted);
    }
    let error = see(&shallow, &View::default()).unwrap_err().to_string();
    assert!(error.contains("cannot be decoded"), "{error}");
}

/// An intact object of an unsupported type is not reported as damaged.
#[test]
fn unsupported_objects_differ_from_damaged_ones() {
    let told = |bytes: &[u8]| see(bytes, &View::default()).unwrap_err().to_string();
    let mut deep = object("jpeg.dcm");
    let frame = deep.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    deep[frame + 4] = 12;
    assert!(told(&deep).contains("unsupported"), "{}", told(&deep));
    assert!(told(&deep).contains("12 bits"), "{}", told(&deep));
    // With the pixels under a private tag, the object has no image.
    let mut report = object("ct.dcm");
    let pixels = report.windows(4).rposition(|w| w == [0xe0, 0x7f, 0x10, 0]);
    report[pixels.unwrap()] = 0xe1;
    assert!(
        told(&report).contains("holds no image"),
        "{}",
        told(&report)
    );
}

#[test]
fn errors_of_damaged_objects_name_no_patient() {
    let mut names: Vec<PathBuf> = std::fs::read_dir(golden())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "dcm"));
    names.sort();
    let limits = Limits {
        bytes: 1 << 20,
        pixels: 1 << 20,
    };
    let mut state = 11_u64;
    let mut next = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % n
    };
    let mut refused = 0;
    for path in &names {
        let whole = std::fs::read(path).unwrap();
        let mut files: Vec<Vec<u8>> = (132..whole.len())
            .step_by(7)
            .map(|n| whole[..n].to_vec())
            .collect();
        for _ in 0..200 {
            let mut file = whole.clone();
            for _ in 0..=next(4) {
                let at = 132 + next(file.len() - 132);
                match next(3) {
                    0 => file[at] = next(256) as u8,
                    1 => file[at] ^= 1 << next(8),
                    _ => file[at..(at + 4).min(whole.len())].fill(0xff),
                }
            }
            files.push(file);
        }
        for file in files {
            let Err(error) = decode_view(&file, &limits, &View::default()) else {
                continue;
            };
            refused += 1;
            let text = error.to_string();
            assert!(
                !text.contains("INVENTED") && text.contains("hint: "),
                "{text}"
            );
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn records_of_dicom_cases_name_no_patient() {
    let folder = Folder::empty();
    let mut cases = Vec::new();
    for (i, name) in ["ct.dcm", "frames.dcm", "rgb.dcm", "torn.dcm"]
        .iter()
        .enumerate()
    {
        let mut bytes = object(if *name == "torn.dcm" { "ct.dcm" } else { name });
        if *name == "torn.dcm" {
            bytes.truncate(bytes.len() - 40);
        }
        std::fs::write(folder.path(&format!("cases/images/{name}")), bytes).unwrap();
        let mut case = case(i);
        case["image"] = json!(format!("images/{name}"));
        cases.push(case);
    }
    folder.write_cases(&cases);
    let first = folder.judge("out", &["--verbose"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let records = folder.records("out");
    assert_eq!(
        records[0]["image"]["view"],
        json!({"frame": 1, "frames": 1, "window": {"source": "file", "center": -600.0, "width": 1500.0}})
    );
    assert_eq!(records[1]["image"]["view"]["frame"], 3);
    assert_eq!(records[3]["reason"], "image");
    let message = records[3]["message"].as_str().unwrap();
    assert!(message.starts_with("images/torn.dcm: "), "{message}");
    // Resuming reuses the verdicts; another frame or window requires new verdicts.
    let before = folder.read("out/records.jsonl");
    assert_eq!(folder.judge("out", &[]).code, 0);
    assert_eq!(folder.read("out/records.jsonl"), before);
    let other = folder.judge("other", &["--window", "-600,400", "--frame", "1"]);
    assert_eq!(other.code, 0, "{}", other.err);
    let others = folder.records("other");
    assert_ne!(others[0]["key"], records[0]["key"]);
    assert_eq!(others[0]["image"]["view"]["window"]["source"], "given");
    assert_eq!(others[1]["image"]["view"]["frame"], 1);
    for text in [
        before,
        folder.read("other/records.jsonl"),
        folder.read("out/run.json"),
        first.err,
        first.out,
    ] {
        assert!(
            !text.contains("INVENTED") && !text.contains("19010203"),
            "{text}"
        );
    }
}

/// Compares with pydicom. `ACEM3_TEST_DICOM` is a folder of objects, such as pydicom's test files, and
/// `ACEM3_TEST_PYTHON` a Python interpreter with pydicom.
#[test]
#[expect(
    clippy::print_stderr,
    reason = "prints rejected objects and the reason for skipped tests"
)]
fn dicom_folder_matches_pydicom() {
    let (folder, python) = (
        std::env::var_os("ACEM3_TEST_DICOM"),
        std::env::var_os("ACEM3_TEST_PYTHON"),
    );
    let (Some(folder), Some(python)) = (folder, python) else {
        eprintln!("skipped: ACEM3_TEST_DICOM or ACEM3_TEST_PYTHON is not set");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let script = golden().with_file_name("make_dicom.py");
    let shown = Command::new(python)
        .arg(script)
        .arg(&folder)
        .arg(out.path())
        .output()
        .unwrap();
    assert!(
        shown.status.success(),
        "{}",
        String::from_utf8_lossy(&shown.stderr)
    );
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    let (mut equal, mut alone, mut refused, mut differing) = (0, 0, Vec::new(), Vec::new());
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let image = match see(&bytes, &View::default()) {
            Ok(image) => image,
            Err(error) => {
                let first = error
                    .to_string()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                refused.push(format!("{name}: {first}"));
                continue;
            }
        };
        let Ok(wanted) = std::fs::read(out.path().join(format!("{name}.raw"))) else {
            alone += 1;
            continue;
        };
        assert_eq!(wanted.len(), image.data().len(), "{name}");
        let far = wanted
            .iter()
            .zip(image.data())
            .map(|(a, b)| a.abs_diff(*b))
            .max()
            .unwrap_or(0);
        let lossy = bytes.windows(20).any(|w| w == b"1.2.840.10008.1.2.4.");
        let most = if lossy { 4 } else { 1 };
        if far > most {
            differing.push(format!("{name}: off by {far}"));
        } else {
            equal += 1;
        }
    }
    eprintln!(
        "{equal} equal, {alone} that the reference does not show, {} refused:",
        refused.len()
    );
    eprintln!("{}", refused.join("\n"));
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(equal > 0);
}
