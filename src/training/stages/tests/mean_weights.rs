//! A stage that takes the mean of the weights of two earlier ones.

use super::*;

const MEAN: &str = r#"
[[stages]]
name = "mean"
kind = "mean"
mean_with = "sft"
"#;

#[test]
fn next_stage_begins_with_the_mean_of_two_earlier_ones() {
    let dir = tempfile::tempdir().unwrap();
    let config: TrainConfig = toml::from_str(&format!("{CONFIG}{MEAN}{JOINED}")).unwrap();
    prepare(&config, dir.path());
    run_to_end(&config, dir.path());
    let [mean, first, second] = ["joined", "sft", "prefer.medical_knowledge"]
        .map(|name| checkpoint(dir.path(), &format!("{name}.safetensors")));
    let expected = first.iter().filter_map(|(name, tensor)| {
        let sum = (tensor + second.get(name)?).unwrap();
        Some((name.clone(), (sum * 0.5).unwrap()))
    });
    assert!(largest_difference(&mean, &expected.collect()) < 1e-6);
    assert!(largest_difference(&mean, &first) > 1e-4);
}

#[test]
fn mean_can_be_the_last_stage() {
    let dir = tempfile::tempdir().unwrap();
    let config: TrainConfig = toml::from_str(&format!("{CONFIG}{MEAN}")).unwrap();
    prepare(&config, dir.path());
    run_to_end(&config, dir.path());
    let files = ["trunk.safetensors", "conclusion.safetensors", "expression.safetensors"];
    let panel = files.map(|file| panel_file(dir.path(), file));
    // The members that the second stage trains differ from the others.
    assert_ne!(panel[1], panel[2]);
    let trained = checkpoint(dir.path(), "prefer.conclusion.safetensors");
    let averaged = load_checkpoint(&dir.path().join("panel/conclusion.safetensors"), None).unwrap();
    assert!(!averaged.is_empty());
    for (name, tensor) in averaged {
        let first = &checkpoint(dir.path(), "sft.safetensors")[&name];
        let mean = ((first + &trained[&name]).unwrap() * 0.5).unwrap();
        let [mean, tensor] = [mean, tensor].map(|t| t.to_dtype(candle::DType::F16).unwrap());
        assert_eq!(
            mean.flatten_all().unwrap().to_vec1::<half::f16>().unwrap(),
            tensor.flatten_all().unwrap().to_vec1::<half::f16>().unwrap(),
            "{name}"
        );
    }
    // The same command writes the same panel.
    std::fs::remove_dir_all(dir.path().join("panel")).unwrap();
    run_to_end(&config, dir.path());
    assert_eq!(panel, files.map(|file| panel_file(dir.path(), file)));
}

#[test]
fn mean_needs_the_decoder_of_both_stages() {
    let encoder =
        "[[stages]]\nname = \"encoder\"\nkind = \"encoder\"\nsteps = 1\nbatch = 2\nrate = 1e-3\n";
    let stages = CONFIG.replacen("[[stages]]", &format!("{encoder}\n[[stages]]"), 1);
    let read = |mean_with: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.toml");
        let mean = MEAN.replace("\"sft\"", &format!("{mean_with:?}"));
        std::fs::write(&path, format!("{stages}{mean}")).unwrap();
        TrainConfig::read(&path)
    };
    read("sft").unwrap();
    let error = format!("{:#}", read("encoder").unwrap_err());
    assert!(error.contains("encoder trains the encoder alone"), "{error}");
}

#[test]
fn mean_needs_an_earlier_stage_and_no_keys_of_a_training() {
    let error = |from: &str, to: &str| {
        let stage = MEAN.replace(from, to);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.toml");
        std::fs::write(&path, format!("{CONFIG}{stage}")).unwrap();
        format!("{:#}", TrainConfig::read(&path).unwrap_err())
    };
    for name in ["mean", "unknown"] {
        let error = error("mean_with = \"sft\"", &format!("mean_with = \"{name}\""));
        assert!(error.contains("mean_with: no earlier stage") && error.contains(name), "{error}");
    }
    let missing = error("mean_with = \"sft\"", "");
    assert!(missing.contains("requires `mean_with`"), "{missing}");
    let trained = error("mean_with", "steps = 3\nmean_with");
    assert!(trained.contains("steps has no effect"), "{trained}");
    let other = error("kind = \"mean\"", "kind = \"sft\"");
    assert!(other.contains("mean_with requires kind"), "{other}");
}
