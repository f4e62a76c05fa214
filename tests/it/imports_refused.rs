//! Imports that would lose answers, references or images without a message.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::folder::{Folder, ProgramOutput};

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

fn import(folder: &Folder, args: &[&str]) -> ProgramOutput {
    folder.run(&[&["data", "import"], args, &["--out", "c.jsonl"]].concat())
}

#[test]
fn text_columns_of_a_table_without_answers_are_offered() {
    let folder = Folder::empty();
    for (name, delimiter) in [("t.csv", ","), ("s.csv", ";"), ("t.tsv", "\t")] {
        let table = "id,image,question,reference,gpt,llava\n0,,Why?,r,x,y\n0,,How?,r,x,y\n";
        folder.write(name, &table.replace(',', delimiter));
        let output = import(&folder, &[name]);
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        let hint = "--columns 'id=id,image=image,question=question,reference=reference,\
                    answer:gpt=gpt,answer:llava=llava'";
        assert!(output.stderr.contains(hint), "{}", output.stderr);
        assert!(!folder.path("c.jsonl").exists());
    }
}

#[test]
fn images_in_cells_of_a_table_of_questions_are_decoded_or_refused() {
    let folder = Folder::empty();
    folder.write("a.jsonl", "{\"question_id\": 1, \"text\": \"yes\"}\n");
    for cell in [PNG.to_owned(), format!("\"data:image/png;base64,{PNG}\"")] {
        folder.write("t.csv", &format!("id,image,question\n1,{cell},Why?\n"));
        let output = import(&folder, &["t.csv", "--answers", "a.jsonl"]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(output.stdout.contains("images      1 of 1"), "{}", output.stdout);
        assert!(output.stdout.contains("`acem3 judge --form single` or `--form correctness`"));
    }
    let address = "id,image,question\n1,https://x.org/a.png,Why?\n";
    folder.write("t.csv", address);
    let output = import(&folder, &["t.csv", "--answers", "a.jsonl"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    assert!(output.stderr.contains("the image is an address"), "{}", output.stderr);
    folder.write("t.csv", &(address.to_owned() + "1,,Why?\n"));
    let output = import(&folder, &["t.csv", "--answers", "a.jsonl"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("left out    1 of 2 cases"), "{}", output.stdout);
}

#[test]
fn references_and_images_that_differ_are_refused_with_counts() {
    let folder = Folder::empty();
    let table = "id,image,question,reference,prediction\n0,a.png,Q0,yes,x\n1,a.png,Q1,no,y\n";
    folder.write("a.csv", table);
    folder.write("a.png", "one");
    folder.write("b.png", "two");
    folder.write("b/a.png", "one");
    folder.write("b.csv", &table.replace("Q0,yes", "Q0,no"));
    let output = import(&folder, &["a.csv", "b.csv"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    let expected = "1 of 2 common references differ; id 0: `yes` in a.csv line 2, `no` in b.csv";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    folder.write("b.csv", &table.replace("1,a.png", "1,b.png"));
    let output = import(&folder, &["a.csv", "b.csv"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    let expected = "1 of 2 common images differ; id 1: `a.png` in a.csv line 3, `b.png` in b.csv";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    // The same image in another folder, a reference in other letters, and a missing one.
    let text = table.replace("a.png", "b/a.png").replace("yes", " YES").replace(",no,", ",,");
    folder.write("b.csv", &text);
    for files in [["a.csv", "b.csv"], ["b.csv", "a.csv"]] {
        let output = import(&folder, &files);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(output.stdout.contains("references  2 of 2"), "{}", output.stdout);
    }
    let long = "id,question,reference,model,response\n0,Q,yes,a,x\n0,Q,no,b,y\n";
    folder.write("long.csv", long);
    let output = import(&folder, &["long.csv"]);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    assert!(output.stderr.contains("1 row with the id of another reference"), "{}", output.stderr);
}

#[test]
fn answer_columns_of_a_table_are_kept_beside_answers_files() {
    let folder = Folder::empty();
    let table = "id,image,question,answer_gpt,answer_llava\n1,,Q1,x,y\n2,,Q2,z,w\n";
    folder.write("t.csv", table);
    folder.write("new.jsonl", "{\"question_id\": 1, \"text\": \"v\"}\n");
    let output = import(&folder, &["t.csv", "--answers", "new.jsonl"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("2 cases with 5 responses"), "{}", output.stdout);
    folder.write("cases/t.csv", table);
    folder.write("cases/answers/new.jsonl", "{\"question_id\": 1, \"text\": \"v\"}\n");
    let output = import(&folder, &["cases/t.csv"]);
    assert!(output.stdout.contains("2 cases with 5 responses"), "{}", output.stdout);
}

/// Writes rows with a list of images: one image, two images, and none.
fn write_image_lists(path: &Path, element: &str) {
    let schema = format!(
        "message rows {{
            optional group images (LIST) {{ repeated group list {{ {element} }} }}
            optional binary question (UTF8);
            optional binary answer_a (UTF8);
            optional binary answer_b (UTF8);
        }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let depth = schema.get_fields()[0].get_fields()[0].get_fields()[0].is_group();
    let present = if depth { 4 } else { 3 };
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let png = base64::engine::general_purpose::STANDARD.decode(PNG).unwrap();
    let mut is_image = true;
    while let Some(mut column) = group.next_column().unwrap() {
        let typed = column.typed::<ByteArrayType>();
        if std::mem::take(&mut is_image) {
            let images = vec![ByteArray::from(png.clone()); 3];
            let levels: &[i16] = &[present, present, present, 0];
            typed.write_batch(&images, Some(levels), Some(&[0, 0, 1, 0])).unwrap();
        } else {
            let texts = vec![ByteArray::from("text"); 3];
            typed.write_batch(&texts, Some(&[1, 1, 1]), None).unwrap();
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn lists_with_one_image_are_read_from_parquet_and_others_refused() {
    let folder = Folder::empty();
    for element in ["optional binary element;", "optional group element { optional binary bytes; }"]
    {
        write_image_lists(&folder.path("t.parquet"), element);
        let output = import(&folder, &["t.parquet"]);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(output.stdout.contains("2 cases with 4 responses"), "{}", output.stdout);
        assert!(output.stdout.contains("images      1 of 2"), "{}", output.stdout);
        assert!(output.stdout.contains("left out    1 of 3 cases"), "{}", output.stdout);
        assert!(output.stderr.contains("the row has 2 images"), "{}", output.stderr);
    }
}

/// Returns the error of `acem3 judge` for a file.
fn judge_error(folder: &Folder, file: &str) -> String {
    let output = folder.run(&["judge", file, "--out", "out", "--panel", "scripted:"]);
    assert_eq!(output.exit_code, 2, "{file}: {}", output.stderr);
    output.stderr
}

#[test]
fn error_for_an_unknown_file_says_what_was_seen_and_what_is_read() {
    let folder = Folder::empty();
    folder.write("unk.txt", "a text of notes\nmore\n");
    let error = judge_error(&folder, "unk.txt");
    for text in [
        "the first line is `a text of notes`",
        "acem3 data import FILE --columns",
        "lm-evaluation-harness",
        ".xlsx",
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
    folder.write_bytes("x.pkl", b"\x80\x04\x95\0\0\0\0\n");
    let error = judge_error(&folder, "x.pkl");
    assert!(error.contains("not text") && error.contains("write the rows as .jsonl"), "{error}");
    folder.write_bytes("x.xls", b"\xd0\xcf\x11\xe0\0\0");
    let error = judge_error(&folder, "x.xls");
    assert!(error.contains("save the table as .xlsx or .csv"), "{error}");
    folder.write("hdr.csv", "qid,question,answer_a\n");
    let error = judge_error(&folder, "hdr.csv");
    assert!(error.contains("no rows below the header qid, question, answer_a"), "{error}");
    folder.write("two.json", r#"{"a": [{"x": 1}], "b": [{"y": 2}]}"#);
    let error = judge_error(&folder, "two.json");
    assert!(error.contains("one object with the fields a, b"), "{error}");
    assert!(error.contains("hint: write one of its arrays"), "{error}");
}

#[test]
fn truncated_json_is_damaged_json() {
    let folder = Folder::empty();
    for text in [
        "{\"results\": [{\"question\": \"Why?\", \"answ",
        "[{\"question\": \"Why?\", \"answ",
        "[\n{\"question\": \"Why?\",\n\"answer\": ",
    ] {
        folder.write("bad.json", text);
        let error = judge_error(&folder, "bad.json");
        assert!(error.contains("bad.json: damaged JSON: EOF"), "{error}");
    }
    folder.write("bad.json", "{\n \"name\": \"x\",\n \"n\": 3\n}\n");
    let error = judge_error(&folder, "bad.json");
    assert!(error.contains("one object with the fields name, n"), "{error}");
}

#[test]
fn the_only_array_of_objects_in_an_object_is_read() {
    let folder = Folder::empty();
    let rows = r#"[{"qid": 1, "question": "Why?", "answer_a": "x", "answer_b": "y"}]"#;
    folder.write("nested.json", &format!("{{\"model\": \"m\", \"results\": {rows}}}"));
    let output = import(&folder, &["nested.json"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("1 case with 2 responses"), "{}", output.stdout);
}
