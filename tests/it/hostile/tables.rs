//! CSV and Parquet files with cells that are much larger than the file.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::measured_run::{self, MAX_MEMORY};
use crate::folder::Folder;

const SCHEMA: &str = "message vqa {
    required group image { required binary bytes; }
    required binary question (UTF8);
    required binary answer (UTF8);
}";

/// Cells of all rows of a row group: image, question and answer.
struct RowGroup {
    cells: [Vec<u8>; 3],
    rows: usize,
}

fn write_parquet(path: &Path, groups: &[RowGroup]) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let compression = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_page_size_limit(1 << 30)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for RowGroup { cells, rows } in groups {
        let mut group = writer.next_row_group().unwrap();
        for cell in cells {
            let mut column = group.next_column().unwrap().unwrap();
            let cell = ByteArray::from(cell.clone());
            let values: Vec<ByteArray> = (0..*rows).map(|_| cell.clone()).collect();
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
    let (output, peak) = measured_run::run(&folder, &args);
    assert!(peak < MAX_MEMORY, "{} MiB", peak >> 20);
    let text = output.stdout;
    assert!(text.contains("4 readable cases"), "{text}");
    assert!(text.contains("column `answer` has a text of 69206016 bytes"), "{text}");
    assert!(text.contains("the image file has 69206016 bytes, the limit is 67108864"), "{text}");
    assert!(text.contains("takes more than 704 MiB of memory"), "{text}");
}

#[test]
fn csv_rows_are_limited() {
    let folder = Folder::empty();
    let long = "x,".repeat(6 << 20);
    let rows = format!("id,image,question\n1,,what?\n2,,\"{long}\n3,,what?\n");
    folder.write("cases.csv", &rows);
    let (output, peak) =
        measured_run::run(&folder, &["data", "check", "cases.csv", "--min-responses", "0"]);
    assert!(peak < MAX_MEMORY, "{} MiB", peak >> 20);
    let text = output.stdout;
    assert!(text.contains("2 readable cases"), "{text}");
    assert!(text.contains("cases.csv:3:") && text.contains("longer than 8388608 bytes"), "{text}");
}
