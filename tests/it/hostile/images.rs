//! Images that decode to much more than their size, or nest deeply.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::measured_run;
use crate::folder::Folder;

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/vision/images");
    fs::read(folder.join(name)).unwrap()
}

/// A DICOM object in explicit little endian, with sequences nested `depth` deep and no pixels.
fn nested_dicom(depth: usize) -> Vec<u8> {
    let open = b"\x08\0\x40\x11SQ\0\0\xff\xff\xff\xff\xfe\xff\0\xe0\xff\xff\xff\xff";
    let close = b"\xfe\xff\x0d\xe0\0\0\0\0\xfe\xff\xdd\xe0\0\0\0\0";
    let mut file = vec![0; 128];
    file.extend(b"DICM\x02\0\x10\0UI\x14\x001.2.840.10008.1.2.1\0");
    file.extend(open.repeat(depth));
    file.extend(close.repeat(depth));
    file
}

/// A progressive image of 48 megapixels whose last scan is repeated.
fn jpeg_of_many_scans(scans: usize) -> Vec<u8> {
    let file = golden("progressive.jpg");
    let frame = file.windows(2).position(|pair| pair == [0xff, 0xc2]).unwrap();
    let last = file.windows(2).rposition(|pair| pair == [0xff, 0xda]).unwrap();
    let (start, end) = file.split_at(file.len() - 2);
    let mut many = [start, &start[last..].repeat(scans), end].concat();
    let size = [6000_u16.to_be_bytes(), 8000_u16.to_be_bytes()].concat();
    many[frame + 5..frame + 9].copy_from_slice(&size);
    many
}

/// A small image with a colour profile that inflates to `mebibytes`.
fn png_with_profile(mebibytes: usize) -> Vec<u8> {
    let png = golden("rgb.png");
    let zeros = vec![0; 1 << 20];
    let mut block = Vec::with_capacity(1 << 16);
    let mut encoder = flate2::Compress::new(flate2::Compression::fast(), false);
    encoder.compress_vec(&zeros, &mut block, flate2::FlushCompress::Full).unwrap();
    // Zlib header, the compressed mebibytes, an empty last block, and the checksum of zeros.
    let bytes = u32::try_from(mebibytes << 20).unwrap();
    let checksum = ((bytes % 65_521) << 16 | 1).to_be_bytes();
    let profile = [&[0x78, 1], block.repeat(mebibytes).as_slice(), &[3, 0], &checksum].concat();
    let data = [b"profile\0\0".as_slice(), &profile].concat();
    let mut crc = flate2::Crc::new();
    crc.update(b"iCCP");
    crc.update(&data);
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&png[..33], &length, b"iCCP", &data, &crc.sum().to_be_bytes(), &png[33..]].concat()
}

fn case(image: &str) -> Value {
    json!({
        "id": image,
        "image": format!("images/{image}"),
        "question": "what is shown?",
        "responses": [{"model": "a", "text": "a cyst"}, {"model": "b", "text": "nothing"}],
    })
}

/// Judges cases with these images and one good image, and resumes the run.
fn judge(images: &[(&str, Vec<u8>)]) -> Vec<Value> {
    let folder = Folder::empty();
    let good = golden("rgb.png");
    let mut cases = Vec::new();
    for (name, bytes) in images.iter().chain([&("good.png", good)]) {
        fs::write(folder.path(&format!("cases/images/{name}")), bytes).unwrap();
        cases.push(case(name));
    }
    folder.write_cases(&cases);
    let args = ["judge", "cases", "--out", "run", "--panel", "scripted:"];
    let first = measured_run::run(&folder, &args, cases.len() as u64);
    let records = folder.records("run");
    assert_eq!(records.len(), images.len() + 1, "{}", first.stderr);
    assert_eq!(records.last().unwrap()["status"], "judged", "{}", first.stderr);
    let before = folder.read("run/records.jsonl");
    let again = measured_run::run(&folder, &args, cases.len() as u64);
    assert_eq!(again.exit_code, first.exit_code, "{}", again.stderr);
    assert_eq!(folder.read("run/records.jsonl"), before);
    records
}

#[test]
fn deeply_nested_dicom_object_is_unscored() {
    let records = judge(&[
        ("deep.dcm", nested_dicom(7_000)),
        ("deeper.dcm", nested_dicom(100_000)),
        ("flat.dcm", nested_dicom(3)),
    ]);
    let message = |i: usize| records[i]["message"].as_str().unwrap();
    assert!(message(0).contains("nested more than 64 levels"), "{}", message(0));
    assert!(message(1).contains("nested more than 64 levels"), "{}", message(1));
    assert!(message(2).contains("contains no image"), "{}", message(2));
}

#[test]
fn image_of_many_scans_is_unscored() {
    let records = judge(&[("scans.jpg", jpeg_of_many_scans(100))]);
    let message = records[0]["message"].as_str().unwrap();
    assert!(message.contains("scans, the limit for its size is 25"), "{message}");
}

#[test]
fn colour_profile_that_inflates_is_ignored() {
    let file = png_with_profile(1200);
    let decoder = image::codecs::png::PngDecoder::new(std::io::Cursor::new(png_with_profile(4)));
    let profile = image::ImageDecoder::icc_profile(&mut decoder.unwrap()).unwrap().unwrap();
    assert_eq!(profile, vec![0; 4 << 20]);
    let records = judge(&[("profile.png", file)]);
    assert_eq!(records[0]["status"], "judged", "{}", records[0]);
}

#[test]
fn closed_file_with_missing_data_is_truncated() {
    let file = golden("plain.jpg");
    let cut = [&file[..file.len() * 4 / 5], &[0xff, 0xd9]].concat();
    let records = judge(&[("cut.jpg", cut), ("whole.jpg", file)]);
    let message = records[0]["message"].as_str().unwrap();
    assert!(message.contains("the JPEG file is truncated"), "{message}");
    assert_eq!(records[1]["status"], "judged");
}
