//! All of a fit that does not depend on time.

use coremix::coreset::Subset;
use coremix::ndarray::{Array1, Array2};
use coremix::{BoxedMixture, Fit, Float, Report, Save};

/// The results by which two fits are compared that should be equal.
#[derive(Debug, PartialEq)]
pub(crate) struct Bits {
    /// The bytes of its file, without notes.
    model: Vec<u8>,
    labels: Array1<u32>,
    supports: Option<Array2<u32>>,
    coreset: Option<(Vec<usize>, Vec<u64>)>,
    report: String,
    free_energies: Vec<u64>,
}

impl Bits {
    /// The bits of a fit by a family of the crate.
    pub(crate) fn of<F: Float>(fit: &Fit<BoxedMixture<F>>) -> Self {
        let Report {
            stop,
            iterations,
            ref phases,
            ref free_energies,
            distance_evaluations,
            evaluations,
            coreset_size,
            zero_mass,
            at_floor,
            restart,
            ref restarts,
            ref checkpoint_fault,
            ..
        } = fit.report;
        let energies = phases.iter().flat_map(|phase| &phase.free_energies);
        let energies = energies.chain(free_energies).chain(restarts);
        let phases: Vec<_> = phases
            .iter()
            .map(|p| {
                let shape = (p.ran_on, p.rows, p.columns, p.iterations, p.longer_lists);
                (
                    shape,
                    p.stop,
                    p.evaluations,
                    [p.zero_mass, p.unobserved, p.at_floor],
                )
            })
            .collect();
        let counts = (distance_evaluations, evaluations, coreset_size);
        let others = ([zero_mass, at_floor], restart, fit.exact, checkpoint_fault);
        let coreset = fit.coreset.as_ref().map(|subset| {
            let Subset { rows, weights, .. } = subset;
            (rows.clone(), weights.iter().map(|w| w.to_bits()).collect())
        });
        Self {
            model: fit.model.to_bytes(&[]).expect("a family of the crate"),
            labels: fit.search_labels.clone(),
            supports: fit.supports.clone(),
            coreset,
            free_energies: energies.map(|f| f.to_bits()).collect(),
            report: format!("{stop:?} {iterations} {counts:?} {others:?} {phases:?}"),
        }
    }
}
