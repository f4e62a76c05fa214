//! `acem3 report`: every verdict is in it, nothing breaks out of it, nothing is loaded by it.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::folder::{Folder, case};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{2028}&lt;<!--";

/// Judged cases, few draws.
fn judged(n: usize) -> Folder {
    let folder = Folder::of(n);
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

/// The report of some records, with more arguments.
fn report(folder: &Folder, more: &[&str]) -> String {
    let said = folder.run(&[&["report", "--resamples", "50"], more].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

/// The text of the data script of this name.
fn script(page: &str, id: &str) -> String {
    let mark = format!("id=\"{id}\">");
    let from = page.find(&mark).unwrap_or_else(|| panic!("no {id}")) + mark.len();
    let to = page[from..].find("</script>").unwrap();
    page[from..from + to].to_owned()
}

fn data(page: &str, id: &str) -> Value {
    serde_json::from_str(&script(page, id)).unwrap()
}

/// What stands between two marks, wherever they stand.
fn between<'a>(page: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let parts = page.split(from).skip(1);
    parts.map(|part| part.split(to).next().unwrap()).collect()
}

#[test]
fn every_record_is_an_entry_with_its_verdict() {
    let folder = judged(7);
    // One image is gone, one line is no case: both are unscored, and told.
    let mut cases: Vec<Value> = (0..7).map(case).collect();
    cases[3]["image"] = json!("images/none.png");
    cases[4]["responses"] = json!("none");
    folder.write_cases(&cases);
    assert_eq!(folder.judge("more", &[]).code, 0);
    let page = report(&folder, &["more"]);
    let index = data(&page, "index");
    let details = data(&page, "details-0");
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
        let own = &record["orders"][1];
        assert_eq!(order["swapped"], true);
        let name = "factual_accuracy";
        for field in ["scores", "expected", "analyses"] {
            assert_eq!(order["conclusion"][field], own["conclusion"][field]);
            let of = &own["aspects"]["medical_knowledge"][name];
            assert_eq!(order["criteria"][name][field], of[field], "{field}");
        }
    }
    assert_eq!(unscored, 2);
    assert!(page.contains("without a verdict: 2 pairs"), "no list");
}

#[test]
fn no_text_breaks_out_of_the_page() {
    let folder = Folder::empty();
    let mut hostile = case(0);
    hostile["id"] = json!(HOSTILE);
    hostile["image"] = Value::Null;
    for name in ["question", "reference"] {
        hostile[name] = json!(HOSTILE);
    }
    hostile["meta"] = json!({"modality": HOSTILE, HOSTILE: HOSTILE});
    hostile["responses"] =
        json!([{"model": HOSTILE, "text": HOSTILE}, {"model": "b", "text": "no"}]);
    let mut other = case(1);
    other["image"] = Value::Null;
    folder.write_cases(&[hostile, other]);
    assert_eq!(folder.judge("out", &[]).code, 0);
    let page = report(
        &folder,
        &["out", "--title", HOSTILE, "--group-by", "modality"],
    );
    assert!(
        !page.contains("<img") && !page.contains("onerror=alert(1)>"),
        "broken out"
    );
    assert!(!page.contains(['\u{2028}', '\u{2029}']));
    // The style apart, every script is one of ours: the index, one piece of details, the program.
    assert_eq!(page.matches("<script").count(), 3);
    assert_eq!(page.matches("</script").count(), 3);
    let index = data(&page, "index");
    assert_eq!(index["entries"][0]["answers"][0], HOSTILE);
    assert_eq!(index["entries"][0]["question"], HOSTILE);
    assert_eq!(index["entries"][0]["case"], HOSTILE);
    let program = include_str!("../../src/analysis/report/page.js");
    for door in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ] {
        assert!(!program.contains(door), "{door}");
    }
}

#[test]
fn the_page_loads_nothing_and_says_what_may_run() {
    let folder = judged(4);
    let page = report(&folder, &["out"]);
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "an address"
    );
    for attribute in ["src=\"", "srcset=", "@import", "url(", "<link", "<iframe"] {
        assert!(!page.contains(attribute), "{attribute}");
    }
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"")[0];
    assert!(
        policy.contains("default-src 'none'; img-src data:"),
        "{policy}"
    );
    let hash = |text: &str| {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        STANDARD.encode(digest)
    };
    let given = |name: &str| between(policy, &format!("{name} 'sha256-"), "'")[0].to_owned();
    assert_eq!(
        given("style-src"),
        hash(between(&page, "<style>", "</style>")[0])
    );
    assert_eq!(
        given("script-src"),
        hash(between(&page, "<script>", "</script>")[0])
    );
    for table in between(&page, "<table", "</table>") {
        assert!(
            table.contains("<caption>") && table.contains("scope=\"col\""),
            "{table}"
        );
        assert!(table.contains("scope=\"row\""), "{table}");
    }
    let charts = between(&page, "<svg", "</svg>");
    assert!(charts.len() >= 4);
    for chart in charts {
        assert!(
            chart.contains("<title ") && chart.contains("<desc "),
            "{chart}"
        );
        assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
    }
    assert!(page.contains("needs JavaScript") && page.contains("<html lang=\"en\">"));
    assert!(!page.contains("NaN"), "a number that is none");
}

