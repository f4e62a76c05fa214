//! Trains and measures every variant with every seed. Finished trials are not repeated.

use std::path::Path;
use std::time::{Duration, Instant};

use acem3_experts::prompt::Form;
use anyhow::{Context, Result, bail};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::judging::knowledge::JudgeKnowledge;
use crate::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use crate::support::device::Placement;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::format_duration;
use crate::support::text::format_count;
use crate::training::comparisons::ablation::ablation_config::AblationConfig;
use crate::training::comparisons::ablation::ablation_result::{AblationResult, TrialStatistic};
use crate::training::comparisons::ablation::ablation_table::{AblationRow, AblationTable};
use crate::training::comparisons::ablation::study::AblationStudy;
use crate::training::comparisons::ablation::variants::{StudyInputs, StudyVariants, Variant};
use crate::training::measurement;
use crate::training::measurement::labelled_cases::LabelledCases;
use crate::training::measurement::{
    MeasuredCounts, MeasurementConfig, MeasurementObserver, MeasurementReport, SetResults,
};
use crate::training::stages::files::data_digests::DataDigests;
use crate::training::stages::files::training_inputs::load_sampler;
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};

/// File with the result of a trial.
const RESULT_FILE: &str = "measured.json";

/// Version of the result format. Results of an earlier version are measured again.
const RESULT_VERSION: u32 = 4;

/// Settings and inputs of an ablation.
pub struct Ablation<'a> {
    /// Set of variants to compare.
    pub study: AblationStudy,
    /// Training configuration that the variants change.
    pub base: &'a TrainConfig,
    /// Initial model of every training.
    pub initial_model: Option<&'a InitialModel>,
    /// Seeds, data, device and measurement.
    pub config: &'a AblationConfig,
    /// Output folder.
    pub out: &'a Path,
    /// Progress output and interruption of trainings.
    pub progress: &'a TrainingProgress,
    /// Interruption by the user while measuring.
    pub interrupt: &'a Interrupt,
}

impl Ablation<'_> {
    /// Trains and measures all variants without a result in the folder. Returns `None` if the user
    /// interrupts it.
    ///
    /// # Errors
    /// If a training or a measurement fails.
    pub fn run(&self) -> Result<Option<AblationTable>> {
        let mut rows = Vec::new();
        let forms = self.base.judging.trained_forms();
        if !forms.forms.contains(&Form::Pair) || forms.shows_reference {
            bail!(
                "[judging]: the tables measure pairs without the reference answer, and the panel is trained for \
                 other forms\n\
                 hint: measure such panels with `acem3 judge` and `acem3 agree`"
            );
        }
        let AblationConfig { introspection, knowledge, .. } = self.config;
        let inputs = StudyInputs {
            introspection: introspection.as_deref(),
            has_knowledge: knowledge.is_some(),
        };
        let StudyVariants { variants, notes } = self.study.variants(self.base, inputs)?;
        for note in &notes {
            self.progress.note(note);
        }
        // Read before the first training, which may take hours.
        let cases = self.config.measurement.cases.as_deref();
        let cases = cases.map(|path| LabelledCases::read(path).map(|c| c.sha256)).transpose()?;
        let sampler = load_sampler(self.base, self.config.data.as_deref())?;
        let data = DataDigests::of_training(self.base, &sampler)?;
        drop(sampler);
        for variant in variants {
            let mut results = Vec::new();
            for i in 0..self.config.seeds {
                let seed = self.base.seed.wrapping_add(i);
                let folder = self.out.join(&variant.folder).join(format!("seed-{seed}"));
                let trial = AblationTrial {
                    ablation: self,
                    variant: &variant,
                    folder: &folder,
                    cases,
                    data: &data,
                };
                let result =
                    trial.run(seed).with_context(|| format!("{}, seed {seed}", variant.name))?;
                match result {
                    Some(result) => results.push(result),
                    None => return Ok(None),
                }
            }
            rows.push(AblationRow::new(&variant.name, &results));
        }
        Ok(Some(AblationTable::new(self.study, self.base, self.config, rows)))
    }
}

/// One variant with one seed.
struct AblationTrial<'a> {
    ablation: &'a Ablation<'a>,
    variant: &'a Variant,
    folder: &'a Path,
    /// Hash of the labelled cases, if any.
    cases: Option<Digest>,
    /// Hashes of the training data of the base configuration.
    data: &'a DataDigests,
}

