//! The examples that stages train on.

pub(crate) mod asked;
pub(crate) mod drills;
pub(crate) mod exercise;
pub(crate) mod phantom_lessons;
pub(crate) mod pixels;
pub(crate) mod real_lessons;
pub(crate) mod scribe;
pub(crate) mod taught;
pub(crate) mod teacher;
pub(crate) mod vocabulary;
