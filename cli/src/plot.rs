//! Draws panels side by side into an svg or png file, with a font of its own, so that none need be installed.

use crate::failure::usage;
use crate::outputs;
use anyhow::{Result, anyhow};
use hemiola::StalenessHistogram;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::io;
use std::path::Path;

/// One drawing beside others.
pub(crate) enum Panel {
    /// Lines over a common axis.
    Curves {
        /// What is shown.
        title: String,
        /// What is to the right.
        x: String,
        /// What is upwards.
        y: String,
        /// The lines.
        curves: Vec<Curve>,
    },
    /// Points that are not joined.
    Points {
        /// What is shown.
        title: String,
        /// What is to the right.
        x: String,
        /// What is upwards.
        y: String,
        /// The points of each name.
        curves: Vec<Curve>,
    },
    /// Upright bars at whole numbers.
    Bars {
        /// What is shown.
        title: String,
        /// What is to the right.
        x: String,
        /// What is upwards.
        y: String,
        /// Where each bar stands, and its height.
        bars: Vec<(i64, f64)>,
    },
    /// Nodes in a circle with arrows between them.
    Network {
        /// The nodes that each node points to.
        receivers: Vec<Vec<u32>>,
    },
}

/// A line, and its name in the legend.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const PANEL: (u32, u32) = (560, 420);
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(51, 51, 51);
const GRID: RGBColor = RGBColor(225, 225, 225);
/// Told apart by the colour-blind, too (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
];

/// How many pixels of a png a unit of the drawing has, and how many drawn pixels each of those is the mean of.
const PNG_SCALE: u32 = 2;
const PNG_SMOOTHING: u32 = 2;

/// Checks that a plot's file name says svg or png.
///
/// # Errors
/// If it says something else.
pub(crate) fn check_extension(path: &Path) -> Result<()> {
    match extension(path).as_str() {
        "svg" | "png" => Ok(()),
        _ => Err(usage(format!("--plot {}: expected a name that ends in .svg or .png", path.display()))),
    }
}

/// Draws the panels side by side and writes the file.
///
/// # Errors
/// If the drawing or the writing fails.
pub(crate) fn write(path: &Path, title: &str, panels: &[Panel]) -> Result<()> {
    let fonts = [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())];
    for (style, font) in fonts {
        plotters::style::register_font(FONT, style, font).map_err(|_| anyhow!("the font for plots is damaged"))?;
    }
    let size = (PANEL.0 * panels.len() as u32, PANEL.1);
    if extension(path) == "png" {
        let drawn = PNG_SCALE * PNG_SMOOTHING;
        let (width, height) = (size.0 * drawn, size.1 * drawn);
        let mut pixels = vec![0; (width * height * 3) as usize];
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        draw(&area, f64::from(drawn), title, panels)?;
        drop(area);
        let pixels = smooth(&pixels, (width, height));
        return outputs::write_whole(path, |file| {
            let mut encoder = png::Encoder::new(file, size.0 * PNG_SCALE, size.1 * PNG_SCALE);
            encoder.set_color(png::ColorType::Rgb);
            encoder.write_header()?.write_image_data(&pixels).map_err(io::Error::from)
        });
    }
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    draw(&area, 1.0, title, panels)?;
    drop(area);
    outputs::write_whole(path, |file| file.write_all(text.as_bytes()))
}

