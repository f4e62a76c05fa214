//! Trainings on a file of evaluations.

use std::path::Path;

use acem3_experts::prompt::KnowledgePrompt;

use super::{config, prepare, run, run_to_end, supervised, tokenizer};
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::preferences::files::file_sequences::CompletionPrefix;
use crate::training::preferences::{
    PreferenceFolderConfig, read_evaluations, write_phantom_preferences,
};
use crate::training::{Curriculum, EvaluationConfig, FileSequenceBuilder, RewardTokenRole};

/// Writes phantom preference pairs. Read as evaluations, they are their chosen completions.
pub(super) fn write_evaluations(dir: &Path) -> std::path::PathBuf {
    let config = PreferenceFolderConfig::of_phantoms(dir.join("evaluations"), 2);
    write_phantom_preferences(&config, &Interrupt::default()).unwrap();
    config.out.join("preferences.jsonl")
}

#[test]
fn training_on_evaluations_lowers_validation_loss() {
    let dir = tempfile::tempdir().unwrap();
    let file = write_evaluations(dir.path());
    let out = dir.path().join("run");
    let mut config = supervised(3e-3, &out);
    let stage = &mut config.stages[0];
    (stage.steps, stage.validate_every) = (6, Some(1));
    stage.evaluations = Some(EvaluationConfig {
        file,
        curriculum: Curriculum::None,
        strips_questions: false,
        cache_dtype: None,
    });
    prepare(&config, &out);
    run_to_end(&config, &out);
    let metrics = std::fs::read_to_string(out.join("sft.metrics.jsonl")).unwrap();
    let losses: Vec<f64> = metrics
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter_map(|line| line["validation_loss"].as_f64())
        .collect();
    assert!(losses.len() > 3, "{metrics}");
    assert!(losses.last() < losses.first(), "{losses:?}");
    // The trained panel begins its completions with the reward token only if the training did.
    let prefixes = |run: &Path| {
        let spec = std::fs::read_to_string(run.join("panel").join(PANEL_FILE)).unwrap();
        PanelSpec::parse(&spec).unwrap().completion_prefixes()
    };
    assert_eq!(prefixes(&out), [""; 4]);
    config.stages[0].has_reward_token = true;
    let rewarded = dir.path().join("rewarded");
    prepare(&config, &rewarded);
    run_to_end(&config, &rewarded);
    assert_eq!(prefixes(&rewarded), ["[Good]"; 4]);
    // A curriculum requires the field `quality` in each evaluation.
    config.stages[0].evaluations.as_mut().unwrap().curriculum = Curriculum::Overlapping;
    let with_curriculum = dir.path().join("curriculum");
    prepare(&config, &with_curriculum);
    let error = run(&config, &with_curriculum, &Interrupt::default()).unwrap_err();
    assert!(format!("{error:#}").contains("has no `quality`"), "{error:#}");
}

/// What a member reads after a question has no loss, and the tokens that it has in judging.
#[test]
fn evidence_is_context_of_evaluation() {
    let dir = tempfile::tempdir().unwrap();
    let evaluations = read_evaluations(&write_evaluations(dir.path())).unwrap();
    let config = config();
    let builder = FileSequenceBuilder {
        tokenizer: &tokenizer(),
        images: &ImagePreparation::of_training(&config).unwrap(),
        reward_token_role: RewardTokenRole::Absent,
        reward_tokens: &config.reward_tokens,
        strips_reward_tokens: false,
    };
    let prompt = KnowledgePrompt::built_in().unwrap();
    let build = |passages: &str| {
        let mut evaluation = evaluations.items[0].clone();
        let evidence = prompt.render_evidence(passages);
        let asking = format!("Analysis: [Question]: why?\n{evidence}");
        evaluation.text = evaluation.text.replacen("Analysis:", &asking, 1);
        let prefix = CompletionPrefix { template: "", reward_token: "" };
        builder.build_evaluation(&evaluation, prefix).unwrap()
    };
    let [short, long] = ["a lung", "a lung </s> and a lung again"].map(build);
    assert_eq!(short.targets.len(), long.targets.len());
    let tokens = |passages| prompt.tokenize_evidence(passages, &tokenizer()).unwrap();
    let [short_evidence, long_evidence] = ["a lung", "a lung </s> and a lung again"].map(tokens);
    assert_eq!(long.len() - short.len(), long_evidence.len() - short_evidence.len());
    assert!(long.tokens.windows(long_evidence.len()).any(|tokens| tokens == long_evidence));
}

/// A reward token that the text does not contain is added after the template prefix. It is context:
/// it has no loss.
#[test]
fn reward_token_is_context_of_evaluation() {
    let dir = tempfile::tempdir().unwrap();
    let evaluations = read_evaluations(&write_evaluations(dir.path())).unwrap();
    let evaluation = &evaluations.items[0];
    let config = config();
    let builder = FileSequenceBuilder {
        tokenizer: &tokenizer(),
        images: &ImagePreparation::of_training(&config).unwrap(),
        reward_token_role: RewardTokenRole::Absent,
        reward_tokens: &config.reward_tokens,
        strips_reward_tokens: false,
    };
    let prefix = |template, reward_token| CompletionPrefix { template, reward_token };
    let plain = builder.build_evaluation(evaluation, prefix("", "")).unwrap();
    let rewarded = prefix("", "[Good]");
    let added = builder.build_evaluation(evaluation, rewarded).unwrap();
    assert_eq!(added.len(), plain.len() + 1);
    assert_eq!(added.targets.len(), plain.targets.len());
    let mut with_token = evaluation.clone();
    with_token.text.insert_str(0, "[Good]");
    let with_token = builder.build_evaluation(&with_token, rewarded).unwrap();
    assert_eq!(with_token.tokens, added.tokens);
    let mut templated = evaluation.clone();
    templated.text.insert_str(0, "Well, ");
    let templated = builder.build_evaluation(&templated, prefix("Well, ", "[Good]")).unwrap();
    let text = tokenizer().encode_trusted(&format!("Well, [Good]{}", evaluation.text)).unwrap();
    assert!(templated.tokens.ends_with(&text));
}
