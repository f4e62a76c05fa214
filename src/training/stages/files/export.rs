//! Writes the finished panel.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use acem3_experts::prompt::Rubric;
use anyhow::{Context, Result};
use candle::{DType, Tensor};

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::member_files::MemberFiles;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::checkpoints::panel::spec::{
    PANEL_FILE, PanelSpec, TOKENIZER_FILE, TRUNK_FILE, trained_weight_files,
};
use crate::checkpoints::panel::trained_rubrics::{RUBRIC_FILE, declare_rubric};
use crate::checkpoints::safetensors::write as write_tensors;
use crate::support::files::atomic_file;
use crate::training::config::reward_tokens::RewardTokenPair;
use crate::training::config::train_config::TrainConfig;
use crate::training::stages::files::member_adapters::read_member_adapters;
use crate::training::stages::files::member_state::{MemberState, MemberWeights, is_equal};

/// Tensors by name.
type Tensors = HashMap<String, Tensor>;

/// Token budget of an analysis. The longest generated analysis has fewer than forty tokens.
const ANALYSIS_TOKENS: usize = 48;

/// Sizes of the weight files of a panel in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PanelSizes {
    /// The weights that all members share.
    pub(crate) trunk: u64,
    /// The files of the four members together.
    pub(crate) members: u64,
}

impl PanelSizes {
    /// Reads the sizes of the files in the folder of a panel.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn read(panel: &Path, names: [&str; 4]) -> Result<Self> {
        let size = |name: &str| {
            let path = panel.join(name);
            let metadata = std::fs::metadata(&path);
            metadata.map(|m| m.len()).with_context(|| format!("cannot read {}", path.display()))
        };
        let members = names.iter().map(|name| size(&format!("{name}.safetensors")));
        Ok(Self { trunk: size(TRUNK_FILE)?, members: members.sum::<Result<u64>>()? })
    }
}

/// Folders of an export.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportFolders<'a> {
    /// Output folder of the training, which has the tokenizer.
    pub(crate) run: &'a Path,
    /// Folder of the panel, which is created.
    pub(crate) panel: &'a Path,
}

