//! Hashes of the training data, which a resumed training compares.

use std::fmt;

use anyhow::Result;

use crate::support::digest::Digest;
use crate::training::config::stage::stage_config::StageConfig;
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::validation_split::SPLIT_VERSION;
use crate::training::preferences::{read_evaluations, read_preferences};

/// Word for a training without data sets.
const NO_DATA_SETS: &str = "none";

/// Hashes of the data sets and of the files of stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataDigests {
    /// Hash of the data sets, or `none`.
    pub(crate) data_sets: String,
    /// Name of each stage that reads a file, and the hash of that file.
    stages: Vec<(String, String)>,
}

impl DataDigests {
    /// Hashes the data of a training.
    ///
    /// # Errors
    /// The file of a stage cannot be read.
    pub(crate) fn of_training(config: &TrainConfig, sampler: &ExampleSampler) -> Result<Self> {
        let mut stages = Vec::new();
        for stage in &config.stages {
            if let Some(digest) = file_digest(stage)? {
                stages.push((stage.name.clone(), digest.to_string()));
            }
        }
        Ok(Self::new(sampler.data_digest(), stages))
    }

    /// Combines the hash of the data sets, if any, with those of the files of stages.
    pub(crate) fn new(data_sets: Option<Digest>, stages: Vec<(String, String)>) -> Self {
        let data_sets = data_sets.map_or_else(|| NO_DATA_SETS.to_owned(), |d| d.to_string());
        Self { data_sets, stages }
    }

    /// Reads hashes in the form of [`fmt::Display`]; `None` if the text has another form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let data_sets = lines.next()?.to_owned();
        let stage = |line: &str| {
            let (name, digest) = line.rsplit_once(' ')?;
            Some((name.to_owned(), digest.to_owned()))
        };
        Some(Self { data_sets, stages: lines.map(stage).collect::<Option<_>>()? })
    }

    /// Returns the first stage whose file is not that of `earlier`, among those that `has_started` selects.
    pub(crate) fn first_change(
        &self,
        earlier: &Self,
        has_started: impl Fn(&str) -> bool,
    ) -> Option<&str> {
        let is_changed =
            |stage: &&(String, String)| has_started(&stage.0) && !earlier.stages.contains(stage);
        self.stages.iter().find(is_changed).map(|(name, _)| name.as_str())
    }
}

impl fmt::Display for DataDigests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.data_sets)?;
        self.stages.iter().try_for_each(|(name, digest)| writeln!(f, "{name} {digest}"))
    }
}

/// Returns the hash of the file that a stage reads, and of the rule that splits it.
fn file_digest(stage: &StageConfig) -> Result<Option<Digest>> {
    let preferences = stage.preferences.as_ref().and_then(|preferences| preferences.file.as_ref());
    let digest = match (preferences, &stage.evaluations) {
        (Some(file), _) => read_preferences(file)?.digest,
        (None, Some(evaluations)) => read_evaluations(&evaluations.file)?.digest,
        (None, None) => return Ok(None),
    };
    let split = Digest::sha256(SPLIT_VERSION.as_bytes());
    Ok(Some(Digest::sha256(&[split.as_bytes().as_slice(), digest.as_bytes()].concat())))
}