#[test]
fn equal_records_give_equal_bytes() {
    let folder = judged(6);
    let first = report(&folder, &["out"]);
    let said = folder.run(&["report", "--resamples", "50", "out", "--out", "report.html"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("3 images in the page"), "{}", said.err);
    assert_eq!(first, folder.read("report.html"));
}

#[test]
fn images_are_those_that_were_judged_or_none() {
    let folder = judged(4);
    let pictures = |page: &str| {
        page.matches("<script type=\"text/plain\" id=\"picture-")
            .count()
    };
    let page = report(&folder, &["out"]);
    assert_eq!(pictures(&page), 2);
    assert!(script(&page, "picture-0").starts_with("data:image/jpeg;base64,"));
    assert_eq!(data(&page, "index")["entries"][3]["picture"], 1);
    let none = report(&folder, &["out", "--thumbnails", "none"]);
    assert_eq!(pictures(&none), 0);
    assert!(!none.contains("data:image"), "an image");
    let full = report(&folder, &["out", "--thumbnails", "full"]);
    let uri = script(&full, "picture-1");
    let coded = uri.strip_prefix("data:image/png;base64,").unwrap();
    let bytes = STANDARD.decode(coded).unwrap();
    let shown = image::load_from_memory(&bytes).unwrap().into_rgb8();
    let judged = image::open(folder.path("cases/images/1.png")).unwrap();
    assert_eq!(shown, judged.into_rgb8());
    // Another image of this name is not what was judged.
    fs::copy(
        folder.path("cases/images/0.png"),
        folder.path("cases/images/1.png"),
    )
    .unwrap();
    let said = folder.run(&["report", "--resamples", "50", "out"]);
    assert_eq!(pictures(&said.out), 1);
    let told = "1 image not shown: not the bytes that were judged";
    assert!(
        said.err.contains(told) && said.out.contains(told),
        "{}",
        said.err
    );
    fs::rename(folder.path("cases"), folder.path("moved")).unwrap();
    let said = folder.run(&["report", "--resamples", "50", "out"]);
    assert!(said.err.contains("--images PATH"), "{}", said.err);
    let found = report(&folder, &["out", "--images", "moved"]);
    assert_eq!(pictures(&found), 1);
}

#[test]
fn two_judges_stand_side_by_side_on_the_same_sides() {
    let folder = judged(6);
    let turned = |i: usize| {
        let mut case = case(i);
        case["responses"].as_array_mut().unwrap().reverse();
        case["labels"] = json!({"final": [1.5, 4]});
        case
    };
    folder.write_cases(&(0..6).map(turned).collect::<Vec<_>>());
    let other = [
        "judge",
        "cases",
        "--out",
        "other",
        "--panel",
        "scripted:seed=9",
    ];
    assert_eq!(folder.run(&other).code, 0);
    let page = report(&folder, &["out", "other"]);
    let index = data(&page, "index");
    let details = data(&page, "details-0");
    assert_eq!(index["judges"].as_array().unwrap().len(), 2);
    assert_eq!(index["entries"].as_array().unwrap().len(), 6);
    let records = folder.records("other");
    for (i, record) in records.iter().enumerate() {
        let entry = &index["entries"][i];
        let turn = |pair: &Value| json!([pair[1], pair[0]]);
        assert_eq!(entry["models"], turn(&record["pair"]));
        assert_eq!(entry["verdicts"][1]["scores"], turn(&record["scores"]));
        let orders = &details[i][1]["orders"];
        // What was shown first there is the second answer here.
        assert_eq!(orders[0]["swapped"], true);
        let analyses = turn(&record["orders"][0]["conclusion"]["analyses"]);
        assert_eq!(orders[0]["conclusion"]["analyses"], analyses);
        assert_eq!(entry["label"], ">");
        assert_eq!(entry["labels"], json!([4.0, 1.5]));
    }
    assert!(page.contains("Judges compared"), "no comparison");
    let table = report(&folder, &["out", "other", "--format", "csv"]);
    assert_eq!(table.lines().count(), 13);
    let said = folder.run(&["report", "out", "out"]);
    assert!(
        said.code == 2 && said.err.contains("verdicts of the same judge"),
        "{}",
        said.err
    );
}

/// A DICOM image is shown through the window through which it was judged, and nothing else of it comes along.
#[test]
fn a_dicom_image_is_shown_as_it_was_judged() {
    let folder = Folder::of(1);
    let golden = include_bytes!("../../assets/golden/dicom/ct.dcm");
    fs::write(folder.path("cases/images/0.png"), golden).unwrap();
    for (out, window) in [
        ("file", None),
        ("auto", Some("auto")),
        ("given", Some("40,80")),
    ] {
        let more: Vec<&str> = window.iter().flat_map(|w| ["--window", w]).collect();
        assert_eq!(folder.judge(out, &more).code, 0);
        let page = report(&folder, &[out, "--thumbnails", "full"]);
        let uri = script(&page, "picture-0");
        let coded = uri.strip_prefix("data:image/png;base64,").unwrap();
        let shown = image::load_from_memory(&STANDARD.decode(coded).unwrap()).unwrap();
        let view = acem3_vision::View {
            window: window.map_or_else(Default::default, |w| w.parse().unwrap()),
            frame: None,
        };
        let judged = acem3_vision::decode_view(golden, &acem3_vision::Limits::default(), &view);
        assert_eq!(
            shown.into_rgb8().into_raw(),
            judged.unwrap().data(),
            "{out}"
        );
    }
}
