//! Knowledge introspection (AutoMedEval §3.3): improves training data from misjudged pairs and
//! trains again.
//!
//! In each round, a panel judges its training cases. An adviser suggests new evaluations of the
//! misjudged pairs, and a reviewer judges the suggestions. They replace the old evaluations in the
//! training data, and the panel is trained again.
//!
//! A suggestion is accepted if its order of the two responses agrees with the labels, and the
//! reviewer agrees. People decide about the other pairs. The files of all rounds stay on disk, so an
//! interrupted run resumes.

mod continuation;
pub(crate) mod decisions;
mod discussion;
mod evaluations;
mod improvement;
mod introspected_data;
mod judged;
mod rounds;
mod settings;

pub use discussion::adviser::Adviser;
pub use discussion::adviser::adviser_endpoint::AdviserEndpoint;
pub use discussion::chat::chat_client::ChatClient;
pub use discussion::chat::chat_flags::ChatFlags;
pub use discussion::discuss::Discussion;
pub use discussion::reviewer::Reviewer;
pub use discussion::reviewer::reviewer_endpoint::ReviewerEndpoint;
pub use discussion::verdict_source::VerdictSource;
pub use introspected_data::IntrospectedData;
pub use rounds::{Round, Rounds};

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::trained_forms::TrainedForms;
use crate::data::cases::SourceSpec;
use crate::data::images::outside_images::OutsideImages;
use crate::judging::knowledge::{AskedEvidence, JudgeKnowledge};
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::files::folder::create_folder;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;
use crate::training::preferences::read_evaluations;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};
use continuation::{check_can_continue, continue_from};
use decisions::decisions_file::Decisions;
use decisions::unresolved_file::check_not_filled;
use discussion::chat::request_journal::RequestJournal;
use evaluations::completion::CompletionBuilder;
use evaluations::evaluation_data::EvaluationData;
use evaluations::panel_knowledge::panel_knowledge;
use improvement::{Advisers, ImprovedRound, RoundImprovement};
use judged::review::Review;
use judged::round_judging::{RoundJudging, check_held_out, check_labels};
use settings::IntrospectionSettings;

/// File with the results of all rounds, written at the end.
const ROUNDS_FILE: &str = "rounds.json";
/// File with the settings that all rounds have in common.
const SETTINGS_FILE: &str = "introspection.json";
/// Folder with the evaluations of all rounds.
const DATA_FOLDER: &str = "data";
/// Journal of the requests to endpoints.
const REQUESTS_FILE: &str = "requests.jsonl";

/// Settings and inputs of a knowledge introspection run.
pub struct Introspection<'a> {
    /// Training configuration. Only its file of evaluations changes between rounds.
    pub config: &'a TrainConfig,
    /// Initial model of every training, or of the first one.
    pub initial_model: Option<&'a InitialModel>,
    /// True if each round continues with the panel of the round before.
    pub continues: bool,
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
    /// File with decisions of people.
    pub decisions: Option<&'a Path>,
    /// True to end before a training if people have to decide about a pair.
    pub waits_for_people: bool,
    /// Treatment of images outside of the folder of the cases, when they are sent to the adviser.
    pub outside_images: OutsideImages,
    /// Pairs per batch.
    pub batch_size: usize,
    /// Device of training and judging, and settings of judging.
    pub placement: Placement,
    /// Where the adviser looks up what it asks, and the panels of the rounds if they are trained to ask.
    pub knowledge: Option<JudgeKnowledge>,
    /// Amount of progress output.
    pub verbosity: Verbosity,
    /// Progress output and interruption of trainings.
    pub progress: &'a TrainingProgress,
    /// Interruption by the user while judging.
    pub interrupt: &'a Interrupt,
}

/// End of a knowledge introspection run.
pub enum IntrospectionEnd {
    /// All rounds are finished.
    Finished(Rounds),
    /// People have to decide about pairs of the last of these rounds.
    WaitsForPeople(Rounds),
    /// The user interrupted it.
    Interrupted,
}