/// Writes the panel's folder: one file with the weights that are equal in all members, and one file
/// per member with the others, in half precision. If the members are adapters of one model, their
/// files have the adapters, in f32.
pub(crate) fn export(
    config: &TrainConfig,
    members: &[MemberState<'_>; 4],
    folders: ExportFolders,
) -> Result<()> {
    let ExportFolders { run, panel: folder } = folders;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let names = config.judging.member_names()?.all();
    let (trunk, heads) = match adapted_model(members)? {
        Some(adapted) => adapted,
        None => trunk_and_heads(names, members)?,
    };
    write_tensors(&trunk, &folder.join(TRUNK_FILE))?;
    for (name, head) in names.iter().zip(&heads) {
        write_tensors(head, &folder.join(format!("{name}.safetensors")))?;
    }
    let tokenizer = run.join(TOKENIZER_FILE);
    let bytes = std::fs::read(&tokenizer)
        .with_context(|| format!("cannot read {}", tokenizer.display()))?;
    atomic_file::write_atomic(&folder.join(TOKENIZER_FILE), &bytes)?;
    let rubric = config.judging.to_rubric()?;
    if !config.judging.has_rubric_of_ace_m3() {
        atomic_file::write_atomic(&folder.join(RUBRIC_FILE), rubric.source().as_bytes())?;
    }
    let spec = panel_spec(config, &rubric, members)?;
    let text = toml::to_string_pretty(&spec).context("cannot write the panel's file")?;
    atomic_file::write_atomic(&folder.join(PANEL_FILE), text.as_bytes())
}

/// Returns the weights that all members share, and the other weights of each member.
fn trunk_and_heads(
    names: [&str; 4],
    members: &[MemberState<'_>; 4],
) -> Result<(Tensors, Vec<Tensors>)> {
    let weights = names.iter().zip(members).map(|(name, member)| {
        let tensors = member.tensors()?;
        half_precision_weights(tensors.with_context(|| format!("no stage trained {name}"))?)
    });
    let weights = weights.collect::<Result<Vec<_>>>()?;
    let trunk = shared_weights(&weights);
    let heads = weights
        .into_iter()
        .map(|tensors| tensors.into_iter().filter(|(name, _)| !trunk.contains_key(name)).collect());
    let heads = heads.collect();
    Ok((trunk, heads))
}

/// Returns the weights of the model whose adapters the members are, and the adapters of each member;
/// `None` if the members do not have adapters of one model.
fn adapted_model(members: &[MemberState<'_>; 4]) -> Result<Option<(Tensors, Vec<Tensors>)>> {
    let [first, others @ ..] = members;
    let has_one_base = others.iter().all(|other| first.base.is_same_location(&other.base));
    if !has_one_base || members.iter().all(|member| member.adapters.is_empty()) {
        return Ok(None);
    }
    let Some(base) = first.base.tensors()? else {
        return Ok(None);
    };
    let adapters = members.iter().map(|member| read_member_adapters(&member.adapters));
    let base = match &first.base {
        MemberWeights::InitialBase(initial_model, i) => to_file_dtype(base, initial_model, *i)?,
        _ => base,
    };
    let base = half_precision_weights(base)?.into_iter().collect();
    Ok(Some((base, adapters.collect::<Result<_>>()?)))
}

/// Returns unchanged weights of the initial model, in bf16 if its files have them in bf16, which has a
/// larger range than f16.
fn to_file_dtype(
    tensors: Vec<(String, Tensor)>,
    initial_model: &InitialModel,
    member: usize,
) -> Result<Vec<(String, Tensor)>> {
    let converted = tensors.into_iter().map(|(name, tensor)| {
        let is_bf16 = initial_model.file_dtype(member, &name) == Some(DType::BF16);
        let tensor = if is_bf16 { tensor.to_dtype(DType::BF16)? } else { tensor };
        Ok((name, tensor))
    });
    converted.collect()
}

/// Returns the weights of a member that belong to a panel, as f16. Weights in bf16, which a training
/// in bf16 did not change, stay as they are.
fn half_precision_weights(tensors: Vec<(String, Tensor)>) -> Result<BTreeMap<String, Tensor>> {
    let is_kept = |name: &str| name.starts_with("model.") || name.starts_with("lm_head.");
    let kept = tensors.into_iter().filter(|(name, _)| is_kept(name));
    let halved = kept.map(|(name, tensor)| match tensor.dtype() {
        DType::BF16 => Ok((name, tensor)),
        _ => Ok((name, tensor.to_dtype(DType::F16)?)),
    });
    halved.collect()
}

/// Returns the weights that are equal in all members.
fn shared_weights(members: &[BTreeMap<String, Tensor>]) -> Tensors {
    let Some((first, others)) = members.split_first() else {
        return HashMap::new();
    };
    let is_shared = |name: &str, tensor: &Tensor| {
        let mut others = others.iter().map(|member| member.get(name));
        others.all(|other| other.is_some_and(|t| is_equal(t, tensor)))
    };
    let shared = first.iter().filter(|(name, tensor)| is_shared(name, tensor));
    shared.map(|(n, t)| (n.clone(), t.clone())).collect()
}

/// Returns the content of `panel.toml`.
fn panel_spec(
    config: &TrainConfig,
    rubric: &Rubric,
    members: &[MemberState<'_>; 4],
) -> Result<PanelSpec> {
    let judging = &config.judging;
    let names = MemberNames::of_rubric(rubric)?.all();
    let [first, second, third, _] = names.map(str::to_owned);
    let tokens = |text: fn(&RewardTokenPair) -> &String| -> BTreeMap<String, String> {
        let texts = names.iter().zip(members).filter_map(|(name, member)| {
            let text = text(member.reward_tokens.as_ref()?);
            (!text.is_empty()).then(|| ((*name).to_owned(), text.clone()))
        });
        texts.collect()
    };
    Ok(PanelSpec {
        schema: PanelSpec::SCHEMA,
        name: config.name.clone(),
        layout: config.layout,
        rubric: config.rubric,
        analysis_tokens: judging
            .analysis_tokens
            .unwrap_or_else(|| analysis_tokens(config, members)),
        samples: judging.samples.unwrap_or_default(),
        finding_end: judging.finding_end.clone(),
        rubrics: BTreeMap::from([declare_rubric(rubric)]),
        forms: judging.forms.clone(),
        shows_reference: judging.shows_reference,
        experts: (names != MEMBERS).then_some([first, second, third]),
        reward_tokens: tokens(|pair| &pair.good),
        bad_reward_tokens: tokens(|pair| &pair.bad),
        dialogue: config.dialogue.clone(),
        processor: config.processor(),
        model: config.model.clone(),
        members: MemberFiles::new(names, trained_weight_files),
    })
}

/// Returns the default maximum number of tokens of an analysis. If a stage trains on a file of
/// evaluations, the value of the initial model is used. Generated analyses are shorter.
fn analysis_tokens(config: &TrainConfig, members: &[MemberState<'_>; 4]) -> usize {
    let has_file = config.stages.iter().any(|stage| stage.evaluations.is_some());
    let origin = members.iter().find_map(|member| member.weights.origin());
    match origin {
        Some((model, _)) if has_file => model.analysis_tokens,
        _ => ANALYSIS_TOKENS,
    }
}
