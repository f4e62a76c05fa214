//! A study with its tasks and assignment, and its file in the output folder.

use std::path::Path;

use acem3_experts::prompt::Rubric;
use anyhow::{Context as _, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::assignment::{AssignedTask, Assignment, assign};
use super::judge_evaluations::JudgeEvaluations;
use super::study_config::{RaterConfig, Stage, StudyConfig};
use super::task::Task;
use crate::data::images::ImageReader;
use crate::data::labels::ScoreTarget;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::training::introspection::decisions::unresolved_pair::UnresolvedPair;

/// File with the identity of the study in the output folder.
const PLAN_FILE: &str = "study.json";

/// Name of the final score, which raters see.
pub const FINAL_SCORE: &str = "Final score";

/// A study that is ready to be rated.
#[derive(Clone, Debug)]
pub struct StudyPlan {
    /// Settings.
    pub config: StudyConfig,
    /// What responses are scored on.
    pub rubric: Rubric,
    /// All tasks.
    pub tasks: Vec<Task>,
    /// The tasks of every rater.
    pub assignment: Assignment,
    /// The judges whose evaluations are rated after the responses: none, one or two.
    pub judges: Vec<JudgeEvaluations>,
    /// The unresolved pairs, one for each task, if raters decide about such pairs; else empty.
    pub unresolved: Vec<UnresolvedPair>,
}

/// What the ratings of a study belong to. A study with another identity is another study.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PlanIdentity {
    schema: u32,
    name: String,
    seed: u64,
    overlap: Option<usize>,
    raters: Vec<RaterConfig>,
    stages: Vec<Stage>,
    rubric: Digest,
    tasks: Digest,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    evaluations: Vec<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unresolved: Option<Digest>,
    #[serde(default)]
    images: Option<Digest>,
}

impl PlanIdentity {
    /// Returns what differs from another identity, in words.
    fn differences(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            (self.schema == other.schema, "the version of the file"),
            (self.name == other.name, "the name"),
            (self.seed == other.seed, "the seed"),
            (self.overlap == other.overlap, "the overlap"),
            (self.raters == other.raters, "the raters"),
            (self.stages == other.stages, "the stages"),
            (self.rubric == other.rubric, "the rubric"),
            (self.tasks == other.tasks, "the cases"),
            (self.evaluations == other.evaluations, "the evaluations"),
            (self.unresolved == other.unresolved, "the unresolved pairs"),
            (self.images == other.images, "the images, or the window or frame of DICOM images"),
        ];
        parts.into_iter().filter(|(is_equal, _)| !is_equal).map(|(_, name)| name).collect()
    }
}

impl StudyPlan {
    /// Assigns the tasks of a study to its raters.
    ///
    /// # Errors
    /// If there are no tasks, or the limits of the raters are too low.
    pub fn new(config: StudyConfig, rubric: Rubric, tasks: Vec<Task>) -> Result<Self> {
        if tasks.is_empty() {
            bail!("there are no cases to rate\nhint: pass a folder or file with cases");
        }
        let single = tasks.iter().find(|task| task.responses.len() < 2);
        if let Some(task) = single.filter(|_| config.stages == [Stage::Preference]) {
            bail!(
                "stages: case {} has one response, so there is no preference\n\
                 hint: add \"ratings\", or leave out cases with one response",
                task.case.id
            );
        }
        let mut assignment = assign(&config, tasks.len())?;
        for assigned in assignment.iter_mut().flatten() {
            assigned.is_swapped &= tasks.get(assigned.task).is_some_and(|t| t.responses.len() > 1);
        }
        let (judges, unresolved) = (Vec::new(), Vec::new());
        Ok(Self { config, rubric, tasks, assignment, judges, unresolved })
    }

    /// Adds the unresolved pairs, one for each task.
    #[must_use]
    pub fn with_unresolved(self, unresolved: Vec<UnresolvedPair>) -> Self {
        Self { unresolved, ..self }
    }

    /// Adds the evaluations of the judges. `folder`: folder of the file of the study.
    ///
    /// # Errors
    /// If a run cannot be read or does not fit the cases, or two judges have one name.
    pub fn with_judges(mut self, folder: &Path) -> Result<Self> {
        for run in &self.config.evaluations {
            let judge = JudgeEvaluations::read(&folder.join(run), &self.tasks, &self.rubric)
                .context("evaluations")?;
            if self.judges.iter().any(|other| other.judge == judge.judge) {
                bail!(
                    "evaluations: two runs in folders with the name {:?}\n\
                     hint: rename one of the folders; the names stand for the judges in the results",
                    judge.judge
                );
            }
            self.judges.push(judge);
        }
        let is_choice = self.compares_judges();
        for assigned in self.assignment.iter_mut().flatten() {
            assigned.is_judge_swapped &= is_choice;
        }
        Ok(self)
    }