impl Introspection<'_> {
    /// Runs all unfinished rounds.
    ///
    /// # Errors
    /// If the configuration has no file of evaluations, the cases have no labels, a decision of people
    /// is not valid, or a training, a judge, the adviser or the reviewer fails.
    pub fn run(&self, discussion: &mut Discussion) -> Result<IntrospectionEnd> {
        if self.config.judging.trained_forms() != TrainedForms::default() {
            bail!(
                "[judging]: introspection trains panels of pairs without a reference answer\n\
                 hint: remove `forms` and `reference` from the table, and use such evaluations"
            );
        }
        let evaluations = evaluations_file(self.config)?;
        if self.continues {
            check_can_continue(self.config)?;
        }
        check_labels(&self.cases.path, &self.cases.options)?;
        if let Some(path) = self.held_out {
            check_held_out(path, &self.cases.path)?;
        }
        let panel_knowledge = panel_knowledge(self.config, self.knowledge.as_ref())?;
        if self.knowledge.is_some() && panel_knowledge.is_none() && !discussion.adviser.may_ask() {
            bail!(
                "--knowledge: has no effect, because --adviser is the records of a run, and the evaluations \
                 contain no questions\nhint: omit --knowledge"
            );
        }
        let evidence = panel_knowledge.map(AskedEvidence::new).transpose()?;
        let builder = CompletionBuilder::new(self.config, evidence)?;
        for round in 0..self.rounds {
            check_not_filled(&RoundImprovement::unresolved_path(&self.round_folder(round)))?;
        }
        let rubric = self.config.judging.to_rubric()?;
        let decisions = self.decisions.map(|path| Decisions::read(path, self.cases, &rubric));
        let mut decisions = decisions.transpose()?.unwrap_or_default();
        // Training takes hours, and a wrong key is known within seconds. The rounds of a finished
        // run need no request.
        if !self.out.join(ROUNDS_FILE).exists() {
            discussion.check()?;
        }
        self.snapshot_inputs(evaluations)?;
        let settings = IntrospectionSettings::new(discussion.discussants(), self.continues);
        settings.write_or_check(&self.out.join(SETTINGS_FILE))?;
        let mut journal = RequestJournal::open(&self.out.join(REQUESTS_FILE))?;
        let mut advisers =
            Advisers { discussion, decisions: &mut decisions, journal: &mut journal };
        let end = self.run_rounds(&mut advisers, &builder)?;
        let [all, unused] = decisions.counts();
        if unused > 0 && !matches!(end, IntrospectionEnd::Interrupted) {
            self.progress.note(&format!(
                "{unused} of {} of people had no effect: their pairs are no longer misjudged, or the rounds of \
                 these pairs are trained already",
                format_count(all as u64, "decision")
            ));
        }
        Ok(end)
    }

    fn run_rounds(
        &self,
        advisers: &mut Advisers,
        builder: &CompletionBuilder,
    ) -> Result<IntrospectionEnd> {
        let mut rounds = Rounds::default();
        for round in 0..=self.rounds {
            let Some((mut results, review)) = self.train_and_judge(round, builder)? else {
                return Ok(IntrospectionEnd::Interrupted);
            };
            let mut waits = false;
            if round < self.rounds {
                let counts = match self.improve_data(round, &review, advisers, builder)? {
                    ImprovedRound::Finished(counts) => counts,
                    ImprovedRound::WaitsForPeople(counts) => {
                        waits = true;
                        counts
                    }
                    ImprovedRound::Interrupted => return Ok(IntrospectionEnd::Interrupted),
                };
                results.replaced = Some(counts.replaced());
                results.by_adviser = Some(counts.by_adviser);
                results.by_people = Some(counts.by_people);
                results.unresolved = Some(counts.unresolved);
            }
            let is_unchanged = results.replaced == Some(0);
            self.progress.note(&self.summary(&results));
            rounds.rounds.push(results);
            if waits {
                return Ok(IntrospectionEnd::WaitsForPeople(rounds));
            }
            if is_unchanged {
                self.progress.note(
                    "no evaluation was replaced, so another round would give the same result",
                );
                break;
            }
        }
        Ok(IntrospectionEnd::Finished(rounds))
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
    fn train_and_judge(
        &self,
        round: u32,
        builder: &CompletionBuilder,
    ) -> Result<Option<(Round, Review)>> {
        let folder = self.round_folder(round);
        let mut config = self.config.clone();
        let mut earlier_panel = None;
        if self.continues && round > 0 {
            let name = format!("round-{}/training/panel", round - 1);
            let (continued, model) = continue_from(&self.out.join(&name), name, self.config)?;
            (config, earlier_panel) = (continued, Some(model));
        }
        let initial_model = earlier_panel.as_ref().or(self.initial_model);
        for evaluations in config.stages.iter_mut().filter_map(|stage| stage.evaluations.as_mut()) {
            evaluations.file = std::path::absolute(self.evaluations_path(round))?;
        }
        let paths = TrainPaths {
            out: folder.join("training"),
            data: self.data.clone(),
            device: self.placement.device.clone(),
        };
        if !train(&config, initial_model, &paths, self.progress)? {
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
                knowledge: builder.knowledge().cloned(),
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
            by_adviser: None,
            by_people: None,
            unresolved: None,
            held_out,
        };
        Ok(Some((results, review)))
    }

    /// Writes the training data of the next round.
    fn improve_data(
        &self,
        round: u32,
        review: &Review,
        advisers: &mut Advisers,
        builder: &CompletionBuilder,
    ) -> Result<ImprovedRound> {
        let improvement = RoundImprovement {
            cases: self.cases,
            outside_images: &self.outside_images,
            folder: &self.round_folder(round),
            data_folder: &self.data_folder(),
            evaluations: [self.evaluations_path(round), self.evaluations_path(round + 1)],
            builder,
            batch_size: self.batch_size,
            waits_for_people: self.waits_for_people,
            progress: self.progress,
            interrupt: self.interrupt,
        };
        improvement.run(&review.misjudged, advisers)
    }

    /// Describes a round in one line.
    fn summary(&self, results: &Round) -> String {
        let accuracy = 100.0 * results.accuracy.value;
        let mut text = format!(
            "round {}: order accuracy {accuracy:.1} % on {}",
            results.round,
            format_count(results.accuracy.n as u64, "pair")
        );
        if let (Some(by_adviser), Some(by_people), Some(unresolved)) =
            (results.by_adviser, results.by_people, results.unresolved)
        {
            let file = RoundImprovement::unresolved_path(&self.round_folder(results.round));
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                ", {} wrong, {by_adviser} replaced by the adviser, {by_people} by people",
                results.misjudged
            );
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
        self.out.join(DATA_FOLDER)
    }

    fn evaluations_path(&self, round: u32) -> PathBuf {
        data_file(self.out, round)
    }
}

/// Returns the path of the evaluations of a round in the folder of a run.
fn data_file(out: &Path, round: u32) -> PathBuf {
    out.join(DATA_FOLDER).join(format!("round-{round}.jsonl"))
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
