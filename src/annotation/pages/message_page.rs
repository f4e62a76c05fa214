//! Pages with a message.

use maud::{DOCTYPE, html};

use super::layout::Page;

/// Returns a page with a message and a link to the start.
pub(crate) fn message_page(study: &str, title: &str, text: &str) -> String {
    let content = html! {
        h1 { (title) }
        p { (text) }
        p { a href="/" { "To the start" } }
    };
    Page { title, study, navigation: html! {}, content }.render()
}

/// Returns the page that follows a visitor's link. It goes to the start by itself, which removes the
/// token from the address. A redirect would not work: after a link of another site, browsers do not send a
/// cookie with `SameSite=Strict` along a redirect.
pub(crate) fn entered_page(study: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content="0; url=/";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Welcome – " (study) }
                link rel="stylesheet" href="/style.css";
            }
            body {
                main {
                    h1 { (study) }
                    p { a href="/" { "Continue" } }
                }
            }
        }
    };
    page.into_string()
}
