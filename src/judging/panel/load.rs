//! Loads a panel from its files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::checkpoints::hub::{HubDownloads, HubSource};
use crate::support::device::{Placement, text_memory};
use acem3_conclusion::prompt_source;
use acem3_experts::Aspect;
use acem3_experts::prompt::{Form, PromptForm, Rubric, RubricAspect};
use acem3_kernels::{bf16_instructions, instruction_set};
use anyhow::{Context as _, Result, ensure};
use candle::DType;

use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::limits::PanelLimits;
use crate::checkpoints::panel::members_file::MembersFile;
use crate::checkpoints::panel::prompt_config::PromptConfig;
use crate::checkpoints::panel::sample_count::SampleCount;
use crate::judging::panel::finding_settings::FindingSettings;
use crate::judging::panel::options::{JudgeOptions, PanelOptions};
use crate::judging::panel::trunk_group::{TrunkGroup, group_members};
use crate::judging::provenance::Provenance;
use crate::support::digest::Digest;

/// A loaded panel.
pub struct Panel {
    /// Prompt settings.
    pub(super) prompt_config: PromptConfig,
    /// Members, grouped by shared trunk.
    pub(super) groups: Vec<TrunkGroup>,
    /// Hashes of everything that can change a verdict.
    pub(super) hashes: BTreeMap<String, String>,
    /// The rubric.
    pub(super) rubric: Rubric,
    /// Options that shape prompts and texts.
    pub(super) options: PanelOptions,
    /// Device and dtype.
    pub(super) placement: Placement,
    /// True if a member has weights whose inputs are rounded to 8 bits.
    pub(super) has_byte_products: bool,
    /// What the panel is known to judge badly.
    pub(super) limits: Option<PanelLimits>,
    /// Snapshots downloaded from the hub.
    hub: Vec<HubSource>,
}

impl Panel {
    /// Loads a panel onto a device. `downloads` provides the checkpoints given by hub id.
    ///
    /// # Errors
    ///
    /// The files are not a valid panel, do not fit the device, or the panel was trained for another
    /// form.
    pub fn load(
        files: &PanelFiles,
        options: PanelOptions,
        placement: &Placement,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let options = options.with_rubric_of(files)?;
        let rubric = options.to_rubric()?;
        let definition = PanelDefinition::read(files, &rubric, placement, downloads)?;
        Self::from_definition(definition, options, placement)
    }

    /// Loads the members of a members file that are checkpoints. Servers run the others.
    ///
    /// # Errors
    ///
    /// A checkpoint is not valid or does not fit the device, or the rubric has other members.
    pub(crate) fn load_checkpoints(
        file: &MembersFile,
        path: &Path,
        options: PanelOptions,
        placement: &Placement,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let rubric = options.to_rubric()?;
        let definition =
            PanelDefinition::read_checkpoints(file, path, &rubric, placement, downloads)?;
        Self::from_definition(definition, options, placement)
    }

    fn from_definition(
        definition: PanelDefinition,
        options: PanelOptions,
        placement: &Placement,
    ) -> Result<Self> {
        let PanelDefinition { prompt_config, members, indices, mut hashes, limits, hub, .. } =
            definition;
        prompt_config.check_form(options.form, options.shows_reference)?;
        replace_prompt_hashes(&mut hashes, options.prompt_form(&prompt_config));
        let has_byte_products = members.iter().any(|member| member.weights.has_byte_products());
        let rubric = options.to_rubric()?;
        let judging = rubric.judging_members(options.form);
        let is_needed = |i: &usize| indices.get(*i).is_some_and(|index| judging.contains(index));
        let groups = group_members(&members).into_iter();
        let groups = groups.filter(|group| group.iter().any(is_needed)).map(|group| {
            let group = TrunkGroup::new(&members, group, &prompt_config, &options, placement);
            group.map(|group| group.with_panel_indices(&indices))
        });
        let groups = groups.collect::<Result<_>>()?;
        let panel = Self {
            prompt_config,
            groups,
            hashes,
            rubric,
            options,
            placement: placement.clone(),
            has_byte_products,
            limits,
            hub,
        };
        Ok(panel.with_memory(text_memory(&placement.device)))
    }

    /// Shares copies of one panel, one for each device, between threads.
    ///
    /// # Errors
    ///
    /// There is none, or the copies are not of one panel.
    pub(super) fn share_copies(copies: Vec<Self>, run: JudgeOptions) -> Result<Vec<Arc<Self>>> {
        let first = copies.first().context("a panel without a device")?.provenance(run);
        ensure!(
            copies.iter().all(|copy| copy.provenance(run) == first),
            "the copies of the panel differ: its files changed while they were loaded\n\
             hint: run the same command again"
        );
        Ok(copies.into_iter().map(Arc::new).collect())
    }

    /// Limits the memory for keys and values, in bytes. `None` keeps the limit of a loaded panel,
    /// [`text_memory`]. Groups of members that share a trunk get equal parts. Affects speed, not verdicts.
    #[must_use]
    pub fn with_memory(mut self, bytes: Option<u64>) -> Self {
        if let Some(bytes) = bytes {
            let part = bytes / self.groups.len().max(1) as u64;
            self.groups.iter_mut().for_each(|group| group.engine.limit_memory(part));
        }
        self
    }

