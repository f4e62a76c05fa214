//! A panel whose members are adapters of one model.

use std::collections::{BTreeMap, BTreeSet};

use acem3_experts::ops::{ADAPTER_SUFFIXES, is_adapter};
use acem3_experts::prompt::Rubric;
use anyhow::{Context, Result, bail};
use candle::Tensor;

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::panel::trained_forms::TrainedForms;
use crate::checkpoints::store::tensor_store::StoredTensor;
use crate::support::device::Placement;

/// What to do with a panel that cannot be exported.
const HINT: &str = "hint: train with [stages.lora] in every stage after the last joint one; if members are \
                    whole models, serve each one and name their endpoints in a panel file";

/// Adapter of a matrix: adds `scale · B · A`.
pub(super) struct MatrixAdapter {
    /// `A`, `(rank, c_in)`.
    pub(super) a: Tensor,
    /// `B`, `(c_out, rank)`.
    pub(super) b: Tensor,
    /// `alpha / rank`.
    pub(super) scale: f64,
}

impl MatrixAdapter {
    /// Returns the rank.
    pub(super) fn rank(&self) -> usize {
        self.a.dim(0).unwrap_or(0)
    }
}

/// Adapters by the name of their matrix, such as `model.layers.1.self_attn.q_proj`.
pub(super) type MatrixAdapters = BTreeMap<String, MatrixAdapter>;

/// A panel whose members are adapters of one model.
pub(super) struct AdaptedPanel {
    /// The panel.
    pub(super) definition: PanelDefinition,
    /// The adapters of each member.
    pub(super) adapters: Vec<MatrixAdapters>,
}

impl AdaptedPanel {
    /// Reads a panel.
    ///
    /// # Errors
    ///
    /// The panel cannot be read, or its members are not adapters of one model.
    pub(super) fn read(files: &PanelFiles, panel: &str, downloads: HubDownloads) -> Result<Self> {
        if let PanelFiles::Members(_) | PanelFiles::Checkpoint(_) = files {
            bail!(
                "{panel}: published checkpoints, expected a panel that `acem3 train` wrote with \
                 [stages.lora]\n\
                 hint: a checkpoint can be served as it is: judge with --panel URL --model NAME"
            );
        }
        let rubric = Rubric::built_in()?;
        let definition = PanelDefinition::read(files, &rubric, &Placement::cpu(), downloads)?;
        let forms = definition.prompt_config.trained_forms.as_ref();
        if forms.is_some_and(|forms| *forms != TrainedForms::default()) {
            bail!(
                "{panel}: the panel was trained for other forms of judging than pairs, which the exported \
                 file of members cannot state\n\
                 hint: judge with the folder of the panel"
            );
        }
        let names = definition.names.iter().zip(&definition.members);
        let (first_name, first) = names.clone().next().context("no members")?;
        for (name, member) in names.skip(1) {
            if let Some(tensor) = first_difference(first, member) {
                bail!(
                    "{panel}: {first_name} and {name} have different values of `{tensor}`, expected \
                     members that differ by adapters only\n{HINT}"
                );
            }
        }
        let adapters = definition.members.iter().map(read_adapters);
        let adapters = adapters.collect::<Result<Vec<_>>>().with_context(|| panel.to_owned())?;
        if adapters.iter().all(BTreeMap::is_empty) {
            bail!("{panel}: the members have no adapters, they are one model\n{HINT}");
        }
        Ok(Self { definition, adapters })
    }

    /// Returns a member; all have the same configuration.
    pub(super) fn first_member(&self) -> Result<&Member> {
        self.definition.members.first().context("no members")
    }

    /// Returns the tensors of the model without its adapters.
    pub(super) fn base(&self) -> Result<impl Iterator<Item = (&String, &StoredTensor)>> {
        let tensors = self.first_member()?.weights.tensors.iter();
        Ok(tensors.filter(|(name, _)| !is_adapter(name)))
    }

    /// Returns the largest rank of all adapters.
    pub(super) fn max_rank(&self) -> usize {
        let all = self.adapters.iter().flat_map(BTreeMap::values);
        all.map(MatrixAdapter::rank).max().unwrap_or(0)
    }
}

/// Returns the first tensor, other than adapters, that is not equal in both.
fn first_difference(a: &Member, b: &Member) -> Option<String> {
    let names: BTreeSet<&String> =
        a.weights.tensors.keys().chain(b.weights.tensors.keys()).collect();
    let identity =
        |member: &Member, name: &str| member.weights.tensors.get(name).map(|t| t.identity.clone());
    let differs = |name: &&&String| !is_adapter(name) && identity(a, name) != identity(b, name);
    names.iter().find(differs).map(|name| (*name).clone())
}

/// Returns the adapters of a member.
fn read_adapters(member: &Member) -> Result<MatrixAdapters> {
    let tensors = &member.weights.tensors;
    let [a, b, alpha] = ADAPTER_SUFFIXES;
    let end = format!(".{a}");
    let matrices = tensors.keys().filter_map(|name| name.strip_suffix(&end));
    let adapters = matrices.map(|matrix| {
        let tensor = |suffix: &str| {
            let name = format!("{matrix}.{suffix}");
            let stored = tensors.get(&name).with_context(|| format!("no tensor `{name}`"))?;
            Ok::<_, anyhow::Error>(stored.values.clone())
        };
        let (a, b) = (tensor(a)?, tensor(b)?);
        let rank = a.dims2().with_context(|| format!("adapter of `{matrix}`"))?.0;
        let scale = f64::from(tensor(alpha)?.to_scalar::<f32>()?) / rank as f64;
        Ok((matrix.to_owned(), MatrixAdapter { a, b, scale }))
    });
    adapters.collect()
}
