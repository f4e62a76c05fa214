//! DICOM objects. `assets/golden/make_dicom.py` generates them and the expected pixels. Their
//! patient is `INVENTED^PERSON`, born on 1901-02-03.

use std::path::{Path, PathBuf};
use std::process::Command;

use acem3_vision::{
    DecodeError, DecodedImage, DicomView, DicomWindow, ImageLimits, WindowSource, decode_with_view,
};
use serde_json::{Value, json};

use crate::folder::{Folder, valid_case};

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/dicom")
}

fn read_golden(name: &str) -> Vec<u8> {
    std::fs::read(golden_folder().join(name)).unwrap()
}

fn view(window: Option<&str>, frame: Option<u32>) -> DicomView {
    let window = window.map_or(DicomWindow::File, |text| text.parse().unwrap());
    DicomView { window, frame }
}

fn decode(bytes: &[u8], view: &DicomView) -> Result<DecodedImage, DecodeError> {
    decode_with_view(bytes, &ImageLimits::default(), view)
}

#[test]
fn dicom_pixels_match_reference() {
    let expected: Vec<Value> = serde_json::from_slice(&read_golden("expected.json")).unwrap();
    assert!(expected.len() > 20);
    for entry in &expected {
        let name = entry["file"].as_str().unwrap();
        let frame = entry["frame"].as_u64().map(|n| u32::try_from(n).unwrap());
        let view = view(entry["window"].as_str(), frame);
        let image =
            decode(&read_golden(name), &view).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((image.width(), image.height()), (12, 10), "{name}");
        let pixels: Vec<i64> = serde_json::from_value(entry["pixels"].clone()).unwrap();
        let pixels: Vec<i64> = match pixels.len() {
            120 => pixels.iter().flat_map(|v| [*v; 3]).collect(),
            _ => pixels,
        };
        assert_eq!(pixels.len(), image.data().len(), "{name}");
        // JPEG decoders differ in rounding.
        let tolerance = if entry["lossy"] == true { 3 } else { 1 };
        let max_difference =
            pixels.iter().zip(image.data()).map(|(a, b)| (a - i64::from(*b)).abs()).max().unwrap();
        assert!(max_difference <= tolerance, "{name} {view:?}: off by {max_difference}");
    }
}

#[test]
fn frame_and_window_are_reported() {
    let applied_view = |name: &str, view: &DicomView| {
        *decode(&read_golden(name), view).unwrap().applied_view().unwrap()
    };
    let default_view = applied_view("ct.dcm", &DicomView::default());
    assert_eq!(
        serde_json::to_value(default_view).unwrap(),
        json!({"frame": 1, "frames": 1, "window": {"source": "file", "center": -600.0, "width": 1500.0}})
    );
    let named_window = applied_view("ct.dcm", &view(Some("Soft Tissue"), None)).window.unwrap();
    assert_eq!((named_window.center, named_window.width), (Some(40.0), Some(400.0)));
    assert_eq!(applied_view("frames.dcm", &DicomView::default()).frame, 3);
    assert_eq!(
        applied_view("frames.dcm", &DicomView::default()).window.unwrap().source,
        WindowSource::Auto
    );
    assert_eq!(
        applied_view("voi.dcm", &DicomView::default()).window.unwrap().source,
        WindowSource::Table
    );
    assert_eq!(applied_view("rgb.dcm", &DicomView::default()).window, None);
}

#[test]
fn missing_frames_and_windows_are_rejected() {
    let error = |name: &str, window, frame| {
        decode(&read_golden(name), &view(window, frame)).unwrap_err().to_string()
    };
    assert!(error("frames.dcm", None, Some(6)).contains("no frame 6, expected 1 to 5"));
    assert!(error("ct.dcm", Some("bone"), None).contains("none of the 2 windows"));
    assert!(error("rgb.dcm", Some("40,80"), None).contains("a colour image has no window"));
}

#[test]
fn encoded_stream_with_more_bits_than_declared_is_rejected() {
    let original = read_golden("jpeg2000.dcm");
    assert!(decode(&original, &DicomView::default()).is_ok());
    // Change bits allocated, bits stored and high bit from 16 to 8 bits; the encoded stream keeps
    // 16 bits.
    let mut changed = original;
    for (element, old, new) in [(0, 16, 8), (1, 16, 8), (2, 15, 7)] {
        let mut encoded = vec![0x28, 0, element, 1, b'U', b'S', 2, 0, old, 0];
        let start = changed.windows(10).position(|w| w == encoded).unwrap();
        encoded[8] = new;
        changed[start..start + 10].copy_from_slice(&encoded);
    }
    let error = decode(&changed, &DicomView::default()).unwrap_err().to_string();
    assert!(error.contains("cannot be decoded"), "{error}");
}

#[test]
fn unsupported_object_is_not_reported_as_damaged() {
    let error = |bytes: &[u8]| decode(bytes, &DicomView::default()).unwrap_err().to_string();
    let mut twelve_bit_jpeg = read_golden("jpeg.dcm");
    let frame = twelve_bit_jpeg.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    twelve_bit_jpeg[frame + 4] = 12;
    let message = error(&twelve_bit_jpeg);
    assert!(message.contains("unsupported"), "{message}");
    assert!(message.contains("12 bits"), "{message}");
    // With the pixels under a private tag, the object has no image.
    let mut without_image = read_golden("ct.dcm");
    let pixels = without_image.windows(4).rposition(|w| w == [0xe0, 0x7f, 0x10, 0]);
    without_image[pixels.unwrap()] = 0xe1;
    let message = error(&without_image);
    assert!(message.contains("contains no image"), "{message}");
}