    /// Returns the device, for the manifest.
    pub(in crate::judging) fn device(&self) -> String {
        let of_bf16 = self.placement.rounds_inputs().then(bf16_instructions).flatten();
        match (self.placement.device.location(), of_bf16) {
            (candle::DeviceLocation::Cpu, Some(of_bf16)) => {
                format!("cpu ({}, {of_bf16})", instruction_set())
            }
            (candle::DeviceLocation::Cpu, None) => format!("cpu ({})", instruction_set()),
            (candle::DeviceLocation::Cuda { gpu_id }, _) => format!("cuda:{gpu_id}"),
            (candle::DeviceLocation::Metal { gpu_id }, _) => format!("metal:{gpu_id}"),
        }
    }

    /// Returns true if equal jobs have equal verdicts, bit for bit. On a GPU, cuBLAS chooses its kernels by
    /// the number of texts that are computed together.
    pub(super) fn is_reproducible(&self) -> bool {
        self.placement.device.is_cpu()
    }

    /// Returns the number of samples of each text in a run: that of the run, else 1 if the run writes no analyses,
    /// else that of the panel.
    pub(super) fn samples(&self, run: JudgeOptions) -> SampleCount {
        let own =
            if self.options.scores_only { SampleCount::ONE } else { self.prompt_config.samples };
        run.samples.unwrap_or(own)
    }

    /// Returns which analyses begin with a finding that both presentation orders of a pair share in a run.
    /// `None` if each order has its own finding, for example with several samples.
    pub(super) fn shared_finding(&self, run: JudgeOptions) -> Option<FindingSettings> {
        let end = self.prompt_config.finding_end.as_deref()?;
        let PanelOptions { form, scores_only, knowledge, .. } = &self.options;
        let has_findings = *form == Form::Pair && !scores_only && knowledge.is_none();
        let is_shared = has_findings && !run.single_order && self.samples(run).is_one();
        let of_aspect = |aspect: &RubricAspect| aspect.key == Aspect::MEDICAL_KNOWLEDGE;
        let member = self.rubric.aspects.iter().position(of_aspect)?;
        is_shared.then(|| FindingSettings { member, end: Arc::from(end) })
    }

    /// Returns everything that can change a verdict.
    pub(in crate::judging) fn provenance(&self, run: JudgeOptions) -> Provenance {
        let mut provenance: Provenance = self.hashes.clone();
        provenance.insert("engine".to_owned(), "greedy f32, version 5".to_owned());
        let weights = self.placement.weight_type();
        if weights != DType::F32.as_str() {
            provenance.insert("weights".to_owned(), weights.to_owned());
        }
        if self.placement.blocks.is_some() && self.groups.iter().any(|g| g.image_encoder.is_some())
        {
            provenance.insert("vision".to_owned(), "layers in q8_0".to_owned());
        }
        if !self.placement.device.is_cpu() {
            let gpu = format!("inputs of products, keys and values in {weights}");
            provenance.insert("gpu".to_owned(), gpu);
        }
        let products = [
            (self.has_byte_products, "inputs of q8_0 and q4k weights in 8 bits"),
            (self.placement.rounds_inputs(), "inputs of bf16 weights in bf16"),
        ];
        let products = products.into_iter().filter(|(is_used, _)| *is_used).map(|(_, name)| name);
        let products = products.collect::<Vec<_>>().join(", ");
        if !products.is_empty() {
            provenance.insert("products".to_owned(), products);
        }
        if let Some(FindingSettings { end, .. }) = self.shared_finding(run) {
            provenance.insert("finding".to_owned(), format!("of both orders, up to `{end}`"));
        }
        let run = JudgeOptions { samples: Some(self.samples(run)), ..run };
        self.options.add_to(&mut provenance, run);
        provenance
    }

    /// Returns why no prompt can hold a text.
    pub(in crate::judging) fn reject_text(&self, text: &str) -> Result<Option<String>> {
        for group in &self.groups {
            if let Some(tokens) = group.engine.tokens_over_context(text)? {
                let context = group.engine.context();
                return Ok(Some(format!(
                    "it has {tokens} tokens, more than the context of {context}\n\
                     hint: shorten it, or use a panel with a longer context"
                )));
            }
        }
        Ok(None)
    }

    /// Returns the panel's name in tables and records.
    pub fn name(&self) -> &str {
        &self.prompt_config.name
    }

    /// Returns true if a member sees images.
    pub fn sees_images(&self) -> bool {
        self.groups.iter().any(|group| group.image_encoder.is_some())
    }

    /// Returns the snapshots downloaded from the hub.
    pub fn hub(&self) -> &[HubSource] {
        &self.hub
    }

    /// Returns the number of layers that all members share; 0 if there are several trunks.
    pub fn trunk_layers(&self) -> usize {
        match self.groups.as_slice() {
            [only] => only.trunk_layers,
            _ => 0,
        }
    }
}

/// Replaces the hashes of the prompts of pairs by those of another form.
fn replace_prompt_hashes(hashes: &mut BTreeMap<String, String>, prompt_form: PromptForm) {
    let digest = |text: &str| Digest::sha256(text.as_bytes()).to_string();
    hashes.insert("layout".to_owned(), digest(prompt_form.source()));
    match prompt_source(prompt_form) {
        Some(text) => hashes.insert("merge".to_owned(), digest(text)),
        None => hashes.remove("merge"),
    };
}
