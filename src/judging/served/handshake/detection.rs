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
    /// True if the server lists the model; false if it lists no models, or not the adapters of a base.
    pub(super) lists_model: bool,
}

/// What the list of a server says about a model.
#[derive(Default)]
struct ListedModel {
    /// The entry of the model, or of the base of an adapter.
    entry: Option<Value>,
    /// True if the model is listed itself.
    is_verified: bool,
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
    let listed = models.as_ref().map(|models| find_model(model, models)).transpose()?;
    let ListedModel { entry, is_verified: lists_model } = listed.unwrap_or_default();
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

/// Finds a model in the list of a server. There is no entry if the response is no such list.
fn find_model(model: &ServedModel, models: &Value) -> Result<ListedModel, HandshakeError> {
    let Some(entries) = models["data"].as_array() else {
        return Ok(ListedModel::default());
    };
    let is_model = |entry: &&Value| {
        let aliases = entry["aliases"].as_array().into_iter().flatten();
        std::iter::once(&entry["id"]).chain(aliases).any(|name| name.as_str() == Some(&model.model))
    };
    if let Some(entry) = entries.iter().find(is_model) {
        return Ok(ListedModel { entry: Some(entry.clone()), is_verified: true });
    }
    // SGLang names an adapter after its base.
    let (base, adapter) = model.model.split_once(':').unzip();
    let is_base = |e: &&Value| {
        let is_sglang = e["owned_by"] == "sglang" || model.engine == Some(ServingEngine::Sglang);
        is_sglang && base.is_some() && e["id"].as_str() == base
    };
    if let Some(entry) = entries.iter().find(is_base) {
        let mut adapters = entries.iter().filter(|e| e["parent"].is_string()).peekable();
        let lists_adapters = adapters.peek().is_some();
        let is_verified =
            adapters.any(|e| e["id"].as_str() == adapter && e["parent"].as_str() == base);
        if is_verified || !lists_adapters {
            return Ok(ListedModel { entry: Some(entry.clone()), is_verified });
        }
    }
    let names: Vec<String> = entries.iter().take(MAX_LISTED).filter_map(full_name).collect();
    let (url, model) = (model.url.as_str().to_owned(), model.model.clone());
    match (entries.is_empty(), names.is_empty()) {
        (true, _) => Err(HandshakeError::NoModels { url, model }),
        // The entries have no names.
        (false, true) => Ok(ListedModel::default()),
        (false, false) => Err(HandshakeError::UnknownModel { url, model, known: names.join(", ") }),
    }
}

/// Returns the name by which requests select a listed model: for an adapter of SGLang, `base:adapter`.
fn full_name(entry: &Value) -> Option<String> {
    let id = entry["id"].as_str()?;
    let is_sglang = entry["owned_by"].as_str() == Some("sglang");
    Some(match entry["parent"].as_str().filter(|_| is_sglang) {
        Some(base) => format!("{base}:{id}"),
        None => id.to_owned(),
    })
}
