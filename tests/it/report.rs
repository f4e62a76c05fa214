//! `acem3 report` as HTML: completeness, escaping of untrusted text, and no external resources.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::folder::{Folder, valid_case};

/// Untrusted text that tries to inject HTML.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{2028}&lt;<!--";

/// Creates a folder with `n` judged cases.
fn judged_folder(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

/// Returns the report that the command prints.
fn report(folder: &Folder, more: &[&str]) -> String {
    let output = folder.run(&[&["report", "--resamples", "50"], more].concat());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    output.stdout
}

/// Returns the content of the data script with this id.
fn script_text(page: &str, id: &str) -> String {
    let mark = format!("id=\"{id}\">");
    let from = page.find(&mark).unwrap_or_else(|| panic!("no {id}")) + mark.len();
    let to = page[from..].find("</script>").unwrap();
    page[from..from + to].to_owned()
}

/// Parses the JSON of the data script with this id.
fn json_script(page: &str, id: &str) -> Value {
    serde_json::from_str(&script_text(page, id)).unwrap()
}

/// Returns each text between `from` and the next `to`.
fn between<'a>(page: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let parts = page.split(from).skip(1);
    parts.map(|part| part.split(to).next().unwrap()).collect()
}

#[test]
fn report_contains_every_record() {
    let folder = judged_folder(7);
    // A missing image and an invalid case: both pairs are unscored and listed.
    let mut cases: Vec<Value> = (0..7).map(valid_case).collect();
    cases[3]["image"] = json!("images/none.png");
    cases[4]["responses"] = json!("none");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("more", &[]).exit_code, 0);
    let page = report(&folder, &["more"]);
    let index = json_script(&page, "index");
    let details = json_script(&page, "details-0");
    let records = folder.records("more");
    assert_eq!(index["entries"].as_array().unwrap().len(), records.len());
    let mut unscored = 0;
    for (i, record) in records.iter().enumerate() {
        let entry = &index["entries"][i];
        let verdict = &entry["verdicts"][0];
        assert_eq!(entry["case"], record["case"]);
        assert_eq!(verdict["status"], record["status"]);
        if record["status"] == "unscored" {
            unscored += 1;
            assert_eq!(verdict["message"], record["message"]);
            assert_eq!(details[i], json!([null]));
            continue;
        }
        for name in ["order", "scores", "expected", "flip"] {
            assert_eq!(verdict[name], record[name], "{name}");
        }
        assert_eq!(entry["answers"], record["responses"]);
        let order = &details[i][0]["orders"][1];
        let recorded_order = &record["orders"][1];
        assert_eq!(order["swapped"], true);
        let name = "factual_accuracy";
        for field in ["scores", "expected", "analyses"] {
            assert_eq!(order["conclusion"][field], recorded_order["conclusion"][field]);
            let recorded = &recorded_order["aspects"]["medical_knowledge"][name];
            assert_eq!(order["criteria"][name][field], recorded[field], "{field}");
        }
    }
    assert_eq!(unscored, 2);
    assert!(page.contains("unscored: 2 pairs"), "no list");
}

#[test]
fn untrusted_text_is_escaped() {
    let folder = Folder::empty();
    let mut hostile = valid_case(0);
    hostile["id"] = json!(HOSTILE);
    hostile["image"] = Value::Null;
    for name in ["question", "reference"] {
        hostile[name] = json!(HOSTILE);
    }
    hostile["meta"] = json!({"modality": HOSTILE, HOSTILE: HOSTILE});
    hostile["responses"] =
        json!([{"model": HOSTILE, "text": HOSTILE}, {"model": "b", "text": "no"}]);
    let mut other = valid_case(1);
    other["image"] = Value::Null;
    folder.write_cases(&[hostile, other]);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let page = report(&folder, &["out", "--title", HOSTILE, "--group-by", "modality"]);
    assert!(!page.contains("<img") && !page.contains("onerror=alert(1)>"), "injected HTML");
    assert!(!page.contains(['\u{2028}', '\u{2029}']));
    // The page has three scripts: the index, one part of the details, and the program.
    assert_eq!(page.matches("<script").count(), 3);
    assert_eq!(page.matches("</script").count(), 3);
    let index = json_script(&page, "index");
    assert_eq!(index["entries"][0]["answers"][0], HOSTILE);
    assert_eq!(index["entries"][0]["question"], HOSTILE);
    assert_eq!(index["entries"][0]["case"], HOSTILE);
    let program = include_str!("../../src/analysis/report/page/page.js");
    for sink in
        ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
    {
        assert!(!program.contains(sink), "{sink}");
    }
}

