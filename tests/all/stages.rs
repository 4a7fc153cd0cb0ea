//! Families and data from outside that break their rules: each is an error that names them, and the laws of
//! `coremix::testing` find it. Coresets, seeders and searches are in `other_stages.rs`.

use crate::common::blobs;
use coremix::algorithms;
use coremix::costs::{Cost, OwnCost};
use coremix::data::{Centres, Frame, Rows, Summary};
use coremix::m_step::{GaussianMixture, MStep, Moments};
use coremix::prelude::*;
use coremix::stage::{Block, Likelihood, LogJoint, Stage};
use coremix::testing;
use ndarray::{Array2, s};
use std::ops::Range;

/// Asserts that the result is an error about this stage, and says this.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T>, name: &str, text: &str) {
    let error = result.err().expect("an error");
    let shown = error.to_string();
    match error {
        Error::Stage { stage, .. } => assert_eq!(stage, name, "{shown}"),
        other => panic!("{other:?}"),
    }
    assert!(shown.contains(text), "{shown}");
}

pub(crate) fn points() -> Array2<f64> {
    blobs(600, 3, 4, 1)
}

// ---- Families -------------------------------------------------------------------------------------------

/// A fault of a family.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Wrong {
    Nothing,
    NanCosts,
    FewCosts,
    NanDensity,
    FewerComponents,
    /// Means that move away from where they should be.
    Falling,
    /// Fewer components from the first M-step on.
    FewerLater,
}

const SHARED: Gaussian = Gaussian::new(Covariance::TiedSpherical);

#[derive(Clone, Copy, Debug)]
struct Family(Wrong);

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Model {
    inner: GaussianMixture<f64>,
    wrong: Wrong,
    updated: bool,
}

type Inner = Rows<f64>;

impl Stage for Family {}

impl OwnCost<f64> for Model {
    fn components(&self) -> usize {
        let fewer = match self.wrong {
            Wrong::FewerComponents => 1,
            Wrong::FewerLater => usize::from(self.updated),
            _ => 0,
        };
        self.inner.components() - fewer
    }

    fn some(&self, rows: &Inner, i: usize, ids: &[u32], out: &mut Vec<f64>) {
        self.inner.cost().some(rows, i, ids, out);
        match self.wrong {
            Wrong::NanCosts if i == 7 => out.fill(f64::NAN),
            Wrong::FewCosts => out.truncate(ids.len() - 1),
            _ => (),
        }
    }
}

impl Mixture<f64> for Model {
    fn cost(&self) -> Cost<'_, f64> {
        Cost::Own(self)
    }
    fn centres(&self) -> &Centres<f64> {
        Mixture::<f64>::centres(&self.inner)
    }
    fn frame(&self) -> &Frame<f64> {
        Mixture::<f64>::frame(&self.inner)
    }
    fn log_joint(&self) -> LogJoint {
        let mut log_joint = Mixture::<f64>::log_joint(&self.inner);
        if self.wrong == Wrong::NanDensity {
            log_joint.alpha = f64::NAN;
        }
        log_joint
    }
    fn variances(&self) -> Array2<f64> {
        Mixture::<f64>::variances(&self.inner)
    }
}

impl MStep<f64> for Family {
    type Model = Model;

    fn start(&self, seeds: Centres<f64>, frame: Frame<f64>, data: &dyn Data<f64>) -> Result<Model> {
        let (inner, wrong) = (SHARED.start(seeds, frame, data)?, self.0);
        Ok(Model {
            inner,
            wrong,
            updated: false,
        })
    }
    fn calibrate(&self, model: &mut Model, first: &Likelihood) {
        MStep::<f64>::calibrate(&SHARED, &mut model.inner, first);
    }
    fn statistics(&self, model: &Model) -> Moments {
        MStep::<f64>::statistics(&SHARED, &model.inner)
    }
    fn accumulate(&self, rows: &Inner, block: &Block<f64>, model: &Model, sums: &mut Moments) {
        SHARED.accumulate(rows, block, &model.inner, sums);
    }
    fn update(
        &self,
        sums: Moments,
        model: &mut Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let before = model.inner.clone();
        model.updated = true;
        MStep::<f64>::update(&SHARED, sums, &mut model.inner, restricted, cancel)?;
        if self.0 == Wrong::Falling && before.means() != model.inner.means() {
            let (old, new) = (before.means(), model.inner.means());
            let past = &new + &((&new - &old) * 3.0);
            let moved = GaussianMixture::tied_spherical(past.view(), before.variance());
            model.inner = moved.unwrap();
        }
        Ok(())
    }
}

