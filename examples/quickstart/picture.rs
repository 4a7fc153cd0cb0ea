//! One picture of a clustering: points, centres, and which components share a point.

use crate::Result;
use crate::algorithm::{Outcome, some};
use coremix::{Element, Float};
use ndarray::ArrayView2;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Twice the size on screen: coordinates are rounded to whole pixels.
const SIZE: (u32, u32) = (1_640, 1_200);
/// Where the key begins.
const KEY: u32 = 1_200;
/// Most points drawn.
const POINTS: usize = 4_000;

const INK: RGBColor = RGBColor(33, 37, 41);
const FAINT: RGBColor = RGBColor(110, 116, 124);
/// Colours of components, told apart on white; neighbors get different ones.
const COLOURS: [RGBColor; 9] = [
    RGBColor(46, 107, 180),
    RGBColor(222, 119, 25),
    RGBColor(44, 145, 84),
    RGBColor(205, 55, 66),
    RGBColor(126, 87, 176),
    RGBColor(20, 158, 174),
    RGBColor(206, 84, 150),
    RGBColor(139, 97, 67),
    RGBColor(141, 149, 32),
];

/// Whether a picture could be written there, as far as the name tells.
pub(crate) fn check(path: &Path) -> Result<()> {
    let extension = path.extension().unwrap_or_default();
    if extension.eq_ignore_ascii_case("svg") {
        Ok(())
    } else {
        Err(format!("{}: pictures are drawn as .svg only", path.display()).into())
    }
}

/// Draws a clustering and returns the number of points drawn.
pub(crate) fn draw<T: Element>(
    path: &Path,
    title: &str,
    points: ArrayView2<'_, T>,
    columns: Option<&[String]>,
    outcome: &Outcome,
) -> Result<usize> {
    let scene = Scene::new(points, columns, outcome);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (left, right) = root.split_horizontally(KEY);
        scene.plot(&left)?;
        scene.key(&right, title)?;
        root.present()?;
    }
    let write = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &svg)
    };
    write().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(scene.drawn.0)
}

/// Everything to be drawn, in the units of the two axes.
struct Scene {
    axes: [Axis; 2],
    dots: Vec<Dot>,
    links: Vec<Link>,
    stars: Vec<Star>,
    coreset: Option<usize>,
    rows: usize,
    /// Points and centres in the picture.
    drawn: (usize, usize),
}

/// A point.
struct Dot {
    at: (f64, f64),
    colour: RGBColor,
    /// EM ran on it.
    used: bool,
}

/// A point and the centres in its support.
struct Link {
    from: (f64, f64),
    to: Vec<(f64, f64, RGBColor, f64)>,
}

/// A centre and the ellipse of one standard deviation.
struct Star {
    at: (f64, f64),
    ellipse: Ellipse,
}

/// The points $L (\cos t, \sin t)$, with $L$ the Cholesky factor of a covariance.
#[derive(Clone, Copy)]
struct Ellipse {
    xx: f64,
    yx: f64,
    yy: f64,
}

impl Ellipse {
    /// Of component `c`, in the units of the axes.
    fn new(x: &Axis, y: &Axis, outcome: &Outcome, c: usize) -> Self {
        let [mut xx, mut yx, mut yy] = [1.0, 0.0, 1.0];
        if let Some(a) = x.column {
            let b = y.column.unwrap_or(a);
            let [aa, ab, bb] = outcome.model.covariance(c, (a, b));
            xx = aa.sqrt() / x.unit;
            if y.column.is_some() {
                yx = ab / x.unit / y.unit / xx.max(f64::MIN_POSITIVE);
                yy = bb / y.unit / y.unit - yx * yx;
            }
        }
        let yy = yy.max(0.0).sqrt();
        Self { xx, yx, yy }
    }

    fn at(self, (x, y): (f64, f64), angle: f64) -> (f64, f64) {
        let (cos, sin) = (angle.cos(), angle.sin());
        (x + self.xx * cos, y + self.yx * cos + self.yy * sin)
    }
}

