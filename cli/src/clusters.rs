//! `coremix clusters`

use crate::arguments::Clusters;
use crate::failure::{Failure, Result};
use crate::fit::{common, has_one_variance};
use crate::found;
use crate::messages::{is_quiet, say, warn};
use crate::progress::Bar;
use crate::rows::{self, Shared, with_rows};
use coremix::data::{Source as _, View};
use coremix::prelude::*;
use coremix::seed::Seeder;
use coremix::selection::{Criterion, Selection, Sweep};
use coremix::{BoxedMixture, BoxedObserver, Element, Estimator, Float};
use coremix_files::Room;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) fn run(clusters: &Clusters, cancel: &Cancel) -> Result<()> {
    let from = clusters.from;
    let to = clusters.to;
    if from > to {
        let what = format!("--from {from} --to {to}: --from must not be more than --to");
        return Err(Failure::arguments(what));
    }
    // Wrong settings are an error before all rows are read.
    common(&clusters.algorithm, &clusters.common, &[], 0)?
        .clusters(to)
        .boxed::<f64>()?;
    let opened = rows::for_fit(&clusters.input, &clusters.common)?;
    if !is_quiet() {
        rows::say_columns(&opened)?;
        say("")?;
    }
    let weights = opened.weights;
    let columns = opened.columns;
    let decoder = opened.decoder;
    with_rows!(opened.rows, |rows| {
        let rows = Arc::new(rows);
        of_rows(clusters, &rows, weights, &columns, decoder, cancel)
    })
}

fn of_rows<T: Element>(
    clusters: &Clusters,
    rows: &Shared<T>,
    weights: Option<Vec<f64>>,
    columns: &[String],
    decoder: u64,
    cancel: &Cancel,
) -> Result<()> {
    let options = &clusters.common;
    let algorithm = common(&clusters.algorithm, options, columns, rows.dim())?.cancel(cancel);
    // Without a coreset, the rows that are not held out are copied.
    let copies = if options.coreset.is_some() { 1 } else { 2 };
    let room = Room::new(options.memory, (rows.len(), rows.dim()), true).decoder(decoder);
    let room = match rows.lists() {
        // The lists are in memory in any case, and copied once more.
        Some((_, ids, _)) => room.sparse(ids.len()),
        None => room,
    };
    let loaded = room.holds::<T>(&algorithm.clone().clusters(clusters.to), copies)?;
    if !loaded && options.coreset.is_none() {
        let hint = "--memory: the rows must fit in it twice: allow more, or give a --coreset";
        return Err(Failure::arguments(hint));
    }
    let bar = Bar::of_fit();
    let begun = AtomicUsize::new(0);
    bar.say(format!(
        "checking {} rows of {} columns",
        rows.len(),
        rows.dim()
    ));
    let each = || (clusters.from..=clusters.to).step_by(clusters.step);
    let build = |k| {
        Ok(Shown {
            estimator: algorithm.clone().clusters(k).boxed()?,
            clusters: k,
            bar: &bar,
            // All but the first begin once more where the one before ended.
            fits: 2 * each().count() - 1,
            begun: &begun,
        })
    };
    let data = rows::data(rows, weights, loaded, &bar)?;
    let one_variance = has_one_variance(&clusters.algorithm, options);
    rows::warn_of_columns(columns, data.as_data().summary(), one_variance);
    let mut sweep = Sweep::new(each())
        .held_out(clusters.held_out)
        .seed(options.seed);
    if let Some(draws) = options.coreset {
        sweep = sweep.coreset(Lightweight::new(draws));
    }
    let report = sweep.run(data.as_data(), build).and_then(|selection| {
        advise(&selection, data.as_data())?;
        if !clusters.dirichlet_process {
            return Ok(selection.to_string());
        }
        let process = algorithms::dp_gmm(clusters.to, 1.0)
            .seed(options.seed)
            .restarts(options.restarts.unwrap_or(1))
            .standardise(options.standardise)
            .cancel(cancel)
            .build()?;
        bar.say("fitting a Dirichlet process");
        let process = sweep.beside(data.as_data(), clusters.to, &process)?;
        let used = process.criteria.in_use;
        let mut line = format!("dp-gmm uses {used} of {} components", clusters.to);
        if let Some(held_out) = process.held_out {
            line += &format!(", held-out {held_out:.5}");
        }
        Ok(format!("{selection}\n{line}"))
    });
    drop(bar);
    match report {
        _ if cancel.is_cancelled() => Err(Failure::Interrupted(
            ": nothing is saved, so the same command begins anew".into(),
        )),
        Ok(report) => say(&report),
        Err(error) => Err(Failure::naming(error, columns)),
    }
}

