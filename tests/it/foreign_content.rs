//! Input of other people: names with markup, images outside of the folder, pipes, misspelt names and
//! numbers out of range.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::folder::{Folder, ProgramOutput, program_output, valid_case};

#[test]
fn markdown_has_no_links_or_html_of_the_data() {
    let folder = Folder::empty();
    let models = ["[a](http://evil.example/a)", "www.evil.example|`x` <img src=y>"];
    let cases: Vec<_> = (0..12)
        .map(|i| {
            let mut case = valid_case(i);
            case["image"] = json!(null);
            case["reference"] = json!("a shadow");
            case["id"] = json!(format!("![x](http://evil.example/{i})"));
            for (side, model) in models.iter().enumerate() {
                case["responses"][side]["model"] = json!(model);
            }
            case
        })
        .collect();
    folder.write_cases(&cases);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    for args in [
        &["report", "out", "--format", "markdown", "--resamples", "20"][..],
        &["metrics", "out", "--format", "markdown"],
        &["rank", "out", "--format", "markdown", "--resamples", "20"],
        &["agree", "out", "--format", "markdown", "--resamples", "20"],
        &["audit", "out", "--format", "markdown", "--resamples", "20"],
    ] {
        let output = folder.run(args);
        assert_eq!(output.exit_code, 0, "{args:?}: {}", output.stderr);
        for link in ["](", "http://", "www.e", "<img", "[a]["] {
            assert!(!output.stdout.contains(link), "{args:?}: {link} in {}", output.stdout);
        }
    }
}