impl Scene {
    fn new<T: Element>(
        points: ArrayView2<'_, T>,
        columns: Option<&[String]>,
        outcome: &Outcome,
    ) -> Self {
        let shown = widest(points);
        let mut axes = shown.map(|column| Axis::new(points, column, columns, outcome));
        if points.ncols() > 2 {
            for (axis, order) in axes.iter_mut().zip(["largest", "second largest"]) {
                axis.caption += &format!(" ({order} variance of {} columns)", points.ncols());
            }
        }
        equalise(&mut axes);
        let [x, y] = &axes;

        let at_row = |n: usize| (x.of_row(points, n), y.of_row(points, n));
        let at_mean = |c: usize| (x.of_mean(outcome, c), y.of_mean(outcome, c));
        let centres: Vec<(f64, f64)> = (0..outcome.means.nrows()).map(at_mean).collect();
        let colours = colours(&centres);

        let mut used = vec![outcome.coreset.is_none(); points.nrows()];
        for &n in outcome.coreset.iter().flatten() {
            used[n] = true;
        }
        let dot = |n: usize| Dot {
            at: at_row(n),
            colour: colours[outcome.score.labels[n] as usize],
            used: used[n],
        };
        let mut dots: Vec<Dot> = some(points.nrows(), POINTS).into_iter().map(dot).collect();
        // What EM ran on comes to lie on top.
        dots.sort_by_key(|dot| dot.used);

        let links = outcome.shared.iter().map(|shared| {
            let to = shared.support.iter();
            let to = to.map(|&(c, q)| (centres[c].0, centres[c].1, colours[c], q));
            Link {
                from: at_row(shared.row),
                to: to.collect(),
            }
        });
        let stars = centres.iter().enumerate().map(|(c, &at)| Star {
            at,
            ellipse: Ellipse::new(x, y, outcome, c),
        });
        let inside = |(u, v): (f64, f64)| x.holds(u) && y.holds(v);
        let drawn = (
            dots.iter().filter(|dot| inside(dot.at)).count(),
            centres.iter().filter(|at| inside(**at)).count(),
        );
        Self {
            dots,
            links: links.collect(),
            stars: stars.collect(),
            coreset: outcome.coreset.as_ref().map(Vec::len),
            rows: points.nrows(),
            drawn,
            axes,
        }
    }

    fn plot(&self, area: &Panel<'_>) -> Result<()> {
        let [x, y] = &self.axes;
        let mut chart = ChartBuilder::on(area)
            .margin(30)
            .margin_right(20)
            .x_label_area_size(80)
            .y_label_area_size(110)
            .build_cartesian_2d(x.low..x.high, y.low..y.high)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(INK.mix(0.1))
            .axis_style(INK.mix(0.5))
            .label_style(("sans-serif", 27).into_font().color(&INK))
            .axis_desc_style(("sans-serif", 31).into_font().color(&INK))
            .x_labels(8)
            .y_labels(8)
            .x_label_formatter(&|value| tick(*value))
            .y_label_formatter(&|value| tick(*value))
            .x_desc(x.caption.as_str())
            .y_desc(y.caption.as_str())
            .draw()?;

        let radius = if self.dots.len() > 1_500 { 4 } else { 6 };
        for dot in self.dots.iter().filter(|dot| self.inside(dot.at)) {
            let colour = dot.colour.mix(dot_alpha(dot.used));
            chart.draw_series([Circle::new(dot.at, radius, colour.filled())])?;
        }
        for link in self.links.iter().filter(|link| self.inside(link.from)) {
            for &(x, y, colour, q) in link.to.iter().filter(|to| self.inside((to.0, to.1))) {
                let style = colour.mix(link_alpha(q)).stroke_width(link_width(q));
                chart.draw_series([PathElement::new([link.from, (x, y)], style)])?;
            }
        }
        for link in self.links.iter().filter(|link| self.inside(link.from)) {
            let ring = Circle::new(link.from, radius + 2, INK.stroke_width(2));
            chart.draw_series([ring])?;
        }
        self.plot_stars(&mut chart)
    }