#[test]
fn page_loads_nothing_and_restricts_scripts() {
    let folder = judged_folder(4);
    let page = report(&folder, &["out"]);
    assert!(!page.contains("http://") && !page.contains("https://"), "a URL");
    for attribute in ["src=\"", "srcset=", "@import", "url(", "<link", "<iframe"] {
        assert!(!page.contains(attribute), "{attribute}");
    }
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"")[0];
    assert!(policy.contains("default-src 'none'; img-src data:"), "{policy}");
    let hash = |text: &str| {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        STANDARD.encode(digest)
    };
    let policy_hash = |name: &str| between(policy, &format!("{name} 'sha256-"), "'")[0].to_owned();
    assert_eq!(policy_hash("style-src"), hash(between(&page, "<style>", "</style>")[0]));
    assert_eq!(policy_hash("script-src"), hash(between(&page, "<script>", "</script>")[0]));
    for table in between(&page, "<table", "</table>") {
        assert!(table.contains("<caption>") && table.contains("scope=\"col\""), "{table}");
        assert!(table.contains("scope=\"row\""), "{table}");
    }
    let charts = between(&page, "<svg", "</svg>");
    assert!(charts.len() >= 4);
    for chart in charts {
        assert!(chart.contains("<title ") && chart.contains("<desc "), "{chart}");
        assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
    }
    assert!(page.contains("needs JavaScript") && page.contains("<html lang=\"en\">"));
    assert!(!page.contains("NaN"), "NaN in the page");
}

