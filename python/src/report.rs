//! The report of a fit, as a dictionary.

use coremix::{PhaseReport, Report, Timings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The report by name; `text` is how it is printed.
pub(crate) fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let evaluations = PyDict::new(py);
    evaluations.set_item("coreset", report.evaluations.coreset)?;
    evaluations.set_item("seeding", report.evaluations.seeding)?;
    evaluations.set_item("search", report.evaluations.search)?;
    evaluations.set_item("scoring", report.evaluations.scoring)?;
    let phases: Vec<_> = report.phases.iter().map(|p| phase(py, p)).collect();
    let phases = phases.into_iter().collect::<PyResult<Vec<_>>>()?;
    let found = PyDict::new(py);
    found.set_item("stop", report.stop.to_string())?;
    found.set_item("iterations", report.iterations)?;
    found.set_item("free_energies", &report.free_energies)?;
    found.set_item("phases", phases)?;
    found.set_item("evaluations", evaluations)?;
    found.set_item("coreset_size", report.coreset_size)?;
    found.set_item("coreset_entropy", report.coreset_entropy)?;
    found.set_item("zero_mass", report.zero_mass)?;
    found.set_item("at_floor", report.at_floor)?;
    found.set_item("seconds", seconds(py, &report.timings)?)?;
    found.set_item("restart", report.restart)?;
    found.set_item("restarts", &report.restarts)?;
    found.set_item("text", report.to_string())?;
    Ok(found)
}

fn phase<'py>(py: Python<'py>, phase: &PhaseReport) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("ran_on", phase.ran_on.to_string())?;
    found.set_item("rows", phase.rows)?;
    found.set_item("columns", phase.columns)?;
    found.set_item("iterations", phase.iterations)?;
    found.set_item("free_energies", &phase.free_energies)?;
    found.set_item("stop", phase.stop.to_string())?;
    found.set_item("evaluations", phase.evaluations)?;
    found.set_item("longer_lists", phase.longer_lists)?;
    found.set_item("seconds", phase.elapsed.as_secs_f64())?;
    Ok(found)
}

fn seconds<'py>(py: Python<'py>, timings: &Timings) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (stage, time) in [
        ("coreset", timings.coreset),
        ("projection", timings.projection),
        ("seeding", timings.seeding),
        ("search", timings.search),
        ("update", timings.update),
    ] {
        found.set_item(stage, time.as_secs_f64())?;
    }
    Ok(found)
}