#[test]
fn errors_of_damaged_objects_name_no_patient() {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(golden_folder()).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "dcm"));
    paths.sort();
    let limits = ImageLimits { bytes: 1 << 20, pixels: 1 << 20 };
    let mut state = 11_u64;
    let mut next = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % n
    };
    let mut rejected = 0;
    for path in &paths {
        let original = std::fs::read(path).unwrap();
        let mut files: Vec<Vec<u8>> =
            (132..original.len()).step_by(7).map(|length| original[..length].to_vec()).collect();
        for _ in 0..200 {
            let mut file = original.clone();
            for _ in 0..=next(4) {
                let position = 132 + next(file.len() - 132);
                match next(3) {
                    0 => file[position] = next(256) as u8,
                    1 => file[position] ^= 1 << next(8),
                    _ => file[position..(position + 4).min(original.len())].fill(0xff),
                }
            }
            files.push(file);
        }
        for file in files {
            let Err(error) = decode_with_view(&file, &limits, &DicomView::default()) else {
                continue;
            };
            rejected += 1;
            let text = error.to_string();
            assert!(!text.contains("INVENTED") && text.contains("hint: "), "{text}");
        }
    }
    assert!(rejected > 500, "{rejected}");
}

#[test]
fn records_of_dicom_cases_name_no_patient() {
    let folder = Folder::empty();
    let mut cases = Vec::new();
    for (i, name) in ["ct.dcm", "frames.dcm", "rgb.dcm", "truncated.dcm"].iter().enumerate() {
        let mut bytes = read_golden(if *name == "truncated.dcm" { "ct.dcm" } else { name });
        if *name == "truncated.dcm" {
            bytes.truncate(bytes.len() - 40);
        }
        std::fs::write(folder.path(&format!("cases/images/{name}")), bytes).unwrap();
        let mut case = valid_case(i);
        case["image"] = json!(format!("images/{name}"));
        cases.push(case);
    }
    folder.write_cases(&cases);
    let first_run = folder.judge("out", &["--verbose"]);
    assert_eq!(first_run.exit_code, 0, "{}", first_run.stderr);
    let records = folder.records("out");
    assert_eq!(
        records[0]["image"]["view"],
        json!({"frame": 1, "frames": 1, "window": {"source": "file", "center": -600.0, "width": 1500.0}})
    );
    assert_eq!(records[1]["image"]["view"]["frame"], 3);
    assert_eq!(records[3]["reason"], "image");
    let message = records[3]["message"].as_str().unwrap();
    assert!(message.starts_with("images/truncated.dcm: "), "{message}");
    // Resuming reuses the verdicts; another frame or window requires new verdicts.
    let before = folder.read("out/records.jsonl");
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    assert_eq!(folder.read("out/records.jsonl"), before);
    let other_run = folder.judge("other", &["--window", "-600,400", "--frame", "1"]);
    assert_eq!(other_run.exit_code, 0, "{}", other_run.stderr);
    let other_records = folder.records("other");
    assert_ne!(other_records[0]["key"], records[0]["key"]);
    assert_eq!(other_records[0]["image"]["view"]["window"]["source"], "given");
    assert_eq!(other_records[1]["image"]["view"]["frame"], 1);
    for text in [
        before,
        folder.read("other/records.jsonl"),
        folder.read("out/run.json"),
        first_run.stderr,
        first_run.stdout,
    ] {
        assert!(!text.contains("INVENTED") && !text.contains("19010203"), "{text}");
    }
}

/// Compares with pydicom. `ACEM3_TEST_DICOM` is a folder of objects, such as pydicom's test files,
/// and `ACEM3_TEST_PYTHON` a Python interpreter with pydicom.
#[test]
#[expect(clippy::print_stderr, reason = "prints rejected objects and the reason for skipped tests")]
fn dicom_folder_matches_pydicom() {
    let (folder, python) =
        (std::env::var_os("ACEM3_TEST_DICOM"), std::env::var_os("ACEM3_TEST_PYTHON"));
    let (Some(folder), Some(python)) = (folder, python) else {
        eprintln!("skipped: ACEM3_TEST_DICOM or ACEM3_TEST_PYTHON is not set");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let script = golden_folder().with_file_name("make_dicom.py");
    let output = Command::new(python).arg(script).arg(&folder).arg(out.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    let (mut equal, mut without_reference) = (0, 0);
    let (mut rejected, mut differing) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let image = match decode(&bytes, &DicomView::default()) {
            Ok(image) => image,
            Err(error) => {
                let first_line = error.to_string().lines().next().unwrap_or_default().to_owned();
                rejected.push(format!("{name}: {first_line}"));
                continue;
            }
        };
        let Ok(expected) = std::fs::read(out.path().join(format!("{name}.raw"))) else {
            without_reference += 1;
            continue;
        };
        assert_eq!(expected.len(), image.data().len(), "{name}");
        let max_difference =
            expected.iter().zip(image.data()).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
        let is_jpeg = bytes.windows(20).any(|w| w == b"1.2.840.10008.1.2.4.");
        let tolerance = if is_jpeg { 4 } else { 1 };
        if max_difference > tolerance {
            differing.push(format!("{name}: off by {max_difference}"));
        } else {
            equal += 1;
        }
    }
    eprintln!("{equal} equal, {without_reference} without reference, {} rejected:", rejected.len());
    eprintln!("{}", rejected.join("\n"));
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(equal > 0);
}
