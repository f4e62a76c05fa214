//! The images of a study and their windows, and what may change in a study.

use std::fs;
use std::path::{Path, PathBuf};

use crate::annotate::{complete_form, demo_cases};
use crate::annotate_site::{STUDY, Site, annotate_command, demo};
use crate::browser::run_in_browser;

/// Returns a folder with a copy of the demo cases and a study, and the paths of the images.
fn copied_cases() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let cases = dir.path().join("cases");
    fs::create_dir_all(cases.join("images")).unwrap();
    fs::copy(demo().join("cases.jsonl"), cases.join("cases.jsonl")).unwrap();
    let mut images = Vec::new();
    for entry in fs::read_dir(demo().join("images")).unwrap() {
        let entry = entry.unwrap();
        images.push(cases.join("images").join(entry.file_name()));
        fs::copy(entry.path(), images.last().unwrap()).unwrap();
    }
    fs::write(dir.path().join("study.toml"), STUDY).unwrap();
    (dir, images)
}

/// Starts the site of copied cases, and lets a rater save a draft.
fn rate_copied(folder: &Path) {
    let mut command = annotate_command(&folder.join("cases"), folder);
    let site = Site::start_command(command.args(["--listen", "127.0.0.1:0"]));
    assert_eq!(site.post("dr-lee", "/case/1", "action=save&score-0-0=3").status, 200);
}

