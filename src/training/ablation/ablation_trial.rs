//! Trains and measures every variant with every seed. What is finished is not done again.

use crate::training::ablation::ablation_config::AblationConfig;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

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

/// The file of a run's figures.
const MEASURED: &str = "measured.json";

/// Which figures a measure has: one of earlier ones is made again.
const FIGURES: u32 = 2;

/// What came of one training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationResult {
    /// The seed.
    pub seed: u64,
    /// The hash of what was trained and of what it was measured on.
    #[serde(default)]
    pub of: Option<Digest>,
    /// How long it took; absent where it was interrupted.
    pub seconds: Option<f64>,
    /// Shares by name.
    pub figures: Vec<(String, f64)>,
}

/// Trains and measures what is not yet in the folder. `None` when the person asked to stop.
///
/// # Errors
/// Where a training or a measure fails.
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
        let (anew, begun) = (!self.folder.exists(), Instant::now());
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
        let seconds = begun.elapsed().as_secs_f64();
        let report = self.measure()?;
        if report.is_empty() {
            bail!(
                "its panel gave not one verdict, so that there is nothing to compare\n\
                 hint: the reason stands above; cases must fit into the context of the panel"
            );
        }
        let measured = AblationResult {
            seed,
            of,
            // Where only the cases are others, nothing was trained again.
            seconds: (anew && !config.stages.is_empty())
                .then_some(seconds)
                .or(before.and_then(|before| before.seconds)),
            figures: figures(&report),
        };
        let text = serde_json::to_vec_pretty(&measured).context("cannot write a measure")?;
        atomic_file::write(&path, &text)?;
        let took = duration(begun.elapsed().as_secs_f64());
        self.live.note(&format!(
            "{name}, seed {seed}: trained and measured in {took}"
        ));
        Ok(Some(measured))
    }

    /// What must be the same for a measure to be this trial's. That a training is of its configuration and its data is
    /// found out by its folder.
    fn identity(&self, config: &TrainConfig) -> Result<Digest> {
        let MeasurementConfig {
            phantoms,
            seed,
            data,
            limit,
            blinded: _,
        } = &self.budget.plan;
        let text = toml::to_string(config).context("cannot write the configuration")?;
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

/// The measure of an earlier run, if there is one.
fn read(path: &Path) -> Result<Option<AblationResult>> {
    let Ok(text) = std::fs::read(path) else {
        return Ok(None);
    };
    let read = serde_json::from_slice(&text).with_context(|| {
        format!(
            "{}: not a measure\nhint: delete it, and it is made again",
            path.display()
        )
    })?;
    Ok(Some(read))
}

/// The shares that tables show, set by set.
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
