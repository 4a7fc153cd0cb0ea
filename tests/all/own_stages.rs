//! Stages of one's own, written with public items alone: good ones fit, and what bad ones return is an error that names
//! them.

use crate::common::{blobs, seeds};
use coremix::Float;
use coremix::algorithms;
use coremix::coreset::{Coreset, Subset};
use coremix::data::{Rows, View};
use coremix::e_step::{EStep, Search};
use coremix::prelude::*;
use coremix::seed::{Seeder, Seeds};
use coremix::stage::{Block, Rng, Stage};
use ndarray::Array2;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Asserts that the result is an error about this stage, and says this.
#[track_caller]
fn refused<T>(result: Result<T>, name: &str, text: &str) {
    let error = result.err().expect("an error");
    let shown = error.to_string();
    match error {
        Error::Stage { stage, .. } => assert_eq!(stage, name, "{shown}"),
        other => panic!("{other:?}"),
    }
    assert!(shown.contains(name) && shown.contains(text), "{shown}");
}

// ---- Coresets -------------------------------------------------------------------------------------------

/// The rows and weights that it is given.
#[derive(Clone, Debug)]
struct Chosen {
    rows: Vec<usize>,
    weights: Vec<f64>,
}

impl Stage for Chosen {}

impl<F: Float> Coreset<F> for Chosen {
    fn sample(&self, _: View<'_, F>, _: &mut Rng) -> Result<Option<Subset>> {
        let (rows, weights) = (self.rows.clone(), self.weights.clone());
        let evaluations = 0;
        Ok(Some(Subset {
            rows,
            weights,
            evaluations,
        }))
    }
}

#[test]
fn what_is_wrong_with_a_coreset_is_said() {
    let x: Array2<f64> = blobs(100, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    let bad = |rows: Vec<usize>, weights: Vec<f64>, text: &str| {
        let coreset = Chosen { rows, weights };
        let clusterer = algorithms::k_means(3).coreset(coreset.clone()).build();
        let clusterer = clusterer.unwrap();
        refused(clusterer.fit(&data), "Chosen", text);
        refused(clusterer.fit(&sketch), "Chosen", text);
        let fast = algorithms::fast(3).coreset(coreset).build().unwrap();
        refused(fast.fit(&data), "Chosen", text);
    };
    let rows = || (0..50).collect::<Vec<usize>>();
    let with = |weight: f64| {
        let mut weights = vec![2.0; 50];
        weights[7] = weight;
        weights
    };
    bad(rows(), vec![2.0; 49], "50 rows with 49 weights");
    bad(rows(), vec![2.0; 51], "50 rows with 51 weights");
    let mut far = rows();
    far[7] = 100;
    bad(far.clone(), vec![2.0; 50], "row 100 of 100");
    far[7] = usize::MAX;
    bad(far, vec![2.0; 50], "does not exist");
    bad(rows(), with(f64::NAN), "weight of row 7 is NaN");
    bad(rows(), with(-1.0), "weight of row 7 is -1");
    bad(rows(), with(f64::INFINITY), "weight of row 7 is inf");
    bad(rows(), vec![0.0; 50], "the weights sum to 0");
    bad(vec![], vec![], "the weights sum to 0");
    bad(rows(), vec![1e300; 50], "the weights sum to");
    // Too few of them for the clusters is an error of its own.
    let few = Chosen {
        rows: vec![0, 1],
        weights: vec![50.0; 2],
    };
    let clusterer = algorithms::k_means(3).coreset(few).build().unwrap();
    let error = clusterer.fit(&data).unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooManyClusters {
                clusters: 3,
                rows: 2,
                rows_of: "coreset"
            }
        ),
        "{error}"
    );
}