    fn plot_stars(&self, chart: &mut Chart<'_, '_>) -> Result<()> {
        let many = self.stars.len() > 40;
        let (arm, halo, stroke) = if many { (7, 6, 3) } else { (12, 9, 4) };
        for star in self.stars.iter().filter(|star| self.inside(star.at)) {
            let round = (0..=72).map(|i| f64::from(i) * TAU / 72.0);
            let round = round.map(|angle| star.ellipse.at(star.at, angle));
            // An ellipse that leaves the picture is drawn as far as it goes.
            let mut arc = Vec::new();
            let style = INK.mix(if many { 0.35 } else { 0.8 }).stroke_width(2);
            for at in round {
                if self.inside(at) {
                    arc.push(at);
                } else if !arc.is_empty() {
                    chart.draw_series([PathElement::new(std::mem::take(&mut arc), style)])?;
                }
            }
            if arc.len() > 1 {
                chart.draw_series([PathElement::new(arc, style)])?;
            }
        }
        for star in self.stars.iter().filter(|star| self.inside(star.at)) {
            for style in [WHITE.stroke_width(halo), INK.stroke_width(stroke)] {
                let reach = arm + if style.color.0 == 255 { 2 } else { 0 };
                let arms = EmptyElement::at(star.at)
                    + PathElement::new([(-reach, 0), (reach, 0)], style)
                    + PathElement::new([(0, -reach), (0, reach)], style);
                chart.draw_series([arms])?;
            }
        }
        Ok(())
    }

    fn inside(&self, (x, y): (f64, f64)) -> bool {
        self.axes[0].holds(x) && self.axes[1].holds(y)
    }

    /// What the marks mean.
    fn key(&self, area: &Panel<'_>, title: &str) -> Result<()> {
        let text = |line: &str, (x, y): (i32, i32), size: i32, colour: RGBColor| {
            let style = ("sans-serif", size).into_font().color(&colour);
            area.draw(&Text::new(line.to_owned(), (x, y), style))
        };
        let (name, clusters) = title.split_once(", ").unwrap_or((title, ""));
        text(name, (20, 44), 46, INK)?;
        let mut facts = vec![clusters.to_owned(), format!("{} points", self.rows)];
        if self.drawn.0 < self.rows {
            facts.push(format!("{} of them drawn", self.drawn.0));
        }
        if let Some(rows) = self.coreset {
            facts.push(format!("coreset of {rows} rows"));
        }
        if self.drawn.1 < self.stars.len() {
            let outside = self.stars.len() - self.drawn.1;
            facts.push(format!("{outside} centres are farther out"));
        }
        let mut y = 108;
        for fact in &facts {
            text(fact, (20, y), 31, FAINT)?;
            y += 38;
        }
        y += 36;

        let colour = COLOURS[0];
        let mut entry = |lines: &[&str], mark: &dyn Fn(i32) -> Result<()>| -> Result<()> {
            mark(y + 12)?;
            for line in lines {
                text(line, (110, y), 31, INK)?;
                y += 36;
            }
            y += 26;
            Ok(())
        };
        let dots = |used: bool, y: i32| -> Result<()> {
            let colours = [COLOURS[0], COLOURS[1], COLOURS[2]];
            for (i, colour) in colours.into_iter().enumerate() {
                let at = (34 + 22 * i as i32, y);
                area.draw(&Circle::new(at, 6, colour.mix(dot_alpha(used)).filled()))?;
            }
            Ok(())
        };
        if self.coreset.is_some() {
            entry(&["rows of the coreset,", "by component"], &|y| {
                dots(true, y)
            })?;
            entry(&["other points"], &|y| dots(false, y))?;
        } else {
            entry(&["points, by component"], &|y| dots(true, y))?;
        }
        entry(&["centre, and one", "standard deviation"], &|y| {
            area.draw(&Circle::new((56, y + 10), 30, INK.mix(0.8).stroke_width(2)))?;
            for arm in [[(44, y + 10), (68, y + 10)], [(56, y - 2), (56, y + 22)]] {
                area.draw(&PathElement::new(arm, INK.stroke_width(4)))?;
            }
            Ok(())
        })?;
        if self.links.is_empty() {
            return Ok(());
        }
        entry(
            &["support of a point:", "the components that", "share it"],
            &|y| {
                let from = (34, y + 24);
                for (to, q) in [((86, y - 2), 1.0), ((92, y + 24), 0.3), ((86, y + 50), 0.0)] {
                    let style = colour.mix(link_alpha(q)).stroke_width(link_width(q));
                    area.draw(&PathElement::new([from, to], style))?;
                }
                area.draw(&Circle::new(from, 6, colour.filled()))?;
                area.draw(&Circle::new(from, 8, INK.stroke_width(2)))?;
                Ok(())
            },
        )?;
        for (q, line) in [(1.0, "responsibility 1"), (0.3, "0.3"), (0.0, "almost 0")] {
            entry(&[line], &|y| {
                let style = colour.mix(link_alpha(q)).stroke_width(link_width(q));
                area.draw(&PathElement::new([(30, y), (90, y)], style))?;
                Ok(())
            })?;
        }
        Ok(())
    }
}