#[test]
fn what_is_wrong_with_a_family_is_said() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    let given = || Given::new(x.slice(s![..5, ..]));
    for (wrong, text) in [
        (Wrong::NanCosts, "row 7 under component 0 is NaN"),
        (Wrong::FewCosts, "row 0 under component"),
        (Wrong::NanDensity, "the free energy is NaN"),
        (Wrong::FewerComponents, "4 components with 5 centres"),
    ] {
        for width in [1, 2, 5] {
            let builder = algorithms::gmm(5).seeder(given()).m_step(Family(wrong));
            let builder = builder.e_step(Exhaustive::truncated(width));
            refused(builder.build().unwrap().fit(&data), "Family", text);
        }
        let builder = algorithms::var_gmm_s(5, 2, 3).m_step(Family(wrong));
        refused(builder.build().unwrap().fit(&data), "Family", "");
    }
    let own = algorithms::gmm(5)
        .seeder(given())
        .m_step(Family(Wrong::Nothing));
    let own = own.build().unwrap().fit(&data).unwrap();
    let known = algorithms::gmm(5).seeder(given()).build().unwrap();
    let known = known.fit(&data).unwrap();
    assert_eq!(own.search_labels, known.search_labels);
}

#[test]
fn what_a_family_says_later_is_checked_as_well() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    let given = || Given::new(x.slice(s![..5, ..]));
    let fit = |wrong, width| {
        let builder = algorithms::gmm(5).seeder(given()).m_step(Family(wrong));
        let builder = builder.e_step(Exhaustive::truncated(width));
        builder.build().unwrap().fit(&data)
    };
    for width in [1, 2, 5] {
        let text = "4 components with 5 centres of 3 coordinates, and costs about points of 3, after an M-step";
        refused(fit(Wrong::FewerLater, width), "Family", text);
    }
}

#[test]
fn the_laws_find_families_that_break_them() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    testing::family(&Family(Wrong::Nothing), &data, 4).unwrap();
    for (wrong, text) in [
        (Wrong::Falling, ""),
        (Wrong::NanDensity, "the free energy is NaN"),
    ] {
        refused(testing::family(&Family(wrong), &data, 4), "Family", text);
    }
}

#[test]
fn families_of_the_crate_keep_the_laws() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    testing::family(&Gaussian::new(Covariance::TiedSpherical), &data, 4).unwrap();
    testing::family(&Gaussian::new(Covariance::Spherical), &data, 4).unwrap();
    testing::family(&Gaussian::new(Covariance::Diagonal), &data, 4).unwrap();
    testing::family(&Gaussian::new(Covariance::Tied), &data, 4).unwrap();
    testing::family(&Gaussian::new(Covariance::Full), &data, 4).unwrap();
    testing::family(&Gaussian::new(Covariance::Factors(1)), &data, 4).unwrap();
}

// ---- Data -----------------------------------------------------------------------------------------------

/// A fault of data, from some row on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    Nothing,
    Fewer,
    More,
    Untouched,
    Nan,
    OtherWeights,
    NarrowSummary,
    SelectsFewer,
    SelectsNan,
    /// Other numbers than the rows in memory.
    Shifted,
}

struct Own<'a> {
    inner: &'a Dense<'a, f64>,
    broken: Broken,
    summary: Summary,
}

impl<'a> Own<'a> {
    fn new(inner: &'a Dense<'a, f64>, broken: Broken) -> Self {
        let mut summary = inner.summary().clone();
        if broken == Broken::NarrowSummary {
            summary.mean.pop();
        }
        Self {
            inner,
            broken,
            summary,
        }
    }

