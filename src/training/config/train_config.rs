//! The file that says how a panel is trained.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_experts::ModelConfig;
use acem3_experts::prompt::{Detail, Dialogue, Layout};
use acem3_experts::train::AdamWConfig;
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use candle::Device;
use serde::{Deserialize, Serialize};

use super::precision::Precision;
use super::stage_config::{StageConfig, StageKind};
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::support::files::folder::parent_folder;
use crate::training::stages::init;

/// A whole training: the model, its tokenizer, and the stages in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The panel's name in tables and records.
    pub name: String,
    /// What it begins with: a panel or a published checkpoint, a folder (from the configuration's own) or an
    /// id on the hub. Its model, vocabulary, processor, dialogue and, where nothing is said, layout and
    /// rubric are the configuration's then. From nothing where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The hash of what it begins with, which tells two of one name apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_sha256: Option<String>,
    /// How members are spoken to.
    #[serde(default, skip_serializing_if = "Dialogue::is_plain")]
    pub dialogue: Dialogue,
    /// Everything random follows from it.
    pub seed: u64,
    /// Sequences computed at once; part of the result, unlike the number of processors.
    #[serde(default = "four")]
    pub micro_batch: usize,
    /// The type in which a model's matrices are kept while it is trained.
    #[serde(default, skip_serializing_if = "Precision::is_single")]
    pub dtype: Precision,
    /// Whether the decoder's layers are computed once more for their gradients: a third more work, and only one
    /// layer's values in memory at a time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recompute: bool,
    /// The prompt layout the panel is trained with.
    pub layout: Layout,
    /// How much of the rubric its prompts spell out.
    pub rubric: Detail,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Layers that all members share in the end.
    pub trunk_layers: usize,
    /// The shape of a member.
    pub model: ModelConfig,
    /// How images are prepared; a square of the tower's size where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<ImageProcessor>,
    /// How often each data set is drawn from, by name; those not named are never. By the square root of
    /// their sizes where nothing is said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data_shares: BTreeMap<String, f64>,
    /// The update.
    #[serde(default)]
    pub optimizer: AdamWConfig,
    /// What is done, in order.
    pub stages: Vec<StageConfig>,
}

fn four() -> usize {
    4
}

