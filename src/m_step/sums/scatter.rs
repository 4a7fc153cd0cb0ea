//! The state of second moments of all components together (E52).

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scatter {
    /// Whether they are about the means.
    pub(crate) about_means: bool,
    /// Whether first moments are those of rows that one transform whitens.
    pub(crate) whitened: bool,
    /// Whether second moments about a fixed point are known already, and left out.
    pub(crate) known: bool,
    /// The weight of the rows that they are of, if they do not depend on responsibilities; else 0.
    pub(crate) weight: f64,
}

impl Scatter {
    pub(super) fn merged(parts: &[&mut Self]) -> Self {
        Self {
            about_means: parts.iter().any(|part| part.about_means),
            whitened: parts.iter().any(|part| part.whitened),
            known: parts.iter().all(|part| part.known),
            weight: parts.iter().map(|part| part.weight).sum(),
        }
    }
}
