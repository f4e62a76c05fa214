//! From files to a panel that can see and write.

use std::collections::BTreeMap;

use crate::checkpoints::hub::{Downloads, HubStamp};
use crate::support::device::Placement;
use acem3_experts::generate::Settings;
use anyhow::Result;

use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::prompt_config::PromptConfig;
use crate::judging::panel::trunk_group::{TrunkGroup, together};

/// A loaded panel.
pub struct Panel {
    pub(super) asking: PromptConfig,
    /// The members, those that share a trunk together.
    pub(super) groups: Vec<TrunkGroup>,
    /// Hashes of everything that can move a verdict.
    pub(super) hashes: BTreeMap<String, String>,
    pub(super) settings: Settings,
    pub(super) place: Placement,
    hub: Vec<HubStamp>,
}

impl Panel {
    /// Loads a panel's files to a place; checkpoints that they only name come from `downloads`.
    pub fn load(
        files: &PanelFiles,
        scores_only: bool,
        place: &Placement,
        downloads: Downloads,
    ) -> Result<Self> {
        let PanelDefinition {
            asking,
            members,
            hashes,
            hub,
        } = PanelDefinition::read(files, place, downloads)?;
        let settings = Settings {
            analysis_tokens: asking.analysis_tokens,
            scores_only,
        };
        let groups = together(&members).into_iter();
        let groups =
            groups.map(|group| TrunkGroup::new(&members, group, &asking, settings, &place.device));
        let groups = groups.collect::<Result<_>>()?;
        Ok(Self {
            asking,
            groups,
            hashes,
            settings,
            place: place.clone(),
            hub,
        })
    }

    /// The panel's name in tables and records.
    pub fn name(&self) -> &str {
        &self.asking.name
    }

    /// What of it was taken from the hub.
    pub fn hub(&self) -> &[HubStamp] {
        &self.hub
    }

    /// Layers that all members share; none where they stand on different trunks.
    pub fn trunk_layers(&self) -> usize {
        match self.groups.as_slice() {
            [only] => only.trunk_layers,
            _ => 0,
        }
    }
}