/// The study belongs to the contents of the images, however the path of the cases is spelled.
#[test]
fn changed_image_is_noticed() {
    let (dir, images) = copied_cases();
    rate_copied(dir.path());
    let run = |cases: &str| {
        let mut command = annotate_command(Path::new(cases), dir.path());
        let output = command.arg("--results").current_dir(dir.path()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let absolute = dir.path().join("cases").display().to_string();
    let spellings = [&absolute, "cases", "./cases", "cases/cases.jsonl"];
    for cases in spellings {
        let (is_written, error) = run(cases);
        assert!(is_written, "{cases}: {error}");
    }
    fs::copy(&images[0], &images[1]).unwrap();
    for cases in spellings {
        let (is_written, error) = run(cases);
        assert!(!is_written && error.contains("different: the images"), "{cases}: {error}");
    }
}

/// Another window shows other pixels, so it is another study.
#[test]
fn changed_window_is_noticed() {
    let (site, dir) = dicom_site();
    assert_eq!(site.post("dr-lee", "/case/1", "action=save&score-0-0=3").status, 200);
    drop(site);
    let run = |window: &str| {
        let mut command = annotate_command(&dir.path().join("cases"), dir.path());
        let output = command.args(["--results", "--window", window]).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(run("file").0);
    let (is_written, error) = run("10,20");
    assert!(!is_written && error.contains("window or frame"), "{error}");
}

#[test]
fn damaged_image_is_noticed_before_the_site_starts() {
    let (dir, images) = copied_cases();
    fs::write(&images[1], b"no image").unwrap();
    let output = annotate_command(&dir.path().join("cases"), dir.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = images[1].file_name().unwrap().to_str().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{error}");
    assert!(error.contains("1 image cannot be shown") && error.contains(name), "{error}");
    assert!(error.contains("hint:"), "{error}");
}

#[test]
fn another_study_does_not_continue_the_ratings() {
    let (dir, _) = copied_cases();
    let cases = dir.path().join("cases");
    // Before the first entry, everything may change.
    for raters in ["[\"dr-lee\"]", "[\"dr-lee\", \"dr-ito\"]"] {
        let study = format!("name = \"Demo study\"\nseed = 5\nraters = {raters}\n");
        fs::write(dir.path().join("study.toml"), study).unwrap();
        let mut command = annotate_command(&cases, dir.path());
        let site = Site::start_command(command.args(["--listen", "127.0.0.1:0"]));
        assert_eq!(site.get("dr-lee", "/").status, 200);
    }
    rate_copied(dir.path());
    fs::write(dir.path().join("study.toml"), STUDY.replace("seed = 5", "seed = 6")).unwrap();
    let results = || {
        let output = annotate_command(&cases, dir.path()).arg("--results").output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(results().contains("different: the seed"), "{}", results());
    fs::remove_file(dir.path().join("out/study.json")).unwrap();
    let error = results();
    assert!(error.contains("study.json") && error.contains("restore the file"), "{error}");
}

/// Returns a site with copied cases, all of whose images are DICOM objects, and its folder.
fn dicom_site() -> (Site, tempfile::TempDir) {
    let (dir, images) = copied_cases();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/golden/dicom/ct.dcm");
    for image in &images {
        fs::copy(&golden, image).unwrap();
    }
    let mut command = annotate_command(&dir.path().join("cases"), dir.path());
    (Site::start_command(command.args(["--listen", "127.0.0.1:0"])), dir)
}

#[test]
fn windows_and_disagreements_work_in_a_browser() {
    let (site, _dir) = dicom_site();
    // Two raters prefer opposite answers of a case, and differ by three points on one criterion.
    let first_answer = |page: &str| {
        let (_, rest) = page.split_once("<h2>Answer A</h2>").unwrap();
        rest.split_once("</p>").unwrap().0.to_owned()
    };
    let page = site.get("dr-lee", "/case/1").text();
    let fields = complete_form(&page, &demo_cases(), "submit");
    assert_eq!(site.post("dr-lee", "/case/1", &fields).status, 303);
    let question = |page: &str| {
        let (_, rest) = page.split_once("<h2>Question</h2>").unwrap();
        rest.split_once("</p>").unwrap().0.to_owned()
    };
    let paths = (1..=demo_cases().len()).map(|case| format!("/case/{case}"));
    let pages = paths.map(|path| (site.get("dr-ito", &path).text(), path));
    let (other, path) = pages.into_iter().find(|(p, _)| question(p) == question(&page)).unwrap();
    let fields = complete_form(&other, &demo_cases(), "submit");
    let side = if first_answer(&other) == first_answer(&page) { "second" } else { "first" };
    let fields = fields.replace("preference=first", &format!("preference={side}"));
    // Factual accuracy is the fifth criterion.
    let changed = fields.split('&').map(|field| match field.strip_prefix("score-4-") {
        None => field.to_owned(),
        Some(rest) => {
            let (response, score) = rest.split_once('=').unwrap();
            format!("score-4-{response}={}", (score.parse::<usize>().unwrap() + 3) % 6)
        }
    });
    let fields = changed.collect::<Vec<_>>().join("&");
    assert_eq!(site.post("dr-ito", &path, &fields).status, 303);
    let links = ["dr-ito", "administrator"].map(|name| site.link(name));
    run_in_browser("annotate_window.cjs", &[&links[0], &links[1]]);
}

/// The window of a DICOM image is that of its file at first; another one stays when a draft is saved.
#[test]
fn window_of_a_dicom_image_stays() {
    let (site, _dir) = dicom_site();
    let page = site.get("dr-lee", "/case/1").text();
    let value = |page: &str, name: &str| {
        let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let of_file = [value(&page, "center"), value(&page, "width")];
    assert!(page.contains("Lung") && page.contains("src=\"/case/1/image\""), "{page}");
    let image = |query: &str| site.get("dr-lee", &format!("/case/1/image{query}"));
    assert_eq!(image("").header("content-type"), Some("image/png"));
    assert_ne!(image("").body, image("?center=40&width=80").body);
    // The button of a preset saves the entries as a draft and comes back with the window.
    let fields = "score-0-0=4&center=1&width=2&window=40,80";
    let page = site.post("dr-lee", "/case/1", fields).text();
    assert_eq!([value(&page, "center"), value(&page, "width")], ["40", "80"]);
    assert!(page.contains("image?center=40&amp;width=80"), "{page}");
    let page = site.post("dr-lee", "/case/1", "action=save&center=30&width=90").text();
    assert_eq!([value(&page, "center"), value(&page, "width")], ["30", "90"]);
    let fields = format!("action=save&center={}&width={}", of_file[0], of_file[1]);
    assert!(site.post("dr-lee", "/case/1", &fields).text().contains("src=\"/case/1/image\""));
}
