// A panel in, the heat map out: queries down, keys across, ink for weight. SVG up to 64 × 64 cells, a canvas above.
import { select } from "d3-selection";
import { dress, figure, make, part, unchanged } from "./dom";
import { inkOf, paint } from "./ink";
import { lensOf, pointed, shade, weightAt, type Lens, type Pointed } from "./lens";
import type { Act, Panel } from "./panel";
import { lineOf, quoted, spelled, type Token } from "./record";

const MANY = 64;
const TALL = 560; // pixels of all rows together, where that can be had
const ROOM = 16; // characters of a label
const LINE = 12; // pixels that a label needs, so that each row has its own and none is left out

interface Frame {
  readonly wide: number;
  readonly tall: number;
  /** Of how many columns one is named: as many as can stand beside each other. */
  readonly every: number;
  readonly left: number;
  readonly top: number;
  readonly lens: Lens;
  readonly queries: readonly Token[];
  readonly keys: readonly Token[];
}

function label(token: Token | undefined): string {
  const text = token ? spelled(token).replace(/^␣+(?=[^␣])/, "") : ""; // a space before a word says nothing here
  return text.length > ROOM ? `${text.slice(0, ROOM - 1)}…` : text;
}

/** Letters as large as their place allows, and never larger than usual. */
function letters(room: number): string {
  return `${Math.max(8, Math.min(12, room))}px`;
}

/** How wide a label is, about: wide scripts count twice. */
function widthOf(text: string, size: number): number {
  let units = 0;
  for (const letter of text) units += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(letter) ? 1 : 0.58;
  return units * size;
}

function frameOf(panel: Panel, lens: Lens, width: number): Frame {
  const queries = lineOf(panel.record, lens.queries).tokens.slice(0, lens.matrix.rows);
  const keys = lineOf(panel.record, lens.keys).tokens.slice(0, lens.matrix.columns);
  const widest = Math.max(8, ...queries.map((token) => widthOf(label(token), 12)));
  const left = Math.ceil(widest) + 10;
  const large = Math.max(lens.matrix.rows, lens.matrix.columns) > MANY;
  const room = Math.floor((width - left - 2) / Math.max(1, keys.length));
  const cell = Math.max(large ? 4 : 9, Math.min(32, room, Math.floor(TALL / Math.max(1, queries.length))));
  const lying = keys.some((token, i) => turned(token, cell) && keys[i + 1] && turned(keys[i + 1]!, cell));
  const every = Math.max(1, Math.ceil((lying ? LINE + 1 : 10) / cell)); // what lies on its side needs the height of a line
  const tallest = Math.max(14, ...keys.filter((token) => turned(token, every * cell)).map((token) => widthOf(label(token), 12)));
  return { wide: cell, tall: Math.max(LINE, cell), every, left, top: Math.ceil(tallest) + 8, lens, queries, keys };
}

/** Whether a label is too wide to stand above its column, or above the columns that it stands for. */
function turned(token: Token, room: number): boolean {
  return widthOf(label(token), 12) > room - 2;
}

export function drawHeat(root: HTMLElement, panel: Panel, act: Act): void {
  const lens = lensOf(panel.record, panel.state);
  const title = part(root, "figcaption", "title");
  const said = lens ? lens.title : "";
  if (title.textContent !== said) title.textContent = said;
  const scroll = part(root, "div", "scroll");
  if (!lens || lens.matrix.rows * lens.matrix.columns === 0) {
    if (!unchanged(scroll, null)) scroll.replaceChildren();
    return;
  }
  const width = scroll.clientWidth || 320;
  if (!unchanged(scroll, lens, width, panel.record, inkOf(document.documentElement).join())) structure(scroll, frameOf(panel, lens, width), lens.title);
  listen(scroll, panel, act);
  crosshair(scroll, panel, lens);
  legend(part(root, "p", "legend"), lens);
}