/// How stale reads were, as a share of all reads.
pub(crate) fn staleness_panel(histogram: &StalenessHistogram) -> Panel {
    let total: u64 = histogram.iter().map(|(_, reads)| reads).sum();
    let share = |(differential, reads)| (differential, 100.0 * reads as f64 / total as f64);
    Panel::Bars {
        title: "Staleness of reads".to_owned(),
        x: "clock of the row less clock of the reader".to_owned(),
        y: "reads (%)".to_owned(),
        bars: histogram.iter().map(share).collect(),
    }
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// The mean of every square of [`PNG_SMOOTHING`] pixels.
fn smooth(pixels: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    let (width, side) = (width as usize, PNG_SMOOTHING as usize);
    let mut smoothed = Vec::with_capacity(pixels.len() / (side * side));
    for top in (0..height as usize).step_by(side) {
        for left in (0..width).step_by(side) {
            for colour in 0..3 {
                let square = (0..side * side)
                    .map(|at| usize::from(pixels[((top + at / side) * width + left + at % side) * 3 + colour]));
                smoothed.push((square.sum::<usize>() / (side * side)) as u8);
            }
        }
    }
    smoothed
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    scale: f64,
    title: &str,
    panels: &[Panel],
) -> Result<()>
where
    B::ErrorType: 'static,
{
    let pixels = |units: f64| (units * scale) as i32;
    area.fill(&WHITE)?;
    let heading = (FONT, 17.0 * scale, FontStyle::Bold).into_font().color(&INK);
    let area = area.margin(pixels(10.0), 0, 0, 0).titled(title, heading)?;
    for (part, panel) in area.split_evenly((1, panels.len())).iter().zip(panels) {
        match panel {
            Panel::Curves { title, x, y, curves } => draw_curves(part, scale, [title, x, y], curves, true)?,
            Panel::Points { title, x, y, curves } => draw_curves(part, scale, [title, x, y], curves, false)?,
            Panel::Bars { title, x, y, bars } => draw_bars(part, scale, [title, x, y], bars)?,
            Panel::Network { receivers } => draw_network(part, scale, receivers)?,
        }
    }
    area.present()?;
    Ok(())
}

type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw_curves<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    scale: f64,
    names: [&str; 3],
    curves: &[Curve],
    joined: bool,
) -> Result<()>
where
    B::ErrorType: 'static,
{
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (left, right) = bounds(points().map(|point| point.0));
    let (low, high) = bounds(points().map(|point| point.1));
    let margin = ((high - low) * 0.08).max(high.abs() * 1e-3).max(1e-9);
    let right = if right > left { right } else { left + 1.0 };
    // Curves begin and end at the frame; points stay clear of it.
    let beside = if joined { 0.0 } else { (right - left) * 0.05 };
    let (left, right) = (left - beside, right + beside);
    let mut chart = frame(area, scale, names, (left, right), (low - margin, high + margin))?;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width((2.0 * scale) as u32);
        let sample = move |(x, y)| {
            let half = (scale * 1.2) as i32;
            Rectangle::new([(x, y - half), (x + (18.0 * scale) as i32, y + half)], colour.filled())
        };
        let joined_points = if joined { &curve.points[..] } else { &[] };
        let line = chart.draw_series(LineSeries::new(joined_points.iter().copied(), style))?;
        line.label(curve.name.as_str()).legend(sample);
        // One that stands alone is seen among many.
        let radius = if !joined && curve.points.len() == 1 { 5.0 } else { 2.6 };
        let dot = |point: &(f64, f64)| Circle::new(*point, (radius * scale) as i32, colour.filled());
        if curve.points.len() <= 60 || !joined {
            chart.draw_series(curve.points.iter().map(dot))?;
        }
    }
    chart
        .configure_series_labels()
        .position(emptiest_place(curves, joined, (left, right), (low, high)))
        .margin((10.0 * scale) as u32)
        .legend_area_size((24.0 * scale) as u32)
        .background_style(WHITE.mix(0.9))
        .border_style(GRID.stroke_width(scale as u32))
        .label_font((FONT, 13.0 * scale).into_font().color(&INK))
        .draw()?;
    Ok(())
}

/// The place at the border that the fewest points of the curves lie in, for the legend.
fn emptiest_place(
    curves: &[Curve],
    joined: bool,
    (left, right): (f64, f64),
    (low, high): (f64, f64),
) -> SeriesLabelPosition {
    const BETWEEN: usize = 20;
    let places = [
        (SeriesLabelPosition::UpperRight, 1.0, 1.0),
        (SeriesLabelPosition::UpperLeft, 0.0, 1.0),
        (SeriesLabelPosition::LowerRight, 1.0, 0.0),
        (SeriesLabelPosition::LowerLeft, 0.0, 0.0),
        (SeriesLabelPosition::MiddleRight, 1.0, 0.5),
        (SeriesLabelPosition::MiddleLeft, 0.0, 0.5),
    ];
    let crowd = |across: f64, up: f64| {
        let inside = |(x, y): (f64, f64)| {
            let (x, y) = ((x - left) / (right - left), (y - low) / (high - low).max(f64::MIN_POSITIVE));
            usize::from((x - across).abs() < 0.3 && (y - up).abs() < 0.25)
        };
        let between = |pair: &[(f64, f64)]| {
            let part = |step| (pair[1].0 - pair[0].0) * step + pair[0].0;
            let height = |step| (pair[1].1 - pair[0].1) * step + pair[0].1;
            let steps = (0..=BETWEEN).map(|step| step as f64 / BETWEEN as f64);
            steps.map(|step| inside((part(step), height(step)))).sum::<usize>()
        };
        if joined {
            curves.iter().flat_map(|curve| curve.points.windows(2)).map(between).sum::<usize>()
        } else {
            curves.iter().flat_map(|curve| &curve.points).map(|point| inside(*point)).sum()
        }
    };
    let emptiest = places.into_iter().min_by_key(|(_, across, up)| crowd(*across, *up));
    emptiest.map_or(SeriesLabelPosition::UpperRight, |(place, ..)| place)
}

