// Points in, one chart out: lines told apart by their dashes and their names, not by colour; intervals as whiskers.
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { line } from "d3-shape";
import { counted, figure, make } from "./dom";

export interface Point {
  readonly x: number;
  readonly y: number;
  readonly low?: number | null;
  readonly high?: number | null;
  readonly said?: string;
}

export interface Series {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface Chart {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly series: readonly Series[];
  readonly dots?: boolean;
  /** A line from corner to corner: what would be perfect. */
  readonly diagonal?: boolean;
  readonly ticks?: readonly { at: number; label: string }[];
  readonly within?: readonly [number, number];
  /** What no value can leave, so that the axis does not either. */
  readonly limits?: readonly [number, number];
}

const WIDEST = 520;
const HEIGHT = 250;
const EDGE = { top: 14, bottom: 46 };
const TITLE = 24; // room for the title of the upright axis, beside its numbers
const DIGIT = 7; // the width of one
const NAMES = 92; // room for names at the ends of lines
const DASHES = ["", "5 4", "1.5 3.5", "9 3 2 3"];

/** Drawn as wide as the window lets it be, so that letters keep their size; the right edge, where lines end. */
function widthOf(chart: Chart): { width: number; right: number } {
  const width = Math.max(300, Math.min(WIDEST, innerWidth - 40));
  return { width, right: width - (chart.series.length > 1 ? NAMES : 16) };
}

type Drawing = ReturnType<typeof open>;
type Scale = ReturnType<typeof scaleLinear<number, number>>;

function open(chart: Chart) {
  return select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
    .attr("class", "chart").attr("viewBox", `0 0 ${widthOf(chart).width} ${HEIGHT}`).attr("role", "img")
    .attr("aria-label", `${chart.title}: ${chart.y} by ${chart.x}; ${chart.series.map(({ name, points }) => `${name} from ${figure(points[0]?.y ?? 0)} to ${figure(points.at(-1)?.y ?? 0)}`).join("; ")}`);
}

export function chartFigure(chart: Chart, ...below: Node[]): HTMLElement {
  const drawing = open(chart);
  const points = chart.series.flatMap((one) => one.points);
  if (points.length) drawAll(drawing, chart, points);
  return make("figure", { class: "plot", "data-picture": chart.title }, make("figcaption", { class: "title" }, chart.title),
    drawing.node()!, ...(points.length ? [] : [make("p", { class: "hint" }, "nothing was measured")]), ...below);
}

function drawAll(drawing: Drawing, chart: Chart, points: readonly Point[]): void {
  const heights = points.flatMap(({ y, low, high }) => [y, low ?? y, high ?? y]);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const flat = high - low <= 1e-9 * Math.max(1, Math.abs(high));
  const y = scaleLinear().domain(chart.within ?? (flat ? [low - 1, low + 1] : [low, high])).range([HEIGHT - EDGE.bottom, EDGE.top]);
  if (!chart.within) y.nice(5);
  if (chart.limits) y.domain([Math.max(chart.limits[0], y.domain()[0]!), Math.min(chart.limits[1], y.domain()[1]!)]);
  const left = TITLE + DIGIT * Math.max(...y.ticks(5).map((tick) => y.tickFormat(5)(tick).length));
  const places = points.map((point) => point.x);
  const [least, most] = chart.diagonal ? [0, 1] : [Math.min(...places), Math.max(...places)];
  const room = least === most ? 1 : chart.dots && !chart.diagonal ? 0.04 * (most - least) : 0;
  const x = scaleLinear().domain([least - room, most + room]).range([left, widthOf(chart).right]);
  axes(drawing, chart, x, y, chart.ticks ?? ticksOf(x, chart.diagonal ? [] : places));
  if (chart.diagonal) drawing.append("line").attr("class", "ideal").attr("x1", x(0)).attr("y1", y(0)).attr("x2", x(1)).attr("y2", y(1));
  chart.series.forEach((one, index) => drawSeries(drawing, chart, one, index, x, y));
  names(drawing, chart, y);
}

type Ticks = readonly { at: number; label: string }[];

/** What was measured once stands at its place alone, and what is counted in whole numbers has no halves. */
function ticksOf(x: Scale, places: readonly number[]): Ticks {
  if (places.length && places.every((place) => place === places[0])) return [{ at: places[0]!, label: counted(places[0]!) }];
  const whole = places.length > 0 && places.every(Number.isInteger);
  return x.ticks(6).filter((at) => !whole || Number.isInteger(at)).map((at) => ({ at, label: whole ? counted(at) : x.tickFormat(6)(at) }));
}

/** As many of the labels as can stand beside each other. */
function thinned(ticks: Ticks, x: Scale): Ticks {
  const widest = Math.max(...ticks.map(({ label }) => label.length)) * DIGIT + 8;
  const apart = ticks.length > 1 ? Math.abs(x(ticks[1]!.at) - x(ticks[0]!.at)) : widest;
  return ticks.filter((_, i) => i % Math.max(1, Math.ceil(widest / Math.max(1, apart))) === 0);
}

function axes(drawing: Drawing, chart: Chart, x: Scale, y: Scale, ticks: Ticks): void {
  const [left, right] = x.range() as [number, number];
  for (const tick of y.ticks(5)) {
    drawing.append("line").attr("class", "rule").attr("x1", left).attr("x2", right).attr("y1", y(tick)).attr("y2", y(tick));
    drawing.append("text").attr("class", "tick").attr("x", left - 6).attr("y", y(tick)).attr("text-anchor", "end").attr("dominant-baseline", "central").text(y.tickFormat(5)(tick));
  }
  for (const { at, label } of thinned(ticks, x))
    drawing.append("text").attr("class", "tick").attr("x", x(at)).attr("y", HEIGHT - EDGE.bottom + 22).attr("text-anchor", "middle").text(label);
  drawing.append("text").attr("class", "axis").attr("x", (left + right) / 2).attr("y", HEIGHT - 5).attr("text-anchor", "middle").text(chart.x);
  drawing.append("text").attr("class", "axis").attr("transform", `translate(11,${(HEIGHT - EDGE.bottom + EDGE.top) / 2}) rotate(-90)`).attr("text-anchor", "middle").text(chart.y);
}

function drawSeries(drawing: Drawing, chart: Chart, { name, points }: Series, index: number, x: Scale, y: Scale): void {
  const path = line<Point>(({ x: at }) => x(at), ({ y: value }) => y(value));
  drawing.append("path").attr("class", "series").attr("d", path([...points]) ?? "").attr("stroke-dasharray", DASHES[index % DASHES.length]!);
  for (const point of points) {
    const said = point.said ?? `${name}: ${figure(point.y)} at ${figure(point.x).replace(/\.0+$/, "")}`;
    if (point.low != null && point.high != null)
      drawing.append("line").attr("class", "whisker").attr("x1", x(point.x)).attr("x2", x(point.x)).attr("y1", y(point.low)).attr("y2", y(point.high));
    const dot = drawing.append("circle").attr("class", chart.dots || points.length === 1 ? "dot" : "dot hidden").attr("cx", x(point.x)).attr("cy", y(point.y)).attr("r", chart.dots ? 3.5 : 4);
    dot.attr("data-tip", said).attr("data-value", point.y);
  }
}

/** Names stand at the ends of the lines; where two would touch, the lower goes lower. */
function names(drawing: Drawing, chart: Chart, y: Scale): void {
  if (chart.series.length < 2) return;
  const ends = chart.series.map(({ name, points }) => ({ name, at: y(points.at(-1)?.y ?? 0) })).sort((a, b) => a.at - b.at);
  ends.forEach((end, i) => (end.at = Math.max(end.at, (ends[i - 1]?.at ?? -Infinity) + 13)));
  const over = Math.max(0, (ends.at(-1)?.at ?? 0) - (HEIGHT - EDGE.bottom));
  for (const { name, at } of ends)
    drawing.append("text").attr("class", "series-name").attr("x", widthOf(chart).right + 6).attr("y", at - over).attr("dominant-baseline", "central").text(name.length > 15 ? `${name.slice(0, 14)}…` : name);
}
