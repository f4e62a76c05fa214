//! Unknown fields that look like images. A case with its image under another name would be judged
//! without it.

use serde_json::Value;

use super::case::Case;
use super::source_options::SourceKind;
use crate::data::imports::image_value::is_base64_image;

/// End of the note on an ignored image; also how its records are recognised.
const NOTE: &str = "looks like an image and is not read: the case is judged without an image";
/// Names of image fields in other layouts, in lower case and without `_`, `-` and blanks.
const NAMES: [&str; 27] = [
    "image",
    "images",
    "img",
    "imgs",
    "imagepath",
    "imagepaths",
    "imagefile",
    "imagename",
    "imageurl",
    "imagebytes",
    "imagebase64",
    "imageb64",
    "imagedata",
    "imagefiles",
    "imagelist",
    "imagestr",
    "imageurls",
    "base64image",
    "imgbase64",
    "imglist",
    "imgpath",
    "imgname",
    "imgfile",
    "imgurl",
    "picture",
    "pictures",
    "photo",
];
/// Extensions of image files.
const EXTENSIONS: [&str; 9] =
    [".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".dcm", ".dicom"];
/// Maximum length of a name or path that is examined.
const MAX_CHARS: usize = 4096;

/// Returns the first field that looks like an image: by its name, or by a path or data URL.
pub(crate) fn find_image_field<'a>(
    mut fields: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Option<&'a str> {
    let looks = |(name, value): &(&String, &Value)| {
        is_present(value) && (is_image_name(name) || is_image_value(value))
    };
    fields.find(looks).map(|(name, _)| name.as_str())
}

/// Returns the field of a case that looks like an image: an unknown field, or one of `meta` with
/// the prefix `meta.`.
pub(super) fn find_case_image_field(case: &Case, kind: SourceKind) -> Option<String> {
    let own = || find_image_field(case.extra.iter()).map(str::to_owned);
    match kind {
        SourceKind::Cases => own()
            .or_else(|| find_image_field(case.meta.iter()).map(|field| format!("meta.{field}"))),
        SourceKind::Questions => find_image_field(case.meta.iter()).map(str::to_owned),
        SourceKind::VqaRad | SourceKind::Slake | SourceKind::Parquet | SourceKind::Import => None,
    }
}

/// Returns the problem of a case whose image is in this field.
pub(crate) fn ignored_image_message(field: &str, kind: SourceKind) -> String {
    let hint = match kind {
        SourceKind::Import => format!("add image={field} to --columns"),
        _ if field.starts_with("meta.") => {
            "move the field to `image` of the case, with one path".to_owned()
        }
        _ => "rename the field to `image`, with one path".to_owned(),
    };
    format!("the field `{field}` {NOTE}\nhint: {hint}")
}

/// Returns true for the message of a case whose image is in another field.
pub(crate) fn is_ignored_image(message: &str) -> bool {
    message.contains(NOTE)
}

fn is_image_name(name: &str) -> bool {
    let plain = name.chars().take(MAX_CHARS).filter(|c| !"_- ".contains(*c));
    let plain = plain.collect::<String>().to_lowercase();
    NAMES.contains(&plain.as_str())
}

/// Returns true unless a value is empty.
fn is_present(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(values) => values.iter().any(is_present),
        Value::Object(fields) => fields.values().any(is_present),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true for the path or address of an image file, a data URL or base64 text of an image:
/// alone, in a list, or in the fields `path`, `url` or `bytes` of an object.
fn is_image_value(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let text = text.trim();
            let is_path = || {
                let lower = text.to_lowercase();
                // An address may have a query after the path.
                let is_address = lower.starts_with("http://") || lower.starts_with("https://");
                let lower = match lower.split_once(['?', '#']) {
                    Some((path, _)) if is_address => path,
                    _ => &lower,
                };
                let is_word = !lower.contains(['\n', '?']);
                is_word && EXTENSIONS.iter().any(|extension| lower.ends_with(extension))
            };
            text.starts_with("data:image/")
                || text.len() <= MAX_CHARS && is_path()
                || is_base64_image(text)
        }
        Value::Array(values) => values.first().is_some_and(is_image_value),
        Value::Object(fields) => ["path", "url", "bytes"]
            .iter()
            .any(|name| fields.get(*name).is_some_and(is_image_value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A PNG of one pixel.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

    fn found(fields: &Value) -> Option<&str> {
        find_image_field(fields.as_object().unwrap().iter())
    }

    #[test]
    fn images_are_found_by_name_and_by_value() {
        for fields in [
            json!({"note": "x", "image_path": "a"}),
            json!({"Images": ["a"]}),
            json!({"img": "a.dat"}),
            json!({"scan": "scans/7.PNG"}),
            json!({"views": [{"path": "a.jpg"}]}),
            json!({"x": "data:image/png;base64,iVBO"}),
            json!({"pixels": PNG}),
            json!({"xray": [PNG]}),
            json!({"url": "https://foo.org/x.PNG?size=1"}),
            json!({"image_list": ["q"]}),
        ] {
            assert!(found(&fields).is_some_and(|name| name != "note"), "{fields}");
        }
        for fields in [
            json!({"images": []}),
            json!({"img": null, "image_count": 3}),
            json!({"comment": "see a.png for the image"}),
            json!({"organ": "lung", "image_quality": "good"}),
            json!({"url": "https://foo.org/page?image=x.html"}),
            json!({"hash": "0123456789abcdef".repeat(8), "token": "A".repeat(200)}),
        ] {
            assert_eq!(found(&fields), None, "{fields}");
        }
        assert!(is_ignored_image(&ignored_image_message("img", SourceKind::Cases)));
    }
}
