//! Knowledge introspection (AutoMedEval §3.3): improves training data from misjudged pairs and
//! trains again.
//!
//! In each round, a panel judges its training cases. An adviser suggests new evaluations of the
//! misjudged pairs. They replace the old evaluations in the training data, and the panel is trained
//! again.
//!
//! A suggestion is accepted if its order of the two responses agrees with the labels. Pairs without
//! an accepted suggestion are listed for manual review. The files of all rounds stay on disk, so an
//! interrupted run resumes.

mod adviser;
mod completion;
mod data;
mod misjudged_pair;
mod review;
mod round_judging;
mod rounds;

pub use crate::training::introspection::adviser::endpoint::Endpoint;
pub use adviser::Adviser;
pub use rounds::{Round, Rounds};

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::data::cases::{SourceOptions, SourceSpec};
use crate::data::images::outside_images::OutsideImages;
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::files::folder::create_folder;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;
use crate::training::introspection::adviser::advice_log::AdviceLog;
use crate::training::introspection::adviser::requests::{request_advice, unresolved_line};
use crate::training::introspection::completion::CompletionBuilder;
use crate::training::introspection::round_judging::{MisjudgedPairs, RoundJudging, check_labels};
use crate::training::preferences::read_evaluations;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};
use data::EvaluationData;
use review::Review;

/// File with the results of all rounds, written at the end.
const ROUNDS_FILE: &str = "rounds.json";

/// Settings and inputs of a knowledge introspection run.
pub struct Introspection<'a> {
    /// Training configuration. Only its file of evaluations changes between rounds.
    pub config: &'a TrainConfig,
    /// Initial model of every training.
    pub initial_model: Option<&'a InitialModel>,
    /// Labelled training cases.
    pub cases: &'a SourceSpec,
    /// Labelled cases that are judged but not trained on.
    pub held_out: Option<&'a Path>,
    /// Folder of the public data sets, if a stage uses them.
    pub data: Option<PathBuf>,
    /// Output folder.
    pub out: &'a Path,
    /// Number of times that the training data are improved.
    pub rounds: u32,
    /// Maximum requests to an endpoint per pair.
    pub max_attempts: u32,
    /// Treatment of images outside of the folder of the cases, when they are sent to the adviser.
    pub outside_images: OutsideImages,
    /// Pairs per batch.
    pub batch_size: usize,
    /// Device of training and judging, and settings of judging.
    pub placement: Placement,
    /// Amount of progress output.
    pub verbosity: Verbosity,
    /// Progress output and interruption of trainings.
    pub progress: &'a TrainingProgress,
    /// Interruption by the user while judging.
    pub interrupt: &'a Interrupt,
}

