//! Copies of a panel on several devices, which judge at the same time.

use acem3_conclusion::Verdict;
use acem3_experts::Aspect;
use acem3_experts::prompt::Form;
use anyhow::{Context, Result, anyhow, ensure};

use super::panel_judge::PanelJudge;
use crate::checkpoints::panel::limits::PanelLimits;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::provenance::Provenance;

type JobResults = Vec<Result<Verdict, Unscored>>;

/// Copies of one panel. Each gets an equal share of the jobs. A verdict depends on its job alone, so
/// the number of copies changes no verdict.
pub struct PanelReplicas {
    first: PanelJudge,
    others: Vec<PanelJudge>,
}

impl PanelReplicas {
    /// Joins copies of a panel.
    ///
    /// # Errors
    ///
    /// There is none, or the copies are not of one panel.
    pub fn new(copies: Vec<PanelJudge>) -> Result<Self> {
        let mut copies = copies.into_iter();
        let first = copies.next().context("a panel without a device")?;
        let others: Vec<PanelJudge> = copies.collect();
        let provenance = first.provenance();
        ensure!(
            others.iter().all(|other| other.provenance() == provenance),
            "the copies of the panel differ: its files changed while they were loaded\n\
             hint: run the same command again"
        );
        Ok(Self { first, others })
    }

    fn copies(&mut self) -> impl Iterator<Item = &mut PanelJudge> {
        [&mut self.first].into_iter().chain(&mut self.others)
    }
}

/// Returns the results of interleaved shares in the order of the jobs.
fn interleave(shares: Vec<JobResults>) -> JobResults {
    let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
    let mut results = Vec::new();
    loop {
        let row: JobResults = shares.iter_mut().filter_map(Iterator::next).collect();
        if row.is_empty() {
            return results;
        }
        results.extend(row);
    }
}

impl Judge for PanelReplicas {
    fn name(&self) -> String {
        self.first.name()
    }

    fn device(&self) -> String {
        let devices: Vec<String> =
            [&self.first].into_iter().chain(&self.others).map(PanelJudge::device).collect();
        devices.join(", ")
    }

    fn form(&self) -> Form {
        self.first.form()
    }

    fn score_range(&self) -> [u8; 2] {
        self.first.score_range()
    }

    fn scores_aspect(&self, aspect: Aspect) -> bool {
        self.first.scores_aspect(aspect)
    }

    fn shows_reference(&self) -> bool {
        self.first.shows_reference()
    }

    fn provenance(&self) -> Provenance {
        self.first.provenance()
    }

    fn assumes_image(&self) -> bool {
        self.first.assumes_image()
    }

    fn limits(&self) -> Option<&PanelLimits> {
        self.first.limits()
    }

    fn is_reproducible(&self) -> bool {
        self.first.is_reproducible()
    }

    fn parallel_batches(&self) -> usize {
        1 + self.others.len()
    }

    fn reject_text(&self, text: &str) -> Result<Option<String>> {
        self.first.reject_text(text)
    }

    fn judge(&mut self, jobs: &[JudgeJob]) -> Result<JobResults> {
        let count = self.parallel_batches();
        let shares: Vec<Vec<JudgeJob>> =
            (0..count).map(|i| jobs.iter().skip(i).step_by(count).cloned().collect()).collect();
        let results: Vec<Result<JobResults>> = std::thread::scope(|scope| {
            let copies = self.copies().zip(&shares);
            let threads: Vec<_> =
                copies.map(|(copy, share)| scope.spawn(move || copy.judge(share))).collect();
            let results = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the panel failed")))
            });
            results.collect()
        });
        Ok(interleave(results.into_iter().collect::<Result<_>>()?))
    }
}
