//! Trains and judges one encoder with one seed, in a folder that a killed run resumes from.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acem3_vision::DecodedImage;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::base_panel::BasePanel;
use super::cost::{EncoderCost, TrainedVision, count_parameters};
use super::encoder_training::EncoderTraining;
use super::held_out::HeldOutPairs;
use super::journal::OutcomeJournal;
use super::pair_outcome::{PairOutcome, ShownImage};
use super::panel_writer::write_panel;
use super::training_plan::EncoderPlan;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::is_image_part;
use crate::checkpoints::panel::spec::PANEL_FILE;
use crate::judging::panel::PanelJudge;
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::support::files::folder::{create_folder, list_names};
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::format_duration;
use crate::support::text::json_difference::describe_json_differences;
use crate::training::comparisons::encoders::candidate::Candidate;
use crate::training::comparisons::encoders::peak_memory;
use crate::training::measurement::test_pair::judge_pairs;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress};

/// Pairs between two writes of the journal.
const BATCH: usize = 16;
/// Time between two progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// One encoder with one seed.
pub(super) struct EncoderRun<'a> {
    pub(super) base: &'a BasePanel,
    pub(super) encoder: &'a Candidate,
    pub(super) plan: &'a EncoderPlan,
    pub(super) held_out: &'a HeldOutPairs,
    /// Seed of the training.
    pub(super) seed: u64,
    /// Folder of this encoder and seed.
    pub(super) folder: PathBuf,
    /// Folder of the data sets, if any.
    pub(super) data: Option<PathBuf>,
    pub(super) placement: &'a Placement,
    pub(super) progress: &'a TrainingProgress,
    pub(super) interrupt: &'a Interrupt,
}

/// Result of one encoder with one seed.
pub(super) struct EncoderRunResult {
    /// Outcomes of all pairs under both images.
    pub(super) outcomes: Vec<PairOutcome>,
    /// Costs.
    pub(super) cost: EncoderCost,
}

/// What is known after the training.
#[derive(Serialize, Deserialize)]
struct TrainingCost {
    milliseconds_per_image: f64,
    projector_parameters: u64,
    trained_parameters: u64,
    training_seconds: Option<f64>,
    peak_memory: Option<u64>,
}