impl Introspection<'_> {
    /// Runs all unfinished rounds. Returns `None` if the user interrupts it.
    ///
    /// # Errors
    /// If the configuration has no file of evaluations, the cases have no labels, or a training, a
    /// judge or the adviser fails.
    pub fn run(&self, adviser: &mut Adviser) -> Result<Option<Rounds>> {
        let evaluations = evaluations_file(self.config)?;
        check_labels(&self.cases.path, &self.cases.options)?;
        if let Some(path) = self.held_out {
            check_labels(path, &SourceOptions::default())?;
        }
        let builder = CompletionBuilder::new(self.config)?;
        // Training takes hours, and a wrong key is known within seconds. The rounds of a finished
        // run need no request.
        if !self.out.join(ROUNDS_FILE).exists() {
            adviser.check()?;
        }
        self.snapshot_inputs(evaluations)?;
        let mut rounds = Rounds::default();
        for round in 0..=self.rounds {
            let Some((mut results, review)) = self.train_and_judge(round)? else {
                return Ok(None);
            };
            if round < self.rounds {
                let Some(replaced) = self.improve_data(round, &review, adviser, &builder)? else {
                    return Ok(None);
                };
                results.replaced = Some(replaced);
                results.unresolved = Some(review.misjudged.len() - replaced);
            }
            let is_unchanged = results.replaced == Some(0);
            self.progress.note(&self.summary(&results));
            rounds.rounds.push(results);
            if is_unchanged {
                self.progress.note(
                    "no evaluation was replaced, so another round would give the same result",
                );
                break;
            }
        }
        Ok(Some(rounds))
    }

    /// Saves the initial evaluations, or checks that they are equal to those of an earlier run.
    fn snapshot_inputs(&self, evaluations: &Path) -> Result<()> {
        let data_folder = self.data_folder();
        create_folder(&data_folder)?;
        let snapshot = self.evaluations_path(0);
        let text = EvaluationData::read(evaluations, &data_folder)?.to_jsonl()?;
        if !snapshot.exists() {
            return atomic_file::write_atomic(&snapshot, text.as_bytes());
        }
        let earlier_text =
            std::fs::read_to_string(&snapshot).with_context(|| snapshot.display().to_string())?;
        if earlier_text != text {
            bail!(
                "{}: not the file that the rounds in {} started with\n\
                 hint: restore the file, or pass another folder with --out",
                evaluations.display(),
                self.out.display()
            );
        }
        Ok(())
    }

    /// Trains the panel of a round and judges the cases with it.
    fn train_and_judge(&self, round: u32) -> Result<Option<(Round, Review)>> {
        let folder = self.round_folder(round);
        let mut config = self.config.clone();
        for evaluations in config.stages.iter_mut().filter_map(|stage| stage.evaluations.as_mut()) {
            evaluations.file = std::path::absolute(self.evaluations_path(round))?;
        }
        let paths = TrainPaths {
            out: folder.join("training"),
            data: self.data.clone(),
            device: self.placement.device.clone(),
        };
        if !train(&config, self.initial_model, &paths, self.progress)? {
            return Ok(None);
        }
        let panel = paths.out.join("panel");
        let judge = |path: &Path, name: &str| {
            let judging = RoundJudging {
                panel: &panel,
                cases: self.cases,
                path,
                out: &folder.join(name),
                batch_size: self.batch_size,
                placement: &self.placement,
                verbosity: self.verbosity,
                interrupt: self.interrupt,
            };
            judging.run()
        };
        let Some(review) = judge(&self.cases.path, "judged")? else {
            return Ok(None);
        };
        let mut held_out = None;
        if let Some(path) = self.held_out {
            match judge(path, "held-out")? {
                Some(review) => held_out = Some(review.accuracy),
                None => return Ok(None),
            }
        }
        let results = Round {
            round,
            evaluations: read_evaluations(&self.evaluations_path(round))?.items.len(),
            accuracy: review.accuracy,
            misjudged: review.misjudged.len(),
            unscored: review.unscored,
            unlabelled: review.unlabelled,
            replaced: None,
            unresolved: None,
            held_out,
        };
        Ok(Some((results, review)))
    }

    /// Requests evaluations of the misjudged pairs and writes the training data of the next round.
    /// Returns the number of pairs with replaced or added evaluations; `None` if the user
    /// interrupts it.
    fn improve_data(
        &self,
        round: u32,
        review: &Review,
        adviser: &mut Adviser,
        builder: &CompletionBuilder,
    ) -> Result<Option<usize>> {
        let path = self.round_folder(round).join("suggestions.jsonl");
        let mut log = AdviceLog::open(&path, adviser.name())?;
        let mut data = EvaluationData::read(&self.evaluations_path(round), &self.data_folder())?;
        let (mut replaced, mut unresolved) = (0, String::new());
        let mut misjudged =
            MisjudgedPairs::open(self.cases, &review.misjudged, &self.outside_images)?;
        loop {
            let batch = misjudged.next_batch(adviser.batch_size(self.batch_size));
            if batch.is_empty() {
                break;
            }
            if self.interrupt.is_requested() {
                return Ok(None);
            }
            request_advice(&batch, adviser, self.max_attempts, &mut log)?;
            for pair in &batch {
                let id = pair.id();
                let advice = log
                    .get(&id)
                    .context("the log has no suggestion for a pair that was requested")?;
                let Some(accepted) = &advice.accepted else {
                    unresolved += &unresolved_line(pair, advice.rejection.as_deref())?;
                    continue;
                };
                let image = pair.job.image.as_ref().map(|image| &image.decoded);
                let orders = accepted.orders.iter();
                let by_order: Vec<_> = orders
                    .map(|order| builder.completions(&pair.job, order))
                    .collect::<Result<_>>()?;
                let is_unambiguous = by_order
                    .iter()
                    .flatten()
                    .all(|completion| completion.is_unambiguous(image.is_some()));
                if !is_unambiguous {
                    unresolved += &unresolved_line(
                        pair,
                        Some("the question or a response contains the image marker"),
                    )?;
                    continue;
                }
                replaced += 1;
                for completions in by_order {
                    data.insert(&id, image, completions)?;
                }
            }
        }
        for ((case, pair), reason) in misjudged.unreadable_images() {
            unresolved += &json!({"case": case, "pair": pair, "reason": reason}).to_string();
            unresolved.push('\n');
        }
        let unresolved_file = self.round_folder(round).join("unresolved.jsonl");
        atomic_file::write_atomic(&unresolved_file, unresolved.as_bytes())?;
        if replaced > 0 && data.replaced_count() == 0 {
            self.progress.note(
                "no evaluation of the file has the prompt of a misjudged pair in the configuration's layout and rubric, \
                 so the new evaluations are added to the file",
            );
        }
        atomic_file::write_atomic(&self.evaluations_path(round + 1), data.to_jsonl()?.as_bytes())?;
        Ok(Some(replaced))
    }

    /// Describes a round in one line.
    fn summary(&self, results: &Round) -> String {
        let accuracy = 100.0 * results.accuracy.value;
        let mut text = format!(
            "round {}: order accuracy {accuracy:.1} % on {}",
            results.round,
            format_count(results.accuracy.n as u64, "pair")
        );
        if let (Some(replaced), Some(unresolved)) = (results.replaced, results.unresolved) {
            let file = self.round_folder(results.round).join("unresolved.jsonl");
            // Writing to a string cannot fail.
            let _ = write!(text, ", {} wrong, {replaced} replaced", results.misjudged);
            if unresolved > 0 {
                let _ = write!(text, ", {unresolved} unresolved: {}", file.display());
            }
        }
        text
    }

    fn round_folder(&self, round: u32) -> PathBuf {
        self.out.join(format!("round-{round}"))
    }

    fn data_folder(&self) -> PathBuf {
        self.out.join("data")
    }

    fn evaluations_path(&self, round: u32) -> PathBuf {
        self.data_folder().join(format!("round-{round}.jsonl"))
    }
}

/// Returns the only file of evaluations of a configuration.
fn evaluations_file(config: &TrainConfig) -> Result<&Path> {
    let files = config.stages.iter().filter_map(|stage| stage.evaluations.as_ref());
    let mut files: Vec<&Path> = files.map(|evaluations| evaluations.file.as_path()).collect();
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
