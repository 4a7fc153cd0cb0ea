//! The Dirichlet process as a file: prior, sticks, the distributions of the components, and what follows from them.

use super::mixture::{DirichletProcessMixture, Scored};
use super::normal_wishart::NormalWishart;
use super::prior::Prior;
use super::sticks::Sticks;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::io::{self, Common, FileFault, Reader, Save, Stream};

const FAMILY: &str = "DirichletProcess";

type Read<T> = std::result::Result<T, FileFault>;

impl<F: Float> Save for DirichletProcessMixture<F> {
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let common = (&self.centres, &self.frame);
        io::model(FAMILY, common, self.means(), notes, &|file| {
            file.numbers("least variance", &[self.least_variance]);
            self.prior.write(file);
            let sticks = self.sticks.0.iter().flat_map(|&(a, b)| [a, b]);
            file.section("sticks", 2 * self.sticks.0.len(), sticks);
            write_components(&self.components, file);
            self.scores.write(file);
            file.numbers("prior terms", &[self.prior_terms]);
        })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let mut file = Reader::new(bytes)?;
            let common: Common<F> = file.common(FAMILY)?;
            let (k, dim) = (common.centres.len(), common.centres.dim());
            if common.frame.basis().is_some() {
                let rule = "must not be there: the family has none";
                return Err(FileFault::content("basis", rule));
            }
            let least_variance = file.one_positive("least variance")?;
            let prior = Prior::read(&mut file, dim)?;
            let sticks = file.positive("sticks", &[k, 2])?;
            let sticks = sticks.chunks_exact(2).map(|stick| (stick[0], stick[1]));
            let model = Self {
                centres: common.centres,
                frame: common.frame,
                prior,
                sticks: Sticks(sticks.collect()),
                components: read_components(&mut file, k, dim)?,
                least_variance,
                scores: Scored::read(&mut file, k)?,
                prior_terms: finite(&mut file, "prior terms")?,
                means: common.means,
            };
            file.end()?;
            io::finite(model)
        };
        read().map_err(FileFault::of_bytes)
    }
}

fn finite(file: &mut Reader<'_>, name: &str) -> Read<f64> {
    let numbers = file.finite::<f64>(name, &[1])?;
    Ok(numbers.first().copied().unwrap_or_default())
}

/// Degrees of freedom of a Wishart distribution in `dim` coordinates.
fn check_degrees(name: &str, degrees: &[f64], dim: usize) -> Read<()> {
    match degrees.iter().all(|nu| nu - (dim as f64 - 1.0) > 0.0) {
        true => Ok(()),
        false => Err(FileFault::content(name, "must be greater than d - 1")),
    }
}

impl Prior {
    fn write(&self, file: &mut Stream<'_>) {
        let numbers = [self.concentration, self.mean_precision, self.degrees];
        file.numbers("prior", &numbers);
        file.numbers("prior mean", &self.mean);
        file.numbers("prior inverse scale", &self.inverse_scale);
        file.numbers("prior factor", &self.factor);
        file.numbers("prior log determinant", &[self.log_det]);
    }

    fn read(file: &mut Reader<'_>, dim: usize) -> Read<Self> {
        let numbers = file.positive("prior", &[3])?;
        check_degrees("prior", &numbers[2..], dim)?;
        let factor = file.finite::<f64>("prior factor", &[dim, dim])?;
        if (0..dim).any(|j| factor[j * (dim + 1)] <= 0.0) {
            let rule = "must have a positive diagonal";
            return Err(FileFault::content("prior factor", rule));
        }
        Ok(Self {
            concentration: numbers[0],
            mean_precision: numbers[1],
            degrees: numbers[2],
            mean: file.finite("prior mean", &[dim])?,
            inverse_scale: file.finite("prior inverse scale", &[dim, dim])?,
            factor,
            log_det: finite(file, "prior log determinant")?,
        })
    }
}

fn write_components(components: &[NormalWishart], file: &mut Stream<'_>) {
    let k = components.len();
    let dim = components.first().map_or(0, |q| q.mean.len());
    let mut each = |name, of: fn(&NormalWishart) -> f64| {
        file.section(name, k, components.iter().map(of));
    };
    each("mean precisions", |q| q.mean_precision);
    each("degrees of freedom", |q| q.degrees);
    each("log determinants", |q| q.log_det);
    let means = components.iter().flat_map(|q| q.mean.iter().copied());
    file.section("component means", k * dim, means);
    let factors = components.iter().flat_map(|q| q.factor.iter().copied());
    file.section("factors", k * (dim * (dim + 1) / 2), factors);
    let marks = components.iter().map(|q| u64::from(q.ill_conditioned));
    file.section("ill conditioned", k, marks);
}

fn read_components(file: &mut Reader<'_>, k: usize, dim: usize) -> Read<Vec<NormalWishart>> {
    // As many means as there are in the file: then the size of a triangle does not overflow.
    let means = file.finite::<f64>("component means", &[k, dim])?;
    let size = dim * (dim + 1) / 2;
    let mean_precisions = file.positive("mean precisions", &[k])?;
    let degrees = file.positive("degrees of freedom", &[k])?;
    check_degrees("degrees of freedom", &degrees, dim)?;
    let log_dets = file.finite::<f64>("log determinants", &[k])?;
    let factors = file.finite::<f64>("factors", &[k, size])?;
    let marks = file.numbers::<u64>("ill conditioned", &[k])?;
    if marks.iter().any(|mark| *mark > 1) {
        return Err(FileFault::content("ill conditioned", "must be 0 or 1"));
    }
    let diagonal = |factor: &[f64]| (0..dim).all(|j| factor[j * (j + 3) / 2] > 0.0);
    if !factors.chunks_exact(size).all(diagonal) {
        let rule = "must have a positive diagonal";
        return Err(FileFault::content("factors", rule));
    }
    let parts = means.chunks_exact(dim).zip(factors.chunks_exact(size));
    let components = parts.enumerate().map(|(t, (mean, factor))| NormalWishart {
        mean_precision: mean_precisions[t],
        degrees: degrees[t],
        mean: mean.to_vec(),
        factor: factor.to_vec(),
        log_det: log_dets[t],
        ill_conditioned: marks[t] == 1,
    });
    Ok(components.collect())
}

impl Scored {
    fn write(&self, file: &mut Stream<'_>) {
        match self {
            Self::Distances { variance } => file.numbers("variance of distances", &[*variance]),
            Self::Expected {
                added,
                reference,
                norms,
            } => {
                file.numbers("scores added", added);
                file.numbers("scores reference", &[*reference]);
                file.numbers("scores norms", norms);
            }
        }
    }

    fn read(file: &mut Reader<'_>, k: usize) -> Read<Self> {
        if file.has("variance of distances") {
            let variance = file.one_positive("variance of distances")?;
            return Ok(Self::Distances { variance });
        }
        Ok(Self::Expected {
            added: file.finite("scores added", &[k])?,
            reference: finite(file, "scores reference")?,
            norms: file.finite("scores norms", &[k])?,
        })
    }
}
