//! The file of a study.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use acem3_experts::prompt::Rubric;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

/// Name of the administrator in the column of raters.
pub(crate) const ADJUDICATOR: &str = "adjudicator";
/// Maximum length of the name of a study or rater.
const MAX_NAME: usize = 80;

/// Settings of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyConfig {
    /// Name, which raters see.
    pub name: String,
    /// Seed of the assignment, of the order of the cases and of the sides of the responses.
    #[serde(default)]
    pub seed: u64,
    /// Number of raters that rate each case; all raters by default, and one for decisions.
    #[serde(default)]
    pub overlap: Option<usize>,
    /// Key of a built-in rubric or path of a rubric, relative to the file of the study.
    #[serde(default)]
    pub rubric: Option<String>,
    /// Instructions, which raters see above every case.
    #[serde(default)]
    pub instructions: String,
    /// What raters enter about a case.
    #[serde(default = "all_stages")]
    pub stages: Vec<Stage>,
    /// Folders of one or two runs of judges, relative to the file of the study. Raters rate the
    /// evaluations of one judge, or choose between those of two, after their own ratings are final.
    #[serde(default)]
    pub evaluations: Vec<PathBuf>,
    /// The raters.
    pub raters: Vec<RaterConfig>,
}

/// A part of what raters enter about a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A score of each response for each criterion.
    Ratings,
    /// Which response is better.
    Preference,
    /// Which evaluation of an unresolved pair is right. A study has this stage alone.
    Decision,
}

/// A rater: a name, or a table with the name and the number of cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RaterEntry", into = "RaterEntry")]
pub struct RaterConfig {
    /// Name in the results. Other raters do not see it.
    pub name: String,
    /// Maximum number of cases.
    pub cases: Option<usize>,
}

/// A rater in a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a rater is a name, or a table with a `name` and a number of `cases` of at least 1"
)]
enum RaterEntry {
    Name(String),
    Table(RaterTable),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RaterTable {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cases: Option<usize>,
}

impl From<RaterEntry> for RaterConfig {
    fn from(entry: RaterEntry) -> Self {
        match entry {
            RaterEntry::Name(name) => Self { name, cases: None },
            RaterEntry::Table(RaterTable { name, cases }) => Self { name, cases },
        }
    }
}

impl From<RaterConfig> for RaterEntry {
    fn from(rater: RaterConfig) -> Self {
        match rater.cases {
            None => Self::Name(rater.name),
            Some(_) => Self::Table(RaterTable { name: rater.name, cases: rater.cases }),
        }
    }
}

fn all_stages() -> Vec<Stage> {
    vec![Stage::Ratings, Stage::Preference]
}

impl StudyConfig {
    /// Reads and checks the file of a study.
    ///
    /// # Errors
    /// If the file cannot be read, or a setting is unknown or impossible. The message names the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("--study {}: the file cannot be read\nhint: check the path", path.display())
        })?;
        let config: Self = toml::from_str(&text)
            .with_context(|| format!("--study {}: not a study\n{STUDY_HINT}", path.display()))?;
        config.check().with_context(|| format!("--study {}", path.display()))?;
        Ok(config)
    }

    /// Returns the rubric of the study. `folder`: folder of the file of the study.
    ///
    /// # Errors
    /// If the rubric is unknown or its file cannot be read.
    pub fn rubric(&self, folder: &Path) -> Result<Rubric> {
        let Some(name) = &self.rubric else {
            return Ok(Rubric::built_in()?);
        };
        if let Some(rubric) = Rubric::by_key(name)? {
            return Ok(rubric);
        }
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).with_context(|| {
            let known = Rubric::built_in_keys().unwrap_or_default().join(", ");
            format!(
                "rubric {name:?}: neither a built-in rubric ({known}) nor a file that can be read\n\
                 hint: a path is relative to the file of the study"
            )
        })?;
        Rubric::parse(&text).with_context(|| path.display().to_string())
    }

    /// Returns true if raters enter this stage.
    pub fn has_stage(&self, stage: Stage) -> bool {
        self.stages.contains(&stage)
    }

    /// Returns true if the study has a part about responses, and is not about evaluations only.
    pub fn rates_responses(&self) -> bool {
        !self.stages.is_empty()
    }

    /// Returns true if raters decide about unresolved pairs.
    pub fn decides_pairs(&self) -> bool {
        self.has_stage(Stage::Decision)
    }

    fn check(&self) -> Result<()> {
        check_name("name", &self.name)?;
        if self.raters.is_empty() {
            bail!("raters: the list is empty, expected at least one\n{STUDY_HINT}");
        }
        let mut names = BTreeSet::new();
        for rater in &self.raters {
            check_name("raters", &rater.name)?;
            if !names.insert(rater.name.to_lowercase()) {
                bail!(
                    "raters: {:?} is listed twice\nhint: give each rater another name",
                    rater.name
                );
            }
            if rater.name.eq_ignore_ascii_case(ADJUDICATOR) {
                bail!(
                    "raters: {ADJUDICATOR:?} stands for the administrator in the results\nhint: use another name"
                );
            }
            if rater.cases == Some(0) {
                bail!("raters: {:?} has 0 cases, expected at least 1", rater.name);
            }
        }
        if let Some(overlap) = self.overlap
            && !(1..=self.raters.len()).contains(&overlap)
        {
            bail!(
                "overlap is {overlap}, expected at least 1 and at most {}, the number of raters",
                self.raters.len()
            );
        }
        let is_repeated = |(i, stage): (usize, &Stage)| self.stages[..i].contains(stage);
        if self.stages.iter().enumerate().any(is_repeated) {
            bail!("stages: a stage is listed twice\nhint: remove one of the two");
        }
        if self.stages.is_empty() && self.evaluations.is_empty() {
            bail!("stages: the list is empty, expected \"ratings\", \"preference\" or both");
        }
        if self.decides_pairs() && (self.stages.len() > 1 || !self.evaluations.is_empty()) {
            bail!(
                "stages: \"decision\" is a study of its own\nhint: remove the other stages and `evaluations`"
            );
        }
        if self.decides_pairs() && self.overlap.is_some_and(|overlap| overlap > 1) {
            bail!("overlap: each decision has one rater\nhint: remove `overlap`");
        }
        if self.evaluations.len() > 2 {
            bail!(
                "evaluations: {} runs, expected one, whose evaluations are rated, or two to choose between",
                self.evaluations.len()
            );
        }
        Ok(())
    }
}

