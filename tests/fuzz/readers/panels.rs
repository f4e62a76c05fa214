//! Files that define a panel.

use acem3::checkpoints::hub::HubDownloads;
use acem3::checkpoints::panel::files::PanelFiles;
use acem3::checkpoints::panel::spec::PanelSpec;
use acem3::judging::panel::inspect;
use acem3::support::device::Placement;

use super::bundle::Bundle;

/// Parses a `panel.toml`, and loads the panel without weights.
pub fn read_panel(bytes: &[u8]) -> bool {
    let bundle = Bundle::of_file("panel.toml", bytes);
    let files = PanelFiles::Folder(bundle.folder().to_owned());
    let _ = inspect(&files, &Placement::cpu(), HubDownloads::default());
    std::str::from_utf8(bytes).is_ok_and(|text| PanelSpec::parse(text).is_ok())
}

/// Loads the panel of a members file. The folder `model` next to it has a checkpoint.
pub fn read_members(bytes: &[u8]) -> bool {
    let files = ["config.json", "model.safetensors", "tokenizer.json"];
    let bundle =
        Bundle::of_file("members.toml", bytes).with_golden("checkpoints/qwen2", &files, "model");
    let path = bundle.folder().join("members.toml");
    let panel = PanelFiles::Members(path);
    inspect(&panel, &Placement::cpu(), HubDownloads::default()).is_ok()
}
