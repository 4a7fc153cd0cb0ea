//! Numbers that are none, and numbers whose sums would be none.

use super::*;

fn not_finite<F: Float>() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for (row, column) in [(0, 0), (1, 2), (700, 1), (1_299, 2)] {
            let mut x = blobs::<F>(1_300, 3, 4, 5);
            x[[row, column]] = F::from_f64(bad);
            x[[1_299, 2]] = F::from_f64(bad);
            let expected = Error::NotFinite {
                what: "data",
                row,
                column,
            };
            let result = Dense::new(x.view());
            assert_eq!(result.err(), Some(expected.clone()));
            let text = expected.to_string();
            assert!(
                text.contains(&format!("row {row}, column {column}")),
                "{text}"
            );
            // Also where no weight points at it.
            let mut w = unit_weights(1_300);
            w[row] = 0.0;
            w[1_299] = 0.0;
            let result = Dense::weighted(x.view(), w.view());
            assert_eq!(result.err(), Some(expected));
        }
    }
}

#[test]
fn nan_and_infinity() {
    not_finite::<f32>();
    not_finite::<f64>();
}

#[test]
fn values_whose_sums_would_overflow() {
    for value in [1e200, -1e200, f64::MAX, 1.0001e150] {
        let mut x = blobs::<f64>(900, 3, 4, 5);
        x[[800, 1]] = value;
        refused!(
            Dense::new(x.view()),
            Error::TooLarge { what: "data", row: 800, column: 1, value: v, .. } if *v == value,
            "row 800, column 1",
            &format!("{value:e}"),
            "1e150",
        );
    }
    for value in [f32::MAX, -1e38] {
        let mut x = blobs::<f32>(900, 3, 4, 5);
        x[[3, 2]] = value;
        refused!(
            Dense::new(x.view()),
            Error::TooLarge {
                what: "data",
                row: 3,
                column: 2,
                ..
            },
            "row 3, column 2",
            &format!("{:e}", f64::from(value)),
        );
    }
}
