//! The report in a real browser at phone and desktop widths, in light and dark mode: no console
//! errors, no `axe` violations, and every control works by mouse and keyboard.
//!
//! `ACEM3_BROWSER` is a Node folder with the packages of `tests/browser/package.json`.
//! `ACEM3_CHROMIUM` is the path of the browser, if it is not in `/usr/bin`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::folder::{Folder, valid_case};

/// Returns the folder of Node modules and the browser, if both exist.
pub(crate) fn find_browser() -> Option<(PathBuf, PathBuf)> {
    let modules = PathBuf::from(std::env::var_os("ACEM3_BROWSER")?);
    let modules = [modules.join("node_modules"), modules].into_iter().find(|folder| {
        folder.join("playwright-core").is_dir() && folder.join("axe-core").is_dir()
    })?;
    let configured = std::env::var_os("ACEM3_CHROMIUM").map(PathBuf::from);
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let mut found = configured.into_iter().chain(known.map(PathBuf::from));
    Some((modules, found.find(|path| path.is_file())?))
}

/// Runs a script of `tests/browser` with the folder of modules, the browser and these arguments, and
/// returns what it printed. Returns `None` if there is no browser.
#[expect(clippy::print_stderr, reason = "prints the reason for skipped tests")]
pub(crate) fn run_in_browser(script: &str, args: &[&str]) -> Option<String> {
    let Some((modules, chromium)) = find_browser() else {
        eprintln!(
            "skipped: ACEM3_BROWSER is not a folder with playwright-core and axe-core, or chromium is missing"
        );
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(script);
    let mut command = Command::new("node");
    let run = command.arg(script).args([&modules, &chromium]).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}", text(&run.stderr));
    Some(text(&run.stdout))
}

#[expect(clippy::print_stderr, reason = "prints what the script found")]
fn check_page(folder: &Folder, page: &str, expected: &serde_json::Value) {
    let path = folder.path(page);
    let args = [path.to_str().unwrap(), &expected.to_string()];
    if let Some(printed) = run_in_browser("report.cjs", &args) {
        eprintln!("{page}: {}", printed.trim());
    }
}

/// Judges cases with hostile and long texts in two scripts, and one case without its image file.
fn judged_folder(n: usize) -> Folder {
    let folder = Folder::with_cases(n);
    let hostile = "</script><img src=x onerror=alert(1)><b>";
    let test_case = |i: usize| {
        let mut case = valid_case(i);
        case["reference"] = json!(if i.is_multiple_of(3) { hostile } else { "لا شيء" });
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
    folder.write_cases(&(0..n).map(test_case).collect::<Vec<_>>());
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

fn count_flips(folder: &Folder) -> usize {
    folder.records("out").iter().filter(|r| r["flip"] == true).count()
}

#[test]
fn report_works_in_a_browser() {
    let folder = judged_folder(60);
    let output = folder.run(&["report", "out", "--resamples", "50", "--out", "one.html"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let expected =
        json!({"entries": 60, "flips": count_flips(&folder), "search": "shown in 59?", "found": 1});
    check_page(&folder, "one.html", &expected);
}

#[test]
fn report_of_two_judges_works_in_a_browser() {
    let folder = judged_folder(8);
    let other =
        ["judge", "cases", "--out", "other", "--panel", "scripted:seed=9", "--single-order"];
    assert_eq!(folder.run(&other).exit_code, 0);
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
    let output = folder.run(&args);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let expected =
        json!({"entries": 8, "flips": count_flips(&folder), "search": "nothing, 7", "found": 1});
    check_page(&folder, "two.html", &expected);
}

#[test]
fn report_on_correctness_works_in_a_browser() {
    let folder = judged_folder(20);
    assert_eq!(folder.judge("graded", &["--form", "correctness"]).exit_code, 0);
    let output = folder.run(&["report", "graded", "--resamples", "50", "--out", "graded.html"]);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    let records = folder.records("graded");
    let count = |is: &dyn Fn(&serde_json::Value) -> bool| records.iter().filter(|r| is(r)).count();
    let grades = json!({
        "correct": count(&|r| r["scores"] == json!([1.0])),
        "wrong": count(&|r| r["scores"] == json!([0.0])),
        "unscored": count(&|r| r["status"] == "unscored"),
    });
    let expected = json!({"entries": 40, "grades": grades, "search": "shown in 19?", "found": 2});
    check_page(&folder, "graded.html", &expected);
}
