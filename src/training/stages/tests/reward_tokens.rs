//! Trainings with a pair of reward tokens for each member.

use std::path::Path;

use acem3_experts::train::Sequence;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{config, panel_file, prepare, run_to_end, sequence_builder, tokenizer};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::examples::sources::phantom_examples;
use crate::training::preferences::negatives::EvaluationRatings;
use crate::training::preferences::preference_sequence::{
    PreferenceSequence, PreferenceSequenceBuilder,
};
use crate::training::preferences::{
    PreferenceFolderConfig, PreferencePair, read_preferences, write_phantom_preferences,
};
use crate::training::{
    FileSequenceBuilder, ImagePreparation, RewardTokenRole, RewardTokens, TrainConfig,
};

/// Tokens of each aspect, and the built-in ones of the conclusion model.
const TOKENS: &str = "expression = { good = \"[Good EXP]\", bad = \"[Bad EXP]\" }\n\
                      medical_knowledge = { good = \"[Good COR]\", bad = \"[Bad COR]\" }\n\
                      patient_relevance = { good = \"[Good REL]\", bad = \"[Bad REL]\" }\n";

fn tokens() -> RewardTokens {
    toml::from_str(TOKENS).unwrap()
}

fn write_pairs(out: &Path, reward_tokens: Option<RewardTokens>) -> Vec<PreferencePair> {
    let folder = PreferenceFolderConfig {
        reward_tokens,
        ..PreferenceFolderConfig::of_phantoms(out.to_owned(), 6)
    };
    write_phantom_preferences(&folder, &Interrupt::default()).unwrap();
    read_preferences(&out.join("preferences.jsonl")).unwrap().items
}

/// Returns the number of tokens with a loss in a branch.
fn loss_count(sequence: &Sequence, branch: u16) -> usize {
    sequence.select_branches(&[branch]).unwrap().0.targets.len()
}

/// The tokens of a member have a loss as targets (RTDPO), and none as context (ADTO).
#[test]
fn generated_pairs_have_the_tokens_of_their_member() {
    let config = config();
    let builder = sequence_builder(&config);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let images = ImagePreparation::of_training(&config).unwrap();
    let pair = phantom_examples::pair_example(1, 2, &images, &mut rng).unwrap();
    let build = |role| {
        let builder = PreferenceSequenceBuilder::new(&builder, role, &tokens()).unwrap();
        let negative = |_: usize, ratings: &EvaluationRatings| {
            let mut negative = ratings.clone();
            negative[0].1 = 5 - negative[0].1;
            Some(negative)
        };
        builder.build(&pair, &pair, &[0, 2, 3], negative).unwrap()
    };
    let (target, context) = (build(RewardTokenRole::Target), build(RewardTokenRole::Context));
    let expected = [["[Good EXP]", "[Bad EXP]"], ["[Good REL]", "[Bad REL]"], ["[Good]", "[Bad]"]];
    for (i, texts) in expected.into_iter().enumerate() {
        for (branch, text) in PreferenceSequence::branches(i).into_iter().zip(texts) {
            let tokens = tokenizer().encode_trusted(text).unwrap();
            let [target, context] = [&target, &context].map(|built| &built[0].sequence);
            let loss = |sequence| loss_count(sequence, branch);
            assert_eq!(loss(target), loss(context) + tokens.len(), "{text}");
            let selected = target.select_branches(&[branch]).unwrap().0.tokens;
            assert!(selected.windows(tokens.len()).any(|part| part == tokens), "{text}");
        }
    }
}

