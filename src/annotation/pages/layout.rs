//! The frame of all pages.

use maud::{DOCTYPE, Markup, html};

/// A page.
pub(crate) struct Page<'a> {
    /// Title of the window.
    pub(crate) title: &'a str,
    /// Name of the study.
    pub(crate) study: &'a str,
    /// Links and remarks next to the name of the study.
    pub(crate) navigation: Markup,
    /// Content.
    pub(crate) content: Markup,
}

impl Page<'_> {
    /// Returns the page as HTML.
    pub(crate) fn render(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="robots" content="noindex";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " – " (self.study) }
                    link rel="stylesheet" href="/style.css";
                    script src="/site.js" defer {}
                }
                body {
                    a.skip-link href="#content" { "Skip to the content" }
                    header {
                        p.study { (self.study) }
                        nav aria-label="Study" { (self.navigation) }
                    }
                    main id="content" { (self.content) }
                }
            }
        };
        page.into_string()
    }
}