impl EncoderRun<'_> {
    /// Runs what is not done yet.
    ///
    /// # Errors
    /// If the folder has results of other settings, the training or a judge fails, or the user
    /// interrupts the run.
    pub(super) fn run(&self, log: &dyn Fn(&str)) -> Result<EncoderRunResult> {
        create_folder(&self.folder)?;
        atomic_file::remove_temporary_files(&self.folder)?;
        self.check_settings()?;
        let has_peak = peak_memory::reset_peak();
        let config = self.plan.config(self.base, self.encoder, self.seed, self.data.is_some())?;
        let training = self.train(&config, log)?;
        let mut journal = OutcomeJournal::open(&self.folder.join("judged.jsonl"))?;
        let judged_before = journal.outcomes.len();
        self.judge(&mut journal, log)?;
        let peak =
            peak_memory::peak().filter(|_| has_peak && journal.outcomes.len() > judged_before);
        let cost = EncoderCost {
            tokens_per_image: config.model.input_tokens(),
            milliseconds_per_image: training.milliseconds_per_image,
            encoder_parameters: self.encoder.parameters(),
            projector_parameters: training.projector_parameters,
            trained_parameters: training.trained_parameters,
            training_seconds: training.training_seconds,
            peak_memory: self.peak_memory(training.peak_memory.max(peak))?,
        };
        Ok(EncoderRunResult { outcomes: journal.outcomes, cost })
    }

    /// Checks that the folder is new or has results of the same settings.
    fn check_settings(&self) -> Result<()> {
        let encoder = self.encoder;
        // Loading a random tower initialises its weights.
        encoder.tower()?;
        let settings = json!({
            "encoder": {
                "config": encoder.config,
                "selection": encoder.selection,
                "processor": encoder.processor,
                "sha256": encoder.digest()?,
            },
            "base_sha256": self.base.sha256,
            "training": self.plan,
            "held_out": { "name": self.held_out.name, "pairs": self.held_out.pairs.len(), "sha256": self.held_out.sha256 },
            "seed": self.seed,
        });
        let path = self.folder.join("settings.json");
        let text = serde_json::to_string_pretty(&settings)? + "\n";
        match fs::read_to_string(&path) {
            Ok(old) if old == text => Ok(()),
            Ok(old) => {
                let old: Value = serde_json::from_str(&old).unwrap_or_default();
                bail!(
                    "{}: the results in this folder have other settings: {}\n\
                     hint: pass the same arguments to resume, or choose another folder with --out",
                    path.display(),
                    describe_json_differences(&old, &settings).join("; ")
                )
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if let Some(file) = list_names(&self.folder)?.first() {
                    bail!(
                        "{}: unexpected file {file}, expected an empty folder or results of this command\n\
                         hint: choose another folder with --out",
                        self.folder.display()
                    );
                }
                atomic_file::write_atomic(&path, text.as_bytes())
            }
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Trains and writes the panel, unless it exists.
    fn train(&self, config: &TrainConfig, log: &dyn Fn(&str)) -> Result<TrainingCost> {
        let (panel, path) = (self.folder.join("panel"), self.folder.join("training.json"));
        if panel.join(PANEL_FILE).exists() && path.exists() {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            return serde_json::from_str(&text).with_context(|| path.display().to_string());
        }
        log(&format!("{}: training with seed {}", self.encoder.name, self.seed));
        let start = Instant::now();
        let paths = TrainPaths {
            out: self.folder.join("training"),
            data: self.data.clone(),
            device: self.placement.device.clone(),
        };
        let is_resumed = paths.out.exists();
        let training = EncoderTraining {
            base: self.base,
            encoder: self.encoder,
            config,
            member_stage: self.plan.member_stage(self.base, self.data.is_some()),
            paths: &paths,
            progress: self.progress,
        };
        let trained = training.run()?;
        let seconds = start.elapsed().as_secs_f64();
        let vision = TrainedVision {
            model: &config.model,
            processor: &self.encoder.processor,
            weights: &trained.vision,
        };
        let projector =
            trained.vision.iter().filter(|(name, _)| name.starts_with("model.mm_projector."));
        let projector_parameters = count_parameters(projector.map(|(_, tensor)| tensor));
        let members = trained.members.iter().flat_map(|member| {
            member.iter().filter(|(name, _)| !is_image_part(name)).map(|(_, tensor)| tensor)
        });
        let cost = TrainingCost {
            milliseconds_per_image: vision
                .milliseconds_per_image(&self.images(), &self.placement.device)?,
            projector_parameters,
            trained_parameters: projector_parameters + self.plan.count_trained(members),
            training_seconds: (!is_resumed).then_some(seconds),
            peak_memory: peak_memory::peak(),
        };
        let text = serde_json::to_string_pretty(&cost)? + "\n";
        atomic_file::write_atomic(&path, text.as_bytes())?;
        write_panel(self.base, config, &trained, &panel)?;
        remove_checkpoints(&paths.out)?;
        Ok(cost)
    }

    /// Judges the pairs that have no outcome yet, with their own and with blank images.
    fn judge(&self, journal: &mut OutcomeJournal, log: &dyn Fn(&str)) -> Result<()> {
        let mut judge = None;
        let mut last_message = Instant::now();
        for image in ShownImage::ALL {
            let pairs: Vec<usize> = (0..self.held_out.pairs.len())
                .filter(|pair| !journal.contains(*pair, image))
                .collect();
            if pairs.is_empty() {
                continue;
            }
            let name = &self.encoder.name;
            log(&format!("{name}: judging {} pairs, {}", pairs.len(), image.name()));
            let judge = match &mut judge {
                Some(judge) => judge,
                none => {
                    let files = PanelFiles::Folder(self.folder.join("panel"));
                    let loaded = PanelJudge::load(&files, self.placement, HubDownloads::default());
                    none.insert(loaded?)
                }
            };
            let (start, mut done) = (Instant::now(), 0);
            for batch in pairs.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(BATCH)) {
                self.interrupt.bail_if_requested("run the same command to resume")?;
                let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
                    continue;
                };
                let batch_start = Instant::now();
                let verdicts = judge_pairs(
                    judge,
                    &self.held_out.pairs[*first..=*last],
                    image.condition(),
                    &|_| Ok(()),
                )?;
                let seconds = batch_start.elapsed().as_secs_f64() / batch.len() as f64;
                let outcomes = batch.iter().zip(&verdicts).map(|(pair, verdict)| {
                    let facts = &self.held_out.facts[*pair];
                    let is_exact = self.held_out.is_exact;
                    let outcome = PairOutcome::new(*pair, image, verdict, facts, is_exact);
                    PairOutcome { seconds, ..outcome }
                });
                journal.append(outcomes.collect())?;
                done += batch.len();
                if last_message.elapsed() >= PROGRESS_INTERVAL && done < pairs.len() {
                    last_message = Instant::now();
                    let per_pair = start.elapsed().as_secs_f64() / done as f64;
                    let left = format_duration(per_pair * (pairs.len() - done) as f64);
                    log(&format!("{name}: {done} of {} pairs, {left} left", pairs.len()));
                }
            }
        }
        Ok(())
    }

    /// Returns the images of the pairs.
    fn images(&self) -> Vec<&DecodedImage> {
        self.held_out.pairs.iter().filter_map(|pair| pair.image.decoded()).collect()
    }

    /// Stores and returns the largest peak of memory of this and earlier runs in the folder.
    fn peak_memory(&self, peak: Option<u64>) -> Result<Option<u64>> {
        let path = self.folder.join("peak_memory.json");
        let old = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let peak = peak.max(old.flatten());
        atomic_file::write_atomic(&path, serde_json::to_string(&peak)?.as_bytes())?;
        Ok(peak)
    }
}

/// Removes the checkpoints of a finished training. Its metrics stay.
fn remove_checkpoints(folder: &Path) -> Result<()> {
    for name in list_names(folder)?.iter().filter(|name| name.ends_with(".safetensors")) {
        let path = folder.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}