/** Everything that stays while the pointer moves. */
function structure(scroll: HTMLElement, frame: Frame, title: string): void {
  const { wide, tall, left, top, lens } = frame;
  const [rows, columns] = [lens.matrix.rows, lens.matrix.columns];
  const size = { width: left + columns * wide + 2, height: top + rows * tall + 2 };
  scroll.replaceChildren();
  const stage = make("div", { class: "stage" });
  stage.style.width = `${size.width}px`;
  stage.style.height = `${size.height}px`;
  const large = Math.max(rows, columns) > MANY;
  if (large) stage.append(canvasCells(frame));
  const picture = select(stage).append("svg").attr("class", "heat").attr("width", size.width).attr("height", size.height)
    .attr("viewBox", `0 0 ${size.width} ${size.height}`).attr("tabindex", 0).attr("role", "application")
    .attr("aria-label", `heat map, ${title}: ${rows} rows, ${columns} columns; arrow keys move, numbers are read out`)
    .attr("data-wide", wide).attr("data-tall", tall).attr("data-left", left).attr("data-top", top);
  picture.append("rect").attr("class", "edge").attr("x", left).attr("y", top).attr("width", columns * wide).attr("height", rows * tall);
  if (!large) svgCells(picture.append("g"), frame);
  rowLabels(picture.append("g"), frame);
  columnLabels(picture.append("g"), frame);
  picture.append("rect").attr("class", "band band-row");
  picture.append("rect").attr("class", "band band-column");
  picture.append("rect").attr("class", "here");
  scroll.append(stage);
}

function svgCells(group: ReturnType<typeof grouped>, { wide, tall, left, top, lens, queries, keys }: Frame): void {
  const { rows, columns } = lens.matrix;
  const places = Array.from({ length: rows * columns }, (_, i): [number, number] => [Math.floor(i / columns), i % columns]);
  const gap = wide > 12 ? 1 : 0;
  group.selectAll("rect").data(places).join("rect")
    .attr("class", "cell")
    .attr("x", ([, key]) => left + key * wide).attr("y", ([query]) => top + query * tall)
    .attr("width", wide - gap).attr("height", tall - gap)
    .attr("fill-opacity", ([query, key]) => shade(lens, weightAt(lens, query, key)).toFixed(4))
    .attr("data-query", ([query]) => query).attr("data-key", ([, key]) => key)
    .attr("data-weight", ([query, key]) => weightAt(lens, query, key))
    .attr("aria-label", ([query, key]) => `${quoted(label(queries[query]))} to ${quoted(label(keys[key]))}: ${figure(weightAt(lens, query, key))}`);
}

/** Only names the type of a group. */
function grouped() {
  return select(document.body).append("g");
}

