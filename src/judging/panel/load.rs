//! Loading of a panel from its files.

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
    /// Members, grouped by shared trunk.
    pub(super) groups: Vec<TrunkGroup>,
    /// Hashes of everything that can change a verdict.
    pub(super) hashes: BTreeMap<String, String>,
    pub(super) settings: Settings,
    pub(super) place: Placement,
    hub: Vec<HubStamp>,
}

impl Panel {
    /// Loads a panel to a device. `downloads` provides the checkpoints given by hub id. `scores_only`: no
    /// analyses are generated.
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

    /// Returns the panel's name in tables and records.
    pub fn name(&self) -> &str {
        &self.asking.name
    }

    /// Returns the snapshots downloaded from the hub.
    pub fn hub(&self) -> &[HubStamp] {
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
