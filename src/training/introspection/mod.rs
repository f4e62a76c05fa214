//! Knowledge introspection (`AutoMedEval` §3.3): a panel judges the cases that it learned from, what it judged wrong
//! is evaluated anew, the data are mended, and it is trained again, round after round.
//!
//! A suggestion is taken where its order of the two responses is that which people gave; what nobody could suggest
//! is left to a person. Everything of a round is kept, and what was done is not done again.

mod advice_log;
mod adviser;
mod chat_client;
mod completion;
mod data;
mod endpoint;
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

/// What is judged, asked and trained, and how often.
pub struct Introspection<'a> {
    /// How panels are trained; one file of evaluations is what changes from round to round.
    pub config: &'a TrainConfig,
    /// What each training begins with.
    pub start: Option<&'a InitialModel>,
    /// The cases whose right order is known, which are learned from.
    pub cases: &'a SourceSpec,
    /// Cases with known order that are never learned from.
    pub held_out: Option<&'a Path>,
    /// The folder of public data sets, where stages draw from them.
    pub data: Option<PathBuf>,
    /// Where everything goes.
    pub out: &'a Path,
    /// How often the data are mended.
    pub rounds: u32,
    /// How often an endpoint is asked about one pair.
    pub attempts: u32,
    /// Pairs that are judged at once.
    pub batch_size: usize,
    /// Where panels are trained, and where and how they judge.
    pub place: Placement,
    /// How much is said.
    pub verbosity: Verbosity,
    /// The person, who may stop it.
    pub live: &'a TrainingProgress,
    /// The same person, for judging.
    pub interrupt: &'a Interrupt,
}

impl Introspection<'_> {
    /// Runs all rounds that are not done yet; `None` when the person asked to stop.
    ///
    /// # Errors
    /// Where the configuration has no file of evaluations, nothing is known of the cases, and where a training, a judge
    /// or the adviser fails.
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
                self.live
                    .note("nothing was mended, so that another round would be the same");
                break;
            }
        }
        Ok(Some(rounds))
    }

    /// Keeps the evaluations as they were given, or finds that they are those of an earlier run.
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
                "{}: it is not what the rounds in {} began with\n\
                 hint: give the file as it was, or name another folder with --out",
                given.display(),
                self.out.display()
            );
        }
        Ok(())
    }

    /// Trains the panel of a round, and judges the cases with it.
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

    /// Asks about what was judged wrong, and writes the data of the next round; gives how many pairs were mended.
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
                let advice = ledger.get(&name).context("a suggestion was not kept")?;
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
                    unresolved += &left(doubt, Some("its texts hold the mark of an image"))?;
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
                "none of the evaluations given has a prompt about these pairs in the configuration's layout and \
                 rubric: what is mended is added to them",
            );
        }
        atomic_file::write(&self.data_of(round + 1), data.text()?.as_bytes())?;
        Ok(Some(mended))
    }

    fn in_words(&self, figures: &Round) -> String {
        let right = 100.0 * figures.right.value;
        let mut words = format!(
            "round {}: {right:.1} % of {} judged right",
            figures.round,
            plural(figures.right.n as u64, "order")
        );
        if let (Some(mended), Some(left)) = (figures.mended, figures.left) {
            let file = self.round(figures.round).join("unresolved.jsonl");
            // Writing to a string cannot fail.
            let _ = write!(words, "; of {} wrong ones {mended} mended", figures.wrong);
            if left > 0 {
                let _ = write!(words, ", {left} left to a person: {}", file.display());
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

/// The one file of evaluations of a configuration.
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
            "no stage learns from a file of evaluations, which is what rounds mend\n\
             hint: a stage of kind \"sft\" or \"heads\" with `[stages.evaluations]` and `file = \"...\"`"
        ),
        _ => bail!(
            "stages learn from {} files of evaluations, and rounds mend one\n\
             hint: put them into one file",
            files.len()
        ),
    }
}
