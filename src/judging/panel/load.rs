//! Loads a panel from its files.

use std::collections::BTreeMap;

use crate::checkpoints::hub::{HubDownloads, HubSource};
use crate::support::device::Placement;
use acem3_conclusion::prompt_source;
use acem3_experts::prompt::{PromptForm, Rubric};
use anyhow::Result;

use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::limits::PanelLimits;
use crate::checkpoints::panel::prompt_config::PromptConfig;
use crate::judging::panel::options::PanelOptions;
use crate::judging::panel::trunk_group::{TrunkGroup, group_members};
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
        let PanelDefinition { prompt_config, members, mut hashes, limits, hub, .. } =
            PanelDefinition::read(files, &options.to_rubric()?, placement, downloads)?;
        prompt_config.check_form(options.form, options.shows_reference)?;
        replace_prompt_hashes(&mut hashes, options.prompt_form(&prompt_config));
        let has_byte_products = members.iter().any(|member| member.weights.has_byte_products());
        let rubric = options.to_rubric()?;
        let groups = group_members(&members).into_iter();
        let groups = groups.map(|group| {
            TrunkGroup::new(&members, group, &prompt_config, &options, &placement.device)
        });
        let groups = groups.collect::<Result<_>>()?;
        let placement = placement.clone();
        Ok(Self {
            prompt_config,
            groups,
            hashes,
            rubric,
            options,
            placement,
            has_byte_products,
            limits,
            hub,
        })
    }

    /// Returns the index of the conclusion model among the members: it comes after the experts.
    pub(super) fn conclusion_member(&self) -> usize {
        self.rubric.aspects.len()
    }

    /// Returns the panel's name in tables and records.
    pub fn name(&self) -> &str {
        &self.prompt_config.name
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
