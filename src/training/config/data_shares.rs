//! Checks of the sampling weights of data sets.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::stage::stage_config::StageConfig;
use crate::data::dataset_rows::TRAINING_SETS;

/// Checks the weights of a training and of its stages. The training reads only data sets that it has a
/// weight for.
pub(super) fn check_data_shares(
    shares: &BTreeMap<String, f64>,
    stages: &[StageConfig],
) -> Result<()> {
    check_weights(shares)?;
    for stage in stages {
        let is_read =
            |name: &str| shares.is_empty() || shares.get(name).is_some_and(|weight| *weight > 0.0);
        check_weights(&stage.data_shares)
            .and_then(|()| match stage.data_shares.keys().find(|name| !is_read(name)) {
                Some(name) => bail!(
                    "data_shares: the training has no weight for {name}\n\
                     hint: add it to `data_shares` at the top of the configuration"
                ),
                None => Ok(()),
            })
            .with_context(|| format!("stage {:?}", stage.name))?;
    }
    Ok(())
}

fn check_weights(shares: &BTreeMap<String, f64>) -> Result<()> {
    for (name, weight) in shares {
        if !TRAINING_SETS.contains(&name.as_str()) {
            let known = TRAINING_SETS.join(", ");
            bail!("data_shares: unknown data set {name:?}, expected one of {known}");
        }
        if !weight.is_finite() || *weight < 0.0 {
            bail!("data_shares: {name} is {weight}, expected a finite number of at least 0");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_sample_data_sets_of_the_training() {
        let check = |training: &[(&str, f64)], stage: &[(&str, f64)]| {
            let shares = |pairs: &[(&str, f64)]| {
                pairs.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect()
            };
            let text = "name = \"a\"\nkind = \"sft\"\nsteps = 1\nbatch = 1\nrate = 1.0";
            let config: StageConfig = toml::from_str(text).unwrap();
            let stages = [StageConfig { data_shares: shares(stage), ..config }];
            check_data_shares(&shares(training), &stages).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(check(&[], &[("slake", 1.0)]), Ok(()));
        assert_eq!(check(&[("slake", 0.5), ("vqa_rad", 0.5)], &[("slake", 1.0)]), Ok(()));
        for (training, stage, expected) in [
            (&[("slake", 1.0)][..], &[("vqa_rad", 1.0)][..], "no weight for vqa_rad"),
            (&[("slake", 1.0)], &[("slake", f64::NAN)], "finite"),
            (&[("other", 1.0)], &[], "unknown data set"),
        ] {
            let error = check(training, stage).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
