//! How to serve an exported panel and judge with it: the panel file with endpoints, and a text.

use std::fmt::Write as _;

use acem3_experts::prompt::{PromptLayout, RubricDetail};
use anyhow::{Context, Result};
use serde::Serialize;

use super::adapted_panel::AdaptedPanel;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::support::network::service_url::ServiceUrl;

/// Name of the panel file. `panel.toml` is that of panels with weights.
pub(super) const SERVED_FILE: &str = "served.toml";

/// Content of the panel file (`src/checkpoints/panel/members_file.rs`).
#[derive(Serialize)]
struct ServedFile<'a> {
    schema: u32,
    name: &'a str,
    trained: bool,
    layout: PromptLayout,
    rubric: RubricDetail,
    analysis_tokens: usize,
    endpoint: &'a str,
    engine: &'static str,
    tokenizer: &'static str,
    members: ServedMembers,
}

#[derive(Serialize)]
struct ServedMembers {
    expression: ServedEntry,
    medical_knowledge: ServedEntry,
    patient_relevance: ServedEntry,
    conclusion: ServedEntry,
}

/// A member.
#[derive(Serialize)]
struct ServedEntry {
    model: &'static str,
    /// Text at the start of its evaluations.
    #[serde(skip_serializing_if = "String::is_empty")]
    reward_token: String,
}

/// Returns the panel file of the served panel.
pub(super) fn served_file(panel: &AdaptedPanel, endpoint: &ServiceUrl) -> Result<String> {
    let config = &panel.definition.prompt_config;
    let lead = &panel.first_member()?.chat_template.lead;
    let [expression, medical_knowledge, patient_relevance, conclusion] =
        std::array::from_fn(|i| ServedEntry {
            model: MEMBERS[i],
            // The first text of an evaluation, which a server writes as the rest of it.
            reward_token: format!(
                "{lead}{}",
                config.completion_prefixes.get(i).map_or("", String::as_str)
            ),
        });
    let file = ServedFile {
        schema: 1,
        name: &config.name,
        trained: true,
        layout: config.layout,
        rubric: config.rubric,
        analysis_tokens: config.analysis_tokens,
        endpoint: endpoint.as_str(),
        engine: "vllm",
        tokenizer: "base/tokenizer.json",
        members: ServedMembers { expression, medical_knowledge, patient_relevance, conclusion },
    };
    toml::to_string(&file).context("cannot write the panel file")
}

/// Returns the command that serves the panel. `folder`: the folder of the export, as a word of a shell.
pub(super) fn serve_command(folder: &str, rank: usize, endpoint: &ServiceUrl) -> String {
    // XGrammar 0.2.8 mixes up the tokens of constraints that it keeps.
    let mut command = format!("VLLM_XGRAMMAR_CACHE_MB=0 vllm serve {folder}/base");
    let url = endpoint.url();
    // Writing to a string cannot fail.
    if endpoint.is_local() {
        let _ = write!(command, " --host {}", endpoint.host());
    }
    if let Some(port) = url.port() {
        let _ = write!(command, " --port {port}");
    }
    let _ = write!(command, " --enable-lora --max-loras {} --max-lora-rank {rank}", MEMBERS.len());
    command.push_str(" --lora-modules");
    for member in MEMBERS {
        let _ = write!(command, " {member}={folder}/{member}");
    }
    command
}

/// Returns the command that judges with the served panel.
pub(super) fn judge_command(folder: &str) -> String {
    format!("acem3 judge CASES --panel {folder}/{SERVED_FILE} --out OUT")
}

/// Returns the text of `README.md`. The commands are for the folder itself.
pub(super) fn readme(panel: &AdaptedPanel, rank: usize, endpoint: &ServiceUrl) -> String {
    let name = &panel.definition.prompt_config.name;
    let (serve, judge) = (serve_command(".", rank, endpoint), judge_command("."));
    format!(
        "# {name}, for serving\n\n\
         `base` is the model that the four members share, in the layout of the Hugging Face Hub. The \
         folders of the members have their adapters (LoRA, in the format of PEFT). `{SERVED_FILE}` \
         names the server of the members.\n\n\
         In this folder, start the server, and judge with it:\n\n\
         ```\n{serve}\n{judge}\n```\n\n\
         - If the server runs elsewhere, change `endpoint` in `{SERVED_FILE}` and pass \
         `--allow-host HOST`.\n\
         - `tokenizer` makes the server write the tokens that a panel on this machine writes. It needs \
         vLLM 0.32 or later, and `VLLM_XGRAMMAR_CACHE_MB=0`: XGrammar 0.2.8 mixes up the tokens of \
         constraints that it keeps. `acem3 judge` tests the server before the first case.\n\
         - A panel on this machine judges in f32. `--dtype float32` makes the server do so too.\n\
         - On a CPU, vLLM 0.32 mixes up adapters and base in one batch. Send no requests to the \
         base while a run is in progress.\n"
    )
}