fn draw_bars<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    scale: f64,
    names: [&str; 3],
    bars: &[(i64, f64)],
) -> Result<()>
where
    B::ErrorType: 'static,
{
    let (left, right) = bounds(bars.iter().map(|bar| bar.0 as f64));
    let (_, high) = bounds(bars.iter().map(|bar| bar.1));
    // Few bars would be very wide ones.
    let around = (5.0 - (right - left)).max(1.2) / 2.0;
    let mut chart = frame(area, scale, names, (left - around, right + around), (0.0, (high * 1.12).max(1e-9)))?;
    let bar = |&(at, height): &(i64, f64)| {
        let at = at as f64;
        Rectangle::new([(at - 0.4, 0.0), (at + 0.4, height)], COLOURS[0].filled())
    };
    chart.draw_series(bars.iter().map(bar))?;
    Ok(())
}

/// Arrows end at the rim of a node; those of one node have its colour.
fn draw_network<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    scale: f64,
    receivers: &[Vec<u32>],
) -> Result<()>
where
    B::ErrorType: 'static,
{
    let (width, height) = area.dim_in_pixel();
    let middle = (f64::from(width) / 2.0, f64::from(height) / 2.0);
    // Two neighbours on the circle do not touch.
    let circle = f64::from(width.min(height)) / 2.0 - 24.0 * scale;
    let radius = (circle * std::f64::consts::PI / receivers.len() as f64 * 0.7).min(13.0 * scale);
    let place = |node: usize| {
        let angle = std::f64::consts::TAU * node as f64 / receivers.len() as f64;
        (middle.0 + circle * angle.sin(), middle.1 - circle * angle.cos())
    };
    let pixel = |(x, y): (f64, f64)| (x.round() as i32, y.round() as i32);
    for ((node, receivers), colour) in receivers.iter().enumerate().zip(COLOURS.iter().cycle()) {
        for to in receivers {
            let (from, to) = (place(node), place(*to as usize));
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            let (x, y) = ((to.0 - from.0) / length, (to.1 - from.1) / length);
            let tip = (to.0 - radius * x, to.1 - radius * y);
            let head = radius.min(8.0 * scale);
            let back = (tip.0 - head * x, tip.1 - head * y);
            let wing = |side: f64| pixel((back.0 - side * head * 0.4 * y, back.1 + side * head * 0.4 * x));
            let style = colour.mix(0.7);
            area.draw(&PathElement::new([pixel(from), pixel(back)], style.stroke_width(scale as u32)))?;
            area.draw(&Polygon::new([pixel(tip), wing(1.0), wing(-1.0)], style.filled()))?;
        }
    }
    let centred = plotters::style::text_anchor::Pos::new(
        plotters::style::text_anchor::HPos::Center,
        plotters::style::text_anchor::VPos::Center,
    );
    let label = (FONT, radius).into_font().color(&WHITE).pos(centred);
    for (node, colour) in (0..receivers.len()).zip(COLOURS.iter().cycle()) {
        area.draw(&Circle::new(pixel(place(node)), radius as i32, colour.filled()))?;
        area.draw(&Text::new(node.to_string(), pixel(place(node)), label.clone()))?;
    }
    Ok(())
}

/// A panel's title, axes and grid.
fn frame<'a, B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    scale: f64,
    [title, x, y]: [&str; 3],
    (left, right): (f64, f64),
    (low, high): (f64, f64),
) -> Result<Chart<'a, B>>
where
    B::ErrorType: 'static,
{
    let pixels = |units: f64| (units * scale) as u32;
    let mut chart = ChartBuilder::on(area)
        .margin(pixels(12.0))
        .margin_right(pixels(24.0))
        .caption(title, (FONT, 15.0 * scale).into_font().color(&INK))
        .x_label_area_size(pixels(44.0))
        .y_label_area_size(pixels(62.0))
        .build_cartesian_2d(left..right, low..high)?;
    // Both epochs and clocks are whole, so few of them need no labels in between.
    let labels = (right - left + 1.0).clamp(2.0, 9.0) as usize;
    let steps = RangedCoordf64::from(left..right).key_points(labels);
    let whole = steps.iter().all(|step| step.fract().abs() < 1e-9);
    let vertical = RangedCoordf64::from(low..high).key_points(6usize);
    let digits = decimals(&vertical);
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .x_labels(labels)
        .y_labels(6)
        .x_label_formatter(&move |value| if whole { format!("{value:.0}") } else { format!("{value:.1}") })
        .y_label_formatter(&move |value| format!("{value:.digits$}"))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(pixels(1.0)))
        .axis_style(INK.stroke_width(pixels(1.0)))
        .set_all_tick_mark_size(pixels(4.0))
        .label_style((FONT, 12.0 * scale).into_font().color(&INK))
        .axis_desc_style((FONT, 13.0 * scale).into_font().color(&INK))
        .draw()?;
    Ok(chart)
}

/// How many digits after the point tell the labels apart.
fn decimals(labels: &[f64]) -> usize {
    let step = labels.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if step.is_finite() && step > 0.0 { (-(step * 1.0001).log10().floor()).clamp(0.0, 6.0) as usize } else { 1 }
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}
