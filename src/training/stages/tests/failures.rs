//! Trainings that fail or stop, and resume.

use std::path::Path;
use std::time::Duration;

use super::{run, run_to_end, supervised};
use crate::support::terminal::exit::RunFailure;
use crate::support::terminal::interrupt::Interrupt;

#[test]
fn nan_loss_fails_run_and_allows_corrected_start() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path();
    let error = run(&supervised(1e38, out), out, &Interrupt::default()).unwrap_err();
    assert!(error.downcast_ref::<RunFailure>().is_some(), "{error:#}");
    assert!(format!("{error:#}").contains("NaN"), "{error:#}");
    run_to_end(&supervised(1e-4, out), out);
    assert!(out.join("panel/panel.toml").is_file());
}

#[test]
fn damaged_checkpoint_of_a_finished_stage_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path();
    let config = supervised(1e-4, out);
    run_to_end(&config, out);
    let path = out.join("sft.safetensors");
    let weights = std::fs::read(&path).unwrap();
    let mut infinite = weights.clone();
    let end = infinite.len() - 8;
    infinite[end..].fill(0xff);
    let no_weights = [&2_u64.to_le_bytes()[..], b"{}"].concat();
    for (bytes, problem) in [(no_weights, "it has no weights"), (infinite, "are no numbers")] {
        std::fs::remove_dir_all(out.join("panel")).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let error = format!("{:#}", run(&config, out, &Interrupt::default()).unwrap_err());
        for part in ["sft.safetensors: a damaged checkpoint", problem, "hint: delete it"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!out.join("panel/panel.toml").exists());
        std::fs::write(&path, &weights).unwrap();
        run_to_end(&config, out);
    }
}

/// A stage that fails late resumes at its last validation with a lower learning rate.
#[test]
fn stage_resumes_with_lower_learning_rate() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path();
    let config_with_six_steps = |out: &Path| {
        let mut config = supervised(1e-3, out);
        (config.stages[0].steps, config.stages[0].validate_every) = (6, Some(1));
        config
    };
    let config = config_with_six_steps(out);
    let interrupt = Interrupt::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !out.join("sft.best.json").exists() && !out.join("panel").exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            interrupt.request();
        });
        run(&config, out, &interrupt).unwrap();
    });
    let mut config = config_with_six_steps(&dir.path().join("other"));
    config.stages[0].learning_rate = 1e-4;
    run_to_end(&config, out);
    let text = std::fs::read_to_string(out.join("sft.metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        Some((line["step"].as_u64()?, line["rate"].as_f64()?))
    });
    let rates: Vec<(u64, f64)> = lines.flatten().collect();
    let steps: Vec<u64> = rates.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [1, 2, 3, 4, 5, 6], "{text}");
    assert!(rates[0].1 > 5e-4 && rates[5].1 < 1e-4, "{rates:?}");
}
