//! Compares encoders: trains and judges each with every seed, and collects the results.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::base_panel::BasePanel;
use super::context_fit::{ContextFit, PromptLengths};
use super::encoder_run::{EncoderRun, EncoderRunResult};
use super::held_out::{HeldOutChoice, HeldOutPairs};
use super::results::{ComparisonInput, EncoderInput, JudgedComparison, SeedRun};
use super::training_plan::{EncoderPlan, MemberTraining};
use crate::checkpoints::hub::HubDownloads;
use crate::support::device::Placement;
use crate::support::files::folder::{FolderLock, create_folder};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::TrainingProgress;
use crate::training::comparisons::encoders::candidate::Candidate;

/// Encoders to compare, with what all of them share.
pub struct EncoderExperiment<'a> {
    /// The encoders; the first is the baseline.
    pub encoders: &'a [Candidate],
    /// The base panel; `None` for the embedded one.
    pub panel: Option<&'a str>,
    /// Training that every encoder gets.
    pub plan: EncoderPlan,
    /// Folder of the data sets; `None` for phantoms.
    pub data: Option<PathBuf>,
    /// Maximum number of held-out pairs.
    pub test_count: u64,
    /// First seed of training, and seed of the held-out pairs.
    pub seed: u64,
    /// Number of seeds.
    pub seeds: u64,
}

/// Output folder, device and progress of an experiment.
pub struct ExperimentOutput<'a> {
    /// Output folder, with one folder per encoder and seed.
    pub out: &'a Path,
    /// Device and element type of judging.
    pub placement: &'a Placement,
    /// Progress of training.
    pub progress: &'a TrainingProgress,
    /// Interruption by the user.
    pub interrupt: &'a Interrupt,
    /// Prints a note to stderr.
    pub log: &'a dyn Fn(&str),
}

impl EncoderExperiment<'_> {
    /// Trains and judges what is not done yet, and compares the encoders.
    ///
    /// # Errors
    /// If the base, the data or the output folder cannot be used, no encoder fits the base, a run
    /// fails, or the user interrupts it.
    pub fn run(
        &self,
        downloads: HubDownloads,
        output: &ExperimentOutput<'_>,
    ) -> Result<JudgedComparison> {
        create_folder(output.out)?;
        let _lock = FolderLock::acquire(output.out)?;
        let base = BasePanel::read(self.panel, downloads)?;
        self.check_plan(&base)?;
        let choice = HeldOutChoice { count: self.test_count, seed: self.seed };
        let held_out = HeldOutPairs::load(self.data.as_deref(), choice)?;
        let fits = self.check_context(&base, &held_out, output.log)?;
        let mut encoders = Vec::new();
        for (i, (encoder, fit)) in self.encoders.iter().zip(&fits).enumerate() {
            let mut runs = Vec::new();
            for seed in (0..self.seeds).map(|i| self.seed.wrapping_add(i)) {
                if !fit.fits_any() {
                    continue;
                }
                let run = EncoderRun {
                    base: &base,
                    encoder,
                    plan: &self.plan,
                    held_out: &held_out,
                    seed,
                    folder: output
                        .out
                        .join(format!("encoder-{}", i + 1))
                        .join(format!("seed-{seed}")),
                    data: self.data.clone(),
                    placement: output.placement,
                    progress: output.progress,
                    interrupt: output.interrupt,
                };
                let result = run.run(output.log);
                let EncoderRunResult { outcomes, cost } =
                    result.with_context(|| format!("encoder {}, seed {seed}", encoder.name))?;
                runs.push(SeedRun { seed, outcomes, cost });
            }
            let name = encoder.name.clone();
            encoders.push(EncoderInput { name, hub: encoder.hub.clone(), fit: *fit, runs });
        }
        let trained = self.plan.describe();
        let base = base.prompt_config.name;
        Ok(JudgedComparison::new(ComparisonInput { base, trained, held_out: &held_out, encoders }))
    }

    /// Checks that the base has the layers that are trained.
    fn check_plan(&self, base: &BasePanel) -> Result<()> {
        let layers = base.decoder.num_hidden_layers;
        if let MemberTraining::UpperLayers(n) = self.plan.members
            && n >= layers
        {
            bail!(
                "--layers is {n}, expected fewer than the base's {layers} layers\n\
                 hint: the members share the layers below; use --lora to adapt all layers"
            );
        }
        if let Some(context) = self.plan.context
            && context < base.decoder.max_position_embeddings
        {
            bail!(
                "--context is {context}, expected at least the base's {} tokens\n\
                 hint: omit --context",
                base.decoder.max_position_embeddings
            );
        }
        Ok(())
    }

    /// Returns the fit of every encoder, and prints what does not fit before any training.
    fn check_context(
        &self,
        base: &BasePanel,
        held_out: &HeldOutPairs,
        log: &dyn Fn(&str),
    ) -> Result<Vec<ContextFit>> {
        let lengths = PromptLengths::measure(base, &held_out.pairs)?;
        let mut fits = Vec::new();
        for encoder in self.encoders {
            let model = self.plan.model(base, encoder)?;
            let context = model.decoder.max_position_embeddings;
            let fit = lengths.fit(model.input_tokens(), context);
            if let Some(warning) = fit.warning(&encoder.name, model.vision.grid_side()) {
                log(&warning);
            }
            fits.push(fit);
        }
        if !fits.iter().any(ContextFit::fits_any) {
            let sufficient = fits.iter().map(|fit| fit.sufficient).max().unwrap_or(0);
            bail!(
                "no encoder fits the base's context of {} tokens, so no pair can be judged\n\
                 hint: use a base with a context of at least {sufficient} tokens (--panel), \
                 fewer image tokens (--projector pooled:8), or --context",
                base.decoder.max_position_embeddings
            );
        }
        Ok(fits)
    }
}
