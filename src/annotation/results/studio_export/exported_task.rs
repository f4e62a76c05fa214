//! A task of a study as a task of Label Studio.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::exported_annotation::ExportedAnnotation;
use crate::annotation::study::Task;
use crate::data::cases::ImageSource;
use crate::data::images::relative_path;
use crate::data::labels::label_studio::{IMAGE_FIELD, QUESTION_FIELD, RESPONSE_FIELDS};
use crate::support::digest::Digest;

/// Address at which Label Studio serves files of a local folder, without the path of the file.
const LOCAL_FILES: &str = "/data/local-files/?d=";

/// A task of Label Studio.
#[derive(Debug, Serialize)]
pub(super) struct ExportedTask<'a> {
    /// Number of the task, from 1. Label Studio gives it another number at import.
    id: usize,
    /// What raters see: question, image and responses.
    data: BTreeMap<&'static str, String>,
    /// What raters do not see, and what the ratings are joined by.
    meta: ExportedMeta<'a>,
    /// One annotation for each rater.
    pub(super) annotations: Vec<ExportedAnnotation<'a>>,
    /// True if the second response of the case is shown first.
    #[serde(skip)]
    is_swapped: bool,
}

/// Case and models of a task. Label Studio keeps `meta` through import and export. Its pages and its
/// table of tasks show only `data`, so the models are here.
#[derive(Debug, Serialize)]
struct ExportedMeta<'a> {
    case: &'a str,
    /// The models, in the order in which their responses are shown.
    models: Vec<&'a str>,
}

impl<'a> ExportedTask<'a> {
    /// Converts a task. In Label Studio all raters see the responses in the same order, so the order is
    /// drawn for each task. Otherwise raters could learn that one side is always the same model.
    pub(super) fn new(id: usize, task: &'a Task, seed: u64) -> Self {
        let (mut models, mut texts) = (task.models(), task.texts());
        let key = [seed.to_string().as_str(), &task.case.id, &models.join("\0")].join("\0");
        let is_drawn =
            Digest::sha256(key.as_bytes()).as_bytes().first().is_some_and(|b| b % 2 == 1);
        let is_swapped = models.len() == 2 && is_drawn;
        if is_swapped {
            models.reverse();
            texts.reverse();
        }
        let mut data = BTreeMap::from([(QUESTION_FIELD, task.case.question.clone())]);
        for (i, field) in RESPONSE_FIELDS.into_iter().enumerate() {
            // The configuration of a study with pairs expects both fields in every task.
            data.insert(field, texts.get(i).copied().unwrap_or_default().to_owned());
        }
        let meta = ExportedMeta { case: &task.case.id, models };
        Self { id, data, meta, annotations: Vec::new(), is_swapped }
    }

    /// Sets the image. `folder`: folder of the cases. Without an image the field is empty, because the
    /// configuration of a study with images expects it in every task.
    ///
    /// Label Studio needs an address. Its free edition serves the files of a local folder, which is the
    /// only way that needs no upload of images.
    pub(super) fn set_image(&mut self, image: Option<&ImageSource>, folder: &Path) {
        let name = image.map(|image| match image {
            ImageSource::File(path) => relative_path(path, folder),
            ImageSource::Bytes { name, .. } => name.clone(),
        });
        let address = name.map(|name| format!("{LOCAL_FILES}{}", encode_query(&name)));
        self.data.insert(IMAGE_FIELD, address.unwrap_or_default());
    }

    /// Returns true if the second response of the case is shown first.
    pub(super) fn is_swapped(&self) -> bool {
        self.is_swapped
    }
}

/// Encodes a path for the query of an address.
fn encode_query(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::cases::{Case, Response};

    fn task(id: &str) -> Task {
        let response =
            |model: &str| Response { model: model.into(), text: format!("text of {model}") };
        let case = Case {
            id: id.into(),
            image: Some(ImageSource::File("set/images/ä b.png".into())),
            question: "Where?".into(),
            responses: vec![response("x"), response("y")],
            reference: None,
            labels: None,
            meta: serde_json::Map::new(),
            extra: serde_json::Map::new(),
            line: 1,
        };
        Task { case: Arc::new(case), responses: vec![0, 1] }
    }

    #[test]
    fn models_are_only_in_meta_and_in_either_order() {
        let mut swapped = 0;
        for i in 0..100 {
            let task = task(&i.to_string());
            let exported = ExportedTask::new(i + 1, &task, 7);
            let first = if exported.is_swapped() { "y" } else { "x" };
            swapped += usize::from(exported.is_swapped());
            assert_eq!(exported.meta.models[0], first);
            assert_eq!(exported.data["response_a"], format!("text of {first}"));
            assert_eq!(ExportedTask::new(i + 1, &task, 7).is_swapped(), exported.is_swapped());
        }
        assert!((30..70).contains(&swapped), "{swapped}");
    }

    #[test]
    fn images_are_local_files_of_label_studio() {
        let task = task("1");
        let mut exported = ExportedTask::new(1, &task, 7);
        exported.set_image(task.case.image.as_ref(), Path::new("set"));
        assert_eq!(exported.data["image"], "/data/local-files/?d=images/%C3%A4%20b.png");
        exported.set_image(None, Path::new("set"));
        assert_eq!(exported.data["image"], "");
    }
}