impl TrainConfig {
    /// Reads and checks a configuration, and what it begins with; that comes from `downloads` where it is an
    /// id on the hub.
    pub fn begin(path: &Path, downloads: Downloads) -> Result<(Self, Option<InitialModel>)> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "cannot read the configuration {}\n\
                     hint: assets/mini/train.toml of this program's source is one",
                path.display()
            )
        })?;
        let wrong = || format!("{} is not a training configuration", path.display());
        let mut table: toml::Table = toml::from_str(&text).with_context(wrong)?;
        let start =
            init::take(&mut table, path, downloads).with_context(|| path.display().to_string())?;
        let mut config: Self = match start {
            // Read from the text, errors name its lines.
            None => toml::from_str(&text)
                .map_err(|e| hinted(e.into()))
                .with_context(wrong)?,
            Some(_) => filled(&table).map_err(hinted).with_context(wrong)?,
        };
        let base = parent_folder(path)?;
        for stage in &mut config.stages {
            let preferred = stage.preferences.as_mut().and_then(|p| p.file.as_mut());
            let written = stage.evaluations.as_mut().map(|e| &mut e.file);
            for file in preferred.into_iter().chain(written) {
                *file = base.join(&*file);
            }
        }
        config
            .check()
            .map_err(hinted)
            .with_context(|| path.display().to_string())?;
        Ok((config, start))
    }

    /// Reads and checks the configuration of a training that begins with nothing, or with files that are
    /// here.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::begin(path, Downloads::default())?.0)
    }

    /// How images are prepared.
    pub fn processor(&self) -> ImageProcessor {
        let square = || ImageProcessor::square(self.model.vision.image_size);
        self.processor.clone().unwrap_or_else(square)
    }

    /// Whether anything in it is about data sets.
    pub fn asks_for_data(&self) -> bool {
        !self.data_shares.is_empty() || self.stages.iter().any(|stage| stage.real > 0.0)
    }

    /// Checkpoints bear the names of stages, and every member needs one in the end.
    fn check_order(&self) -> Result<()> {
        for (i, stage) in self.stages.iter().enumerate() {
            if self.stages[..i]
                .iter()
                .any(|other| other.name == stage.name)
            {
                bail!("two stages are called {:?}", stage.name);
            }
            let plain = |c: char| c.is_alphanumeric() || ['-', '_', ' '].contains(&c);
            if stage.name.is_empty() || !stage.name.chars().all(plain) {
                bail!(
                    "stage {:?}: the name becomes that of files\n\
                     hint: letters, digits, `-` and `_` may stand in it",
                    stage.name
                );
            }
        }
        let first = self.stages.iter().position(StageConfig::by_member);
        let whole = |stage: &StageConfig| stage.kind != StageKind::Encoder && !stage.by_member();
        let whole = self.stages.iter().rposition(whole);
        match (first, whole) {
            (Some(first), Some(whole)) if first < whole => bail!(
                "stage {}: it trains heads, which stage {} after it would replace",
                self.stages[first].name,
                self.stages[whole].name
            ),
            (Some(first), None)
                if self.start.is_none() && !self.stages[first].members.is_empty() =>
            {
                bail!(
                    "stage {}: it trains some members alone, and no stage of kind \"sft\" before it all",
                    self.stages[first].name
                )
            }
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<()> {
        let decoder = &self.model.decoder;
        if let Err(problem) = self.model.check() {
            bail!("model.{problem}");
        }
        if self.trunk_layers >= decoder.num_hidden_layers {
            bail!(
                "trunk_layers is {}, expected fewer than the decoder's {} layers",
                self.trunk_layers,
                decoder.num_hidden_layers
            );
        }
        if decoder.vocab_size != self.vocabulary {
            bail!(
                "model.decoder.vocab_size is {}, vocabulary {}",
                decoder.vocab_size,
                self.vocabulary
            );
        }
        if self.micro_batch == 0 {
            bail!("micro_batch is 0, expected at least 1");
        }
        if self.stages.is_empty() {
            bail!("there is no stage, expected at least one\nhint: stages are tables [[stages]]");
        }
        let finite = |share: &f64| share.is_finite() && *share >= 0.0;
        if !self.data_shares.values().all(finite) {
            bail!("data_shares must be finite numbers from 0 on");
        }
        let AdamWConfig {
            beta1,
            beta2,
            eps,
            weight_decay,
        } = self.optimizer;
        if ![beta1, beta2].iter().all(|beta| (0.0..1.0).contains(beta)) {
            bail!(
                "[optimizer]: beta1 is {beta1}, beta2 {beta2}, expected numbers from 0 to below 1"
            );
        }
        if !(finite(&eps) && eps > 0.0 && finite(&weight_decay)) {
            bail!(
                "[optimizer]: eps is {eps}, weight_decay {weight_decay}, expected a positive number and one from 0 on"
            );
        }
        self.check_order()?;
        for stage in &self.stages {
            let checked = stage.check(decoder);
            checked.with_context(|| format!("stage {}", stage.name))?;
        }
        Ok(())
    }
}

/// A configuration to which something was added that it follows from, so that the places of its faults are none of
/// the file's. Those are told by what stands there.
fn filled(table: &toml::Table) -> Result<TrainConfig> {
    let text = toml::to_string(table).context("cannot write the configuration")?;
    toml::from_str(&text).map_err(|fault| {
        let begin = fault.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..begin].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line..].lines().next().unwrap_or_default();
        anyhow::anyhow!("at `{line}`: {}", fault.message())
    })
}

/// The fault of a configuration with what to do about it, where it does not say so.
fn hinted(fault: anyhow::Error) -> anyhow::Error {
    let text = format!("{fault:#}");
    if text.contains("hint: ") {
        return fault;
    }
    anyhow::anyhow!(
        "{}\nhint: mend it in the configuration; nothing has been begun",
        text.trim_end()
    )
}

/// Where a training reads, computes and writes.
#[derive(Clone, Debug)]
pub struct TrainPaths {
    /// Where it computes. Nothing of it is in what is written, so that a training may go on elsewhere.
    pub device: Device,
    /// Checkpoints, metrics, tokenizer and the finished panel.
    pub out: PathBuf,
    /// The folder of public data sets, where there is one.
    pub data: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use acem3_experts::train::Lora;

    use super::*;

    /// Where two stages of the recipe stand.
    const POLISH: usize = 5;
    const HEADS: usize = 6;

