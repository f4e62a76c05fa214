//! CSV and Parquet files with cells that are much larger than the file.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use super::measured_run;
use crate::folder::Folder;

const SCHEMA: &str = "message vqa {
    required group image { required binary bytes; }
    required binary question (UTF8);
    required binary answer (UTF8);
}";

/// Cells of a row: image, question and answer.
type Cells = [Vec<u8>; 3];

/// A row group of equal rows.
struct RowGroup {
    cells: Cells,
    rows: usize,
}

fn write_parquet(path: &Path, groups: &[RowGroup]) {
    let rows = |group: &RowGroup| {
        let cells = group.cells.each_ref().map(|cell| ByteArray::from(cell.clone()));
        vec![cells; group.rows]
    };
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(1 << 30);
    write_groups(path, &groups.iter().map(rows).collect::<Vec<_>>(), properties);
}

fn write_groups(path: &Path, groups: &[Vec<[ByteArray; 3]>], properties: WriterPropertiesBuilder) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let compression = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
    let properties = properties
        .set_compression(compression)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        for index in 0..3 {
            let mut column = group.next_column().unwrap().unwrap();
            let values: Vec<ByteArray> = rows.iter().map(|row| row[index].clone()).collect();
            column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn png() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/vision/images");
    fs::read(folder.join("rgb.png")).unwrap()
}

#[test]
fn parquet_cells_are_limited() {
    let folder = Folder::empty();
    let good = || RowGroup { cells: [png(), b"what?".to_vec(), b"yes".to_vec()], rows: 2 };
    let answer = RowGroup { cells: [png(), b"what?".to_vec(), vec![b'a'; 66 << 20]], rows: 17 };
    let image =
        RowGroup { cells: [vec![0xff; 66 << 20], b"what?".to_vec(), b"yes".to_vec()], rows: 17 };
    // The page of the answers takes more memory than an isolated process may use.
    let page = RowGroup { cells: [png(), b"what?".to_vec(), vec![b'a'; 380 << 20]], rows: 1 };
    let path = folder.path("cases/test-00000.parquet");
    write_parquet(&path, &[good(), answer, image, page, good()]);
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let args = ["data", "check", "cases/test-00000.parquet", "--min-responses", "0"];
    let output = measured_run::run(&folder, &args, 39);
    let text = output.stdout;
    assert!(text.contains("4 readable cases"), "{text}");
    assert!(text.contains("column `answer` has a text of 69206016 bytes"), "{text}");
    assert!(text.contains("the image file has 69206016 bytes, the limit is 67108864"), "{text}");
    assert!(text.contains("takes more than 704 MiB of memory"), "{text}");
}

/// Sixteen images of 46 MB together take more memory than an isolated process may use. One by one,
/// they do not.
#[test]
fn large_parquet_cells_cost_only_their_rows() {
    let folder = Folder::empty();
    let row = |image: &[u8], answer: Vec<u8>| {
        [ByteArray::from(image.to_vec()), ByteArray::from("what?"), ByteArray::from(answer)]
    };
    let mut large_image = png();
    large_image.resize(46 << 20, 0);
    let small_row = row(&png(), b"yes".to_vec());
    let mut rows = vec![row(&large_image, b"no".to_vec()); 18];
    rows.extend([small_row.clone(), row(&png(), vec![b'a'; 720 << 20]), small_row]);
    let path = folder.path("cases/test-00000.parquet");
    // Each cell has a page of its own.
    let properties =
        WriterProperties::builder().set_dictionary_enabled(false).set_write_batch_size(1);
    write_groups(&path, &[rows], properties.set_data_page_size_limit(1));
    assert!(fs::metadata(&path).unwrap().len() < 4 << 20);
    let args = ["data", "check", "cases/test-00000.parquet", "--min-responses", "0"];
    let output = measured_run::run(&folder, &args, 21);
    let text = output.stdout;
    assert!(text.contains("20 readable cases"), "{text}");
    let expected = "row 20 cannot be read: reading it takes more than 704 MiB of memory";
    assert!(text.contains(expected), "{text}");
}

/// A page that takes too much memory costs its rows. Each has a record.
#[test]
fn every_lost_parquet_row_has_a_record() {
    let folder = Folder::empty();
    let group =
        |answer: Vec<u8>, rows| RowGroup { cells: [png(), b"what?".to_vec(), answer], rows };
    let groups = [group(vec![b'a'; 720 << 20], 6), group(b"yes".to_vec(), 2)];
    let path = folder.path("test-00000.parquet");
    write_parquet(&path, &groups);
    folder.write("answers/a.jsonl", &answers());
    folder.write("answers/b.jsonl", &answers());
    let args = ["judge", "test-00000.parquet", "--answers", "answers", "--panel", "scripted:"];
    let output = measured_run::run(&folder, &[&args[..], &["--out", "run"]].concat(), 8);
    let records = folder.records("run");
    let lines: Vec<_> = records.iter().map(|r| (r["line"].as_u64(), &r["status"])).collect();
    let expected: Vec<_> =
        (1..=8).map(|i| if i <= 6 { (i, "unscored") } else { (i, "judged") }).collect();
    assert_eq!(lines.len(), 8, "{}", output.stderr);
    assert!(lines.iter().zip(&expected).all(|(a, b)| a.0 == Some(b.0) && a.1 == b.1), "{lines:?}");
    let message = |i: usize| records[i]["message"].as_str().unwrap();
    assert!(message(2).starts_with("row 3 cannot be read: "), "{}", message(2));
    assert!(message(5).starts_with("rows 4 to 6 cannot be read: "), "{}", message(5));
}

/// Answers to eight questions.
fn answers() -> String {
    let lines: Vec<String> =
        (0..8).map(|i| json!({"question_id": i, "text": "a cyst"}).to_string()).collect();
    lines.join("\n")
}

#[test]
fn csv_rows_are_limited() {
    let folder = Folder::empty();
    let long = "x,".repeat(6 << 20);
    let rows = format!("id,image,question\n1,,what?\n2,,\"{long}\n3,,what?\n");
    folder.write("cases.csv", &rows);
    let args = ["data", "check", "cases.csv", "--min-responses", "0"];
    let output = measured_run::run(&folder, &args, 3);
    let text = output.stdout;
    assert!(text.contains("2 readable cases"), "{text}");
    assert!(text.contains("cases.csv:3:") && text.contains("longer than 8388608 bytes"), "{text}");
}
