//! One exchange with a server: the request for an evaluation, and the ratings in its reply.

pub(super) mod constraint;
pub(super) mod json_text;
pub(super) mod message;
pub(super) mod model_names;
pub(super) mod plain_text;
pub(super) mod read_rating;
pub(super) mod read_reply;
pub(super) mod reply;
pub(super) mod request;
pub(super) mod score_probabilities;
pub(super) mod text_limit;
pub(super) mod token_constraint;
