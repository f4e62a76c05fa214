//! Finds out which engine a server runs, and whether it has the model.

use serde_json::Value;

use super::error::{HandshakeError, request_error};
use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::judging::served::transport::Transport;

/// Maximum number of models that an error lists.
const MAX_LISTED: usize = 10;

/// A server, as it describes itself.
pub(super) struct DetectedServer {
    pub(super) engine: ServingEngine,
    pub(super) version: Option<String>,
    pub(super) context: Option<u64>,
    /// True if the server lists the model; false if it lists no models.
    pub(super) lists_model: bool,
}

/// Asks a server for its models, engine and version.
///
/// # Errors
///
/// The server cannot be reached, rejects the key, or does not have the model.
pub(super) async fn detect(
    model: &ServedModel,
    transport: &Transport,
) -> Result<DetectedServer, HandshakeError> {
    let get = async |path: &str| transport.get_json(path).await.map_err(request_error(model));
    let models = get("models").await?;
    let entry = models.as_ref().map(|models| find_model(model, models)).transpose()?.flatten();
    let owner = entry.as_ref().and_then(|entry| entry["owned_by"].as_str()).unwrap_or_default();
    let is_sglang = owner == "sglang" || model.engine == Some(ServingEngine::Sglang);
    if is_sglang && let Some(entry) = &entry {
        check_adapter_name(model, entry)?;
    }
    let version = match get("/version").await?.as_ref().and_then(version_of) {
        None if is_sglang => sglang_version(transport).await,
        version => version,
    };
    let props = match version {
        Some(_) => None,
        None => get("/props").await?,
    };
    let build = props.as_ref().and_then(|props| Some(props["build_info"].as_str()?.to_owned()));
    let engine = model.engine.unwrap_or(match owner {
        "vllm" => ServingEngine::Vllm,
        "sglang" => ServingEngine::Sglang,
        "llamacpp" => ServingEngine::LlamaCpp,
        _ if props.as_ref().is_some_and(|props| props["total_slots"].is_u64()) => {
            ServingEngine::LlamaCpp
        }
        _ => ServingEngine::OpenAi,
    });
    let context = entry.as_ref().and_then(|entry| {
        entry["max_model_len"].as_u64().or_else(|| entry["meta"]["n_ctx"].as_u64())
    });
    let lists_model = entry.is_some();
    Ok(DetectedServer { engine, version: version.or(build), context, lists_model })
}

/// Returns the version in a response.
fn version_of(response: &Value) -> Option<String> {
    response["version"].as_str().map(str::to_owned)
}

/// Returns the version of an SGLang server; `None` if it keeps this page for administrators.
async fn sglang_version(transport: &Transport) -> Option<String> {
    for path in ["/server_info", "/get_server_info"] {
        let info = transport.get_json(path).await.ok().flatten();
        if let Some(version) = info.as_ref().and_then(version_of) {
            return Some(version);
        }
    }
    None
}

/// Checks that the model is not the name of an adapter alone. SGLang lists this name, but answers with the
/// base for it. Only a name such as `base:adapter` selects the adapter.
fn check_adapter_name(model: &ServedModel, entry: &Value) -> Result<(), HandshakeError> {
    let is_adapter = entry["id"].as_str() == Some(&model.model);
    match entry["parent"].as_str().filter(|_| is_adapter) {
        Some(base) => Err(HandshakeError::AdapterName {
            model: model.to_string(),
            adapter: model.model.clone(),
            base: base.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Returns the entry of a model in the list of a server; `None` if the response is no such list.
fn find_model(model: &ServedModel, models: &Value) -> Result<Option<Value>, HandshakeError> {
    let Some(entries) = models["data"].as_array() else {
        return Ok(None);
    };
    let is_model = |entry: &&Value| {
        let aliases = entry["aliases"].as_array().into_iter().flatten();
        std::iter::once(&entry["id"]).chain(aliases).any(|name| name.as_str() == Some(&model.model))
    };
    if let Some(entry) = entries.iter().find(is_model) {
        return Ok(Some(entry.clone()));
    }
    // SGLang names an adapter after its base.
    let base = model.model.split_once(':').map(|(base, _)| base);
    let names = || entries.iter().filter_map(|entry| entry["id"].as_str());
    if let Some(entry) = entries.iter().find(|e| base.is_some() && e["id"].as_str() == base) {
        return Ok(Some(entry.clone()));
    }
    let known: Vec<&str> = names().take(MAX_LISTED).collect();
    Err(HandshakeError::UnknownModel {
        url: model.url.as_str().to_owned(),
        model: model.model.clone(),
        known: known.join(", "),
    })
}
