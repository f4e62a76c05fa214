//! A training that learns from a file.

use std::path::Path;

use acem3_experts::prompt::Layout;

use super::{config, prepared, run, supervised, tokenizer};
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::{PreferenceFolderConfig, read_evaluations};
use crate::training::{EvaluationConfig, FileSequenceBuilder, Negative, RewardTokenRole};

/// A file of evaluations.
pub(super) fn plan(dir: &Path) -> PreferenceFolderConfig {
    let plan = PreferenceFolderConfig {
        out: dir.join("given"),
        cases: 2,
        seed: 3,
        negatives: Negative::ALL.to_vec(),
        layout: Layout::CaseFirst,
        reward_tokens: false,
    };
    crate::training::preferences::write_phantom_preferences(&plan, &Interrupt::default()).unwrap();
    plan
}

/// Evaluations of a file are learned: at the end the one that validates is likelier than before.
#[test]
fn evaluations_of_a_file_are_learned_as_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path());
    let out = dir.path().join("run");
    let mut config = supervised(3e-3, &out);
    let stage = &mut config.stages[0];
    (stage.steps, stage.validate_every) = (6, Some(1));
    stage.evaluations = Some(EvaluationConfig {
        file: plan.out.join("preferences.jsonl"),
        curriculum: false,
        cache_dtype: None,
    });
    prepared(&config, &out);
    assert!(run(&config, &out, &Interrupt::default()).unwrap());
    let metrics = std::fs::read_to_string(out.join("sft.metrics.jsonl")).unwrap();
    let losses: Vec<f64> = metrics
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter_map(|line| line["validation_loss"].as_f64())
        .collect();
    assert!(losses.len() > 3, "{metrics}");
    assert!(losses.last() < losses.first(), "{losses:?}");
    // The panel begins its texts as those that it learned from did.
    let leads = |run: &Path| {
        let spec = std::fs::read_to_string(run.join("panel").join(PANEL_FILE)).unwrap();
        PanelSpec::parse(&spec).unwrap().leads()
    };
    assert_eq!(leads(&out), [""; 4]);
    config.stages[0].has_reward_token = true;
    let rewarded = dir.path().join("rewarded");
    prepared(&config, &rewarded);
    assert!(run(&config, &rewarded, &Interrupt::default()).unwrap());
    assert_eq!(leads(&rewarded), ["[Good]"; 4]);
    // Without a quality there is no order to come in.
    config.stages[0].evaluations.as_mut().unwrap().curriculum = true;
    let other = dir.path().join("other");
    prepared(&config, &other);
    let error = run(&config, &other, &Interrupt::default()).unwrap_err();
    assert!(
        format!("{error:#}").contains("has no `quality`"),
        "{error:#}"
    );
}

/// A reward token is put before a text that does not bring it, and costs nothing.
#[test]
fn a_reward_token_is_given_before_what_is_learned() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path());
    let all = read_evaluations(&plan.out.join("preferences.jsonl")).unwrap();
    let all = all.items;
    let config = config();
    let writer = FileSequenceBuilder {
        tokenizer: &tokenizer(),
        processor: &config.processor(),
        image_tokens: config.model.image_tokens(),
        reward: RewardTokenRole::Absent,
    };
    let bare = writer.evaluation(&all[0], ["", ""]).unwrap();
    let led = writer.evaluation(&all[0], ["", "[Good]"]).unwrap();
    assert_eq!(led.len(), bare.len() + 1);
    assert_eq!(led.targets.len(), bare.targets.len());
    let mut own = all[0].clone();
    own.text.insert_str(0, "[Good]");
    let own = writer.evaluation(&own, ["", "[Good]"]).unwrap();
    assert_eq!(own.tokens, led.tokens);
    let mut answered = all[0].clone();
    answered.text.insert_str(0, "Well, ");
    let answered = writer.evaluation(&answered, ["Well, ", "[Good]"]).unwrap();
    let text = tokenizer()
        .fixed(&format!("Well, [Good]{}", all[0].text))
        .unwrap();
    assert!(answered.tokens.ends_with(&text));
}
