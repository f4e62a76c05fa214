//! Tests of header parsing, with valid and small hostile files.

use std::io::Cursor;

use anyhow::Result;
use candle::quantized::gguf_file::{self, Value};
use candle::quantized::{GgmlDType, QTensor};
use candle::{Device, Tensor};

use super::header::{GgufHeader, to_json};
use super::unpermute_rope_rows;

/// Builds a file with these entries and an 8 x 256 tensor of each type.
fn build_file(metadata: &[(&str, Value)], types: &[GgmlDType]) -> Vec<u8> {
    let tensor = Tensor::zeros((8, 256), candle::DType::F32, &Device::Cpu).unwrap();
    let quantized = types.iter().map(|dtype| QTensor::quantize(&tensor, *dtype).unwrap());
    let quantized: Vec<QTensor> = quantized.collect();
    let names: Vec<String> = types.iter().map(|dtype| format!("{dtype:?}")).collect();
    let tensors: Vec<(&str, &QTensor)> = names.iter().map(String::as_str).zip(&quantized).collect();
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let mut bytes = Cursor::new(Vec::new());
    gguf_file::write(&mut bytes, &metadata, &tensors).unwrap();
    bytes.into_inner()
}

fn parse(bytes: &[u8]) -> Result<GgufHeader> {
    GgufHeader::parse(bytes, bytes.len() as u64)
}

fn text_value(value: &str) -> Value {
    Value::String(value.to_owned())
}

/// Builds a file whose header has one entry: these bytes after the preamble.
fn build_raw_file(entry: &[&[u8]]) -> Vec<u8> {
    let mut bytes = build_file(&[], &[]);
    bytes.truncate(24);
    bytes[16] = 1;
    bytes.extend(entry.concat());
    bytes
}

fn length_bytes(n: usize) -> [u8; 8] {
    (n as u64).to_le_bytes()
}

/// Returns the bytes of a key.
fn key_bytes(name: &str) -> Vec<u8> {
    [&length_bytes(name.len())[..], name.as_bytes()].concat()
}

