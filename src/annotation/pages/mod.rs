//! The pages of the site. The compiler checks their HTML. They load nothing from other hosts and work
//! without JavaScript.

pub(crate) mod admin_page;
pub(crate) mod case_page;
pub(crate) mod choice_fields;
pub(crate) mod decision_fields;
pub(crate) mod disagreement_page;
pub(crate) mod evaluation_fields;
pub(crate) mod field_names;
pub(crate) mod image_view;
pub(crate) mod layout;
pub(crate) mod message_page;
pub(crate) mod overview_page;
pub(crate) mod rating_fields;

/// Style of all pages.
pub(crate) const STYLE: &str = include_str!("style.css");
/// Script of the page of a case: keys, zoom, and leaving with unsaved changes.
pub(crate) const SCRIPT: &str = include_str!("site.js");
