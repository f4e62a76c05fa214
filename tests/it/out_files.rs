//! `--out` replaces nothing but an earlier output of the same form.

use std::fs;
use std::process::Stdio;

use crate::folder::{Folder, program_output};

/// Creates a folder with 12 judged cases.
fn judged_folder() -> Folder {
    let folder = Folder::with_cases(12);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

/// Commands that write a file, by the form of the file.
const WRITERS: [&[&str]; 8] = [
    &["report", "out", "--format", "html", "--resamples", "20"],
    &["report", "out", "--format", "markdown", "--resamples", "20"],
    &["report", "out", "--format", "json", "--resamples", "20"],
    &["report", "out", "--format", "csv", "--resamples", "20"],
    &["report", "out", "--format", "parquet", "--resamples", "20"],
    &["audit", "out", "--resamples", "20"],
    &["metrics", "cases"],
    &["calibrate", "fit", "out", "--resamples", "20"],
];

fn run(folder: &Folder, args: &[&str], out: &str) -> (i32, String) {
    let output = folder.run(&[args, &["--out", out]].concat());
    (output.exit_code, output.stderr)
}

#[test]
fn files_of_another_form_are_kept() {
    let folder = judged_folder();
    for (i, writer) in WRITERS.iter().enumerate() {
        assert_eq!(run(&folder, writer, &format!("own-{i}")).0, 0, "{writer:?}");
    }
    folder.write("notes.md", "# Notes\n\n## Summary\n");
    folder.write("page.html", "<!DOCTYPE html>\n<p>mine</p>\n");
    folder.write("table.csv", "case,line,model\n1,2,a\n");
    folder.write("panel.safetensors", "\u{2}\0\0\0\0\0\0\0{}");
    let check = |writer: usize, other: &str| {
        let before = fs::read(folder.path(other)).unwrap();
        let (exit_code, stderr) = run(&folder, WRITERS[writer], other);
        let what = format!("{:?} --out {other}: {stderr}", WRITERS[writer]);
        if other == format!("own-{writer}") {
            assert_eq!(exit_code, 0, "{what}");
            return;
        }
        assert_eq!(exit_code, 2, "{what}");
        assert!(stderr.contains(&format!("--out {other}: ")), "{what}");
        assert!(stderr.contains("hint: choose another file"), "{what}");
        assert!(fs::read(folder.path(other)).unwrap() == before, "{what}");
    };
    for writer in 0..WRITERS.len() {
        (0..WRITERS.len()).for_each(|other| check(writer, &format!("own-{other}")));
    }
    let others = ["page.html", "notes.md", "out/run.json", "table.csv", "panel.safetensors"];
    let others =
        others.into_iter().chain(["out/records.jsonl", "cases/cases.jsonl", "out/run.json"]);
    others.enumerate().for_each(|(writer, other)| check(writer, other));
    // An empty file has nothing to lose.
    folder.write("empty", "");
    assert_eq!(run(&folder, WRITERS[0], "empty").0, 0);
}

#[test]
fn inputs_of_the_same_form_are_kept() {
    let folder = judged_folder();
    let fit = ["calibrate", "fit", "out", "--resamples", "20"];
    assert_eq!(run(&folder, &fit, "map.json").0, 0);
    let apply = ["calibrate", "apply", "out", "--calibration", "map.json", "--resamples", "20"];
    assert_eq!(run(&folder, &apply, "mapped.jsonl").0, 0);
    assert_eq!(run(&folder, &apply, "mapped.jsonl").0, 0);
    fs::hard_link(folder.path("mapped.jsonl"), folder.path("hard.jsonl")).unwrap();
    let before = folder.read("mapped.jsonl");
    let again =
        ["calibrate", "apply", "mapped.jsonl", "--calibration", "map.json", "--resamples", "20"];
    let mut names = vec!["mapped.jsonl", "./out/../mapped.jsonl", "hard.jsonl"];
    if cfg!(unix) {
        #[cfg(unix)]
        std::os::unix::fs::symlink("mapped.jsonl", folder.path("soft.jsonl")).unwrap();
        names.push("soft.jsonl");
    }
    for name in names {
        let (exit_code, stderr) = run(&folder, &again, name);
        assert_eq!(exit_code, 2, "{name}");
        assert!(stderr.contains("is an input of this command (mapped.jsonl)"), "{stderr}");
        assert_eq!(folder.read("mapped.jsonl"), before);
    }
    // Records of a run are no calibrated records, even if they are no input.
    assert_eq!(folder.judge("other", &[]).exit_code, 0);
    assert_eq!(run(&folder, &again, "other/records.jsonl").0, 2);
}

#[test]
fn run_folder_keeps_inputs_and_foreign_locks() {
    let folder = judged_folder();
    let records = folder.read("out/records.jsonl");
    let output =
        folder.run(&["judge", "out/records.jsonl", "--out", "out", "--panel", "scripted:"]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("its records.jsonl is an input"), "{}", output.stderr);
    assert_eq!(folder.read("out/records.jsonl"), records);
    folder.write("locked/.lock", "token = secret\n");
    let output = folder.judge("locked", &[]);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains(".lock: not a lock file of acem3"), "{}", output.stderr);
    assert_eq!(folder.read("locked/.lock"), "token = secret\n");
    folder.write("pages/acem3-judge.1", "mine");
    let output = folder.run(&["man", "--out", "pages"]);
    assert_eq!(output.exit_code, 2);
    assert_eq!(folder.read("pages/acem3-judge.1"), "mine");
    fs::remove_file(folder.path("pages/acem3-judge.1")).unwrap();
    for _ in 0..2 {
        assert_eq!(folder.run(&["man", "--out", "pages"]).exit_code, 0);
    }
}