/// Asserts that parsing fails with an error that contains all `parts`.
fn assert_rejected(bytes: &[u8], parts: &[&str]) {
    let error = format!("{:#}", parse(bytes).unwrap_err());
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn interleaved_halves_of_heads_are_restored() -> Result<()> {
    // Two heads of four rows of two bytes. The file interleaves the halves.
    let rows = |order: [u8; 8]| order.into_iter().flat_map(|i| [i, 100 + i]).collect();
    let file: Vec<u8> = rows([0, 2, 1, 3, 4, 6, 5, 7]);
    let expected: Vec<u8> = rows([0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(unpermute_rope_rows(&file, &[8, 2], 2)?, expected);
    assert!(unpermute_rope_rows(&file, &[8, 2], 3).is_err());
    assert!(unpermute_rope_rows(&[], &[], 2).is_err());
    Ok(())
}

#[test]
fn metadata_round_trips() -> Result<()> {
    let texts = Value::Array(vec![text_value("a b"), text_value("ü\u{FFFD}")]);
    let numbers = Value::Array(vec![Value::I16(-1), Value::I16(3)]);
    let header = parse(&build_file(
        &[
            ("eps", Value::F32(1e-5)),
            ("below", Value::I32(-7)),
            ("above", Value::I32(7)),
            ("truth", Value::Bool(true)),
            ("nan", Value::F32(f32::NAN)),
            ("name", text_value("x")),
            ("texts", texts),
            ("numbers", numbers),
        ],
        &[],
    ))?;
    let json = |key: &str| to_json(&header.metadata[key]);
    assert_eq!(json("eps"), Some(1e-5.into()));
    assert_eq!(json("below"), Some((-7).into()));
    assert_eq!(json("nan"), None);
    assert_eq!(json("texts"), Some("a list of 2".into()));
    assert_eq!((header.number("above")?, header.number("none")?), (Some(7), None));
    assert!(header.number("below").is_err() && header.number("truth").is_err());
    assert_eq!((header.boolean("truth")?, header.string("name")?), (Some(true), Some("x")));
    assert!(header.boolean("above").is_err() && header.string("above").is_err());
    assert_eq!(header.strings("texts")?.unwrap(), ["a b", "ü\u{FFFD}"]);
    assert_eq!(header.numbers("numbers")?.unwrap(), [-1.0, 3.0]);
    assert!(header.strings("numbers").is_err() && header.numbers("texts").is_err());
    assert!(header.strings("name").is_err() && header.numbers("above").is_err());
    Ok(())
}

#[test]
fn weight_types_are_read_and_others_rejected() -> Result<()> {
    let types = [
        GgmlDType::F32,
        GgmlDType::F16,
        GgmlDType::BF16,
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
    ];
    let header = parse(&build_file(&[], &types))?;
    assert_eq!(header.tensors.len(), types.len());
    for dtype in types {
        let info = header.tensor(&format!("{dtype:?}")).unwrap();
        let blocks = 8 * 256 / dtype.block_size();
        assert_eq!(info.shape, [8, 256]);
        assert_eq!(info.byte_len as usize, blocks * dtype.type_size(), "{dtype:?}");
    }
    assert_rejected(&build_file(&[], &[GgmlDType::Q8K]), &["tensor `Q8K`", "not supported"]);
    Ok(())
}

#[test]
fn alignments_are_checked() -> Result<()> {
    let with_alignment = |value| build_file(&[("general.alignment", value)], &[]);
    let zeros =
        [Value::U8(0), Value::I8(0), Value::U16(0), Value::I16(0), Value::U32(0), Value::I32(0)];
    for zero in zeros {
        assert_rejected(&with_alignment(zero), &["general.alignment is 0"]);
    }
    assert_rejected(&with_alignment(Value::U64(0)), &["general.alignment is 0"]);
    assert_rejected(&with_alignment(Value::U32(12)), &["general.alignment is 12"]);
    assert_rejected(&with_alignment(Value::I32(-8)), &["general.alignment is not"]);
    assert_rejected(&with_alignment(text_value("8")), &["general.alignment is not"]);
    // Candle ignores NUL after a key, and uses the last of two entries.
    let padded = build_raw_file(&[&key_bytes("general.alignment\0\0"), &[4, 0, 0, 0], &[0; 4]]);
    assert_rejected(&padded, &["general.alignment is 0"]);
    let duplicates = [("general.alignment", Value::U32(64)), ("general.alignment", Value::U32(0))];
    assert_rejected(&build_file(&duplicates, &[]), &["general.alignment is 0"]);
    // Similar keys and texts are accepted.
    let similar =
        [("x.general.alignment", Value::U32(0)), ("name", text_value("general.alignment 0"))];
    parse(&build_file(&similar, &[]))?;
    for alignment in [Value::U32(4096), Value::U64(256)] {
        assert_eq!(
            parse(&with_alignment(alignment.clone()))?.data_start % value_as_u64(&alignment),
            0
        );
    }
    Ok(())
}

fn value_as_u64(value: &Value) -> u64 {
    to_json(value).and_then(|n| n.as_u64()).unwrap()
}

#[test]
fn lengths_are_checked_before_allocation() {
    const TEXT: u8 = 8;
    const ARRAY: u8 = 9;
    for (value_types, len) in [
        (&[TEXT][..], u64::MAX),
        (&[TEXT], 1 << 40),
        (&[ARRAY, 4], u64::MAX),
        (&[ARRAY, 12], 1 << 61),
        (&[ARRAY, TEXT], 1 << 29),
        (&[ARRAY, ARRAY], 1 << 29),
        (&[ARRAY, 0], 1 << 29),
    ] {
        let value_types: Vec<u8> =
            value_types.iter().flat_map(|value_type| [*value_type, 0, 0, 0]).collect();
        let bytes =
            build_raw_file(&[&key_bytes("key"), &value_types, &len.to_le_bytes(), b"short"]);
        assert_rejected(&bytes, &["the header is damaged", "hint:"]);
    }
    // Deeply nested lists.
    let nested = [ARRAY, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0].repeat(100_000);
    let deep = build_raw_file(&[&key_bytes("key"), &[ARRAY, 0, 0, 0], &nested]);
    assert_rejected(&deep, &["nesting depth"]);
    assert_rejected(
        &build_raw_file(&[&key_bytes("key"), &[13, 0, 0, 0], &[0; 8]]),
        &["value-type"],
    );
    assert_rejected(&build_raw_file(&[&key_bytes("key"), &[7, 0, 0, 0], &[2]]), &["bool value 2"]);
    assert_rejected(&build_raw_file(&[&length_bytes(usize::MAX), b"short"]), &["string length"]);
}

#[test]
fn duplicate_names_and_invalid_utf8_are_rejected() {
    let duplicates = [("name", text_value("a")), ("name", text_value("b"))];
    assert_rejected(&build_file(&duplicates, &[]), &["same name", "hint:"]);
    let tensors = [GgmlDType::F32, GgmlDType::F32];
    assert_rejected(&build_file(&[], &tensors), &["same name", "hint:"]);
    // A truncated UTF-8 sequence of three bytes, as long as its replacement.
    let broken =
        build_raw_file(&[&key_bytes("key"), &[8, 0, 0, 0], &length_bytes(3), &[0xf0, 0x9f, 0x98]]);
    assert_rejected(&broken, &["not UTF-8"]);
    let broken = build_raw_file(&[&length_bytes(2), &[b'k', 0xff], &[0, 0, 0, 0, 1]]);
    assert_rejected(&broken, &["not UTF-8"]);
}
