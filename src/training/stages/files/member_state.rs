//! Weights of the members between stages.

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_experts::train::{Parameters, load_shared_checkpoint};
use anyhow::{Result, bail};
use candle::{DType, Tensor};

use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::training::config::reward_tokens::RewardTokenPair;
use crate::training::config::stage::stage_config::{StageConfig, StageLearner};
use crate::training::stages::files::finished_weights::check_finished_weights;
use crate::training::stages::files::member_adapters::{AdapterSource, read_member_adapters};

/// State of a member between two stages.
#[derive(Clone, Default)]
pub(crate) struct MemberState<'a> {
    /// Location of the weights.
    pub(crate) weights: MemberWeights<'a>,
    /// Location of the weights before the last stages, if those trained adapters of this member only;
    /// otherwise the location of the weights.
    pub(crate) base: MemberWeights<'a>,
    /// The adapters of those stages, in order.
    pub(crate) adapters: Vec<AdapterSource<'a>>,
    /// Reward tokens, if one begins the completions. The token of rejected evaluations is empty if
    /// the initial model does not state it.
    pub(crate) reward_tokens: Option<RewardTokenPair>,
}

/// Location of a member's weights.
#[derive(Clone, Default)]
pub(crate) enum MemberWeights<'a> {
    /// No weights yet. They are initialised at random on first use.
    #[default]
    Random,
    /// Member of the initial model, by index.
    Initial(&'a InitialModel, usize),
    /// Member of the initial model, by index, without its adapters.
    InitialBase(&'a InitialModel, usize),
    /// Weights with adapters, which are merged when they are read.
    Adapted(Box<Self>, Vec<AdapterSource<'a>>),
    /// Checkpoint of a stage, with the member of the initial model that the training started from.
    Stage(PathBuf, Option<(&'a InitialModel, usize)>),
    /// Mean of the weights of two stages.
    Mean(Box<[Self; 2]>),
}

impl<'a> MemberState<'a> {
    /// Returns the four members before the first stage.
    pub(crate) fn members(initial_model: Option<&'a InitialModel>) -> [Self; 4] {
        std::array::from_fn(|i| match initial_model {
            None => Self::default(),
            Some(initial_model) => Self {
                weights: MemberWeights::Initial(initial_model, i),
                base: MemberWeights::Initial(initial_model, i),
                adapters: Vec::new(),
                reward_tokens: Some(RewardTokenPair {
                    good: initial_model.completion_prefixes[i].clone(),
                    bad: initial_model.rejected_prefixes[i].clone(),
                })
                .filter(|pair| !pair.good.is_empty()),
            },
        })
    }

    /// Returns the same members for a training that keeps adapters apart: those of the initial model are
    /// adapters over its base.
    pub(crate) fn with_kept_adapters(self) -> Self {
        match self.weights {
            MemberWeights::Initial(initial_model, i) => Self {
                base: MemberWeights::InitialBase(initial_model, i),
                adapters: vec![AdapterSource::Initial(initial_model, i)],
                ..self
            },
            _ => self,
        }
    }

    /// Returns the state after a stage that kept its adapters apart. `file`: its checkpoint.
    pub(crate) fn after_adapters(&self, file: PathBuf) -> Self {
        let adapters: Vec<_> =
            self.adapters.iter().cloned().chain([AdapterSource::File(file)]).collect();
        Self {
            weights: MemberWeights::Adapted(Box::new(self.base.clone()), adapters.clone()),
            base: self.base.clone(),
            adapters,
            reward_tokens: None,
        }
    }

    /// Returns the state after a stage. `checkpoint`: its weights. `adapters`: their adapters, if the
    /// stage trained adapters of this member only.
    pub(crate) fn after_stage(&self, checkpoint: PathBuf, adapters: Option<PathBuf>) -> Self {
        let weights = MemberWeights::Stage(checkpoint, self.weights.origin());
        let (base, adapters) = match adapters {
            Some(file) => {
                let file = AdapterSource::File(file);
                (self.base.clone(), self.adapters.iter().cloned().chain([file]).collect())
            }
            None => (weights.clone(), Vec::new()),
        };
        Self { weights, base, adapters, reward_tokens: None }
    }

    /// Returns the state with the mean of these weights and those of another.
    pub(crate) fn mean_with(&self, other: &Self) -> Self {
        let weights = MemberWeights::Mean(Box::new([self.weights.clone(), other.weights.clone()]));
        Self {
            base: weights.clone(),
            weights,
            adapters: Vec::new(),
            reward_tokens: self.reward_tokens.clone(),
        }
    }

    /// Reads the weights with their names; `None` if they are still random.
    pub(crate) fn tensors(&self) -> Result<Option<Vec<(String, Tensor)>>> {
        self.weights.tensors()
    }

    /// Reads the weights as parameters. They share memory with the initial model.
    pub(crate) fn parameters(&self, seed: u64) -> Result<Parameters> {
        match self.tensors()? {
            Some(tensors) => Ok(Parameters::from_shared(tensors)?),
            None => Ok(Parameters::uninitialized(seed)),
        }
    }

    /// Returns true if both members have their weights from the same location.
    fn is_same_location(&self, other: &Self) -> bool {
        self.weights.is_same_location(&other.weights)
    }
}

impl<'a> MemberWeights<'a> {
    /// Reads the weights with their names; `None` if they are still random.
    pub(crate) fn tensors(&self) -> Result<Option<Vec<(String, Tensor)>>> {
        match self {
            Self::Random => Ok(None),
            Self::Initial(initial_model, member) => initial_model.weights(*member).map(Some),
            Self::InitialBase(initial_model, member) => {
                initial_model.base_weights(*member).map(Some)
            }
            Self::Adapted(base, adapters) => {
                let Some(base) = base.tensors()? else {
                    return Ok(None);
                };
                let adapters = read_member_adapters(adapters)?;
                let parameters = Parameters::from_shared(base.into_iter().chain(adapters))?;
                Ok(Some(parameters.merge_adapters()?))
            }
            Self::Stage(path, origin) => {
                // One by one, so that unchanged weights are in memory once.
                let share = |name: &str, tensor: Tensor| {
                    let initial = origin.and_then(|(model, member)| model.tensor(member, name));
                    initial.filter(|i| is_equal(i, &tensor)).cloned().unwrap_or(tensor)
                };
                let mut tensors = load_shared_checkpoint(path, share)?;
                tensors.retain(|name, _| !name.starts_with("optimizer."));
                check_finished_weights(path, &tensors)?;
                Ok(Some(tensors.into_iter().collect()))
            }
            Self::Mean(both) => {
                let [first, second] = &**both;
                match (first.tensors()?, second.tensors()?) {
                    (Some(first), Some(second)) => mean_tensors(first, second).map(Some),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Returns the member of the initial model that the weights come from, if any.
    pub(crate) fn origin(&self) -> Option<(&'a InitialModel, usize)> {
        match self {
            Self::Random => None,
            Self::Initial(initial_model, member) | Self::InitialBase(initial_model, member) => {
                Some((*initial_model, *member))
            }
            Self::Adapted(base, _) => base.origin(),
            Self::Stage(_, origin) => *origin,
            Self::Mean(both) => both[0].origin(),
        }
    }

    /// Returns true if both are the same weights by their location.
    pub(crate) fn is_same_location(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Random, Self::Random) => true,
            (Self::Initial(initial_model, a), Self::Initial(_, b)) => {
                a == b || initial_model.is_single_model()
            }
            (Self::InitialBase(initial_model, a), Self::InitialBase(_, b)) => {
                a == b || initial_model.have_one_base(*a, *b)
            }
            (Self::Adapted(a, first), Self::Adapted(b, second)) => {
                let mut pairs = first.iter().zip(second);
                a.is_same_location(b)
                    && first.len() == second.len()
                    && pairs.all(|(a, b)| a.is_same_location(b))
            }
            (Self::Stage(a, _), Self::Stage(b, _)) => a == b,
            (Self::Mean(a), Self::Mean(b)) => {
                a.iter().zip(&**b).all(|(a, b)| a.is_same_location(b))
            }
            _ => false,
        }
    }
}

/// Returns the mean of each pair of weights with the same name. Weights that only the first has, such as
/// those of the attribute classifier, stay as they are.
fn mean_tensors(
    first: Vec<(String, Tensor)>,
    second: Vec<(String, Tensor)>,
) -> Result<Vec<(String, Tensor)>> {
    let second: HashMap<String, Tensor> = second.into_iter().collect();
    let mean = |(name, tensor): (String, Tensor)| {
        let Some(other) = second.get(&name) else {
            return Ok((name, tensor));
        };
        let sum = (tensor.to_dtype(DType::F32)? + other.to_dtype(DType::F32)?)?;
        Ok((name, (sum * 0.5)?.to_dtype(tensor.dtype())?))
    };
    first.into_iter().map(mean).collect()
}

/// Checks that the members have the same weights if a stage trains them as one model, unless all
/// begin with the weights of one member before.
pub(crate) fn check_joint_stages(stages: &[StageConfig], members: &[MemberState; 4]) -> Result<()> {
    let mut until_joined = stages.iter().take_while(|stage| stage.from.is_none());
    let joint_stage = until_joined.find(|stage| stage.trains_one_model());
    let different = members.iter().position(|member| !member.is_same_location(&members[0]));
    if let (Some(stage), Some(different)) = (joint_stage, different) {
        let names = stage.member_names;
        bail!(
            "stage {}: the stage trains all members as one model, but {} starts with other weights than {}\n\
             hint: start from a checkpoint of one model, train members separately with `members = [...]`, \
             or set `from` to a member, whose weights all members then begin with",
            stage.name,
            names.get(different),
            names.get(0)
        );
    }
    Ok(())
}

/// Checks that the members are adapters of one base, for a training that keeps adapters apart.
pub(crate) fn check_one_base(names: MemberNames, members: &[MemberState; 4]) -> Result<()> {
    let differs = |other: &MemberState| !members[0].base.is_same_location(&other.base);
    match members.iter().position(differs) {
        Some(member) => bail!(
            "keep_adapters = true: {} starts with other weights than {}, expected adapters of one \
             base\nhint: start from one checkpoint or from adapters of one, or remove keep_adapters",
            names.get(member),
            names.get(0)
        ),
        None => Ok(()),
    }
}

/// Checks that the learners of a stage have equal frozen weights, because they share the
/// frozen-activation cache.
pub(crate) fn check_equal_frozen_weights(
    stage: &StageConfig,
    members: &[MemberState; 4],
    learners: &[StageLearner],
) -> Result<()> {
    let mut distinct: Vec<&MemberState> = Vec::new();
    for member in learners.iter().filter_map(|learner| learner.member) {
        let member = &members[member];
        if !distinct.iter().any(|other| member.is_same_location(other)) {
            distinct.push(member);
        }
    }
    let Some((first, others)) = distinct.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return Ok(());
    };
    let frozen = stage.frozen_prefixes();
    let is_frozen = |name: &str| frozen.iter().any(|prefix| name.starts_with(prefix));
    let by_name = |member: &MemberState| -> Result<HashMap<String, Tensor>> {
        Ok(member.tensors()?.unwrap_or_default().into_iter().collect())
    };
    let mut first = by_name(first)?;
    first.retain(|name, _| is_frozen(name));
    for other in others {
        let other = by_name(other)?;
        let is_equal = |name: &str, tensor| other.get(name).is_some_and(|t| is_equal(t, tensor));
        if let Some(name) = first.iter().find(|(n, t)| !is_equal(n, t)).map(|(n, _)| n) {
            bail!(
                "stage {}: the members have different values of the frozen weight `{name}`\n\
                 hint: train each of these members in a separate stage",
                stage.name
            );
        }
    }
    Ok(())
}

/// Returns true if two tensors have the same shape, type and values.
pub(crate) fn is_equal(a: &Tensor, b: &Tensor) -> bool {
    let differing_values = || {
        let differing = a.ne(b)?.to_dtype(DType::U32)?.sum_all()?;
        differing.to_scalar::<u32>()
    };
    a.shape() == b.shape() && a.dtype() == b.dtype() && differing_values().is_ok_and(|n| n == 0)
}