    fn fill(&self, rows: &[usize], frame: &Frame<f64>, into: &mut Inner) -> Result<()> {
        // Every other block of rows is as it should be.
        let fault = rows.contains(&300) && rows.len() > 1;
        let count = match self.broken {
            Broken::Fewer if fault => rows.len() - 1,
            Broken::More if fault => rows.len() + 1,
            Broken::Untouched if fault => return Ok(()),
            _ => rows.len(),
        };
        let heavy = fault && self.broken == Broken::OtherWeights;
        let weight = |i| {
            if heavy {
                2.0
            } else {
                self.inner.weight(rows[i % rows.len()])
            }
        };
        into.fill(frame, (0..count).map(weight), |i, out| {
            let row = rows[i % rows.len()];
            out.copy_from_slice(self.inner.points().row(row).as_slice().unwrap());
            match self.broken {
                Broken::Nan if row == 300 => out[1] = f64::NAN,
                Broken::Shifted if row == 300 => out[1] += 1e-9,
                _ => (),
            }
            Ok(())
        })
    }
}

impl Data<f64> for Own<'_> {
    fn len(&self) -> usize {
        self.inner.len()
    }
    fn dim(&self) -> usize {
        self.inner.dim()
    }
    fn weights(&self) -> Option<&[f64]> {
        self.inner.weights()
    }
    fn summary(&self) -> &Summary {
        &self.summary
    }
    fn load(&self, rows: Range<usize>, frame: &Frame<f64>, into: &mut Inner) -> Result<()> {
        self.fill(&rows.collect::<Vec<_>>(), frame, into)
    }
    fn gather(&self, rows: &[usize], frame: &Frame<f64>, into: &mut Inner) -> Result<()> {
        self.fill(rows, frame, into)
    }
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<f64> + '_>> {
        let (mut rows, mut weights) = (rows.to_vec(), weights);
        if self.broken == Broken::SelectsFewer {
            rows.pop();
            weights.pop();
        }
        let mut values = self.inner.points().select(ndarray::Axis(0), &rows);
        if self.broken == Broken::SelectsNan {
            values[[3, 1]] = f64::NAN;
        }
        Ok(Box::new(Dense::part_of(&self.summary, values, weights)?))
    }
}

#[test]
fn what_is_wrong_with_data_is_said() {
    let x = points();
    let dense = Dense::new(x.view()).unwrap();
    let model = algorithms::gmm(4)
        .build()
        .unwrap()
        .fit(&dense)
        .unwrap()
        .model;
    let names = [
        "k-means",
        "gmm",
        "var-gmm-s",
        "d-gmm",
        "fast",
        "dp-gmm",
        "vc-gmm",
    ];
    for (broken, text) in [
        (Broken::Fewer, " rows in a block of "),
        (Broken::More, " rows in a block of "),
        (Broken::Untouched, "0 rows in a block of "),
        (Broken::Nan, "row 300: a value is NaN"),
        (Broken::OtherWeights, "with weight 2: it must be 1"),
        (
            Broken::NarrowSummary,
            "the summary is not about 3 coordinates",
        ),
    ] {
        let data = Own::new(&dense, broken);
        // These algorithms load rows and find the fault; `vc-gmm` only selects rows for its coreset.
        for name in &names[..6] {
            let algorithm = name.parse::<Algorithm>().unwrap().clusters(4);
            let fit = algorithm.boxed::<f64>().unwrap().fit(&data);
            refused(fit, "Own", text);
        }
        if broken != Broken::NarrowSummary {
            refused(model.predict(&data), "Own", text);
            refused(Mixture::<f64>::score(&model, &data), "Own", text);
        }
    }
    for (broken, text) in [
        (Broken::SelectsFewer, "200 rows of 3 coordinates selected"),
        (Broken::SelectsNan, "row 3: a value is NaN"),
    ] {
        let data = Own::new(&dense, broken);
        for name in ["vc-gmm", "lwcs-k-means", "fast"] {
            let algorithm = name.parse::<Algorithm>().unwrap().clusters(4);
            let fit = algorithm.coreset(200).boxed::<f64>().unwrap().fit(&data);
            refused(fit, "Own", text);
        }
    }
}

