//! From files to a panel that can see and write.

use std::collections::BTreeMap;

use crate::device::Place;
use acem3_experts::generate::Settings;
use anyhow::Result;

use super::files::PanelFiles;
use super::group::{Group, together};
use super::recipe::{Asking, Recipe};

/// A loaded panel.
pub struct Panel {
    pub(super) asking: Asking,
    /// The members, those that share a trunk together.
    pub(super) groups: Vec<Group>,
    /// Hashes of everything that can move a verdict.
    pub(super) hashes: BTreeMap<String, String>,
    pub(super) settings: Settings,
    pub(super) place: Place,
}

impl Panel {
    /// Loads a panel's files to a place.
    pub fn load(files: &PanelFiles, scores_only: bool, place: &Place) -> Result<Self> {
        let Recipe {
            asking,
            members,
            hashes,
        } = Recipe::read(files, place)?;
        let settings = Settings {
            analysis_tokens: asking.analysis_tokens,
            scores_only,
        };
        let groups = together(&members).into_iter();
        let groups =
            groups.map(|group| Group::new(&members, group, &asking, settings, &place.device));
        let groups = groups.collect::<Result<_>>()?;
        Ok(Self {
            asking,
            groups,
            hashes,
            settings,
            place: place.clone(),
        })
    }

    /// The panel's name in tables and records.
    pub fn name(&self) -> &str {
        &self.asking.name
    }

    /// Layers that all members share; none where they stand on different trunks.
    pub fn trunk_layers(&self) -> usize {
        match self.groups.as_slice() {
            [only] => only.trunk_layers,
            _ => 0,
        }
    }
}