fn dot_alpha(used: bool) -> f64 {
    if used { 0.75 } else { 0.22 }
}

fn link_alpha(q: f64) -> f64 {
    0.3 + 0.6 * q
}

fn link_width(q: f64) -> u32 {
    1 + (4.0 * q).round() as u32
}

/// One axis: a column of the data in a unit and from an origin that make short numbers.
struct Axis {
    /// `None` for data with one column: points are spread out for legibility.
    column: Option<usize>,
    caption: String,
    origin: f64,
    unit: f64,
    /// Range shown, in units from the origin.
    low: f64,
    high: f64,
}

impl Axis {
    fn new<T: Element>(
        points: ArrayView2<'_, T>,
        column: Option<usize>,
        names: Option<&[String]>,
        outcome: &Outcome,
    ) -> Self {
        let Some(column) = column else {
            let caption = "spread for legibility".to_owned();
            let (origin, unit, low, high) = (0.0, 1.0, -2.0, 2.0);
            return Self {
                column: None,
                caption,
                origin,
                unit,
                low,
                high,
            };
        };
        let (low, high) = range(points, column, outcome);
        let middle = low + (high - low) / 2.0;
        // Room around the points; a constant column gets a width of its own.
        let reach = (0.53 * (high - low))
            .max(1e-13 * middle.abs())
            .max(f64::MIN_POSITIVE);
        let power = |x: f64| 10f64.powi(x.log10().floor().clamp(-300.0, 300.0) as i32);
        let unit = match power(reach) {
            unit if (1e-3..1e5).contains(&unit) => 1.0,
            unit => unit,
        };
        let origin = if middle.abs() > 1e4 * reach {
            let step = 10.0 * power(reach);
            (middle / step).round() * step
        } else {
            0.0
        };
        let name = match names.and_then(|names| names.get(column)) {
            Some(name) => name.chars().filter(|c| !c.is_control()).take(40).collect(),
            None => format!("column {column}"),
        };
        let mut caption = name;
        if origin != 0.0 {
            caption += &format!(" - {}", short(origin));
        }
        if unit != 1.0 {
            caption = format!("{caption}, in units of {unit:.0e}");
        }
        let middle = (middle - origin) / unit;
        let reach = reach / unit;
        Self {
            column: Some(column),
            caption,
            origin,
            unit,
            low: middle - reach,
            high: middle + reach,
        }
    }

    fn of_row<T: Element>(&self, points: ArrayView2<'_, T>, n: usize) -> f64 {
        match self.column {
            Some(column) => (points[[n, column]].widen().to_f64() - self.origin) / self.unit,
            None => 2.0 * (n as f64 * 0.618_033_988_749_894_9).fract() - 1.0,
        }
    }