/// Every row with its own weight, in another order: the fit is that of all rows, except for their order.
#[test]
fn a_coreset_of_ones_own_fits() {
    let x: Array2<f64> = blobs(300, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let start = seeds(&x, 4, 1);
    let all = Chosen {
        rows: (0..300).collect(),
        weights: vec![1.0; 300],
    };
    let builder = || algorithms::gmm(4).seeder(Given::new(start.view()));
    let fit = builder().coreset(all).build().unwrap().fit(&data).unwrap();
    let without = builder().build().unwrap().fit(&data).unwrap();
    assert_eq!(fit.model, without.model);
    assert_eq!(fit.report.free_energies, without.report.free_energies);
    assert_eq!(fit.coreset.unwrap().rows.len(), 300);
}

// ---- Seeders --------------------------------------------------------------------------------------------

/// This many seeds for every three clusters, at the first rows.
#[derive(Clone, Copy, Debug)]
struct FirstRows(usize);

impl Stage for FirstRows {}

impl<F: Float> Seeder<F> for FirstRows {
    fn seed(&self, view: View<'_, F>, k: usize, _: &mut Rng) -> Result<Seeds<F>> {
        let rows: Vec<usize> = (0..self.0 * k / 3).collect();
        Seeds::at_rows(view, &rows, 0)
    }
}

/// Seeds of other data, of fewer columns.
#[derive(Clone, Debug)]
struct OfOtherData(Array2<f32>);

impl Stage for OfOtherData {}

impl Seeder<f32> for OfOtherData {
    fn seed(&self, _: View<'_, f32>, k: usize, _: &mut Rng) -> Result<Seeds<f32>> {
        let other = Dense::new(self.0.view())?;
        let rows: Vec<usize> = (0..k).collect();
        Seeds::at_rows(View::new(&other, &other.frame()), &rows, 0)
    }
}

#[test]
fn what_is_wrong_with_seeds_is_said() {
    let x: Array2<f32> = blobs(100, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    for (seeds, text) in [
        (0, "0 seeds for 3 clusters"),
        (2, "2 seeds for 3 clusters"),
        (4, "4 seeds for 3 clusters"),
    ] {
        let clusterer = algorithms::k_means(3).seeder(FirstRows(seeds));
        let clusterer = clusterer.build().unwrap();
        refused(clusterer.fit(&data), "FirstRows", text);
        refused(clusterer.fit(&sketch), "FirstRows", text);
        let fast = algorithms::fast(3).seeder(FirstRows(seeds)).build();
        refused(fast.unwrap().fit(&data), "FirstRows", text);
    }
    let narrow = OfOtherData(blobs(100, 2, 4, 1));
    let clusterer = algorithms::k_means(3).seeder(narrow).build().unwrap();
    let text = "seeds of 2 coordinates for data of 3";
    refused(clusterer.fit(&data), "OfOtherData", text);
    let own = algorithms::k_means(3).seeder(FirstRows(3));
    let given = algorithms::k_means(3).seeder(Given::new(x.slice(ndarray::s![..3, ..])));
    let own = own.build().unwrap().fit(&data).unwrap();
    let given = given.build().unwrap().fit(&data).unwrap();
    assert_eq!(own.search_labels, given.search_labels);
}

// ---- E-steps --------------------------------------------------------------------------------------------

/// Looks at the components `ids` alone, for supports of `c_prime`.
#[derive(Clone, Debug)]
struct SomeOfThem {
    c_prime: usize,
    ids: Vec<u32>,
}

impl Stage for SomeOfThem {}

impl<F: Float> EStep<F> for SomeOfThem {
    fn begin(
        &self,
        _: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        Ok(Box::new(self.clone()))
    }
}

impl<F: Float> Search<F> for SomeOfThem {
    fn width(&self) -> usize {
        self.c_prime
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        for i in 0..rows.len() {
            block.keep_best(i, model, rows, &self.ids);
        }
    }
}

#[test]
fn what_is_wrong_with_a_search_is_said() {
    let x: Array2<f64> = blobs(100, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    let bad = |c_prime: usize, ids: Vec<u32>, text: &str| {
        let e_step = SomeOfThem { c_prime, ids };
        let clusterer = algorithms::k_means(6).e_step(e_step.clone());
        let clusterer = clusterer.build().unwrap();
        refused(clusterer.fit(&data), "SomeOfThem", text);
        refused(clusterer.fit(&sketch), "SomeOfThem", text);
        let diagonal = algorithms::k_means(6)
            .e_step(e_step)
            .covariance(Covariance::Diagonal);
        refused(diagonal.build().unwrap().fit(&data), "SomeOfThem", text);
    };
    bad(1, vec![], "row 0: 0 candidates for a support of 1");
    bad(3, vec![0, 1], "row 0: 2 candidates for a support of 3");
    bad(3, vec![2, 2, 2, 2], "row 0: 1 candidates");
    bad(2, vec![0, 6], "component 6 of 6 does not exist");
    bad(2, vec![0, 1, u32::MAX], "does not exist");
    bad(0, vec![0, 1], "width");
    bad(7, (0..6).collect(), "width");
}

/// All of them is the exhaustive search.
#[test]
fn a_search_of_ones_own_fits() {
    let x: Array2<f64> = blobs(300, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    for c_prime in [1, 2, 6] {
        let own = algorithms::k_means(6).e_step(SomeOfThem {
            c_prime,
            ids: (0..6).collect(),
        });
        let exhaustive = algorithms::k_means(6).e_step(Exhaustive::truncated(c_prime));
        let own = own.build().unwrap().fit(&data).unwrap();
        let exhaustive = exhaustive.build().unwrap().fit(&data).unwrap();
        assert_eq!(own.supports, exhaustive.supports);
        assert_eq!(own.report.evaluations, exhaustive.report.evaluations);
        if c_prime < 6 {
            assert_eq!(own.model, exhaustive.model);
        }
        // Supports of all components: the exhaustive search takes distances from products, this one directly.
        let off = &own.model.means() - &exhaustive.model.means();
        assert!(off.iter().all(|off| off.abs() < 1e-12), "{c_prime}: {off}");
    }
}

/// Serves `blocks` blocks, and then leaves every other row as it is.
#[derive(Debug)]
struct Tired {
    blocks: usize,
    served: AtomicUsize,
}

impl Clone for Tired {
    fn clone(&self) -> Self {
        Self {
            blocks: self.blocks,
            served: AtomicUsize::new(0),
        }
    }
}

impl Stage for Tired {}

impl<F: Float> EStep<F> for Tired {
    fn begin(
        &self,
        _: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        Ok(Box::new(self.clone()))
    }
}

impl<F: Float> Search<F> for Tired {
    fn width(&self) -> usize {
        2
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        let tired = self.served.fetch_add(1, Ordering::Relaxed) >= self.blocks;
        let ids: Vec<u32> = (0..model.components() as u32).collect();
        for i in (0..rows.len()).filter(|i| !tired || i % 2 == 0) {
            block.keep_best(i, model, rows, &ids);
        }
    }
}

/// A row that a search forgets has no support, or no score: both are said, in the first search and later.
#[test]
fn rows_that_a_search_forgets() {
    let x: Array2<f64> = blobs(100, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    for blocks in [0, 1, 3] {
        let tired = Tired {
            blocks,
            served: AtomicUsize::new(0),
        };
        let clusterer = algorithms::k_means(6).e_step(tired).tolerance(0.0);
        refused(clusterer.build().unwrap().fit(&data), "Tired", "row ");
    }
}

/// A search with odd answers about itself.
#[derive(Debug, Default)]
struct Odd {
    /// Another width each time it is asked for.
    grows: bool,
    by_component: bool,
    /// Rows of the block that it sets in place of each.
    beyond: usize,
    no_rows: bool,
    evaluations: u64,
    asked: AtomicUsize,
    k: usize,
}

impl Clone for Odd {
    fn clone(&self) -> Self {
        let asked = AtomicUsize::new(0);
        Self { asked, ..*self }
    }
}

impl Stage for Odd {}

impl<F: Float> EStep<F> for Odd {
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let k = model.components();
        Ok(Box::new(Odd { k, ..self.clone() }))
    }
}

impl<F: Float> Search<F> for Odd {
    fn width(&self) -> usize {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if self.grows {
            1 + asked % self.k
        } else {
            self.k
        }
    }

    fn by_component(&self) -> bool {
        self.by_component
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        let ids: Vec<u32> = (0..model.components() as u32).collect();
        for i in 0..rows.len() {
            let place = i.saturating_add(self.beyond);
            match self.no_rows {
                true => block.keep_best(place, model, &Rows::default(), &ids),
                false => block.keep_best(place, model, rows, &ids),
            }
        }
    }
}

#[test]
fn searches_that_are_odd() {
    let x: Array2<f64> = blobs(100, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let fit = |odd: Odd| {
        let builder = algorithms::gmm(6).e_step(odd).max_iterations(4);
        builder.build().unwrap().fit(&data)
    };
    let plain = fit(Odd::default()).unwrap();
    // Supports of all components have no order that rows could be sorted by.
    let sorted = fit(Odd {
        by_component: true,
        ..Odd::default()
    });
    assert_eq!(sorted.unwrap().report.iterations, plain.report.iterations);
    // A width counts from the beginning of a phase.
    fit(Odd {
        grows: true,
        ..Odd::default()
    })
    .unwrap();
    for beyond in [1, 100, 512, usize::MAX] {
        let odd = Odd {
            beyond,
            ..Odd::default()
        };
        refused(fit(odd), "Odd", "does not exist");
    }
    let no_rows = true;
    let odd = Odd {
        no_rows,
        ..Odd::default()
    };
    refused(fit(odd), "Odd", "does not exist among 0 rows");
    // More evaluations than there are numbers for.
    let evaluations = u64::MAX;
    let odd = fit(Odd {
        evaluations,
        ..Odd::default()
    });
    assert_eq!(odd.unwrap().report.distance_evaluations, u64::MAX);
}

/// Another seeder than that of the builder is checked as its own is.
#[test]
fn other_seeders_are_checked() {
    let x: Array2<f64> = blobs(100, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let k_means = algorithms::k_means(3).build().unwrap();
    let given = Given::new(x.slice(ndarray::s![..4, ..]));
    let error = k_means.fit_with(&data, Some(&given), None).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    let error = k_means
        .fit_with(&data, Some(&AfkMc2::new(0)), None)
        .unwrap_err();
    assert!(error.to_string().starts_with("chain = 0"), "{error}");
}

/// A box has the stage's checks, name, settings and numbers.
#[test]
fn stages_in_boxes_are_those_stages() {
    type OfRows = f64;
    type AnyCoreset = Box<dyn Coreset<OfRows>>;
    type AnySeeder = Box<dyn Seeder<OfRows>>;
    let x: Array2<f64> = blobs(300, 3, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let k_means = || algorithms::k_means(4);
    let (coreset, seeder) = (Lightweight::new(200), AfkMc2::new(20));
    let plain = k_means().coreset(coreset).seeder(seeder);
    let plain = plain.build().unwrap().fit(&data).unwrap();
    let boxed: (AnyCoreset, AnySeeder) = (Box::new(coreset), Box::new(seeder));
    assert_eq!(format!("{:?}", boxed.0), format!("{coreset:?}"));
    assert_eq!(format!("{:?}", boxed.1), format!("{seeder:?}"));
    let fit = k_means().coreset(boxed.0).seeder(boxed.1);
    let fit = fit.build().unwrap().fit(&data).unwrap();
    assert_eq!(fit.model, plain.model);
    assert_eq!(fit.report.evaluations, plain.report.evaluations);

    let checked = |coreset: AnyCoreset, seeder: AnySeeder, text: &str| {
        let built = k_means().coreset(coreset).seeder(seeder).build();
        let error = built.expect_err("an error").to_string();
        assert!(error.starts_with(text), "{error}");
    };
    let none = Box::new(Lightweight::new(0));
    checked(none, Box::new(seeder), "coreset = 0");
    let no_chain = Box::new(AfkMc2::new(0));
    checked(Box::new(coreset), no_chain, "chain = 0");

    let few: AnySeeder = Box::new(FirstRows(1));
    let fit = k_means().seeder(few).build().unwrap().fit(&data);
    refused(fit, "FirstRows", "1 seeds for 4 clusters");
    let chosen = Chosen {
        rows: vec![],
        weights: vec![],
    };
    let boxed: AnyCoreset = Box::new(chosen);
    let fit = k_means().coreset(boxed).build().unwrap().fit(&data);
    refused(fit, "Chosen", "sum to 0");
}

/// Data of one's own whose rows are selected by what every data has for that.
struct Short<'a> {
    inner: &'a Dense<'a, f64>,
    /// Rows that `gather` leaves out.
    missing: usize,
    weights: Option<Vec<f64>>,
}

impl Data<f64> for Short<'_> {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn summary(&self) -> &coremix::data::Summary {
        self.inner.summary()
    }

    fn load(
        &self,
        rows: std::ops::Range<usize>,
        frame: &coremix::data::Frame<f64>,
        into: &mut Rows<f64>,
    ) -> Result<()> {
        self.inner.load(rows, frame, into)
    }

    fn gather(
        &self,
        rows: &[usize],
        frame: &coremix::data::Frame<f64>,
        into: &mut Rows<f64>,
    ) -> Result<()> {
        let kept = rows.len().saturating_sub(self.missing);
        self.inner.gather(&rows[..kept], frame, into)
    }
}

/// Rows that are missing when some are selected are an error, and so are weights that are none, also in scores.
#[test]
fn what_is_wrong_with_data_of_ones_own_is_said() {
    let x = blobs::<f64>(200, 2, 3, 4);
    let inner = &Dense::new(x.view()).unwrap();
    let clusterer = algorithms::k_means(3).coreset(UniformCoreset::new(40));
    let clusterer = clusterer.build().unwrap();
    for missing in [1, 1_000] {
        let short = Short {
            inner,
            missing,
            weights: None,
        };
        let shown = clusterer.fit(&short).unwrap_err().to_string();
        assert!(shown.contains("gathered"), "{shown}");
    }
    let model = clusterer.fit(inner).unwrap().model;
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let mut weights = vec![1.0; 200];
        weights[7] = wrong;
        let data = Short {
            inner,
            missing: 0,
            weights: Some(weights),
        };
        let shown = model.score(&data).unwrap_err().to_string();
        assert!(shown.contains("weight of row 7"), "{shown}");
    }
}