    /// Returns true if raters choose between the evaluations of two judges.
    pub fn compares_judges(&self) -> bool {
        self.judges.len() == 2
    }

    /// Returns the evaluations of a task by all judges; `None` if one of them has none.
    pub fn evaluations(&self, task: usize) -> Option<Vec<&RecordedVerdict>> {
        let found = self.judges.iter().map(|judge| judge.evaluations.get(task)?.as_deref());
        let evaluations: Vec<&RecordedVerdict> = found.collect::<Option<_>>()?;
        (!evaluations.is_empty()).then_some(evaluations)
    }

    /// Writes the identity of the study to its output folder, or checks that the folder has the same.
    /// `is_rated`: true if somebody has entered something; before that, the study may change.
    ///
    /// # Errors
    /// If an image cannot be read, or the folder belongs to another study. The message says what differs.
    pub fn claim(&self, out: &Path, images: &mut ImageReader, is_rated: bool) -> Result<()> {
        if !is_rated {
            let path = out.join(PLAN_FILE);
            let text = serde_json::to_vec_pretty(&self.identity(images)?);
            return atomic_file::write_atomic(&path, &text.context("cannot write the study")?);
        }
        self.check(out, images)
    }

    /// Checks that an output folder belongs to this study.
    ///
    /// # Errors
    /// If an image cannot be read, or the folder belongs to another study. The message says what differs.
    pub fn check(&self, out: &Path, images: &mut ImageReader) -> Result<()> {
        let path = out.join(PLAN_FILE);
        let text = std::fs::read(&path).with_context(|| {
            format!(
                "cannot read {}, which says what the ratings in this folder are about\n\
                 hint: restore the file from a copy",
                path.display()
            )
        })?;
        let found: PlanIdentity = serde_json::from_slice(&text)
            .with_context(|| format!("{}: not the file of a study", path.display()))?;
        let changed = found.differences(&self.identity(images)?);
        if !changed.is_empty() {
            bail!(
                "--out {}: the folder has ratings of another study; different: {}\n\
                 hint: pass another --out, or restore the file of the study and the cases",
                out.display(),
                changed.join(", ")
            );
        }
        Ok(())
    }

    /// Returns a task of a rater by its place in the rater's order.
    pub fn assigned(&self, rater: usize, place: usize) -> Option<(AssignedTask, &Task)> {
        let assigned = *self.assignment.get(rater)?.get(place)?;
        Some((assigned, self.tasks.get(assigned.task)?))
    }

    /// Returns the targets that raters score, with the names that they see: the criteria of the rubric,
    /// then the final score; empty without that stage.
    pub fn scored_targets(&self) -> Vec<(ScoreTarget, &str)> {
        if self.config.has_stage(Stage::Ratings) || self.config.decides_pairs() {
            self.rubric_targets()
        } else {
            Vec::new()
        }
    }

    /// Returns the criteria of the rubric and the final score, with the names that raters see.
    pub fn rubric_targets(&self) -> Vec<(ScoreTarget, &str)> {
        let criteria = self.rubric.criteria();
        let criteria = criteria.map(|c| (ScoreTarget::Criterion(c.key), c.name.as_str()));
        criteria.chain([(ScoreTarget::Final, FINAL_SCORE)]).collect()
    }

    /// Returns the digest of the images of all tasks, with the window and the frame of DICOM images.
    fn image_digest(&self, images: &mut ImageReader) -> Result<Digest> {
        let mut lines = Vec::new();
        for task in &self.tasks {
            lines.push(match &task.case.image {
                None => String::new(),
                Some(source) => {
                    let image = images
                        .read(source)
                        .map_err(|problem| anyhow!("case {}: {problem}", task.case.id))?;
                    format!("{} {}", image.name, image.key())
                }
            });
        }
        Ok(Digest::sha256(lines.join("\n").as_bytes()))
    }

    fn identity(&self, images: &mut ImageReader) -> Result<PlanIdentity> {
        let tasks = self.tasks.iter().map(|task| {
            let texts =
                [vec![task.case.id.as_str(), &task.case.question], task.models(), task.texts()];
            texts.concat().join("\0")
        });
        Ok(PlanIdentity {
            schema: 1,
            name: self.config.name.clone(),
            seed: self.config.seed,
            overlap: self.config.overlap,
            raters: self.config.raters.clone(),
            stages: self.config.stages.clone(),
            rubric: Digest::sha256(self.rubric.source().as_bytes()),
            tasks: Digest::sha256(tasks.collect::<Vec<_>>().join("\0\0").as_bytes()),
            evaluations: self.judges.iter().map(JudgeEvaluations::digest).collect(),
            unresolved: (!self.unresolved.is_empty()).then(|| {
                let lines = self.unresolved.iter().map(|pair| pair.to_line(Value::Null));
                Digest::sha256(lines.collect::<Vec<_>>().join("\n").as_bytes())
            }),
            images: Some(self.image_digest(images)?),
        })
    }
}
