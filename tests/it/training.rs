//! `acem3 train` as a person meets it.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder::{Folder, said};

#[test]
fn what_a_recipe_asks_of_data_sets_is_not_dropped_in_silence() {
    let folder = Folder::of(1);
    let recipe = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/mini/train.toml");
    // The folder is somebody's own, so that it ends here.
    let said = folder.run(&["train", "run", recipe, "--out", "cases"]);
    assert_eq!(said.code, 2, "{}", said.err);
    let unheeded = "`data_shares` and `real` of the stages have no effect without --data";
    assert!(said.err.contains(unheeded), "{}", said.err);
    assert!(
        said.err.contains("do not belong to a training"),
        "{}",
        said.err
    );
}

#[test]
fn measures_of_nothing_are_refused_and_one_image_is_not_exchanged() {
    let folder = Folder::empty();
    let eval = |n: &str| folder.run(&["train", "eval", "--phantoms", n]);
    let none = eval("0");
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    assert!(
        none.err.contains("nothing to measure\nhint: "),
        "{}",
        none.err
    );
    let one = eval("1");
    assert_eq!(one.code, 0, "{}", one.err);
    assert!(
        one.out.contains("in brackets: 95 % CI, clustered by image"),
        "{}",
        one.out
    );
    assert!(
        one.out
            .contains("phantoms, blank image (1 pair, 0 unscored)"),
        "{}",
        one.out
    );
    assert!(!one.out.contains("exchanged image"), "{}", one.out);
    assert!(one.err.contains("one image alone"), "{}", one.err);
    let limit = folder.run(&["train", "eval", "--limit", "0"]);
    assert_eq!(limit.code, 2);
    assert!(limit.err.contains("--limit"), "{}", limit.err);
}

#[cfg(unix)]
#[test]
fn who_interrupts_is_told_what_became_of_it() {
    let folder = Folder::empty();
    for args in [
        &["train", "eval", "--phantoms", "100"][..],
        &["data", "phantoms", "--out", "toy", "--count", "100000"],
        &["data", "preferences", "--out", "pref", "--count", "100000"],
    ] {
        let mut command = folder.command(args);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let told = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(told.unwrap().success());
        let said = said(&child.wait_with_output().unwrap());
        assert_eq!(said.code, 130, "{args:?}: {}", said.err);
        assert!(said.err.contains("interrupted; "), "{args:?}: {}", said.err);
        assert!(said.err.contains("same command"), "{args:?}: {}", said.err);
    }
}
