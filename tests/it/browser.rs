//! The report in a real browser, at the widths of a phone and a desktop, light and dark: nothing is complained
//! of, `axe` finds nothing, and what a person does works by mouse and by keyboard.
//!
//! `ACEM3_BROWSER` names a folder of node's with what `tests/browser/package.json` asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::folder::{Folder, case};

/// The folder of modules and the browser, if both are there.
fn browser() -> Option<(PathBuf, PathBuf)> {
    let modules = PathBuf::from(std::env::var_os("ACEM3_BROWSER")?);
    let modules = [modules.join("node_modules"), modules]
        .into_iter()
        .find(|folder| {
            folder.join("playwright-core").is_dir() && folder.join("axe-core").is_dir()
        })?;
    let named = std::env::var_os("ACEM3_CHROMIUM").map(PathBuf::from);
    let known = [
        "/usr/bin/chromium",
        "/usr/bin/chromium-browser",
        "/usr/bin/google-chrome",
    ];
    let mut found = named.into_iter().chain(known.map(PathBuf::from));
    Some((modules, found.find(|path| path.is_file())?))
}

#[expect(
    clippy::print_stderr,
    reason = "what axe found, and why a test is passed over, are said"
)]
fn check(folder: &Folder, page: &str, expected: &serde_json::Value) {
    let Some((modules, chromium)) = browser() else {
        eprintln!(
            "skipped: ACEM3_BROWSER names no folder with playwright-core and axe-core, or chromium is missing"
        );
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/report.cjs");
    let run = Command::new("node")
        .arg(script)
        .args([&modules, &chromium, &folder.path(page)])
        .arg(expected.to_string())
        .output()
        .unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}", said(&run.stderr));
    eprintln!("{page}: {}", said(&run.stdout).trim());
}

/// Cases with hostile and long texts, in two scripts, and one whose image is gone.
fn judged(n: usize) -> Folder {
    let folder = Folder::of(n);
    let hostile = "</script><img src=x onerror=alert(1)><b>";
    let of = |i: usize| {
        let mut case = case(i);
        case["reference"] = json!(if i.is_multiple_of(3) {
            hostile
        } else {
            "لا شيء"
        });
        case["meta"] =
            json!({"modality": if i.is_multiple_of(2) { "ct" } else { "mri" }, "side": hostile});
        if i == 2 {
            case["responses"][0]["text"] = json!(format!("{hostile} {}", "long".repeat(100)));
        }
        if i == 5 {
            case["image"] = json!("images/none.png");
        }
        case
    };
    folder.write_cases(&(0..n).map(of).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

fn flips(folder: &Folder) -> usize {
    folder
        .records("out")
        .iter()
        .filter(|r| r["flip"] == true)
        .count()
}

#[test]
fn a_report_is_used_in_a_browser() {
    let folder = judged(60);
    let said = folder.run(&["report", "out", "--resamples", "50", "--out", "one.html"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let expected =
        json!({"entries": 60, "flips": flips(&folder), "word": "shown in 59?", "found": 1});
    check(&folder, "one.html", &expected);
}

#[test]
fn two_judges_are_used_in_a_browser() {
    let folder = judged(8);
    let other = [
        "judge",
        "cases",
        "--out",
        "other",
        "--panel",
        "scripted:seed=9",
        "--single-order",
    ];
    assert_eq!(folder.run(&other).code, 0);
    folder.write(
        "labels.csv",
        "case,model,a,b\nc0,alpha,4,5\nc0,beta,1,2\nc1,alpha,3,3\nc1,beta,4,2\n",
    );
    let args = [
        "report",
        "out",
        "other",
        "--resamples",
        "50",
        "--labels",
        "labels.csv",
        "--rater-columns",
        "a,b",
        "--out",
        "two.html",
    ];
    let said = folder.run(&args);
    assert_eq!(said.code, 0, "{}", said.err);
    let expected = json!({"entries": 8, "flips": flips(&folder), "word": "nothing, 7", "found": 1});
    check(&folder, "two.html", &expected);
}
