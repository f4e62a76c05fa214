//! Errors of later stages are reported before the first stage starts.

use std::path::Path;

use super::{config, prepare, run};
use crate::support::files::folder::list_names;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::{Curriculum, EvaluationConfig, TrainConfig};

/// Returns the error of a training with a changed configuration and checks that no stage has run.
fn preflight_error(change: impl FnOnce(&mut TrainConfig, &Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config();
    change(&mut config, dir.path());
    let out = dir.path().join("run");
    prepare(&config, &out);
    let error = run(&config, &out, &Interrupt::default()).unwrap_err();
    let files = list_names(&out).unwrap();
    assert!(files.iter().all(|name| !name.ends_with(".safetensors")), "{files:?}");
    let error = format!("{error:#}");
    assert!(error.contains("hint: "), "{error}");
    error
}

/// Returns the error of a second stage that trains on a file with the same line twice.
fn evaluation_line_error(line: &str, curriculum: Curriculum) -> String {
    preflight_error(|config, dir| {
        let file = dir.join("evaluations.jsonl");
        std::fs::write(&file, format!("{line}\n{line}\n")).unwrap();
        let mut stage = config.stages[0].clone();
        "evaluations".clone_into(&mut stage.name);
        stage.evaluations =
            Some(EvaluationConfig { file, curriculum, strips_questions: false, cache_dtype: None });
        config.stages[1] = stage;
    })
}

#[test]
fn frozen_names_are_checked_before_training() {
    let all_frozen =
        preflight_error(|config, _| config.stages[1].frozen = vec!["model.".to_owned()]);
    assert!(all_frozen.contains("stage prefer: all weights are frozen"), "{all_frozen}");
    let no_match =
        preflight_error(|config, _| config.stages[1].frozen = vec!["model.lawyers.".to_owned()]);
    assert!(
        no_match.contains("stage prefer: frozen: no weight name begins with \"model.lawyers.\""),
        "{no_match}"
    );
}

#[test]
fn files_are_checked_before_training() {
    let missing = evaluation_line_error(
        r#"{"prompt": "A<image>", "completion": "B", "images": ["x.png"]}"#,
        Curriculum::None,
    );
    assert!(missing.contains("evaluations.jsonl, line 1: missing image"), "{missing}");
    let unrated =
        evaluation_line_error(r#"{"prompt": "A", "completion": "B"}"#, Curriculum::Disjoint);
    assert!(unrated.contains("line 1 has no `quality`"), "{unrated}");
    let no_token = preflight_error(|config, dir| {
        let file = dir.join("pairs.jsonl");
        let pair = r#"{"prompt": "A", "chosen": "B", "rejected": "C"}"#;
        std::fs::write(&file, format!("{pair}\n{pair}\n")).unwrap();
        let preferences = config.stages[1].preferences.as_mut().unwrap();
        (preferences.cases, preferences.file) = (0, Some(file));
    });
    assert!(no_token.contains("a completion does not begin with [Good]"), "{no_token}");
    assert!(no_token.contains("pairs.jsonl, line "), "{no_token}");
}