function canvasCells({ wide, tall, left, top, lens }: Frame): HTMLCanvasElement {
  const canvas = make("canvas", { class: "cells", "aria-hidden": true });
  paint(canvas, lens.matrix, (weight) => shade(lens, weight), inkOf(document.documentElement));
  Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`, width: `${lens.matrix.columns * wide}px`, height: `${lens.matrix.rows * tall}px` });
  return canvas;
}

function rowLabels(group: ReturnType<typeof grouped>, { tall, left, top, queries }: Frame): void {
  group.selectAll("text").data(queries).join("text")
    .attr("class", "label row-label").attr("x", left - 6).attr("y", (_, i) => top + (i + 0.5) * tall)
    .attr("text-anchor", "end").attr("dominant-baseline", "central").attr("direction", "ltr")
    .attr("data-row", (_, i) => i).style("font-size", letters(tall)).text(label);
}

function columnLabels(group: ReturnType<typeof grouped>, { wide, every, left, top, keys }: Frame): void {
  const room = every * wide;
  group.selectAll("text").data(keys).join("text")
    .attr("class", "label column-label").attr("data-column", (_, i) => i).style("font-size", letters(room))
    .attr("transform", (token, i) => `translate(${left + (i + 0.5) * wide},${top - 6})${turned(token, room) ? " rotate(-90)" : ""}`)
    .attr("text-anchor", (token) => (turned(token, room) ? "start" : "middle"))
    .attr("dominant-baseline", (token) => (turned(token, room) ? "central" : "auto"))
    .text((token, i) => (i % every ? "" : label(token)));
}

/** What changes with the selection: two bands and the cell where they meet. */
function crosshair(scroll: HTMLElement, panel: Panel, lens: Lens): void {
  const picture = scroll.querySelector<SVGSVGElement>("svg.heat");
  if (!picture) return;
  const [wide, tall, left, top] = ["wide", "tall", "left", "top"].map((name) => Number(picture.dataset[name])) as [number, number, number, number];
  const point = pointed(lens, panel.selected, panel.record);
  const across = point ? panel.selected?.across ?? null : null;
  const row = point?.role === "query" ? point.index : point ? across : null;
  const column = point?.role === "key" ? point.index : point ? across : null;
  const whole = { width: lens.matrix.columns * wide, height: lens.matrix.rows * tall };
  const put = (name: string, on: boolean, x: number, y: number, width: number, height: number): void =>
    dress(picture.querySelector(`.${name}`)!, { x, y, width, height, visibility: on ? "visible" : "hidden" });
  put("band-row", row !== null, left, top + (row ?? 0) * tall, whole.width, tall);
  put("band-column", column !== null, left + (column ?? 0) * wide, top, wide, whole.height);
  put("here", row !== null && column !== null, left + (column ?? 0) * wide, top + (row ?? 0) * tall, wide, tall);
  dress(picture, { "data-weight": row !== null && column !== null ? weightAt(lens, row, column) : null });
  picture.querySelectorAll(".label.on").forEach((label) => label.classList.remove("on"));
  picture.querySelector(`[data-row="${row}"]`)?.classList.add("on");
  picture.querySelector(`[data-column="${column}"]`)?.classList.add("on");
}

interface Hands {
  panel: Panel;
  act: Act;
}

const hands = new WeakMap<HTMLElement, Hands>();

function listen(scroll: HTMLElement, panel: Panel, act: Act): void {
  const known = hands.has(scroll);
  hands.set(scroll, { panel, act });
  if (known) return;
  scroll.addEventListener("pointermove", (event) => event.pointerType === "mouse" && pick(scroll, event, "over"));
  scroll.addEventListener("pointerleave", () => hands.get(scroll)?.act.leave());
  scroll.addEventListener("click", (event) => pick(scroll, event, "pin"));
  scroll.addEventListener("keydown", (event) => move(scroll, event));
}

function choose(scroll: HTMLElement, query: number, key: number, how: "over" | "focus" | "pin"): void {
  const { panel, act } = hands.get(scroll)!;
  const lens = lensOf(panel.record, panel.state);
  if (!lens) return;
  act.select({ panel: panel.number, side: lens.queries, role: "query", index: query, across: key }, how);
}

function pick(scroll: HTMLElement, event: MouseEvent, how: "over" | "pin"): void {
  const picture = scroll.querySelector<SVGSVGElement>("svg.heat");
  const lens = hands.has(scroll) ? lensOf(hands.get(scroll)!.panel.record, hands.get(scroll)!.panel.state) : null;
  if (!picture || !lens) return;
  const box = picture.getBoundingClientRect();
  const at = (name: string): number => Number(picture.dataset[name]);
  const key = Math.floor((event.clientX - box.left - at("left")) / at("wide"));
  const query = Math.floor((event.clientY - box.top - at("top")) / at("tall"));
  if (query >= 0 && key >= 0 && query < lens.matrix.rows && key < lens.matrix.columns) choose(scroll, query, key, how);
}

function move(scroll: HTMLElement, event: KeyboardEvent): void {
  const steps: { [key: string]: [number, number] } = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const step = steps[event.key];
  const { panel } = hands.get(scroll)!;
  const lens = lensOf(panel.record, panel.state);
  if (!lens || (!step && event.key !== "Enter")) return;
  event.preventDefault();
  const point: Pointed | null = pointed(lens, panel.selected, panel.record);
  const across = panel.selected?.across ?? null;
  const row = point?.role === "query" ? point.index : across ?? (step ? -step[0] : 0);
  const column = point?.role === "key" ? point.index : across ?? (step ? -step[1] : 0);
  const within = (value: number, count: number): number => Math.max(0, Math.min(count - 1, value));
  choose(scroll, within(row + (step?.[0] ?? 0), lens.matrix.rows), within(column + (step?.[1] ?? 0), lens.matrix.columns), event.key === "Enter" ? "pin" : "focus");
}

function legend(place: HTMLElement, lens: Lens): void {
  if (unchanged(place, lens)) return;
  const scale = make("span", { class: "scale", "aria-hidden": true });
  for (let i = 0; i <= 10; i++) {
    const step = make("span");
    step.style.opacity = shade(lens, (lens.scale * i) / 10).toFixed(3);
    scale.append(step);
  }
  place.replaceChildren(make("span", {}, "0"), scale, make("span", {}, figure(lens.scale).replace(/\.?0+$/, "")));
}
