//! Tests of the `acem3 train` command.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder::{Folder, program_output};

#[test]
fn config_with_data_sets_warns_without_data_flag() {
    let folder = Folder::with_cases(1);
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/mini/train.toml");
    // `cases` is not a training folder, so the command stops before it trains.
    let output = folder.run(&["train", "run", config, "--out", "cases"]);
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    let warning = "`data_shares` and `real` of the stages have no effect without --data";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
    assert!(output.stderr.contains("do not belong to a training"), "{}", output.stderr);
}

#[test]
fn eval_rejects_empty_set_and_skips_mismatch_of_single_image() {
    let folder = Folder::empty();
    let eval = |n: &str| folder.run(&["train", "eval", "--phantoms", n]);
    let empty = eval("0");
    assert_eq!((empty.exit_code, empty.stdout.as_str()), (2, ""));
    assert!(empty.stderr.contains("nothing to measure\nhint: "), "{}", empty.stderr);
    let single = eval("1");
    assert_eq!(single.exit_code, 0, "{}", single.stderr);
    assert!(
        single.stdout.contains("in brackets: 95 % CI, clustered by image"),
        "{}",
        single.stdout
    );
    assert!(
        single.stdout.contains("phantoms, blank image (1 pair, 0 unscored)"),
        "{}",
        single.stdout
    );
    assert!(!single.stdout.contains("mismatched image"), "{}", single.stdout);
    assert!(single.stderr.contains("the set has only one image"), "{}", single.stderr);
    let limit = folder.run(&["train", "eval", "--limit", "0"]);
    assert_eq!(limit.exit_code, 2);
    assert!(limit.stderr.contains("--limit"), "{}", limit.stderr);
}

#[test]
fn own_images_skips_blank_and_mismatched_images() {
    let folder = Folder::empty();
    let own = folder.run(&["train", "eval", "--phantoms", "2", "--own-images"]);
    assert_eq!((own.exit_code, own.stderr.contains("note")), (0, false), "{}", own.stderr);
    assert!(own.stdout.contains("phantoms, own image (2 pairs, 0 unscored)"), "{}", own.stdout);
    assert!(!own.stdout.contains("blank image") && !own.stdout.contains("mismatched image"));
}

#[cfg(unix)]
#[test]
fn interrupted_commands_exit_130_with_resume_hint() {
    let folder = Folder::empty();
    for args in [
        &["train", "eval", "--phantoms", "100"][..],
        &["data", "phantoms", "--out", "toy", "--count", "100000"],
        &["data", "preferences", "--out", "pref", "--count", "100000"],
    ] {
        let mut command = folder.command(args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let kill_status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill_status.unwrap().success());
        let output = program_output(&child.wait_with_output().unwrap());
        assert_eq!(output.exit_code, 130, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("interrupted; "), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("same command"), "{args:?}: {}", output.stderr);
    }
}
