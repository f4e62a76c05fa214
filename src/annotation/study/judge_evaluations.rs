//! The evaluations of a judge, which raters see after their own ratings are final.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use acem3_experts::Criterion;
use acem3_experts::prompt::Rubric;
use anyhow::{Context as _, Result, bail};

use super::task::Task;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::run::record::record_reader::open_records;
use crate::judging::run::record::{Record, RecordOutcome};
use crate::support::digest::Digest;

/// The run of a judge, with its evaluation of each task.
#[derive(Clone, Debug)]
pub struct JudgeEvaluations {
    /// Name of the folder of the run, which stands for the judge in results. Raters never see it.
    pub judge: String,
    /// The evaluations by task; `None` for a task without a verdict.
    pub evaluations: Vec<Option<Box<RecordedVerdict>>>,
}

impl JudgeEvaluations {
    /// Reads the evaluations of the tasks from the folder of a run.
    ///
    /// # Errors
    /// If the records cannot be read, the run has no evaluation of any task, or its evaluations have no
    /// texts.
    pub fn read(folder: &Path, tasks: &[Task], rubric: &Rubric) -> Result<Self> {
        let mut by_subject = HashMap::new();
        for record in open_records(folder)? {
            let Record { subject, outcome, .. } = record?;
            if let RecordOutcome::Judged(verdict) = outcome {
                let models = subject.judged_models().to_vec();
                let key = (subject.case.unwrap_or_default(), models);
                by_subject.insert(key, (subject.responses, verdict));
            }
        }
        let mut evaluations: Vec<Option<Box<RecordedVerdict>>> = Vec::new();
        for task in tasks {
            let models = task.models().into_iter().map(str::to_owned).collect();
            let found = by_subject.remove(&(task.case.id.clone(), models));
            if let Some((Some(responses), _)) = &found
                && *responses != task.texts()
            {
                bail!(
                    "{}: the run judged other responses in case {}\n\
                     hint: pass a run on the cases of the study",
                    folder.display(),
                    task.case.id
                );
            }
            evaluations.push(found.map(|(_, verdict)| verdict));
        }
        let mut found = evaluations.iter().flatten();
        let Some(first) = found.next() else {
            bail!(
                "{}: the run has no verdict on any of the cases\n\
                 hint: judge these cases in the form `pair`, or correct the folder",
                folder.display()
            );
        };
        let known: BTreeSet<Criterion> = rubric.criteria().map(|criterion| criterion.key).collect();
        let judged: BTreeSet<Criterion> = first.criteria.keys().copied().collect();
        if known != judged {
            let names = |keys: &BTreeSet<Criterion>| {
                let names: Vec<&str> = keys.iter().map(|key| key.key()).collect();
                names.join(", ")
            };
            bail!(
                "{}: the run has another rubric than the study: {} instead of {}\n\
                 hint: set `rubric` of the study to that of the run, or pass another run",
                folder.display(),
                names(&judged),
                names(&known)
            );
        }
        let has_texts = |verdict: &RecordedVerdict| {
            verdict.orders.iter().all(|order| {
                let mut criteria = order.aspects.values().flat_map(|aspect| aspect.values());
                criteria.all(|scores| scores.analyses.is_some())
            })
        };
        if !has_texts(first) || !found.all(|verdict| has_texts(verdict)) {
            bail!(
                "{}: the run has scores without analyses\n\
                 hint: judge the cases again without --scores-only",
                folder.display()
            );
        }
        let name = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = name.file_name().map(|name| name.to_string_lossy().into_owned());
        let judge =
            name.with_context(|| format!("{}: a folder without a name", folder.display()))?;
        Ok(Self { judge, evaluations })
    }

    /// Returns the digest of the name and the evaluations.
    pub(super) fn digest(&self) -> Digest {
        let evaluations = serde_json::to_string(&self.evaluations).unwrap_or_default();
        Digest::sha256(format!("{}\0{evaluations}", self.judge).as_bytes())
    }
}