#[test]
fn equal_records_give_equal_reports() {
    let folder = judged_folder(6);
    let first = report(&folder, &["out"]);
    let output = folder.run(&["report", "--resamples", "50", "out", "--out", "report.html"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("3 images in the page"), "{}", output.stderr);
    assert_eq!(first, folder.read("report.html"));
}

#[test]
fn report_shows_only_judged_images() {
    let folder = judged_folder(4);
    let count_pictures =
        |page: &str| page.matches("<script type=\"text/plain\" id=\"picture-").count();
    let page = report(&folder, &["out"]);
    assert_eq!(count_pictures(&page), 2);
    assert!(script_text(&page, "picture-0").starts_with("data:image/jpeg;base64,"));
    assert_eq!(json_script(&page, "index")["entries"][3]["picture"], 1);
    let none = report(&folder, &["out", "--thumbnails", "none"]);
    assert_eq!(count_pictures(&none), 0);
    assert!(!none.contains("data:image"), "an image");
    let full = report(&folder, &["out", "--thumbnails", "full"]);
    let uri = script_text(&full, "picture-1");
    let coded = uri.strip_prefix("data:image/png;base64,").unwrap();
    let bytes = STANDARD.decode(coded).unwrap();
    let shown = image::load_from_memory(&bytes).unwrap().into_rgb8();
    let judged = image::open(folder.path("cases/images/1.png")).unwrap();
    assert_eq!(shown, judged.into_rgb8());
    // Replaces an image after judging.
    fs::copy(folder.path("cases/images/0.png"), folder.path("cases/images/1.png")).unwrap();
    let output = folder.run(&["report", "--resamples", "50", "out"]);
    assert_eq!(count_pictures(&output.stdout), 1);
    let message = "1 image not shown: the file changed after judging";
    assert!(
        output.stderr.contains(message) && output.stdout.contains(message),
        "{}",
        output.stderr
    );
    fs::rename(folder.path("cases"), folder.path("moved")).unwrap();
    let output = folder.run(&["report", "--resamples", "50", "out"]);
    assert!(output.stderr.contains("--images DIR"), "{}", output.stderr);
    let moved = report(&folder, &["out", "--images", "moved"]);
    assert_eq!(count_pictures(&moved), 1);
}

#[test]
fn two_judges_share_the_order_of_responses() {
    let folder = judged_folder(6);
    let reversed_case = |i: usize| {
        let mut case = valid_case(i);
        case["responses"].as_array_mut().unwrap().reverse();
        case["labels"] = json!({"final": [1.5, 4]});
        case
    };
    folder.write_cases(&(0..6).map(reversed_case).collect::<Vec<_>>());
    let other = ["judge", "cases", "--out", "other", "--panel", "scripted:seed=9"];
    assert_eq!(folder.run(&other).exit_code, 0);
    let page = report(&folder, &["out", "other"]);
    let index = json_script(&page, "index");
    let details = json_script(&page, "details-0");
    assert_eq!(index["judges"].as_array().unwrap().len(), 2);
    assert_eq!(index["entries"].as_array().unwrap().len(), 6);
    let records = folder.records("other");
    for (i, record) in records.iter().enumerate() {
        let entry = &index["entries"][i];
        let swap = |pair: &Value| json!([pair[1], pair[0]]);
        assert_eq!(entry["models"], swap(&record["pair"]));
        assert_eq!(entry["verdicts"][1]["scores"], swap(&record["scores"]));
        let orders = &details[i][1]["orders"];
        // The response shown first to the second judge is the second response of the entry.
        assert_eq!(orders[0]["swapped"], true);
        let analyses = swap(&record["orders"][0]["conclusion"]["analyses"]);
        assert_eq!(orders[0]["conclusion"]["analyses"], analyses);
        assert_eq!(entry["label"], ">");
        assert_eq!(entry["labels"], json!([4.0, 1.5]));
    }
    assert!(page.contains("Judges compared"), "no comparison");
    let table = report(&folder, &["out", "other", "--format", "csv"]);
    assert_eq!(table.lines().count(), 13);
    folder.write("copy.jsonl", &folder.read("out/records.jsonl"));
    let output = folder.run(&["report", "out", "copy.jsonl"]);
    let message = "verdicts of the same judge";
    assert!(output.exit_code == 2 && output.stderr.contains(message), "{}", output.stderr);
    let output = folder.run(&["report", "out", "out/records.jsonl", "--format", "csv"]);
    let message = "out and out/records.jsonl: the same records, read once";
    assert!(output.exit_code == 0 && output.stderr.contains(message), "{}", output.stderr);
    assert_eq!(output.stdout, report(&folder, &["out", "--format", "csv"]));
    let output = folder.run(&["report", "out", "--out", "other"]);
    assert!(
        output.exit_code == 2 && output.stderr.contains("--out other: is a folder"),
        "{}",
        output.stderr
    );
}

/// The report uses the window of the run, and includes only the pixels of the DICOM file.
#[test]
fn dicom_image_is_shown_as_judged() {
    let folder = Folder::with_cases(1);
    let golden = include_bytes!("../../assets/golden/dicom/ct.dcm");
    fs::write(folder.path("cases/images/0.png"), golden).unwrap();
    for (out, window) in [("file", None), ("auto", Some("auto")), ("given", Some("40,80"))] {
        let more: Vec<&str> = window.iter().flat_map(|w| ["--window", w]).collect();
        assert_eq!(folder.judge(out, &more).exit_code, 0);
        let page = report(&folder, &[out, "--thumbnails", "full"]);
        let uri = script_text(&page, "picture-0");
        let coded = uri.strip_prefix("data:image/png;base64,").unwrap();
        let shown = image::load_from_memory(&STANDARD.decode(coded).unwrap()).unwrap();
        let view = acem3_vision::DicomView {
            window: window.map_or_else(Default::default, |w| w.parse().unwrap()),
            frame: None,
        };
        let judged =
            acem3_vision::decode_with_view(golden, &acem3_vision::ImageLimits::default(), &view);
        assert_eq!(shown.into_rgb8().into_raw(), judged.unwrap().data(), "{out}");
    }
}

/// A report in another working folder finds the images; without the folder of the cases, it says
/// what to pass.
#[test]
fn images_are_found_from_another_working_folder() {
    let folder = Folder::with_cases(2);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let source = &folder.manifest("out")["source"];
    let cases = folder.path("cases").display().to_string();
    assert_eq!(
        (source["path"].as_str(), source["images"].as_str()),
        (Some("cases"), Some(&*cases))
    );
    fs::create_dir(folder.path("elsewhere")).unwrap();
    let report = |more: &[&str]| {
        let args =
            [&["report", "../out", "--resamples", "20", "--out", "page.html"], more].concat();
        let mut command = folder.command(&args);
        let output = command.current_dir(folder.path("elsewhere")).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(report(&[]).contains("1 image in the page"));
    fs::rename(folder.path("cases"), folder.path("moved")).unwrap();
    let stderr = report(&[]);
    let hint = format!("so that images/0.png is in DIR; the run read it from {cases}");
    assert!(stderr.contains("file not found") && stderr.contains(&hint), "{stderr}");
    let page = folder.read("elsewhere/page.html");
    assert!(page.contains("with --images DIR, where DIR is the folder that contains images/0.png"));
    assert!(!page.contains(&cases));
    assert!(report(&["--images", "../moved"]).contains("1 image in the page"));
}
