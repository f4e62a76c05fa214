//! `acem3 train` as a person meets it.

use crate::folder::Folder;

#[test]
fn what_a_recipe_asks_of_data_sets_is_not_dropped_in_silence() {
    let folder = Folder::of(1);
    let recipe = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/mini/train.toml");
    // The folder is somebody's own, so that it ends here.
    let said = folder.run(&["train", "run", recipe, "--out", "cases"]);
    assert_eq!(said.code, 2, "{}", said.err);
    let unheeded = "data_shares and the stages' `real` are not heeded: without --data";
    assert!(said.err.contains(unheeded), "{}", said.err);
    assert!(said.err.contains("no training's"), "{}", said.err);
}
