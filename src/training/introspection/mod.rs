//! Knowledge introspection (`AutoMedEval` §3.3). In each round, a panel judges its training cases, an adviser
//! suggests new evaluations of the misjudged pairs, these replace the old ones in the training data, and the panel is
//! trained again.
//!
//! A suggestion is accepted if its order of the two responses agrees with the labels. Pairs without an accepted
//! suggestion are listed for manual review. All files of a round are kept, so an interrupted run resumes.

mod advice_log;
mod adviser;
mod chat_client;
mod completion;
mod data;
mod endpoint;
mod misjudged_pair;
mod requests;
mod review;
mod round_judging;
mod rounds;

pub use crate::training::introspection::adviser::Adviser;
pub use endpoint::Endpoint;
pub use rounds::{Round, Rounds};

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::data::cases::{SourceOptions, SourceSpec};
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::files::folder::create_folder;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::plural;
use crate::training::introspection::advice_log::AdviceLog;
use crate::training::introspection::completion::CompletionBuilder;
use crate::training::introspection::requests::{ask, left};
use crate::training::introspection::round_judging::RoundJudging;
use crate::training::preferences::read_evaluations;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};
use data::EvaluationData;
use review::Review;

/// Settings and inputs of a knowledge introspection run.
pub struct Introspection<'a> {
    /// Training configuration. Only its file of evaluations changes between rounds.
    pub config: &'a TrainConfig,
    /// Initial model of every training.
    pub start: Option<&'a InitialModel>,
    /// Labelled training cases.
    pub cases: &'a SourceSpec,
    /// Labelled cases that are never trained on.
    pub held_out: Option<&'a Path>,
    /// The folder of public data sets, if stages use them.
    pub data: Option<PathBuf>,
    /// Output folder.
    pub out: &'a Path,
    /// Number of times that the training data are improved.
    pub rounds: u32,
    /// Maximum requests to an endpoint per pair.
    pub attempts: u32,
    /// Pairs per batch.
    pub batch_size: usize,
    /// Device for training and judging, and settings of judging.
    pub place: Placement,
    /// Amount of progress output.
    pub verbosity: Verbosity,
    /// Progress output and interruption of trainings.
    pub live: &'a TrainingProgress,
    /// Interruption by the user while judging.
    pub interrupt: &'a Interrupt,
}