#[test]
fn the_law_of_data_finds_what_breaks_it() {
    let x = points();
    let weights = ndarray::Array1::from_shape_fn(600, |n| (n % 3) as f64);
    for dense in [
        Dense::new(x.view()).unwrap(),
        Dense::weighted(x.view(), weights.view()).unwrap(),
    ] {
        testing::data(&Own::new(&dense, Broken::Nothing), &dense).unwrap();
    }
    let dense = Dense::new(x.view()).unwrap();
    for broken in [Broken::Shifted, Broken::SelectsFewer, Broken::OtherWeights] {
        let result = testing::data(&Own::new(&dense, broken), &dense);
        refused(result, "Own", "is not that of the same rows in memory");
    }
}

/// Blocks are cut where those of rows in memory are, the last one too, and weights may be anything.
#[test]
fn a_summary_of_blocks_is_that_of_rows_in_memory() {
    for n in [1, 511, 512, 513, 1_700] {
        let x: Array2<f64> = blobs(n, 3, 2, 7);
        let weights = ndarray::Array1::from_shape_fn(n, |i| (i + 2) as f64 % 3.0 * 0.3);
        let plain = Dense::new(x.view()).unwrap();
        let weighted = Dense::weighted(x.view(), weights.view()).unwrap();
        let read = |rows: Range<usize>, out: &mut [f64]| {
            let all = x.as_slice().unwrap();
            out.copy_from_slice(&all[3 * rows.start..3 * rows.end]);
            Ok(())
        };
        let of = |weight: &(dyn Fn(usize) -> f64 + Sync)| Summary::from_blocks(n, 3, weight, read);
        assert_eq!(&of(&|_| 1.0).unwrap(), plain.summary());
        assert_eq!(&of(&|i| weights[i]).unwrap(), weighted.summary());
        let bad = |rows: Range<usize>, out: &mut [f64]| {
            read(rows.clone(), out)?;
            if rows.contains(&(n - 1)) {
                out[out.len() - 2] = f64::NAN;
            }
            Ok(())
        };
        let error = Summary::from_blocks(n, 3, |_| 1.0, bad).unwrap_err();
        let (what, row, column) = ("data", n - 1, 1);
        assert_eq!(error, Error::NotFinite { what, row, column });
        let error = Summary::from_blocks(n, 3, |i| if i + 1 == n { -1.0 } else { 1.0 }, read);
        let (row, value) = (n - 1, -1.0);
        assert_eq!(error.unwrap_err(), Error::Weight { row, value });
    }
    let failing = |_: Range<usize>, _: &mut [f64]| Err(Error::Empty { what: "file" });
    let error = Summary::from_blocks(5, 2, |_| 1.0, failing).unwrap_err();
    assert_eq!(error, Error::Empty { what: "file" });
}

/// Rows that belong to the data, in any order of memory and in part.
#[test]
fn owned_rows_are_those_of_a_view() {
    let x = points();
    let dense = Dense::new(x.view()).unwrap();
    let (mut part, mut steps) = (x.clone(), x.clone());
    part.slice_collapse(s![100..500, ..]);
    steps.slice_collapse(s![..;2, ..]);
    let by_columns = Array2::from_shape_fn((3, 600), |(j, n)| x[[n, j]]).reversed_axes();
    for (owned, view) in [
        (Dense::owned(x.clone()).unwrap(), dense.points()),
        (Dense::owned(by_columns).unwrap(), dense.points()),
        (Dense::owned(part).unwrap(), x.slice(s![100..500, ..])),
        (Dense::owned(steps).unwrap(), x.slice(s![..;2, ..])),
    ] {
        assert_eq!(owned.points(), view);
        assert_eq!(owned.summary(), Dense::new(view).unwrap().summary());
    }
    let empty = Dense::owned(Array2::<f64>::zeros((0, 2)));
    assert_eq!(empty.unwrap_err(), Error::Empty { what: "data" });
}
