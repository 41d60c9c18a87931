// A page of the lesson in, its system drawn from its configuration out: circles for steps, lines for what goes where.
import { select } from "d3-selection";
import { make, unchanged } from "./dom";
import { spelled, type Record } from "./record";
import type { Diagram, LessonPage } from "./wire";

const WIDTH = 440;
const STEP = 62;
const LEVEL = 58;
const CIRCLE = 13;
const SOURCE = 6;
const TARGET = 5;

type Kind = "recurrent" | "convolution" | "attention" | "places" | "none";
type Spot = { readonly x: number; readonly y: number };
type Drawing = ReturnType<typeof open>;

interface Stack {
  readonly kind: Kind;
  /** Level by level from the bottom, each a row of steps; the lowest is what is read. */
  readonly levels: readonly (readonly Spot[])[];
  readonly causal: boolean;
  readonly both: boolean;
}

function kindOf(word: string): Kind {
  if (/image|picture/.test(word)) return "places";
  if (/conv/.test(word)) return "convolution";
  if (/attention|transformer|self/.test(word)) return "attention";
  return /none|^$/.test(word) ? "none" : "recurrent";
}

function open() {
  return select(document.createElementNS("http://www.w3.org/2000/svg", "svg")).attr("class", "system").attr("role", "img");
}

export function drawDiagram(root: HTMLElement, page: LessonPage, record: Record | null): void {
  if (unchanged(root, page)) return;
  const { diagram } = page;
  const source = labels(record, "source", SOURCE);
  const target = labels(record, "target", TARGET);
  const drawing = open().attr("aria-label", inWords(diagram));
  const single = kindOf(diagram.encoder) === "none" || kindOf(diagram.decoder) === "none";
  const height = single ? oneStack(drawing, diagram, source, target) : twoStacks(drawing, diagram, source, target);
  drawing.attr("viewBox", `0 0 ${WIDTH} ${height}`);
  root.replaceChildren(drawing.node()!, make("figcaption", { class: "hint" }, inWords(diagram)));
}

/** The first tokens of the example that are not blank. */
function labels(record: Record | null, side: "source" | "target", count: number): string[] {
  const tokens = side === "source" && record?.picture ? [] : record?.[side].tokens ?? [];
  const shown = tokens.filter((token) => token.text.trim()).slice(0, count).map((token) => spelled(token).slice(0, 6));
  return Array.from({ length: count }, (_, i) => shown[i] ?? "");
}

export function inWords(diagram: Diagram): string {
  const many = (count: number): string => `${count} ${count === 1 ? "layer" : "layers"}`;
  const parts = [
    kindOf(diagram.encoder) === "none" ? "" : `encoder: ${diagram.encoder}${diagram.bidirectional ? " in both directions" : ""}, ${many(diagram.layers[0])}`,
    kindOf(diagram.decoder) === "none" ? "" : `decoder: ${diagram.decoder}, ${many(diagram.layers[1])}`,
    diagram.attention === "none" ? "no attention" : `attention: ${diagram.attention}${diagram.heads > 1 ? `, ${diagram.heads} heads` : ""}`,
    diagram.bottleneck ? "everything passes through one vector" : "",
  ];
  return parts.filter(Boolean).join("; ");
}

function stack(kind: Kind, count: number, layers: number, left: number, bottom: number, causal: boolean, both: boolean): Stack {
  const shown = Math.min(3, Math.max(1, layers));
  const row = (level: number): Spot[] => Array.from({ length: count }, (_, i) => ({ x: left + i * STEP, y: bottom - level * LEVEL }));
  return { kind, causal, both, levels: Array.from({ length: shown + 1 }, (_, level) => row(level)) };
}

/** Reads below, writes above; between them one line, or many. */
function twoStacks(drawing: Drawing, diagram: Diagram, source: string[], target: string[]): number {
  const [readers, writers] = diagram.layers.map((layers) => Math.min(3, Math.max(1, layers))) as [number, number];
  const height = 120 + (readers + writers + 1) * LEVEL + 40;
  const left = 45;
  const encoder = stack(kindOf(diagram.encoder), SOURCE, readers, left, height - 34, false, diagram.bidirectional);
  const decoder = stack(kindOf(diagram.decoder), TARGET, writers, left + STEP / 2, 34 + writers * LEVEL + 8, true, false);
  const read = encoder.levels.at(-1)!;
  const writing = decoder.levels[diagram.attention === "none" ? 1 : decoder.levels.length - 1]!;
  if (diagram.attention !== "none") crossing(drawing, read, decoder.levels[1]!);
  if (diagram.bottleneck) bottleneck(drawing, read.at(-1)!, writing, "bottleneck", /context|every/.test(diagram.decoder + diagram.attention));
  else if (decoder.kind === "recurrent") bottleneck(drawing, read.at(-1)!, decoder.levels[1]!, "bottleneck gone", false);
  drawStack(drawing, encoder, source, "read");
  drawStack(drawing, decoder, target, "written");
  return height;
}

