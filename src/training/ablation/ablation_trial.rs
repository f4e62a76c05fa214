//! Trains and measures every variant with every seed. Finished trials are not repeated.

use crate::training::ablation::ablation_config::AblationConfig;
use crate::training::ablation::ablation_result::AblationResult;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::judging::panel::PanelJudge;
use crate::support::device::Placement;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::duration;
use crate::training::ablation::ablation_table::{AblationRow, AblationTable};
use crate::training::ablation::study::{AblationStudy, Variant};
use crate::training::measurement;
use crate::training::measurement::{MeasurementConfig, MeasurementReport};
use crate::training::{TrainConfig, TrainPaths, TrainingProgress, train};

/// The file with the results of a trial.
const MEASURED: &str = "measured.json";

/// Version of the result format. Results of an earlier version are measured again.
const FIGURES: u32 = 2;

/// Trains and measures all variants without a result in the folder. Returns `None` if the user interrupts it.
///
/// # Errors
/// If a training or a measurement fails.
pub fn run(
    rows: AblationStudy,
    (base, start): (&TrainConfig, Option<&InitialModel>),
    budget: &AblationConfig,
    out: &Path,
    (live, interrupt): (&TrainingProgress, &Interrupt),
) -> Result<Option<AblationTable>> {
    let mut table = Vec::new();
    for variant in rows.variants(base)? {
        let mut all = Vec::new();
        for i in 0..budget.seeds {
            let seed = base.seed.wrapping_add(i);
            let folder = out.join(&variant.folder).join(format!("seed-{seed}"));
            let trial = AblationTrial {
                variant: &variant,
                start,
                budget,
                folder: &folder,
                live,
                interrupt,
            };
            let measured = trial
                .measured(seed)
                .with_context(|| format!("{}, seed {seed}", variant.name))?;
            match measured {
                Some(measured) => all.push(measured),
                None => return Ok(None),
            }
        }
        table.push(AblationRow::new(&variant.name, &all));
    }
    Ok(Some(AblationTable::new(rows, base, budget, table)))
}

/// One variant with one seed.
struct AblationTrial<'a> {
    variant: &'a Variant,
    start: Option<&'a InitialModel>,
    budget: &'a AblationConfig,
    folder: &'a Path,
    live: &'a TrainingProgress,
    interrupt: &'a Interrupt,
}

impl AblationTrial<'_> {
    fn measured(&self, seed: u64) -> Result<Option<AblationResult>> {
        let path = self.folder.join(MEASURED);
        let mut config = self.variant.config.clone();
        config.seed = seed;
        let of = Some(self.identity(&config)?);
        let before = read(&path)?;
        if let Some(before) = before.as_ref().filter(|before| before.of == of) {
            return Ok(Some(before.clone()));
        }
        let (is_new, start_time) = (!self.folder.exists(), Instant::now());
        let paths = TrainPaths {
            out: self.folder.to_owned(),
            data: self.budget.data.clone(),
            device: self.budget.device.clone(),
        };
        let name = &self.variant.name;
        self.live.note(&format!("{name}, seed {seed}"));
        if !train(&config, self.start, &paths, self.live)? {
            return Ok(None);
        }
        let seconds = start_time.elapsed().as_secs_f64();
        let report = self.measure()?;
        if report.is_empty() {
            bail!(
                "the trained panel returned no verdict, so there is nothing to compare\n\
                 hint: see the reason above; cases must fit into the panel's context"
            );
        }
        let measured = AblationResult {
            seed,
            of,
            // If only the test sets changed, nothing was trained again.
            seconds: (is_new && !config.stages.is_empty())
                .then_some(seconds)
                .or(before.and_then(|before| before.seconds)),
            figures: figures(&report),
        };
        let text =
            serde_json::to_vec_pretty(&measured).context("cannot write the trial's results")?;
        atomic_file::write(&path, &text)?;
        let took = duration(start_time.elapsed().as_secs_f64());
        self.live.note(&format!(
            "{name}, seed {seed}: trained and measured in {took}"
        ));
        Ok(Some(measured))
    }

    /// Hash of the configuration and the test sets. A stored result with another hash is measured again. The folder
    /// itself checks that its training used the same configuration and data.
    fn identity(&self, config: &TrainConfig) -> Result<Digest> {
        let MeasurementConfig {
            phantoms,
            seed,
            data,
            limit,
            blinded: _,
        } = &self.budget.plan;
        let text = toml::to_string(config).context("cannot write the training configuration")?;
        let plan = format!("{FIGURES} {phantoms} {seed} {data:?} {limit}\n");
        Ok(Digest::of((plan + &text).as_bytes()))
    }

    fn measure(&self) -> Result<MeasurementReport> {
        let files = PanelFiles::Folder(self.folder.join("panel"));
        let place = Placement {
            device: self.budget.device.clone(),
            ..Placement::cpu()
        };
        let mut judge = PanelJudge::open(&files, &place, Downloads::default())?;
        let say = |text: &str| self.live.note(text);
        measurement::measure(&mut judge, &self.budget.plan, self.interrupt, &say)
    }
}

/// Reads the result of an earlier run, if there is one.
fn read(path: &Path) -> Result<Option<AblationResult>> {
    let Ok(text) = std::fs::read(path) else {
        return Ok(None);
    };
    let read = serde_json::from_slice(&text).with_context(|| {
        format!(
            "{}: malformed trial results\nhint: delete the file to measure again",
            path.display()
        )
    })?;
    Ok(Some(read))
}

/// Returns the proportions that tables show, by test set.
fn figures(report: &MeasurementReport) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    for figures in &report.figures {
        let shares = [
            ("order right", figures.order),
            ("knowledge right", figures.knowledge),
            ("better preferred", figures.preferred),
            ("flips", figures.flips),
            ("right, better first", figures.better_shown[0]),
            ("right, better second", figures.better_shown[1]),
            ("longer preferred wrongly", figures.longer),
        ];
        let known = shares
            .into_iter()
            .filter_map(|(name, share)| Some((format!("{}: {name}", figures.set), share?.value)));
        all.extend(known);
    }
    all
}
