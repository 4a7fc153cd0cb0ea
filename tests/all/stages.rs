//! Families and data from outside that break their rules: each is an error that names them, and the laws of
//! `coremix::testing` find it. Coresets, seeders and searches are in `other_stages.rs`.

use crate::common::blobs;
use crate::lying_data::{Lie, LyingData};
use crate::lying_family::{Lies, LyingFamily};
use coremix::algorithms;
use coremix::data::Summary;
use coremix::prelude::*;
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

/// A family with a lie.
fn lying(lies: Lies) -> LyingFamily {
    lies.into()
}

#[test]
fn what_is_wrong_with_a_family_is_said() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    let given = || Given::new(x.slice(s![..5, ..]));
    let nan = f64::NAN;
    let honest = Lies::default;
    for (lies, text) in [
        (
            Lies {
                cost: Some((7, nan)),
                ..honest()
            },
            "row 7 under component 0 is NaN",
        ),
        (
            Lies {
                costs: -1,
                ..honest()
            },
            "row 0 under component",
        ),
        (
            Lies {
                log_joint: Some((0, nan)),
                ..honest()
            },
            "the free energy is NaN",
        ),
        (
            Lies {
                components: -1,
                ..honest()
            },
            "4 components with 5 centres",
        ),
    ] {
        let lying = || lying(lies.clone());
        for width in [1, 2, 5] {
            let builder = algorithms::gmm(5).seeder(given()).m_step(lying());
            let builder = builder.e_step(Exhaustive::truncated(width));
            refused(builder.build().unwrap().fit(&data), "LyingFamily", text);
        }
        let builder = algorithms::var_gmm_s(5, 2, 3).m_step(lying());
        refused(builder.build().unwrap().fit(&data), "LyingFamily", "");
    }
    let own = algorithms::gmm(5).seeder(given()).m_step(lying(honest()));
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
    for width in [1, 2, 5] {
        let lies = Lies {
            components: -1,
            only_later: true,
            ..Lies::default()
        };
        let builder = algorithms::gmm(5).seeder(given()).m_step(lying(lies));
        let builder = builder.e_step(Exhaustive::truncated(width));
        let text = "4 components with 5 centres of 3 coordinates, and costs about points of 3, after an M-step";
        refused(builder.build().unwrap().fit(&data), "LyingFamily", text);
    }
}

#[test]
fn the_laws_find_families_that_break_them() {
    let x = points();
    let data = Dense::new(x.view()).unwrap();
    testing::family(&lying(Lies::default()), &data, 4).unwrap();
    let falling = Lies {
        overshoots: true,
        ..Lies::default()
    };
    let no_density = Lies {
        log_joint: Some((0, f64::NAN)),
        ..Lies::default()
    };
    for (lies, text) in [(falling, ""), (no_density, "the free energy is NaN")] {
        refused(testing::family(&lying(lies), &data, 4), "LyingFamily", text);
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
    for (lie, text) in [
        (Lie::Count(-1), " rows in a block of "),
        (Lie::Count(1), " rows in a block of "),
        (Lie::Untouched, "0 rows in a block of "),
        (Lie::Value(f64::NAN), "row 300: a value is NaN"),
        (Lie::Weight(2.0), "with weight 2: it must be 1"),
        (
            Lie::Summary(5, 0.0),
            "the summary is not about 3 coordinates",
        ),
    ] {
        let data = LyingData::new(&dense, lie, 0).about(300);
        // These algorithms load rows and find the fault; `vc-gmm` only selects rows for its coreset.
        for name in &names[..6] {
            let algorithm = name.parse::<Algorithm>().unwrap().clusters(4);
            let fit = algorithm.boxed::<f64>().unwrap().fit(&data);
            refused(fit, "LyingData", text);
        }
        if !matches!(lie, Lie::Summary(..)) {
            refused(model.predict(&data), "LyingData", text);
            refused(Mixture::<f64>::score(&model, &data), "LyingData", text);
        }
    }
    for (place, text) in [
        (0, "200 rows of 3 coordinates selected"),
        (2, "row 0: a value is NaN"),
    ] {
        let data = LyingData::new(&dense, Lie::Selected(place, f64::NAN), 0);
        for name in ["vc-gmm", "lwcs-k-means", "fast"] {
            let algorithm = name.parse::<Algorithm>().unwrap().clusters(4);
            let fit = algorithm.coreset(200).boxed::<f64>().unwrap().fit(&data);
            refused(fit, "LyingData", text);
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
        testing::data(&LyingData::new(&dense, Lie::None, 0), &dense).unwrap();
    }
    let dense = Dense::new(x.view()).unwrap();
    for lie in [Lie::Shifted, Lie::Selected(0, 0.0), Lie::Weight(2.0)] {
        let result = testing::data(&LyingData::new(&dense, lie, 0).about(300), &dense);
        refused(
            result,
            "LyingData",
            "is not that of the same rows in memory",
        );
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
        (Dense::owned(x.clone(), None).unwrap(), dense.points()),
        (Dense::owned(by_columns, None).unwrap(), dense.points()),
        (Dense::owned(part, None).unwrap(), x.slice(s![100..500, ..])),
        (Dense::owned(steps, None).unwrap(), x.slice(s![..;2, ..])),
    ] {
        assert_eq!(owned.points(), view);
        assert_eq!(owned.summary(), Dense::new(view).unwrap().summary());
    }
    let empty = Dense::owned(Array2::<f64>::zeros((0, 2)), None);
    assert_eq!(empty.unwrap_err(), Error::Empty { what: "data" });
}