/** One stack for all: what is read and what is written stand in one row, or nothing is written at all. */
function oneStack(drawing: Drawing, diagram: Diagram, source: string[], target: string[]): number {
  const writes = kindOf(diagram.decoder) !== "none";
  const layers = Math.min(3, Math.max(1, diagram.layers[writes ? 1 : 0]));
  const height = 110 + layers * LEVEL + 30;
  const words = writes ? [...source.slice(0, 4), ...target.slice(0, 3)] : source;
  const kind = kindOf(writes ? diagram.decoder : diagram.encoder);
  const one = stack(kind, words.length, layers, writes ? 34 : 45, height - 40, writes, diagram.bidirectional);
  drawStack(drawing, one, words, "read");
  if (writes && diagram.bottleneck) narrow(drawing, one);
  if (writes) {
    const x = (one.levels[0]![3]!.x + one.levels[0]![4]!.x) / 2;
    drawing.append("line").attr("class", "divide").attr("x1", x).attr("x2", x).attr("y1", 20).attr("y2", height - 10);
    drawing.append("text").attr("class", "note").attr("x", x - 8).attr("y", 16).attr("text-anchor", "end").text("read");
    drawing.append("text").attr("class", "note").attr("x", x + 8).attr("y", 16).text("written");
  }
  return height;
}

function line(drawing: Drawing, kind: string, from: Spot, to: Spot, bend = 0): void {
  const gap = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const at = (spot: Spot, sign: number): Spot => ({ x: spot.x + (sign * CIRCLE * (to.x - from.x)) / gap, y: spot.y + (sign * CIRCLE * (to.y - from.y)) / gap });
  const [a, b] = [at(from, 1), at(to, -1)];
  const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 + bend };
  drawing.append("path").attr("class", kind).attr("d", `M${a.x},${a.y}Q${middle.x},${middle.y} ${b.x},${b.y}`);
  if (kind.includes("along")) arrow(drawing, "head", b, Math.atan2(b.y - a.y, b.x - a.x));
}

/** The point of an arrow, so that it can be seen which way a loop runs. */
function arrow(drawing: Drawing, kind: string, tip: Spot, angle: number, size = 6): void {
  const corner = (turn: number): string => `${tip.x - size * Math.cos(angle + turn)},${tip.y - size * Math.sin(angle + turn)}`;
  drawing.append("path").attr("class", kind).attr("d", `M${tip.x},${tip.y}L${corner(0.5)}L${corner(-0.5)}Z`);
}

function drawStack(drawing: Drawing, stack: Stack, words: readonly string[], role: "read" | "written"): void {
  stack.levels.forEach((row, level) => {
    if (level > 0) joinLevels(drawing, stack, stack.levels[level - 1]!, row);
    if (level > 0 && stack.kind === "recurrent") loop(drawing, row, stack.both);
  });
  stack.levels.forEach((row, level) => row.forEach((spot) => {
    if (level === 0 && stack.kind === "places") return void drawing.append("rect").attr("class", "step").attr("x", spot.x - 9).attr("y", spot.y - 9).attr("width", 18).attr("height", 18);
    drawing.append("circle").attr("class", level === 0 ? "step given" : "step").attr("cx", spot.x).attr("cy", spot.y).attr("r", level === 0 ? 4 : CIRCLE);
  }));
  const edge = role === "read" ? stack.levels[0]! : stack.levels.at(-1)!;
  edge.forEach((spot, i) => drawing.append("text").attr("class", "word").attr("x", spot.x).attr("y", spot.y + (role === "read" ? 22 : -CIRCLE - 15)).attr("text-anchor", "middle").attr("dominant-baseline", "central").text(words[i] ?? ""));
}

/** From one level to the next: straight up, a window of neighbours, or everything to everything. */
function joinLevels(drawing: Drawing, { kind, causal }: Stack, below: readonly Spot[], above: readonly Spot[]): void {
  above.forEach((to, i) => below.forEach((from, j) => {
    const near = kind === "convolution" ? (causal ? i - j >= 0 && i - j <= 2 : Math.abs(i - j) <= 1) : kind === "attention" ? !causal || j <= i : i === j;
    if (near) line(drawing, kind === "attention" ? "flow fine" : "flow", from, to);
  }));
}

function loop(drawing: Drawing, row: readonly Spot[], both: boolean): void {
  row.slice(1).forEach((to, i) => {
    const from = row[i]!;
    line(drawing, "flow along", both ? { x: from.x, y: from.y - 4 } : from, both ? { x: to.x, y: to.y - 4 } : to);
    if (both) line(drawing, "flow along back", { x: to.x, y: to.y + 4 }, { x: from.x, y: from.y + 4 });
  });
}

/** Each step that writes can look at every step that was read; how much it does is measured elsewhere, so all are alike. */
function crossing(drawing: Drawing, read: readonly Spot[], written: readonly Spot[]): void {
  written.forEach((to) => read.forEach((from) => line(drawing, "look", from, to)));
}

/** In one network for both, the step over the border: what is known of the source crosses in this state. */
function narrow(drawing: Drawing, { levels }: Stack): void {
  for (const row of levels.slice(1)) {
    const [from, to] = [row[3]!, row[4]!];
    drawing.append("path").attr("class", "bottleneck").attr("d", `M${from.x + CIRCLE},${from.y}L${to.x - CIRCLE},${to.y}`);
  }
}

/** The one line through which everything must pass; or what is left of it where attention has taken its place. */
function bottleneck(drawing: Drawing, last: Spot, writing: readonly Spot[], kind: string, every: boolean): void {
  const first = writing[0]!;
  const middle = (last.y + first.y) / 2;
  drawing.append("path").attr("class", kind).attr("d", `M${last.x},${last.y - CIRCLE}C${last.x},${middle} ${first.x},${middle} ${first.x},${first.y + CIRCLE}`);
  if (every) writing.slice(1).forEach((to) => drawing.append("path").attr("class", "bottleneck thin").attr("d", `M${last.x},${last.y - CIRCLE}C${last.x},${middle} ${to.x},${middle} ${to.x},${to.y + CIRCLE}`));
}