impl AblationTrial<'_> {
    /// Returns the stored result if its fingerprint is current. Otherwise trains, measures and
    /// stores the result. Returns `None` if the user interrupts the training.
    fn run(&self, seed: u64) -> Result<Option<AblationResult>> {
        let path = self.folder.join(RESULT_FILE);
        let mut config = self.variant.config.clone();
        config.seed = seed;
        let fingerprint = Some(self.fingerprint(&config)?);
        let stored = read_result(&path)?;
        let is_current = |stored: &&AblationResult| stored.fingerprint == fingerprint;
        if let Some(stored) = stored.as_ref().filter(is_current) {
            return Ok(Some(stored.clone()));
        }
        let (is_new, start_time) = (!self.folder.exists(), Instant::now());
        let paths = TrainPaths {
            out: self.folder.to_owned(),
            data: self.ablation.config.data.clone(),
            device: self.ablation.config.device.clone(),
        };
        let progress = self.ablation.progress;
        let name = &self.variant.name;
        progress.note(&format!("{name}, seed {seed}"));
        if !train(&config, self.ablation.initial_model, &paths, progress)? {
            return Ok(None);
        }
        let seconds = start_time.elapsed().as_secs_f64();
        let report = self.measure()?;
        if report.is_partial {
            return Ok(None);
        }
        if report.is_empty() {
            bail!(
                "the trained panel returned no verdict, so there is nothing to compare\n\
                 hint: see the reason above; cases must fit into the panel's context"
            );
        }
        let result = AblationResult {
            seed,
            fingerprint,
            // If only the test sets changed, the panel is not trained again and the stored duration
            // remains.
            seconds: (is_new && !config.stages.is_empty())
                .then_some(seconds)
                .or(stored.and_then(|stored| stored.seconds)),
            statistics: TrialStatistic::of_report(&report),
        };
        let text =
            serde_json::to_vec_pretty(&result).context("cannot write the trial's results")?;
        atomic_file::write_atomic(&path, &text)?;
        let elapsed = format_duration(start_time.elapsed().as_secs_f64());
        progress.note(&format!("{name}, seed {seed}: trained and measured in {elapsed}"));
        Ok(Some(result))
    }

    /// Hashes the configuration, the training data and the test sets. A stored result with another hash is
    /// measured again, after [`train`] checked that the folder's training used the same configuration and data.
    fn fingerprint(&self, config: &TrainConfig) -> Result<Digest> {
        let MeasurementConfig { phantoms, seed, data, cases: _, limit, tests_image_sensitivity: _ } =
            &self.ablation.config.measurement;
        let cases = self.cases.map(|digest| digest.to_string());
        let knowledge = self.knowledge().map(JudgeKnowledge::identity);
        let text = toml::to_string(config).context("cannot write the training configuration")?;
        let test_sets = format!(
            "{RESULT_VERSION} {phantoms} {seed} {data:?} {limit} {cases:?} {knowledge:?}\n{}",
            self.data
        );
        Ok(Digest::sha256((test_sets + &text).as_bytes()))
    }

    /// Returns where the panel looks up what it asks; `None` if it may not.
    fn knowledge(&self) -> Option<&JudgeKnowledge> {
        self.ablation.config.knowledge.as_ref().filter(|_| self.variant.uses_knowledge)
    }

    fn measure(&self) -> Result<MeasurementReport> {
        let files = PanelFiles::Folder(self.folder.join("panel"));
        let Ablation { config, progress, interrupt, .. } = *self.ablation;
        let placement = Placement { device: config.device.clone(), ..Placement::cpu() };
        let options =
            PanelOptions { knowledge: self.knowledge().cloned(), ..PanelOptions::default() };
        let panel = Panel::load(&files, options, &placement, HubDownloads::default())?;
        let mut judge = PanelJudge::new(panel, JudgeOptions::default())?;
        let mut observer = TrialObserver { progress, pairs: 0, last: Instant::now() };
        measurement::measure(&mut judge, &config.measurement, interrupt, &mut observer)
    }
}

/// Time between two notes about a measurement.
const NOTE_INTERVAL: Duration = Duration::from_secs(10);

/// Prints notes about the measurement of a trial.
struct TrialObserver<'a> {
    progress: &'a TrainingProgress,
    pairs: u64,
    last: Instant,
}

impl MeasurementObserver for TrialObserver<'_> {
    fn start(&mut self, _: &str, pairs: u64) -> Result<()> {
        self.pairs = pairs;
        Ok(())
    }

    fn judged(&mut self, counts: MeasuredCounts) {
        if self.last.elapsed() >= NOTE_INTERVAL {
            self.last = Instant::now();
            self.note(&format!("measuring: {} of {} pairs", counts.pairs(), self.pairs));
        }
    }

    fn finished(&mut self, results: &SetResults) -> Result<()> {
        let judged = format_count((results.n - results.unscored) as u64, "pair");
        self.note(&format!("{}, {} image: {judged} judged", results.set, results.image));
        Ok(())
    }

    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }
}

/// Reads the result of an earlier run; `None` if the file cannot be read.
fn read_result(path: &Path) -> Result<Option<AblationResult>> {
    let Ok(text) = std::fs::read(path) else {
        return Ok(None);
    };
    let result = serde_json::from_slice(&text).with_context(|| {
        format!(
            "{}: malformed trial results\nhint: delete the file to measure again",
            path.display()
        )
    })?;
    Ok(Some(result))
}
