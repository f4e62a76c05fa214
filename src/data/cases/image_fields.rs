//! Unknown fields that look like images. A case with its image under another name would be judged
//! without it.

use serde_json::Value;

use super::source_options::SourceKind;

/// End of the note on an ignored image; also how its records are recognised.
const NOTE: &str = "looks like an image and is not read: the case is judged without an image";
/// Names of image fields in other layouts, in lower case and without `_`, `-` and blanks.
const NAMES: [&str; 19] = [
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
    "imagedata",
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

/// Returns the problem of a case whose image is in this field.
pub(crate) fn ignored_image_message(field: &str, kind: SourceKind) -> String {
    let hint = match kind {
        SourceKind::Import => format!("add image={field} to --columns"),
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

/// Returns true for the path of an image file or a data URL, alone, in a list, or in the fields
/// `path`, `url` or `bytes` of an object.
fn is_image_value(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let text = text.trim();
            let is_path = || {
                let lower = text.to_lowercase();
                let is_word = !lower.contains(['\n', '?']);
                is_word && EXTENSIONS.iter().any(|extension| lower.ends_with(extension))
            };
            text.starts_with("data:image/") || text.len() <= MAX_CHARS && is_path()
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
        ] {
            assert!(found(&fields).is_some_and(|name| name != "note"), "{fields}");
        }
        for fields in [
            json!({"images": []}),
            json!({"img": null, "image_count": 3}),
            json!({"comment": "see a.png for the image"}),
            json!({"organ": "lung", "image_quality": "good"}),
        ] {
            assert_eq!(found(&fields), None, "{fields}");
        }
        assert!(is_ignored_image(&ignored_image_message("img", SourceKind::Cases)));
    }
}