#[test]
fn pairs_of_a_file_have_the_tokens_of_their_member() {
    let dir = tempfile::tempdir().unwrap();
    let pairs = write_pairs(&dir.path().join("tokens"), Some(tokens()));
    let plain = write_pairs(&dir.path().join("plain"), None);
    let (config, tokenizer, per_member) = (config(), tokenizer(), tokens());
    let built_in = RewardTokens::default();
    let images = ImagePreparation::of_training(&config).unwrap();
    let builder = |reward_token_role, reward_tokens| FileSequenceBuilder {
        tokenizer: &tokenizer,
        images: &images,
        reward_token_role,
        reward_tokens,
        strips_reward_tokens: false,
    };
    for (pair, plain) in pairs.iter().zip(&plain).take(4) {
        let sides = per_member.of(pair.member.as_deref().unwrap());
        assert!(pair.completions[0].starts_with(&sides.good), "{pair:?}");
        let target = builder(RewardTokenRole::Target, &per_member).build_preference(pair).unwrap();
        let context =
            builder(RewardTokenRole::Context, &per_member).build_preference(pair).unwrap();
        assert_eq!(target.tokens, context.tokens);
        for (branch, text) in [1, 2].into_iter().zip(sides.sides()) {
            let length = tokenizer.encode_trusted(text).unwrap().len();
            assert_eq!(loss_count(&target, branch), loss_count(&context, branch) + length);
        }
        // Without its tokens, a pair equals the one that was written without.
        let stripping = FileSequenceBuilder {
            strips_reward_tokens: true,
            ..builder(RewardTokenRole::Absent, &per_member)
        };
        let stripped = stripping.build_preference(pair).unwrap();
        let without =
            builder(RewardTokenRole::Absent, &per_member).build_preference(plain).unwrap();
        assert_eq!((&stripped.tokens, &stripped.targets), (&without.tokens, &without.targets));
        let error = |builder: FileSequenceBuilder, pair: &PreferencePair| {
            builder.build_preference(pair).unwrap_err().to_string()
        };
        if sides.good != "[Good]" {
            let other = error(builder(RewardTokenRole::Context, &built_in), pair);
            assert!(other.contains("does not begin with [Good]"), "{other}");
            let other = error(builder(RewardTokenRole::Absent, &per_member), pair);
            assert!(other.contains(&format!("begins with {}", sides.good)), "{other}");
            let swapped = PreferencePair { member: Some("conclusion".to_owned()), ..pair.clone() };
            let other = error(builder(RewardTokenRole::Target, &per_member), &swapped);
            assert!(other.contains("expected [Good]"), "{other}");
            let for_all = PreferencePair { member: None, ..pair.clone() };
            let other = error(builder(RewardTokenRole::Target, &per_member), &for_all);
            assert!(other.contains("no `member`"), "{other}");
        }
    }
}

/// The panel states the tokens of each member, and a training that starts from it keeps them.
#[test]
fn panel_states_the_tokens_of_each_member() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config();
    config.reward_tokens = tokens();
    config.stages[0].has_reward_token = true;
    config.stages[1].steps = 1;
    let out = dir.path().join("run");
    prepare(&config, &out);
    run_to_end(&config, &out);
    let spec = PanelSpec::parse(std::str::from_utf8(&panel_file(&out, PANEL_FILE)).unwrap());
    let spec = spec.unwrap();
    let good = ["[Good EXP]", "[Good COR]", "[Good REL]", "[Good]"];
    assert_eq!(spec.completion_prefixes(), good);
    assert_eq!(spec.rejected_prefixes(), ["[Bad EXP]", "[Bad COR]", "[Bad REL]", "[Bad]"]);
    let load = |table: &str| {
        let path = dir.path().join("next.toml");
        let text = format!(
            "name = \"next\"\nstart = \"run/panel\"\nseed = 1\ntrunk_layers = 1\n{table}\n\
             [[stages]]\nname = \"more\"\nkind = \"adto\"\nsteps = 1\nbatch = 1\nrate = 1e-3\n\
             members = [\"expression\"]\nfrozen_layers = 1\n[stages.preferences]\ncases = 2\n"
        );
        std::fs::write(&path, text).unwrap();
        (TrainConfig::load(&path, HubDownloads::default()), RewardTokens::read(&path))
    };
    let (loaded, read) = load("");
    assert_eq!(loaded.unwrap().0.reward_tokens.good(MemberNames::default()), good);
    assert_eq!(read.unwrap().good(MemberNames::default()), good);
    let (loaded, read) = load("[reward_tokens]\nexpression = { good = \"[+]\", bad = \"[-]\" }");
    let expected = ["[+]", "[Good COR]", "[Good REL]", "[Good]"];
    assert_eq!(loaded.unwrap().0.reward_tokens.good(MemberNames::default()), expected);
    assert_eq!(read.unwrap().good(MemberNames::default()), expected);
    let (unused, _) = load("[reward_tokens]\nconclusion = { good = \"[+]\", bad = \"[-]\" }");
    let unused = format!("{:#}", unused.map(drop).unwrap_err());
    assert!(unused.contains("no stage trains conclusion with reward tokens"), "{unused}");
}
