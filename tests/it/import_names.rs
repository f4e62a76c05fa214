//! Names of models, unread images, tables of questions and folders in imports.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::folder::{Folder, ProgramOutput, valid_case};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/imports").join(name)
}

fn import(folder: &Folder, args: &[&str]) -> ProgramOutput {
    let output = folder.run(&[&["data", "import"], args, &["--out", "c.jsonl"]].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    output
}

#[test]
fn data_set_of_vlm_eval_kit_gives_questions_and_images() {
    let folder = Folder::empty();
    let results = fixture("med_eval");
    let table = fixture("vlm_eval/LMUData/SquareVQA.tsv");
    let args = [results.to_str().unwrap(), "--questions", table.to_str().unwrap()];
    let output = import(&folder, &args);
    assert!(output.stdout.contains("images      4 of 4, 3 files written"), "{}", output.stdout);
    // A table with other names of columns.
    let text = fs::read_to_string(&table).unwrap();
    folder.write("q.tsv", &text.replacen("index\timage\tquestion", "qid\tscan\tprompt", 1));
    let error = folder.run(&["data", "check", "q.tsv"]);
    assert!(error.stderr.contains("unknown layout"), "{}", error.stderr);
}

#[test]
fn given_name_replaces_that_of_a_single_model_and_is_noted_otherwise() {
    let folder = Folder::empty();
    let table = "id,question,model,response\n0,Q,m1,x\n1,R,m1,y\n";
    folder.write("one.csv", table);
    folder.write("two.csv", &table.replace("m1,y", "m2,y"));
    let output = import(&folder, &["gpt=one.csv"]);
    assert!(output.stderr.contains("one.csv: the model m1 is named gpt"), "{}", output.stderr);
    assert!(output.stderr.contains("models: gpt (2 answers)"), "{}", output.stderr);
    let output = import(&folder, &["a=one.csv", "b=one.csv"]);
    assert!(output.stderr.contains("models: a (2 answers), b (2 answers)"), "{}", output.stderr);
    let output = import(&folder, &["gpt=two.csv"]);
    let note = "two.csv: the name gpt is not used, because the file names 2 models";
    assert!(output.stderr.contains(note), "{}", output.stderr);
}

#[test]
fn equal_tables_are_noted() {
    let folder = Folder::empty();
    let table = "id,question,answer_a,answer_b\n0,Q,x,y\n1,R,x,\n";
    folder.write("one.csv", table);
    folder.write("two.csv", table);
    let output = import(&folder, &["one.csv", "two.csv"]);
    let note =
        "3 answers repeated with the same text, which counts once: first model a, id 0, two.csv";
    assert!(output.stderr.contains(note), "{}", output.stderr);
}

#[test]
fn image_in_a_field_that_is_not_read_has_one_note() {
    let folder = Folder::empty();
    fs::copy(fixture("images/0.png"), folder.path("0.png")).unwrap();
    folder.write("t.csv", "id,scan,question,answer_a,answer_b\n1,0.png,q,x,y\n");
    let columns = "id=id,question=question,answer:a=answer_a,answer:b=answer_b";
    let args = ["judge", "t.csv", "--columns", columns, "--out", "out", "--panel", "scripted:"];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let text = output.stderr + &output.stdout;
    assert!(!text.contains("these files name no images"), "{text}");
    assert!(text.contains("1 case has"), "{text}");
}

#[test]
fn missing_folder_of_the_output_is_created() {
    let folder = Folder::empty();
    folder.write("one.csv", "id,question,answer_a,answer_b\n0,Q,x,y\n");
    let args = ["data", "import", "one.csv", "--out", "new/deep/cases.jsonl"];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(folder.path("new/deep/cases.jsonl").is_file());
    folder.write("bad.csv", "number,frage\n1,was?\n");
    let output = folder.run(&["data", "import", "bad.csv", "--out", "other/deep/cases.jsonl"]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(!folder.path("other").exists());
}

#[test]
fn hint_about_embedded_images_in_a_report_names_the_import() {
    let folder = Folder::empty();
    let table = fixture("lmms_eval");
    let args = ["judge", table.to_str().unwrap(), "--out", "out", "--panel", "scripted:"];
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let output = folder.run(&["report", "out", "--out", "r.html"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("with `acem3 data import` first"), "{}", output.stderr);
}

#[test]
fn images_in_unknown_fields_and_in_meta_are_problems() {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";
    let folder = Folder::empty();
    let fields = [
        ("xray", json!(PNG)),
        ("image_b64", json!(PNG)),
        ("url", json!("https://foo.org/x.png?sz=1")),
        ("image_list", json!(["q"])),
        ("meta", json!({"image": "x"})),
    ];
    let cases: Vec<Value> = fields
        .iter()
        .map(|(name, value)| {
            let mut case = valid_case(0);
            case["id"] = json!(name);
            case.as_object_mut().unwrap().remove("image");
            case[*name] = value.clone();
            case
        })
        .collect();
    folder.write_cases(&cases);
    let output = folder.run(&["data", "check", "cases"]);
    assert_eq!(output.exit_code, 1, "{}", output.stdout);
    for name in ["xray", "image_b64", "url", "image_list", "meta.image"] {
        let problem = format!("the field `{name}` looks like an image and is not read");
        assert!(output.stdout.contains(&problem), "{name}: {}", output.stdout);
    }
}

#[test]
fn long_names_are_cut_in_tables_and_complete_in_records() {
    let folder = Folder::with_cases(2);
    let name = "m".repeat(4_000);
    let cases: Vec<Value> = (0..2)
        .map(|i| {
            let mut case = valid_case(i);
            case["responses"][0]["model"] = json!(name);
            case.as_object_mut().unwrap().remove("labels");
            case
        })
        .collect();
    folder.write_cases(&cases);
    let judged = folder.judge("out", &[]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    assert!(judged.stdout.contains("mmm…") && judged.stdout.len() < 3000, "{}", judged.stdout);
    assert_eq!(folder.records("out")[0]["pair"][0].as_str(), Some(name.as_str()));
    let report = folder.run(&["report", "out", "--out", "r.html"]);
    assert_eq!(report.exit_code, 0, "{}", report.stderr);
    let page = folder.read("r.html");
    // Cells of tables have no word that widens the page.
    let cells = page.split("<th").skip(1).chain(page.split("<td").skip(1));
    let widest = cells.filter_map(|cell| cell.split("</t").next()).map(str::len).max();
    assert!(widest.is_some_and(|width| width < 500), "{widest:?}");
}

#[test]
fn trained_panel_says_that_its_prompts_speak_of_an_image() {
    let folder = Folder::with_cases(1);
    let mut case = valid_case(0);
    case.as_object_mut().unwrap().remove("image");
    folder.write_cases(&[case]);
    let judged = folder.run(&["judge", "cases", "--out", "out", "--scores-only"]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    assert!(judged.stderr.contains("the prompts of this panel speak of one"), "{}", judged.stderr);
    let judged = folder.judge("scripted", &[]);
    assert!(!judged.stderr.contains("the prompts of this panel"), "{}", judged.stderr);
}