impl Introspection<'_> {
    /// Runs all unfinished rounds. Returns `None` if the user interrupts it.
    ///
    /// # Errors
    /// If the configuration has no file of evaluations, the cases have no labels, or a training, a judge or the
    /// adviser fails.
    pub fn run(&self, adviser: &mut Adviser) -> Result<Option<Rounds>> {
        let given = evaluations_of(self.config)?;
        crate::training::introspection::round_judging::check(
            &self.cases.path,
            &self.cases.options,
        )?;
        if let Some(path) = self.held_out {
            crate::training::introspection::round_judging::check(path, &SourceOptions::default())?;
        }
        let tutor = CompletionBuilder::new(self.config)?;
        self.begin(given)?;
        let mut rounds = Rounds::default();
        for round in 0..=self.rounds {
            let Some((mut figures, review)) = self.judged(round)? else {
                return Ok(None);
            };
            if round < self.rounds {
                let Some(mended) = self.mend(round, &review, (adviser, &tutor))? else {
                    return Ok(None);
                };
                figures.mended = Some(mended);
                figures.left = Some(review.wrong.len() - mended);
            }
            let ends = figures.mended == Some(0);
            self.live.note(&self.in_words(&figures));
            rounds.rounds.push(figures);
            if ends {
                self.live.note(
                    "no evaluation was replaced, so another round would give the same result",
                );
                break;
            }
        }
        Ok(Some(rounds))
    }

    /// Saves the initial evaluations, or checks that they are equal to those of an earlier run.
    fn begin(&self, given: &Path) -> Result<()> {
        create_folder(&self.folder())?;
        let (kept, text) = (
            self.data_of(0),
            EvaluationData::read(given, &self.folder())?.text()?,
        );
        if !kept.exists() {
            return atomic_file::write(&kept, text.as_bytes());
        }
        let before = std::fs::read_to_string(&kept).with_context(|| kept.display().to_string())?;
        if before != text {
            bail!(
                "{}: not the file that the rounds in {} started with\n\
                 hint: restore the file, or pass another folder with --out",
                given.display(),
                self.out.display()
            );
        }
        Ok(())
    }

    /// Trains the panel of a round and judges the cases with it.
    fn judged(&self, round: u32) -> Result<Option<(Round, Review)>> {
        let folder = self.round(round);
        let mut config = self.config.clone();
        for evaluations in config
            .stages
            .iter_mut()
            .filter_map(|s| s.evaluations.as_mut())
        {
            evaluations.file = std::path::absolute(self.data_of(round))?;
        }
        let paths = TrainPaths {
            out: folder.join("training"),
            data: self.data.clone(),
            device: self.place.device.clone(),
        };
        if !train(&config, self.start, &paths, self.live)? {
            return Ok(None);
        }
        let panel = paths.out.join("panel");
        let sit = |path: &Path, name: &str| {
            let sitting = RoundJudging {
                panel: &panel,
                cases: self.cases,
                path,
                out: &folder.join(name),
                batch_size: self.batch_size,
                place: &self.place,
                verbosity: self.verbosity,
                interrupt: self.interrupt,
            };
            sitting.hold()
        };
        let Some(review) = sit(&self.cases.path, "judged")? else {
            return Ok(None);
        };
        let mut held_out = None;
        if let Some(path) = self.held_out {
            match sit(path, "held-out")? {
                Some(review) => held_out = Some(review.right),
                None => return Ok(None),
            }
        }
        let figures = Round {
            round,
            evaluations: read_evaluations(&self.data_of(round))?.items.len(),
            right: review.right,
            wrong: review.wrong.len(),
            unscored: review.unscored,
            unknown: review.unknown,
            mended: None,
            left: None,
            held_out,
        };
        Ok(Some((figures, review)))
    }

    /// Requests evaluations of the misjudged pairs and writes the training data of the next round. Returns the number
    /// of replaced pairs; `None` if the user interrupts it.
    fn mend(
        &self,
        round: u32,
        review: &Review,
        (adviser, tutor): (&mut Adviser, &CompletionBuilder),
    ) -> Result<Option<usize>> {
        let path = self.round(round).join("suggestions.jsonl");
        let mut ledger = AdviceLog::open(&path, adviser.name())?;
        let mut data = EvaluationData::read(&self.data_of(round), &self.folder())?;
        let (mut mended, mut unresolved) = (0, String::new());
        let mut doubts = crate::training::introspection::round_judging::MisjudgedPairs::open(
            self.cases,
            &review.wrong,
        )?;
        loop {
            let batch = doubts.take(adviser.at_once(self.batch_size));
            if batch.is_empty() {
                break;
            }
            if self.interrupt.is_requested() {
                return Ok(None);
            }
            ask(&batch, adviser, self.attempts, &mut ledger)?;
            for doubt in &batch {
                let name = doubt.key();
                let advice = ledger
                    .get(&name)
                    .context("the log has no suggestion for a pair that was requested")?;
                let Some(accepted) = &advice.accepted else {
                    unresolved += &left(doubt, advice.refused.as_deref())?;
                    continue;
                };
                let image = doubt.job.image.as_ref().map(|image| &image.decoded);
                let lessons = accepted.orders.iter();
                let lessons: Vec<_> = lessons
                    .map(|order| tutor.lessons(&doubt.job, order))
                    .collect::<Result<_>>()?;
                if !lessons
                    .iter()
                    .flatten()
                    .all(|lesson| lesson.is_readable(image.is_some()))
                {
                    unresolved += &left(
                        doubt,
                        Some("the question or a response contains the image marker"),
                    )?;
                    continue;
                }
                mended += 1;
                for lessons in lessons {
                    data.learn(&name, image, lessons)?;
                }
            }
        }
        for ((case, pair), reason) in doubts.lost() {
            unresolved += &json!({"case": case, "pair": pair, "reason": reason}).to_string();
            unresolved.push('\n');
        }
        let unresolved_file = self.round(round).join("unresolved.jsonl");
        atomic_file::write(&unresolved_file, unresolved.as_bytes())?;
        if mended > 0 && data.replaced() == 0 {
            self.live.note(
                "no given evaluation has a prompt for these pairs in the configuration's layout and rubric: \
                 the new evaluations are added",
            );
        }
        atomic_file::write(&self.data_of(round + 1), data.text()?.as_bytes())?;
        Ok(Some(mended))
    }

    fn in_words(&self, figures: &Round) -> String {
        let right = 100.0 * figures.right.value;
        let mut words = format!(
            "round {}: order accuracy {right:.1} % on {}",
            figures.round,
            plural(figures.right.n as u64, "pair")
        );
        if let (Some(mended), Some(left)) = (figures.mended, figures.left) {
            let file = self.round(figures.round).join("unresolved.jsonl");
            // Writing to a string cannot fail.
            let _ = write!(words, ", {} wrong, {mended} replaced", figures.wrong);
            if left > 0 {
                let _ = write!(words, ", {left} unresolved: {}", file.display());
            }
        }
        words
    }

    fn round(&self, round: u32) -> PathBuf {
        self.out.join(format!("round-{round}"))
    }

    fn folder(&self) -> PathBuf {
        self.out.join("data")
    }

    fn data_of(&self, round: u32) -> PathBuf {
        self.folder().join(format!("round-{round}.jsonl"))
    }
}

/// Returns the only file of evaluations of a configuration.
fn evaluations_of(config: &TrainConfig) -> Result<&Path> {
    let files = config
        .stages
        .iter()
        .filter_map(|stage| stage.evaluations.as_ref());
    let mut files: Vec<&Path> = files
        .map(|evaluations| evaluations.file.as_path())
        .collect();
    files.dedup();
    match files.as_slice() {
        [file] => Ok(file),
        [] => bail!(
            "no stage has a file of evaluations, expected one to improve\n\
             hint: add a stage of kind \"sft\" or \"heads\" with `[stages.evaluations]` and `file = \"...\"`"
        ),
        _ => bail!(
            "the stages have {} files of evaluations, expected one\n\
             hint: merge them into one file",
            files.len()
        ),
    }
}