/// An estimator that shows which fit it is.
struct Shown<'a, F: Float> {
    estimator: Box<dyn Estimator<F>>,
    clusters: usize,
    bar: &'a Bar,
    fits: usize,
    begun: &'a AtomicUsize,
}

impl<F: Float> Estimator<F> for Shown<'_, F> {
    fn fit_with(
        &self,
        data: &dyn Data<F>,
        seeder: Option<&dyn Seeder<F>>,
        observer: Option<BoxedObserver<'_, F>>,
    ) -> coremix::Result<Fit<BoxedMixture<F>>> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let k = self.clusters;
        let fits = self.fits;
        let what = format!("fit {number} of {fits}: {k} clusters");
        self.bar.say(what);
        self.estimator.fit_with(data, seeder, observer)
    }
}

/// Says where other numbers of clusters may be better, and where the criteria say nothing.
fn advise<F: Float>(selection: &Selection<F>, data: &dyn Data<F>) -> coremix::Result<()> {
    let best = [Criterion::Bic, Criterion::Icl].map(|criterion| selection.best(criterion));
    let [Some(bic), Some(icl)] = best else {
        return Ok(());
    };
    for one in [bic, icl] {
        if has_collapsed(&*one.model, data)? {
            warn(&format!(
                "of {} clusters one has a single row, or one value in a column: its density there has no bound, so that BIC, AIC and ICL say nothing. Lower --to, or give --covariance tied-spherical",
                one.clusters
            ));
            return Ok(());
        }
    }
    let candidates = &selection.candidates;
    let last = candidates.last().map_or(0, |last| last.clusters);
    if candidates.len() > 1
        && [bic, icl].iter().all(|one| one.clusters == last)
        && last < data.summary().rows
    {
        warn("the most clusters are the best by BIC and ICL: raise --to");
    }
    Ok(())
}

/// Whether a component with covariances of its own belongs to rows that do not differ in a column.
fn has_collapsed<F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) -> coremix::Result<bool> {
    /// Rows that are read in one batch.
    const BATCH_ROWS: usize = 1 << 12;
    let any = match found::covariances(model) {
        _ if model.at_floor().is_empty() => return Ok(false),
        None | Some(Covariance::TiedSpherical | Covariance::Tied) => return Ok(false),
        Some(Covariance::Spherical) => false,
        Some(_) => true,
    };
    let labels = model.predict(data)?;
    let frame = data.frame();
    // The first row of each component, and the columns in which others differ from it.
    let mut seen: Vec<Option<(Vec<F>, Vec<bool>)>> = vec![None; model.components()];
    for first in (0..data.len()).step_by(BATCH_ROWS) {
        let rows = View::new(data, &frame).load(first..data.len().min(first + BATCH_ROWS))?;
        for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
            // Centres are padded.
            let row = &rows.coordinates(i)[..data.dim()];
            let none = || (row.to_vec(), vec![false; row.len()]);
            let (first_row, differ) = seen[labels[first + i] as usize].get_or_insert_with(none);
            for ((known, x), differ) in first_row.iter().zip(row).zip(differ) {
                *differ |= known != x;
            }
        }
    }
    let collapsed = |differ: &Vec<bool>| {
        if any {
            differ.contains(&false)
        } else {
            !differ.contains(&true)
        }
    };
    Ok(seen.iter().flatten().any(|(_, differ)| collapsed(differ)))
}
