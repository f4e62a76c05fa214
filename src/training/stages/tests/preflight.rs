//! What is wrong with a later stage is told before the first one begins.

use std::path::Path;

use super::{config, prepared, run};
use crate::support::files::folder::list_names;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::{EvaluationConfig, TrainConfig};

/// What a training says that is refused before it has learned anything.
fn refusal(change: impl FnOnce(&mut TrainConfig, &Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config();
    change(&mut config, dir.path());
    let out = dir.path().join("run");
    prepared(&config, &out);
    let error = run(&config, &out, &Interrupt::default()).unwrap_err();
    let learned = list_names(&out).unwrap();
    assert!(
        learned.iter().all(|name| !name.ends_with(".safetensors")),
        "{learned:?}"
    );
    let error = format!("{error:#}");
    assert!(error.contains("hint: "), "{error}");
    error
}

/// The second stage learns from a file of one line, twice.
fn learning_from(line: &str, curriculum: bool) -> String {
    refusal(|config, dir| {
        let file = dir.join("evaluations.jsonl");
        std::fs::write(&file, format!("{line}\n{line}\n")).unwrap();
        let mut stage = config.stages[0].clone();
        "given".clone_into(&mut stage.name);
        stage.evaluations = Some(EvaluationConfig {
            file,
            curriculum,
            store: None,
        });
        config.stages[1] = stage;
    })
}

#[test]
fn weights_that_a_later_stage_cannot_train_are_told_at_once() {
    let all = refusal(|config, _| config.stages[1].frozen = vec!["model.".to_owned()]);
    assert!(all.contains("stage prefer: everything is frozen"), "{all}");
    let nothing = refusal(|config, _| config.stages[1].frozen = vec!["model.lawyers.".to_owned()]);
    assert!(
        nothing.contains("stage prefer: frozen names \"model.lawyers.\""),
        "{nothing}"
    );
}

#[test]
fn files_that_a_later_stage_cannot_learn_from_are_told_at_once() {
    let blind = learning_from(
        r#"{"prompt": "A<image>", "completion": "B", "images": ["x.png"]}"#,
        false,
    );
    assert!(
        blind.contains("evaluations.jsonl, line 1: there is no image"),
        "{blind}"
    );
    let unrated = learning_from(r#"{"prompt": "A", "completion": "B"}"#, true);
    assert!(unrated.contains("line 1 has no `quality`"), "{unrated}");
    let bare = refusal(|config, dir| {
        let file = dir.join("pairs.jsonl");
        let pair = r#"{"prompt": "A", "chosen": "B", "rejected": "C"}"#;
        std::fs::write(&file, format!("{pair}\n{pair}\n")).unwrap();
        let preferences = config.stages[1].preferences.as_mut().unwrap();
        (preferences.cases, preferences.file) = (0, Some(file));
    });
    assert!(
        bare.contains("a continuation does not begin with [Good]"),
        "{bare}"
    );
    assert!(bare.contains("pairs.jsonl, line "), "{bare}");
}