/// How a study is written.
const STUDY_HINT: &str = "hint: a study has a name and raters, such as `name = \"chest-ct\"` and \
    `raters = [\"dr-lee\", \"dr-ito\"]`";

fn check_name(key: &str, name: &str) -> Result<()> {
    let is_valid = !name.trim().is_empty()
        && name.trim() == name
        && name.chars().count() <= MAX_NAME
        && !name.chars().any(char::is_control);
    if !is_valid {
        bail!(
            "{key}: {name:?} is not a name, expected 1 to {MAX_NAME} characters without spaces around them"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StudyConfig> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("study.toml");
        std::fs::write(&path, text).unwrap();
        StudyConfig::read(&path)
    }

    #[test]
    fn raters_are_names_or_tables() {
        let study =
            read("name = \"a\"\nraters = [\"x\", { name = \"y\", cases = 3 }]\noverlap = 2")
                .unwrap();
        let raters: Vec<_> = study.raters.iter().map(|r| (r.name.as_str(), r.cases)).collect();
        assert_eq!(raters, [("x", None), ("y", Some(3))]);
        assert!(study.has_stage(Stage::Ratings) && study.has_stage(Stage::Preference));
    }

    #[test]
    fn impossible_settings_are_rejected() {
        for (text, expected) in [
            ("", "not a study"),
            ("name = \"a\"\nraters = []", "expected at least one"),
            ("name = \"a\"\nraters = [\"x\", \"X\"]", "listed twice"),
            ("name = \"a\"\nraters = [\"x\"]\noverlap = 2", "at most 1"),
            ("name = \"a\"\nraters = [\" \"]", "not a name"),
            ("name = \"a\"\nraters = [\"x\"]\nstages = []", "stages"),
            ("name = \"a\"\nraters = [\"x\"]\nstage = []", "unknown field"),
            ("name = \"a\"\nraters = [\"x\"]\nevaluations = [\"1\", \"2\", \"3\"]", "3 runs"),
            ("name = \"a\"\nraters = [\"x\"]\nstages = [\"decision\", \"ratings\"]", "of its own"),
            ("name = \"a\"\nraters = [\"x\"]\nstages = [\"ratings\", \"ratings\"]", "listed twice"),
            ("name = \"a\"\nraters = [\"Adjudicator\"]", "stands for the administrator"),
            ("name = \"a\"\nraters = [{ name = \"x\", case = 3 }]", "a rater is a name"),
            ("name = \"a\"\nraters = [{ name = \"x\", cases = 0 }]", "0 cases"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(expected) && error.contains("study.toml"), "{error}");
        }
    }
}