    /// The recipe of the embedded panel, changed.
    fn refusal(change: impl FnOnce(&mut TrainConfig)) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let mut config = TrainConfig::read(&path).unwrap();
        change(&mut config);
        format!("{:#}", config.check().unwrap_err())
    }

    #[test]
    fn stages_that_cannot_give_a_panel_are_refused_before_the_first_step() {
        let twice = refusal(|c| c.stages[3].name = "align".to_owned());
        assert!(twice.contains("two stages are called \"align\""), "{twice}");
        let path = refusal(|c| c.stages[1].name = "sub/align".to_owned());
        assert!(path.contains("sub/align"), "{path}");
        let order = refusal(|c| c.stages.swap(POLISH, HEADS));
        assert!(order.contains("which stage polish after it"), "{order}");
        let alone = refusal(|c| c.stages.drain(..HEADS).for_each(drop));
        assert!(alone.contains("some members alone"), "{alone}");
        let rate = refusal(|c| c.stages[0].rate = f64::NAN);
        assert!(
            rate.contains("stage encoder: rate is NaN, expected a positive"),
            "{rate}"
        );
        let clip = refusal(|c| c.stages[0].clip = -1.0);
        assert!(
            clip.contains("stage encoder: clip is -1, expected a positive"),
            "{clip}"
        );
        let layers = refusal(|c| c.stages[HEADS].frozen_layers = Some(6));
        assert!(
            layers.contains("stage heads: frozen_layers is 6"),
            "{layers}"
        );
        for name in ["..", "sft.running", ""] {
            let named = refusal(|c| c.stages[0].name = name.to_owned());
            assert!(named.contains("becomes that of files"), "{named}");
        }
        let batch = refusal(|c| c.stages[0].batch = usize::MAX);
        assert!(batch.contains("expected at most 65536"), "{batch}");
        let steps = refusal(|c| c.stages[0].steps = u64::MAX);
        assert!(steps.contains("more than 2147483648 examples"), "{steps}");
        for change in [
            |c: &mut TrainConfig| c.optimizer.beta2 = 1.0,
            |c: &mut TrainConfig| c.optimizer.eps = f64::NAN,
            |c: &mut TrainConfig| c.optimizer.weight_decay = -1.0,
        ] {
            let optimizer = refusal(change);
            assert!(optimizer.contains("[optimizer]: "), "{optimizer}");
        }
        let rewarded = refusal(|c| c.stages[0].rewarded = true);
        assert!(
            rewarded.contains("stage encoder: rewarded belongs to"),
            "{rewarded}"
        );
        let data = refusal(|c| c.stages[HEADS].kind = StageKind::Rtdpo);
        assert!(data.contains("[stages.preferences]"), "{data}");
    }

    #[test]
    fn a_wrong_type_is_told_with_its_key_whatever_a_training_begins_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.toml");
        let text =
            "name = \"a\"\nstart = \"embedded\"\nseed = 1\ntrunk_layers = \"four\"\nstages = []\n";
        std::fs::write(&path, text).unwrap();
        let error = format!("{:#}", TrainConfig::read(&path).unwrap_err());
        assert!(
            error.contains("at `trunk_layers = \"four\"`: invalid type: string"),
            "{error}"
        );
    }

    #[test]
    fn adapters_that_adapt_nothing_are_refused() {
        let lora = |stage: usize, rank: usize, targets: &[&str]| {
            let targets = targets.iter().map(|t| (*t).to_owned()).collect();
            let (alpha, frozen) = (1.0, "model.layers.".to_owned());
            refusal(|c| {
                c.stages[stage].frozen.push(frozen);
                c.stages[stage].lora = Some(Lora {
                    rank,
                    alpha,
                    targets,
                });
            })
        };
        for (refused, problem) in [
            (
                lora(4, 0, &["q_proj"]),
                "stage refine: [stages.lora]: rank is 0",
            ),
            (
                lora(4, 8, &["query"]),
                "stage refine: [stages.lora]: targets names \"query\", which no",
            ),
            (
                lora(4, 8, &["q_proj"]),
                "stage refine: [stages.lora]: targets names \"q_proj\", which is frozen",
            ),
            (
                lora(0, 8, &["q_proj"]),
                "stage encoder: [stages.lora] adapts the decoder",
            ),
        ] {
            assert!(refused.contains(problem), "{refused}");
            assert!(refused.contains("\nhint: "), "{refused}");
        }
    }
}