/// A comparison checks its result files before it trains anything.
#[test]
fn results_of_comparisons_replace_only_their_own() {
    let folder = Folder::empty();
    let encoders = [
        "encoders",
        "random:1",
        "random:2",
        "--probe-only",
        "--train-cases",
        "4",
        "--test-cases",
        "4",
        "--out",
        "enc",
    ];
    folder.write("enc/probe.svg", "<svg xmlns='mine'/>");
    let output = folder.run(&encoders);
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("probe.svg: already exists"), "{}", output.stderr);
    assert!(!folder.path("enc/probe.json").exists());
    fs::remove_file(folder.path("enc/probe.svg")).unwrap();
    for _ in 0..2 {
        let output = folder.run(&encoders);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
    }
}

#[cfg(unix)]
#[test]
fn streams_and_links_are_never_replaced() {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
    let folder = judged_folder();
    let json = ["report", "out", "--format", "json", "--resamples", "20"];
    let printed = folder.run(&json).stdout;
    assert_eq!(run(&folder, &json, "report.json").0, 0);
    assert_eq!(folder.read("report.json"), printed);
    // A pipe receives the report.
    let status = std::process::Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(status.success());
    let mut command = folder.command(&[&json[..], &["--out", "pipe"]].concat());
    let writer = command.stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(folder.read("pipe"), printed);
    assert_eq!(writer.wait_with_output().unwrap().status.code(), Some(0));
    assert!(fs::metadata(folder.path("pipe")).unwrap().file_type().is_fifo());
    // So does the standard output, also in a file.
    let redirected = fs::File::create(folder.path("redirected")).unwrap();
    let mut command = folder.command(&[&json[..], &["--out", "/dev/stdout"]].concat());
    let output = command.stdout(Stdio::from(redirected)).output().unwrap();
    assert_eq!(program_output(&output).exit_code, 0);
    assert_eq!(folder.read("redirected"), printed);
    // A link stays, and the file behind it keeps its permissions.
    let target = folder.path("report.json");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("report.json", folder.path("link")).unwrap();
    assert_eq!(run(&folder, &json, "link").0, 0);
    assert!(folder.path("link").is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    // Nothing else is written.
    symlink("missing", folder.path("broken")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o440)).unwrap();
    for (name, message) in [
        ("broken", "a symbolic link to a file that does not exist"),
        ("socket", "is a disk or a socket"),
        ("report.json", "is read-only"),
        ("out", "is a folder, expected a file"),
        ("missing/report.json", "no such folder missing"),
    ] {
        let (exit_code, stderr) = run(&folder, &json, name);
        assert_eq!(exit_code, 2, "{name}");
        assert!(stderr.contains(message) && stderr.contains("hint: "), "{stderr}");
    }
    assert!(folder.path("broken").is_symlink() && !folder.path("missing").exists());
    assert!(fs::metadata(folder.path("socket")).unwrap().file_type().is_socket());
}

#[test]
fn temporary_files_replace_nothing_and_disappear() {
    let folder = judged_folder();
    folder.write("r.part", "precious");
    for extension in ["html", "md"] {
        let name = format!("r.{extension}");
        assert_eq!(run(&folder, &["report", "out", "--resamples", "20"], &name).0, 0);
    }
    assert_eq!(folder.read("r.part"), "precious");
    let mut names: Vec<String> = fs::read_dir(folder.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["cases", "out", "r.html", "r.md", "r.part"]);
}
