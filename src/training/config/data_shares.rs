//! Sampling weights of data sets.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::data::dataset_rows::TRAINING_SETS;

/// Sampling weights of data sets by name. An empty table of a stage stands for that of the training.
pub(crate) type DataShares = BTreeMap<String, f64>;

/// Checks the weights of a training and of its stages, by the name of the stage. A stage can sample only data
/// sets that the training reads.
pub(super) fn check_data_shares<'a>(
    shares: &DataShares,
    stages: impl Iterator<Item = (&'a str, &'a DataShares)>,
) -> Result<()> {
    check_weights(shares)?;
    let is_read =
        |name: &str| shares.is_empty() || shares.get(name).is_some_and(|weight| *weight > 0.0);
    for (stage, shares) in stages {
        let context = || format!("stage {stage:?}");
        check_weights(shares).with_context(context)?;
        if let Some(name) = shares.keys().find(|name| !is_read(name)) {
            let error = anyhow!(
                "data_shares: the training has no weight for {name}\n\
                 hint: add it to `data_shares` at the top of the configuration"
            );
            return Err(error).with_context(context);
        }
    }
    Ok(())
}

fn check_weights(shares: &DataShares) -> Result<()> {
    for (name, weight) in shares {
        if !TRAINING_SETS.contains(&name.as_str()) {
            let known = TRAINING_SETS.join(", ");
            bail!("data_shares: unknown data set {name:?}, expected one of {known}");
        }
        if !weight.is_finite() || *weight < 0.0 {
            bail!("data_shares: {name} is {weight}, expected a finite number of at least 0");
        }
    }
    if !shares.is_empty() && shares.values().all(|weight| *weight <= 0.0) {
        bail!(
            "data_shares: all weights are 0\nhint: raise one of them, or use `real = 0` for phantoms only"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_sample_data_sets_of_the_training() {
        let check = |training: &[(&str, f64)], stage: &[(&str, f64)]| {
            let shares = |pairs: &[(&str, f64)]| -> DataShares {
                pairs.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect()
            };
            let stages = [("a", &shares(stage))];
            check_data_shares(&shares(training), stages.into_iter())
                .map_err(|error| format!("{error:#}"))
        };
        assert_eq!(check(&[], &[("slake", 1.0)]), Ok(()));
        assert_eq!(check(&[("slake", 0.5), ("vqa_rad", 0.5)], &[("slake", 1.0)]), Ok(()));
        for (training, stage, expected) in [
            (&[("slake", 1.0)][..], &[("vqa_rad", 1.0)][..], "no weight for vqa_rad"),
            (&[("slake", 1.0)], &[("slake", f64::NAN)], "finite"),
            (&[("slake", 1.0)], &[("slake", 0.0)], "all weights are 0"),
            (&[("other", 1.0)], &[], "unknown data set"),
        ] {
            let error = check(training, stage).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