#[cfg(unix)]
#[test]
fn images_outside_of_the_folder_are_noted_and_not_shown() {
    let folder = Folder::with_cases(8);
    let image = |name: &str, grey: u8| {
        image::GrayImage::from_pixel(5, 5, image::Luma([grey])).save(folder.path(name)).unwrap();
    };
    image("private-a.png", 201);
    image("private-b.png", 202);
    image("private-c.png", 203);
    std::os::unix::fs::symlink("../../private-c.png", folder.path("cases/images/c.png")).unwrap();
    let mut cases: Vec<_> = (0..8).map(valid_case).collect();
    cases[1]["image"] = json!(folder.path("private-a.png"));
    cases[3]["image"] = json!("images/../../private-b.png");
    cases[5]["image"] = json!("images/c.png");
    folder.write_cases(&cases);
    let judged = folder.judge("out", &[]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    let note = "3 images outside of the folder of the cases (first: ";
    assert!(judged.stderr.contains(note), "{}", judged.stderr);
    let check = folder.run(&["data", "check", "cases"]);
    assert!(check.stderr.contains(note), "{}", check.stderr);
    let report = |name: &str, more: &[&str]| {
        let args = ["report", "out", "--resamples", "20", "--out", name];
        let output = folder.run(&[&args[..], more].concat());
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        (output.stderr, folder.read(name).matches("data:image/jpeg").count())
    };
    let (stderr, shown) = report("safe.html", &[]);
    assert_eq!(shown, 4, "{stderr}");
    assert!(stderr.contains("3 images not shown: outside of the folder"), "{stderr}");
    assert!(stderr.contains("--allow-outside"), "{stderr}");
    let (stderr, shown) = report("all.html", &["--allow-outside"]);
    assert_eq!(shown, 7, "{stderr}");
    // Images within the folder need no note.
    folder.write_cases(&[valid_case(0), valid_case(2)]);
    let judged = folder.judge("inside", &[]);
    assert!(!judged.stderr.contains("outside"), "{}", judged.stderr);
}

/// Runs the program and kills it after a while.
fn run_with_timeout(folder: &Folder, args: &[&str]) -> Option<ProgramOutput> {
    let mut command = folder.command(args);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(program_output(&child.wait_with_output().unwrap()))
}

#[cfg(unix)]
#[test]
fn pipes_and_links_to_them_are_rejected_as_inputs() {
    let folder = Folder::with_cases(2);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir_all(folder.path("panel")).unwrap();
    fs::create_dir_all(folder.path("run")).unwrap();
    fs::create_dir_all(folder.path("published")).unwrap();
    for name in [
        "map.json",
        "labels.csv",
        "members.toml",
        "train.toml",
        "evaluations.jsonl",
        "panel/panel.toml",
        "weights.gguf",
        "run/records.jsonl",
        "published/config.json",
        "cases.jsonl",
    ] {
        std::os::unix::fs::symlink(&pipe, folder.path(name)).unwrap();
    }
    for args in [
        &["report", "out", "--calibration", "map.json", "--out", "r.html"][..],
        &["report", "out", "--audit", "map.json", "--out", "r.html"],
        &["agree", "out", "--labels", "labels.csv"],
        &["rank", "run"],
        &["calibrate", "apply", "out", "--calibration", "map.json"],
        &["panel", "inspect", "members.toml"],
        &["panel", "inspect", "panel"],
        &["panel", "inspect", "published"],
        &["panel", "inspect", "weights.gguf"],
        &["train", "run", "train.toml", "--out", "trained"],
        &["data", "quality", "evaluations.jsonl", "--out", "rated.jsonl"],
        &["data", "preferences", "evaluations.jsonl", "--out", "pairs"],
        &["data", "check", "cases.jsonl"],
        &["judge", "cases", "--out", "judged", "--panel", "scripted:", "--answers", "cases.jsonl"],
        &["judge", "cases", "--out", "run", "--panel", "scripted:"],
        &["encoders", "published", "random:1", "--probe-only", "--out", "enc"],
    ] {
        let Some(output) = run_with_timeout(&folder, args) else { panic!("{args:?} hangs") };
        assert_eq!(output.exit_code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn misspelt_baseline_leaves_a_finished_run_unchanged() {
    let folder = Folder::with_cases(4);
    let baseline = |name: &str| folder.judge("out", &["--baseline", name]);
    assert_eq!(baseline("alpha").exit_code, 0);
    let before = (folder.read("out/records.jsonl"), folder.read("out/run.json"));
    let output = baseline("alhpa");
    assert_eq!(output.exit_code, 2);
    let message = "--baseline alhpa: no case has a response of this model";
    assert!(output.stderr.contains(message), "{}", output.stderr);
    let hint = "hint: did you mean alpha? the models are alpha, beta";
    assert!(output.stderr.contains(hint), "{}", output.stderr);
    assert_eq!((folder.read("out/records.jsonl"), folder.read("out/run.json")), before);
    assert!(!folder.path("out/records.aside.jsonl").exists());
    assert_eq!(folder.judge("new", &["--baseline", "none"]).exit_code, 2);
    assert!(!folder.path("new").exists());
}

#[test]
fn misspelt_fields_are_noted_before_judging() {
    let folder = Folder::with_cases(3);
    let mut cases: Vec<_> = (0..3).map(valid_case).collect();
    let fields = cases[1].as_object_mut().unwrap();
    let image = fields.remove("image").unwrap();
    fields.insert("imgae".to_owned(), image);
    // Other fields are the user's own.
    cases[2]["images"] = json!("an image is in `image`");
    cases[2]["comment"] = json!("kept");
    folder.write_cases(&cases);
    let note = "line 2: the field `imgae` is ignored, and the case has no `image`\n\
                hint: did you mean `image`?\n";
    let outputs = [folder.judge("out", &[]), folder.run(&["data", "check", "cases"])];
    for (output, exit_code) in outputs.iter().zip([0, 1]) {
        assert_eq!(output.exit_code, exit_code, "{}", output.stderr);
        assert!(output.stderr.contains(note), "{}", output.stderr);
        assert_eq!(output.stderr.matches("is ignored").count(), 1, "{}", output.stderr);
    }
    folder.write("table/questions.csv", "id,image,question,refrence\n1,,What is it?,a mass\n");
    folder.write(
        "table/answers/a.jsonl",
        "{\"question_id\": 1, \"text\": \"a\", \"model_id\": \"m\"}\n{\"question_id\": 1, \"text\": \"b\", \"model_id\": \"n\"}\n",
    );
    let output = folder.run(&["data", "check", "table"]);
    assert!(output.stderr.contains("`refrence` is ignored"), "{}", output.stderr);
}

#[test]
fn numbers_out_of_range_in_panels_are_rejected() {
    let mini = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini");
    let spec = fs::read_to_string(mini.join("panel.toml")).unwrap();
    let folder = Folder::empty();
    fs::create_dir_all(folder.path("panel")).unwrap();
    let replace_value = |field: &str, value: &str| {
        let lines = spec.lines().map(|line| match line.split_once(" = ") {
            Some((name, _)) if name == field => format!("{field} = {value}"),
            _ => line.to_owned(),
        });
        let lines: Vec<String> = lines.collect();
        assert_ne!(lines.join("\n"), spec.trim_end(), "{field}");
        folder.write("panel/panel.toml", &lines.join("\n"));
    };
    for (field, value) in [
        ("analysis_tokens", "1000000000000"),
        ("analysis_tokens", "0"),
        ("rescale_factor", "-0.00392156862745098"),
        ("rescale_factor", "0.0"),
        ("rescale_factor", "nan"),
        ("rms_norm_eps", "inf"),
        ("rope_theta", "-1.0"),
        ("layer_norm_eps", "nan"),
        ("vocab_size", "1000000000000"),
    ] {
        replace_value(field, value);
        let output = folder.run(&["panel", "inspect", "panel"]);
        assert_eq!(output.exit_code, 2, "{field} = {value}: {}", output.stdout);
        for part in ["panel.toml", field, "expected"] {
            assert!(output.stderr.contains(part), "{field} = {value}: {}", output.stderr);
        }
    }
    folder.write(
        "members.toml",
        "schema = 1\nanalysis_tokens = 1000000000000\n[members]\nexpression = \"a\"\n\
         medical_knowledge = \"a\"\npatient_relevance = \"a\"\nconclusion = \"a\"\n",
    );
    let output = folder.run(&["panel", "inspect", "members.toml"]);
    assert!(output.stderr.contains("analysis_tokens is 1000000000000"), "{}", output.stderr);
}

#[test]
fn image_under_another_name_is_a_problem_a_note_and_a_line_of_the_summary() {
    let folder = Folder::with_cases(3);
    let mut cases: Vec<_> = (0..3).map(valid_case).collect();
    for case in &mut cases[1..] {
        let fields = case.as_object_mut().unwrap();
        let image = fields.remove("image").unwrap();
        fields.insert("image_path".to_owned(), image);
    }
    folder.write_cases(&cases);
    let check = folder.run(&["data", "check", "cases"]);
    assert_eq!(check.exit_code, 1, "{}", check.stdout);
    let problem = "the field `image_path` looks like an image and is not read: the case is judged \
                   without an image\n  hint: rename the field to `image`";
    assert_eq!(check.stdout.matches(problem).count(), 2, "{}", check.stdout);
    let judged = folder.judge("out", &[]);
    assert_eq!(judged.exit_code, 0, "{}", judged.stderr);
    let line =
        "images    2 cases have the image in a field that is not read: judged without an image";
    assert!(judged.stdout.contains(line), "{}", judged.stdout);
    assert!(!judged.stdout.contains("noted "), "{}", judged.stdout);
    let noted = folder.records("out").into_iter().filter(|record| record["status"] == "noted");
    assert_eq!(noted.count(), 2);
    assert!(!judged.stderr.contains("no case has an image"), "{}", judged.stderr);
    folder.write_cases(&cases[1..]);
    let judged = folder.judge("blind", &[]);
    let note = "no case has an image (2 cases): the judge sees the texts alone";
    assert!(judged.stderr.contains(note), "{}", judged.stderr);
}

#[test]
fn unreadable_answers_file_is_an_error_with_its_first_problem() {
    let folder = Folder::empty();
    folder.write("questions.csv", "id,image,question\n1,,What is it?\n");
    folder.write(
        "a.jsonl",
        "[\n{\"question_id\": 1, \"text\": \"a\"}\n]\n".replace("1,", "1,,").as_str(),
    );
    folder.write("b.jsonl", "{\"question_id\": 1, \"text\": \"b\"}\n");
    let args = ["judge", "questions.csv", "--answers", "b.jsonl", "--answers", "a.jsonl"];
    let output = folder.run(&[&args[..], &["--out", "out", "--panel", "scripted:"]].concat());
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    let error = "error: answers file a.jsonl: none of 3 lines can be read; line 1: malformed JSON";
    assert!(output.stderr.starts_with(error), "{}", output.stderr);
    assert!(!output.stderr.contains("none of the"), "{}", output.stderr);
}