    fn of_mean(&self, outcome: &Outcome, c: usize) -> f64 {
        match self.column {
            Some(column) => (outcome.means[[c, column]] - self.origin) / self.unit,
            None => 0.0,
        }
    }

    fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Width in the unit of the data.
    fn width(&self) -> f64 {
        (self.high - self.low) * self.unit
    }

    /// Widens the range, in the unit of the data.
    fn widen_to(&mut self, width: f64) {
        let more = (width / self.unit - (self.high - self.low)) / 2.0;
        self.low -= more;
        self.high += more;
    }
}

/// Same unit along both axes where they are of a size, so that round clusters look round.
fn equalise([x, y]: &mut [Axis; 2]) {
    // The plot is all but square.
    let (wide, narrow) = (x.width().max(y.width()), x.width().min(y.width()));
    if y.column.is_some() && wide <= 2.5 * narrow {
        x.widen_to(wide);
        y.widen_to(wide);
    }
}

/// The values shown: those of all points and centres, unless a few of them are far out.
fn range<T: Element>(points: ArrayView2<'_, T>, column: usize, outcome: &Outcome) -> (f64, f64) {
    let values = some(points.nrows(), POINTS).into_iter();
    let mut values: Vec<f64> = values
        .map(|n| points[[n, column]].widen().to_f64())
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 200;
    let most = (values[cut], values[values.len() - 1 - cut]);
    let means = outcome.means.column(column);
    let all = means.iter().chain([&values[0], &values[values.len() - 1]]);
    let all = all.fold(most, |(low, high), &x| (x.min(low), x.max(high)));
    if all.1 - all.0 > 2.0 * (most.1 - most.0) {
        most
    } else {
        all
    }
}

/// The two columns with the largest variances; `None` where there is only one column.
fn widest<T: Element>(points: ArrayView2<'_, T>) -> [Option<usize>; 2] {
    let d = points.ncols();
    if d <= 2 {
        return [Some(0), (d == 2).then_some(1)];
    }
    // Sums of differences from the first row cannot cancel as sums of squares far from zero do.
    let first: Vec<f64> = points.row(0).iter().map(|x| x.widen().to_f64()).collect();
    let (mut sums, mut squares) = (vec![0.0; d], vec![0.0; d]);
    for row in points.rows() {
        for (j, x) in row.iter().enumerate() {
            let difference = x.widen().to_f64() - first[j];
            sums[j] += difference;
            squares[j] += difference * difference;
        }
    }
    let spread = |j: usize| squares[j] - sums[j] * sums[j] / points.nrows() as f64;
    let mut columns: Vec<usize> = (0..d).collect();
    columns.sort_by(|&a, &b| spread(b).total_cmp(&spread(a)));
    [Some(columns[0]), Some(columns[1])]
}

/// A colour for each centre: the one that is farthest away so far.
fn colours(centres: &[(f64, f64)]) -> Vec<RGBColor> {
    // Looking back over some hundred centres keeps this fast for any number of them.
    const BACK: usize = 500;
    let mut chosen: Vec<usize> = Vec::with_capacity(centres.len());
    for (c, &(x, y)) in centres.iter().enumerate() {
        let mut nearest = [f64::INFINITY; COLOURS.len()];
        for other in c.saturating_sub(BACK)..c {
            let (u, v) = centres[other];
            let place = &mut nearest[chosen[other]];
            *place = place.min((x - u).powi(2) + (y - v).powi(2));
        }
        let best = (0..COLOURS.len())
            .rev()
            .max_by(|&a, &b| nearest[a].total_cmp(&nearest[b]));
        chosen.push(best.unwrap_or(0));
    }
    chosen.into_iter().map(|colour| COLOURS[colour]).collect()
}

/// A number in a caption.
fn short(value: f64) -> String {
    if (1e-3..1e7).contains(&value.abs()) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

/// A number on an axis, without the tail that binary fractions leave.
fn tick(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}
